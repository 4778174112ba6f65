//! The end of a run: no node trains into a swarm that has gone, and the models that remain are mixed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mingle_protocol::sim::{Fault, NetworkModel, SimulatedSwarm, SwarmConfig};
use mingle_protocol::{Durability, NodeEvent, NodeId, NodeState, Schedule, Step, Time, WaitPolicy};

use crate::support::*;

const NODES: u32 = 8;
const ROUNDS: u64 = 60;
const LOCAL_STEPS: u32 = 5;
const SLOW: NodeId = NodeId(3);
const DYING: NodeId = NodeId(5);
/// The longest delay of a message.
const DELAY: Duration = Duration::from_millis(5);
/// Interval of looks at the swarm.
const TICK: Duration = Duration::from_millis(1);
/// A process that comes back does so when all others have finished.
const AWAY: Duration = Duration::from_secs(40);

/// Nodes of which each sends to three others, so that the rest stays connected without any one of them.
fn regular_plan() -> Arc<Schedule> {
    let receivers = |node| [1, 2, 4].map(|away| (NodeId(node), NodeId((node + away) % NODES), 0.25));
    let step = Step { keep: vec![0.25; NODES as usize], links: (0..NODES).flat_map(receivers).collect() };
    Arc::new(Schedule::new(NODES as usize, &[step], LOCAL_STEPS).unwrap())
}

/// A run that ends: its plan, the wait policy, how slow one site is, and the death of a process.
#[derive(Clone, Debug)]
struct Run {
    schedule: Arc<Schedule>,
    policy: WaitPolicy,
    slowness: u32,
    seed: u64,
    /// The time at which a process dies, as a part of that of the whole run.
    dies: Option<f64>,
    comes_back: bool,
}

/// A training that a node ordered when all its neighbours had finished or left, and for how long they had.
type InVain = (NodeId, u64, Duration);

/// The result of a run.
struct Ended {
    in_vain: Vec<InVain>,
    /// The largest distance of a model from the mean in the middle of the run.
    before: f32,
    /// The same of the final models of the nodes that never died.
    after: f32,
}

impl Run {
    fn new(policy: WaitPolicy, slowness: u32) -> Self {
        Self { schedule: regular_plan(), policy, slowness, seed: 1, dies: None, comes_back: false }
    }

    /// A swarm in which each node is drawn to a point of its own: what one learns alone shows in its model. Nodes push
    /// the trainings that they order to `orders`.
    fn swarm(&self, orders: &Rc<RefCell<Vec<(NodeId, u64)>>>) -> SimulatedSwarm {
        let orders = Rc::clone(orders);
        let initial = vec![vec![0.0]; NODES as usize];
        let config = SwarmConfig {
            policy: self.policy,
            seed: self.seed,
            slowness: BTreeMap::from([(SLOW, self.slowness)]),
            keeps_up: true,
            durability: Durability::On,
            network: NetworkModel { delay: (TICK, DELAY), ..NetworkModel::streams() },
            training_time: (Duration::from_millis(40), Duration::from_millis(60)),
            trainer: Box::new(move |id, round, from, steps| {
                orders.borrow_mut().push((id, round));
                let left = 0.98_f32.powi(steps as i32);
                from.iter().map(|z| (1.0 - left) * (10.0 * id.0 as f32 - z)).collect()
            }),
            ..SwarmConfig::averaging(Arc::clone(&self.schedule), initial, ROUNDS)
        };
        SimulatedSwarm::new(config).unwrap()
    }

    /// The time at which a node finishes where no process dies.
    fn usual_end(&self) -> Time {
        let mut swarm = self.swarm(&Rc::default());
        swarm.run_until_drained(HOUR).unwrap();
        let end = |(at, id, event): &(Time, NodeId, NodeEvent)| {
            (*id == NodeId(0) && matches!(event, NodeEvent::Draining { .. })).then_some(*at)
        };
        swarm.events().iter().find_map(end).unwrap()
    }

