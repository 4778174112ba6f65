use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::plans::ids;
use crate::collective::*;
use crate::{NodeId, Schedule, Step};

const NODES: u32 = 7;
const OPERATIONS: usize = 24;
const LIMITS: SizeLimits = SizeLimits { nodes: NODES as usize, dimension: 3 };

/// A ring with links in both directions, which hands more on to the right.
fn ring() -> Arc<Schedule> {
    let both = |i| [(NodeId(i), NodeId((i + 1) % NODES), 0.4), (NodeId(i), NodeId((i + NODES - 1) % NODES), 0.2)];
    let links = (0..NODES).flat_map(both).collect();
    Arc::new(Schedule::new(NODES as usize, &[Step { keep: vec![0.4; NODES as usize], links }], 0).unwrap())
}

/// A node that runs one operation after the other; the input of each is the result of the one before.
struct Player {
    me: NodeId,
    trees: Arc<Trees>,
    channel: ReliableChannel<CollectiveSequence>,
    results: Vec<Vec<f64>>,
}

impl Player {
    fn new(plan: &Arc<Schedule>, me: NodeId) -> Self {
        let trees = Arc::new(Trees::of(plan).unwrap());
        let channel = ReliableChannel::new(CollectiveSequence::new(Arc::clone(plan), me));
        let mut player = Self { me, trees, channel, results: Vec::new() };
        player.begin();
        player
    }

    fn begin(&mut self) {
        let own = f64::from(self.me.0) + 0.25;
        let last = self.results.last().map_or(own, |result| result[0]);
        let (left, right) = (NodeId((self.me.0 + NODES - 1) % NODES), NodeId((self.me.0 + 1) % NODES));
        let sequence = self.channel.collective_mut();
        match self.results.len() % 5 {
            0 => sequence.begin_exchange(&[left, right], &[last + own, 1.0, own]),
            1 => sequence.begin_tracking(&[last, own], 2),
            2 => sequence.begin_extremum(Extreme::Max, &[last], 3),
            3 => sequence.begin_all_reduce(&self.trees, Reduction::Sum, &[last * own]),
            _ => sequence.begin_modular_sum(&self.trees, Modulus::TwoWords, vec![last.to_bits(), own.to_bits()]),
        }
        .unwrap();
    }

    /// Records results and begins the next operations, up to so many, while the present one is complete.
    fn advance(&mut self, operations: usize) {
        while self.channel.collective().is_complete() && self.results.len() < operations {
            let sequence = self.channel.collective();
            let result = match self.results.len() % 5 {
                0 => sequence.exchanged().unwrap().values().flat_map(|values| values.to_vec()).collect(),
                2 => sequence.extremum().unwrap().iter().map(|best| best.0).collect(),
                1 => sequence.average().unwrap().to_vec(),
                3 => sequence.reduced().unwrap().to_vec(),
                _ => sequence.summed().unwrap().iter().map(|word| (word >> 40) as f64).collect(),
            };
            self.results.push(result);
            if self.results.len() < operations {
                self.begin();
            }
        }
    }
}

/// The results of all operations at all nodes, over links that lose and double so many of their frames and deliver the
/// others in any order.
fn play(loss: f64, seed: u64) -> Vec<Vec<Vec<f64>>> {
    let (plan, mut dice) = (ring(), ChaCha8Rng::seed_from_u64(seed));
    let mut players: Vec<Player> = ids(plan.nodes()).map(|me| Player::new(&plan, me)).collect();
    let mut under_way: Vec<(NodeId, NodeId, Vec<u8>)> = Vec::new();
    while players.iter().any(|player| player.results.len() < OPERATIONS) {
        for player in &mut players {
            player.advance(OPERATIONS);
            while let Some((to, frame)) = player.channel.poll() {
                under_way.push((player.me, to, frame.encode()));
            }
        }
        if under_way.is_empty() {
            players.iter_mut().for_each(|player| player.channel.resend());
            continue;
        }
        let (from, to, bytes) = under_way.swap_remove(dice.random_range(0..under_way.len()));
        if dice.random_bool(loss / 2.0) {
            under_way.push((from, to, bytes.clone()));
        }
        if !dice.random_bool(loss) {
            let frame = Frame::<SequenceMessage>::decode(&bytes, &LIMITS).unwrap();
            players[to.index()].channel.handle(from, frame).unwrap();
        }
    }
    players.into_iter().map(|player| player.results).collect()
}

#[test]
fn loss_and_disorder_change_no_bit_of_any_operation() {
    let undisturbed = play(0.0, 0);
    for seed in 1..6 {
        assert!(play(0.2, seed) == undisturbed, "seed {seed}");
    }
    // Extrema and sums are the same at all nodes, and an exchange yields the vectors of both neighbours.
    for operation in (2..OPERATIONS).filter(|operation| operation % 5 >= 2) {
        assert!(undisturbed.iter().all(|results| results[operation] == undisturbed[0][operation]));
    }
    let exchange: Vec<f64> = undisturbed[3][0].chunks(3).map(|values| values[2]).collect();
    assert_eq!(exchange, [2.25, 4.25]);
}

#[test]
fn a_message_that_does_not_fit_its_operation_is_refused() {
    let plan = ring();
    let (me, left, stranger) = (NodeId(1), NodeId(0), NodeId(4));
    let mut sequence = CollectiveSequence::new(Arc::clone(&plan), me);
    let exchange = |operation, values: &[f64]| SequenceMessage {
        operation,
        payload: OperationMessage::Exchange(ExchangeMessage { values: values.into() }),
    };
    assert_eq!(sequence.handle(left, exchange(0, &[1.0])), Err(CollectiveFault::OtherCollective));
    assert_eq!(sequence.handle(stranger, exchange(1, &[1.0])), Err(CollectiveFault::NoSuchLink));
    let most = 2 * plan.nodes() + 16;
    (1..=most as u64).for_each(|number| sequence.handle(left, exchange(number, &[1.0])).unwrap());
    assert_eq!(sequence.handle(left, exchange(1000, &[1.0])), Err(CollectiveFault::TooFarAhead));
    sequence.begin_exchange(&[left, NodeId(2)], &[0.0]).unwrap();
    assert!(matches!(sequence.begin_exchange(&[left], &[0.0]), Err(CollectiveError::NotComplete { iteration: 1 })));
    sequence.handle(NodeId(2), exchange(1, &[3.0])).unwrap();
    assert_eq!(*sequence.exchanged().unwrap()[&left], [1.0]);
    // The neighbour that was ahead believes that an exchange comes next.
    let refused = sequence.begin_extremum(Extreme::Max, &[0.0], 1).unwrap_err();
    assert_eq!(refused, CollectiveError::Neighbour { from: left, fault: CollectiveFault::OtherCollective });
}

#[test]
fn nothing_is_exchanged_without_links_in_both_directions() {
    let one_way = Step { keep: vec![0.5; 3], links: (0..3).map(|i| (NodeId(i), NodeId((i + 1) % 3), 0.5)).collect() };
    let plan = Schedule::new(3, &[one_way], 0).unwrap();
    let refused = Exchange::new(&plan, NodeId(0), &[NodeId(1)], &[1.0]).unwrap_err();
    assert_eq!(refused, CollectiveError::NotANeighbour { me: NodeId(0), partner: NodeId(1) });
}
