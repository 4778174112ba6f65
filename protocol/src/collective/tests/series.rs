use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::plans::ids;
use crate::collective::*;
use crate::{NodeId, Schedule, Step};

const NODES: u32 = 7;
const TURNS: usize = 24;
const LIMITS: SizeLimits = SizeLimits { nodes: NODES as usize, dimension: 3 };

/// A ring with links in both directions, which hands more on to the right.
fn ring() -> Arc<Schedule> {
    let both = |i| [(NodeId(i), NodeId((i + 1) % NODES), 0.4), (NodeId(i), NodeId((i + NODES - 1) % NODES), 0.2)];
    let links = (0..NODES).flat_map(both).collect();
    Arc::new(Schedule::new(NODES as usize, &[Step { keep: vec![0.4; NODES as usize], links }], 0).unwrap())
}

/// Takes turn after turn; what it puts into one is what it got out of the one before.
struct Player {
    me: NodeId,
    trees: Arc<Trees>,
    courier: Courier<Series>,
    results: Vec<Vec<f64>>,
}

impl Player {
    fn new(plan: &Arc<Schedule>, me: NodeId) -> Self {
        let trees = Arc::new(Trees::of(plan).unwrap());
        let courier = Courier::new(Series::new(Arc::clone(plan), me));
        let mut player = Self { me, trees, courier, results: Vec::new() };
        player.begin();
        player
    }

    fn begin(&mut self) {
        let own = f64::from(self.me.0) + 0.25;
        let last = self.results.last().map_or(own, |result| result[0]);
        let (left, right) = (NodeId((self.me.0 + NODES - 1) % NODES), NodeId((self.me.0 + 1) % NODES));
        let series = self.courier.collective_mut();
        match self.results.len() % 4 {
            0 => series.begin_exchange(&[left, right], &[last + own, 1.0, own]),
            1 => series.begin_tracking(&[last, own], 2),
            2 => series.begin_extremum(Direction::Max, &[last], 3),
            _ => series.begin_all_reduce(&self.trees, Reduction::Sum, &[last * own]),
        }
        .unwrap();
    }

    /// Begins turns as long as they are complete, up to so many.
    fn advance(&mut self, turns: usize) {
        while self.courier.collective().is_complete() && self.results.len() < turns {
            let series = self.courier.collective();
            let result = match self.results.len() % 4 {
                0 => series.exchanged().unwrap().values().flat_map(|values| values.to_vec()).collect(),
                2 => series.extremum().unwrap().iter().map(|best| best.0).collect(),
                1 => series.average().unwrap().to_vec(),
                _ => series.reduced().unwrap().to_vec(),
            };
            self.results.push(result);
            if self.results.len() < turns {
                self.begin();
            }
        }
    }
}

/// The results of all turns at all nodes, over links that lose and double so many of their frames and deliver the others in
/// any order.
fn play(loss: f64, seed: u64) -> Vec<Vec<Vec<f64>>> {
    let (plan, mut dice) = (ring(), ChaCha8Rng::seed_from_u64(seed));
    let mut players: Vec<Player> = ids(plan.nodes()).map(|me| Player::new(&plan, me)).collect();
    let mut under_way: Vec<(NodeId, NodeId, Vec<u8>)> = Vec::new();
    while players.iter().any(|player| player.results.len() < TURNS) {
        for player in &mut players {
            player.advance(TURNS);
            while let Some((to, frame)) = player.courier.poll() {
                under_way.push((player.me, to, frame.encode()));
            }
        }
        if under_way.is_empty() {
            players.iter_mut().for_each(|player| player.courier.resend());
            continue;
        }
        let (from, to, bytes) = under_way.swap_remove(dice.random_range(0..under_way.len()));
        if dice.random_bool(loss / 2.0) {
            under_way.push((from, to, bytes.clone()));
        }
        if !dice.random_bool(loss) {
            let frame = Frame::<Turn>::decode(&bytes, &LIMITS).unwrap();
            players[to.index()].courier.handle(from, frame).unwrap();
        }
    }
    players.into_iter().map(|player| player.results).collect()
}

#[test]
fn loss_and_disorder_change_no_bit_of_any_turn() {
    let undisturbed = play(0.0, 0);
    for seed in 1..6 {
        assert!(play(0.2, seed) == undisturbed, "seed {seed}");
    }
    // Extrema and sums are the same at all nodes, and what was exchanged is what the neighbours said.
    for turn in (2..TURNS).filter(|turn| turn % 4 >= 2) {
        assert!(undisturbed.iter().all(|results| results[turn] == undisturbed[0][turn]));
    }
    let said: Vec<f64> = undisturbed[3][0].chunks(3).map(|values| values[2]).collect();
    assert_eq!(said, [2.25, 4.25]);
}

#[test]
fn a_message_that_does_not_fit_its_turn_is_refused() {
    let plan = ring();
    let (me, left, stranger) = (NodeId(1), NodeId(0), NodeId(4));
    let mut series = Series::new(Arc::clone(&plan), me);
    let said = |number, values: &[f64]| Turn { number, talk: Talk::Said(Said { values: values.into() }) };
    assert_eq!(series.handle(left, said(0, &[1.0])), Err(CollectiveFault::OtherCollective));
    assert_eq!(series.handle(stranger, said(1, &[1.0])), Err(CollectiveFault::NoSuchLink));
    let most = 2 * plan.nodes() + 16;
    (1..=most as u64).for_each(|number| series.handle(left, said(number, &[1.0])).unwrap());
    assert_eq!(series.handle(left, said(1000, &[1.0])), Err(CollectiveFault::TooFarAhead));
    series.begin_exchange(&[left, NodeId(2)], &[0.0]).unwrap();
    assert!(matches!(series.begin_exchange(&[left], &[0.0]), Err(CollectiveError::NotComplete { iteration: 1 })));
    series.handle(NodeId(2), said(1, &[3.0])).unwrap();
    assert_eq!(*series.exchanged().unwrap()[&left], [1.0]);
    // The neighbour that was ahead believes that an exchange comes next.
    let refused = series.begin_extremum(Direction::Max, &[0.0], 1).unwrap_err();
    assert_eq!(refused, CollectiveError::Neighbour { from: left, fault: CollectiveFault::OtherCollective });
}

#[test]
fn nothing_is_exchanged_without_links_in_both_directions() {
    let one_way = Step { keep: vec![0.5; 3], links: (0..3).map(|i| (NodeId(i), NodeId((i + 1) % 3), 0.5)).collect() };
    let plan = Schedule::new(3, &[one_way], 0).unwrap();
    let refused = Exchange::new(&plan, NodeId(0), &[NodeId(1)], &[1.0]).unwrap_err();
    assert_eq!(refused, CollectiveError::NotANeighbour { me: NodeId(0), partner: NodeId(1) });
}