    fn end(&self) -> Ended {
        let orders = Rc::default();
        let mut swarm = self.swarm(&orders);
        let death = self.dies.map(|part| Time((self.usual_end().micros() as f64 * part) as u64));
        if let Some(at) = death {
            swarm.at(at, Fault::Crash(DYING));
            if self.comes_back {
                swarm.at(at + AWAY, Fault::Restart(DYING));
            }
        }
        let mut gone_since: BTreeMap<NodeId, Time> = BTreeMap::new();
        let (mut in_vain, mut seen, mut before) = (Vec::new(), 0, None);
        let is_over = |swarm: &SimulatedSwarm| {
            let is_due = self.comes_back && death.is_some_and(|at| swarm.now() < at + AWAY);
            !is_due && ids(NODES).all(|id| swarm.node(id).is_none_or(|node| node.state() == NodeState::Drained))
        };
        while !is_over(&swarm) {
            let now = swarm.now() + TICK;
            assert!(now < HOUR, "{self:?}: it never ends");
            swarm.run_until(now).unwrap();
            for id in ids(NODES) {
                if is_left_behind(&swarm, id) {
                    gone_since.entry(id).or_insert(now);
                } else {
                    gone_since.remove(&id);
                }
            }
            for &(id, round) in &orders.borrow()[seen..] {
                let since = gone_since.get(&id).map(|since| now.since(*since));
                // It may not have heard of that yet.
                in_vain.extend(since.filter(|since| *since > DELAY + 2 * TICK).map(|since| (id, round, since)));
            }
            seen = orders.borrow().len();
            if before.is_none() && swarm.node(NodeId(0)).is_some_and(|node| node.round() >= 2 * ROUNDS / 3) {
                before = Some(spread(&mut swarm));
            }
        }
        Ended { in_vain, before: before.unwrap(), after: spread(&mut swarm) }
    }
}

/// Returns `true` if all neighbours of a node have done their last round or are dead, and one is there.
fn is_left_behind(swarm: &SimulatedSwarm, id: NodeId) -> bool {
    let is_gone =
        |id| swarm.node(id).is_none_or(|node| matches!(node.state(), NodeState::Draining | NodeState::Drained));
    swarm.node(id).is_some_and(|node| {
        node.neighbours().all(is_gone) && node.neighbours().any(|neighbour| swarm.node(neighbour).is_some())
    })
}

/// The largest distance from their mean of the models of nodes that never die.
fn spread(swarm: &mut SimulatedSwarm) -> f32 {
    let models: Vec<f32> = ids(NODES).filter(|id| *id != DYING).map(|id| swarm.ratio(id)[0]).collect();
    let mean = models.iter().sum::<f32>() / models.len() as f32;
    models.iter().map(|model| (model - mean).abs()).fold(0.0, f32::max)
}

#[test]
fn nobody_trains_into_a_swarm_that_has_gone_and_the_final_models_are_mixed() {
    for policy in POLICIES {
        for slowness in [1, 10] {
            for dies in [None, Some(0.85), Some(0.98)] {
                for comes_back in [false, true] {
                    let run = Run { dies, comes_back, ..Run::new(policy, slowness) };
                    let Ended { in_vain, before, after } = run.end();
                    println!("{policy:?}, {slowness} times slower, {dies:?}, {comes_back}: {before} to {after}");
                    assert_eq!(in_vain, [], "{run:?}");
                    assert!(after < 0.3 * before, "{run:?}: {before} before the end, {after} after it");
                }
            }
        }
    }
}

/// By this plan most nodes hear of few others. When a process dies for good, some of them never hear that the swarm is
/// through, and one of them is so slow that the others go on without it.
#[test]
fn a_node_that_a_dead_neighbour_has_left_alone_with_those_that_are_through_trains_no_more() {
    for (seed, dies) in [(1, 0.85), (1, 0.93), (2, 0.93), (2, 0.98)] {
        let schedule = random_plan(NODES, NODES as usize, LOCAL_STEPS);
        let run = Run { schedule, seed, dies: Some(dies), ..Run::new(WaitPolicy::Sync, 100) };
        assert_eq!(run.end().in_vain, [], "seed {seed}, {dies}");
    }
}

/// The change of a training that was under way when the last neighbour finished is not a part of the final model: no
/// other node would mix it.
#[test]
fn a_change_that_comes_when_the_others_are_through_is_left_out_and_reported() {
    let mut left_out = 0;
    for policy in POLICIES {
        let run = Run::new(policy, 400);
        let mut swarm = run.swarm(&Rc::default());
        swarm.run_until_drained(HOUR).unwrap();
        let reason = mingle_protocol::SkippedDelta::OthersHaveGone;
        let is_left_out =
            |event: &NodeEvent| matches!(event, NodeEvent::DeltaSkipped { reason: why, .. } if *why == reason);
        left_out += swarm.events().iter().filter(|(_, id, event)| *id == SLOW && is_left_out(event)).count();
        let (before, after) = (run.end().before, spread(&mut swarm));
        println!("{policy:?}: {before} to {after}, {left_out} left out");
        assert!(after < 0.3 * before, "{policy:?}: {before} before the end, {after} after it");
    }
    assert!(left_out > 0);
}
