//! A swarm is faithful to its plan: its parcels are sent, weights are in hand, changes are counted once, and the models
//! at the end agree.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mingle_protocol::sim::{SimulatedSwarm, SwarmConfig, TrainFunction};
use mingle_protocol::{Codec, NodeId, Schedule, Step, Time, WaitPolicy};

use crate::support::*;
use crate::training::least_squares;

const NODES: u32 = 8;
const EVERY_POLICY: [WaitPolicy; 5] = [
    WaitPolicy::Sync,
    WaitPolicy::Bounded { staleness: 1 },
    WaitPolicy::Bounded { staleness: 2 },
    WaitPolicy::Bounded { staleness: 4 },
    WaitPolicy::Async,
];

/// Parcels that all nodes have sent.
fn parcels_sent(swarm: &SimulatedSwarm) -> u64 {
    let of_node =
        |id: NodeId| swarm.node(id).unwrap().ledger().outgoing.values().map(|link| link.next_seq - 1).sum::<u64>();
    swarm.nodes().map(of_node).sum()
}

/// Each node sends half of its weight to the next one: two nodes exchange halves.
fn ring(nodes: u32) -> Arc<Schedule> {
    let links = ids(nodes).map(|from| (from, NodeId((from.0 + 1) % nodes), 0.5)).collect();
    Arc::new(Schedule::new(nodes as usize, &[Step { keep: vec![0.5; nodes as usize], links }], 1).unwrap())
}

#[test]
fn on_healthy_links_the_parcels_of_the_plan_are_sent_and_weights_are_in_hand_whatever_the_policy() {
    const ROUNDS: u64 = 300;
    for policy in EVERY_POLICY {
        for seed in 0..3 {
            let config = SwarmConfig { policy, seed, ..least_squares(NODES, ROUNDS, 0.02) };
            let links: usize = ids(NODES).map(|id| config.schedule.out_links(id, 0).len()).sum();
            let planned = ROUNDS * links as u64;
            let mut swarm = SimulatedSwarm::new(config).unwrap();
            swarm.run_until_drained(HOUR).unwrap();
            let sent = parcels_sent(&swarm);
            let held: f64 = rounds_of(&swarm).map(|(_, report)| report.mass.to_f64()).sum();
            let in_hand = held / (ROUNDS * u64::from(NODES)) as f64;
            println!("{policy:?}, seed {seed}: {sent} of {planned} parcels, {in_hand:.3} of the weight in hand");
            assert!(sent as f64 >= 0.95 * planned as f64, "{policy:?}, seed {seed}: {sent} of {planned} parcels");
            assert!(in_hand >= 0.9, "{policy:?}, seed {seed}: {in_hand} of the weight in hand");
        }
    }
}

#[test]
fn nodes_that_hear_of_one_other_send_the_parcels_of_the_plan_however_they_fall_out_of_step() {
    const ROUNDS: u64 = 300;
    // In a ring no training takes as long as the messages.
    for (nodes, longest_training) in [(2, 20), (5, 2)] {
        for policy in EVERY_POLICY {
            for seed in 0..6 {
                let config = SwarmConfig {
                    policy,
                    seed,
                    training_time: (Duration::from_millis(1), Duration::from_millis(longest_training)),
                    ..SwarmConfig::averaging(ring(nodes), vec![vec![0.0]; nodes as usize], ROUNDS)
                };
                let mut swarm = SimulatedSwarm::new(config).unwrap();
                swarm.run_until_drained(HOUR).unwrap();
                let (sent, planned) = (parcels_sent(&swarm), ROUNDS * u64::from(nodes));
                let found = format!("{nodes} nodes, {policy:?}, seed {seed}: {sent} of {planned} parcels");
                assert!(sent as f64 >= 0.95 * planned as f64, "{found}");
            }
        }
    }
}

#[test]
fn pure_averaging_contracts_as_it_does_where_all_wait_for_all() {
    let distance_after = |policy, rounds| {
        let config = averaging(random_plan(NODES, 8, 0), NODES, rounds);
        let mean = mean_of(&config.initial);
        let mut swarm = SimulatedSwarm::new(SwarmConfig { policy, ..config }).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        f64::from(worst_distance(&mut swarm, NODES, &mean) as f32)
    };
    let contraction = |policy| (distance_after(policy, 20) / distance_after(policy, 10)).powf(0.1);
    let forecast = contraction(WaitPolicy::Sync);
    for policy in EVERY_POLICY {
        let found = contraction(policy);
        println!("{policy:?}: {found:.4} a round, in step {forecast:.4}");
        assert!((found / forecast - 1.0).abs() < 0.1, "{policy:?}: {found} a round instead of {forecast}");
    }
}

/// A swarm whose trainer gives changes that do not depend on the model, and the sum of all that it gave, `[5]`.
fn giving(config: SwarmConfig) -> (SwarmConfig, Rc<RefCell<Vec<f64>>>) {
    let given = Rc::new(RefCell::new(vec![0.0; 5]));
    let sum = Rc::clone(&given);
    let trainer: TrainFunction = Box::new(move |id, round, _, _| {
        let change = |k: u64| ((u64::from(id.0) + 3 * round + k) % 5) as f32 - 1.0;
        let delta: Vec<f32> = (0..5).map(change).collect();
        sum.borrow_mut().iter_mut().zip(&delta).for_each(|(sum, change)| *sum += f64::from(*change));
        delta
    });
    (SwarmConfig { trainer, clip: None, ..config }, given)
}

#[test]
fn learning_is_conserved_as_weights_are_though_most_messages_are_lost() {
    for policy in POLICIES {
        for seed in 0..3 {
            let plan = random_plan(NODES, 4, 1);
            let config = averaging(plan, NODES, 200).over_datagrams(0.7, 0.1);
            let initial = config.initial.clone();
            let (config, given) = giving(SwarmConfig { policy, seed, ..config });
            let mut swarm = SimulatedSwarm::new(config).unwrap();
            swarm.run_until_drained(HOUR).unwrap();
            assert!(swarm.audit().is_complete(), "{policy:?}, seed {seed}: {}", swarm.audit());
            for k in 0..5 {
                let held = |id: NodeId| {
                    let node = swarm.node(id).unwrap();
                    let waits = node.held_back().map_or(0.0, |sum| f64::from(sum[k]));
                    f64::from(node.numerator()[k]) + waits
                };
                let found: f64 = ids(NODES).map(held).sum();
                let began: f64 = initial.iter().map(|vector| f64::from(vector[k])).sum();
                let expected = began + given.borrow()[k];
                let error = (found - expected).abs() / expected.abs();
                assert!(error < 1e-3, "{policy:?}, seed {seed}, coordinate {k}: {found} instead of {expected}");
            }
        }
    }
}

#[test]
fn the_last_rounds_leave_less_than_a_tenth_of_the_disagreement_of_those_that_train() {
    const ROUNDS: u64 = 120;
    for policy in EVERY_POLICY {
        let config = SwarmConfig {
            policy,
            training_time: (Duration::from_millis(1), Duration::from_millis(20)),
            ..least_squares(NODES, ROUNDS, 0.02)
        };
        let closing = config.schedule.closing_rounds(ROUNDS);
        assert!(closing > 0 && closing < ROUNDS / 3, "{closing}");
        let mut swarm = SimulatedSwarm::new(config).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        let worst = |round: u64| {
            let of_round = rounds_of(&swarm).filter(|(_, report)| report.round == round);
            of_round.filter_map(|(_, report)| report.disagreement).fold(0.0, f64::max)
        };
        let (training, last) = (worst(ROUNDS - closing - 1), worst(ROUNDS - 1));
        println!("{policy:?}: {training:.2e} with training, {last:.2e} in the last of {closing} rounds without");
        assert!(last <= 0.1 * training, "{policy:?}: {last} at the end, {training} before");
    }
}

/// In each step every node sends half to the one that is a power of two further.
fn one_peer_exponential(nodes: u32) -> Arc<Schedule> {
    let hops = (0..nodes.ilog2() + u32::from(!nodes.is_power_of_two())).map(|power| 1 << power);
    let steps: Vec<Step> = hops
        .map(|hop| Step {
            keep: vec![0.5; nodes as usize],
            links: ids(nodes).map(|from| (from, NodeId((from.0 + hop) % nodes), 0.5)).collect(),
        })
        .collect();
    Arc::new(Schedule::new(nodes as usize, &steps, 1).unwrap().with_round_length(1).unwrap())
}

/// Nodes that train for unequal times, each towards a point of its own and always as hard.
fn pulled_apart(schedule: &Arc<Schedule>, policy: WaitPolicy, seed: u64, rounds: u64) -> SimulatedSwarm {
    let nodes = schedule.nodes();
    let config = SwarmConfig {
        policy,
        seed,
        training_time: (Duration::from_millis(1), Duration::from_millis(20)),
        trainer: Box::new(|id, _, z, _| z.iter().map(|z| 0.1 * (id.0 as f32 - z)).collect()),
        ..SwarmConfig::averaging(Arc::clone(schedule), vec![vec![0.0]; nodes], rounds)
    };
    SimulatedSwarm::new(config).unwrap()
}

#[test]
fn nodes_that_send_to_one_other_in_turn_end_with_less_than_a_tenth_of_the_disagreement() {
    let policies = [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 4 }, WaitPolicy::Async];
    for (nodes, policy) in [3, 4, 5, 6, 8, 12].into_iter().flat_map(|nodes| policies.map(|policy| (nodes, policy))) {
        let schedule = one_peer_exponential(nodes);
        let while_training = |seed: u64| {
            let mut swarm = pulled_apart(&schedule, policy, seed, 1_000);
            swarm.run_until(Time::default() + Duration::from_millis(700 + 13 * seed)).unwrap();
            apart(&mut swarm)
        };
        let mut usual: Vec<f32> = (0..9).map(while_training).collect();
        usual.sort_by(f32::total_cmp);
        let at_the_end = |(rounds, seed)| {
            let mut swarm = pulled_apart(&schedule, policy, seed, rounds);
            swarm.run_until_drained(HOUR).unwrap();
            apart(&mut swarm)
        };
        let ends = (60..63).flat_map(|rounds| (0..5).map(move |seed| (rounds, seed)));
        let worst = ends.map(at_the_end).fold(0.0, f32::max);
        println!("{nodes} nodes, {policy:?}: {} apart while training, {worst} at most at the end", usual[4]);
        assert!(worst <= 0.1 * usual[4], "{nodes} nodes, {policy:?}: {worst} at the end, {} before", usual[4]);
    }
}

/// The largest distance of two nodes' models.
fn apart(swarm: &mut SimulatedSwarm) -> f32 {
    let models: Vec<Arc<[f32]>> = swarm.nodes().collect::<Vec<_>>().into_iter().map(|id| swarm.ratio(id)).collect();
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    models.iter().flat_map(|a| models.iter().map(move |b| distance(a, b))).fold(0.0, f32::max)
}

/// Two nodes that exchange halves for three rounds, and average exactly over a tree in the fourth.
fn periodic_average_of_two() -> Arc<Schedule> {
    let gossip = Step { keep: vec![0.5; 2], links: vec![(NodeId(0), NodeId(1), 0.5), (NodeId(1), NodeId(0), 0.5)] };
    let idle = Step { keep: vec![1.0; 2], links: Vec::new() };
    let up = Step { keep: vec![1.0, 0.0], links: vec![(NodeId(1), NodeId(0), 1.0)] };
    let down = Step { keep: vec![0.5, 1.0], links: vec![(NodeId(0), NodeId(1), 0.5)] };
    let mut steps: Vec<Step> = std::iter::repeat_n([gossip, idle], 3).flatten().collect();
    steps.extend([up, down]);
    Arc::new(Schedule::new(2, &steps, 1).unwrap().with_round_length(2).unwrap())
}

#[test]
fn two_nodes_out_of_step_that_average_exactly_now_and_then_agree_at_any_end_of_a_period() {
    for (policy, rounds) in EVERY_POLICY.into_iter().flat_map(|policy| (60..64).map(move |rounds| (policy, rounds))) {
        for (codec, seed) in
            [Codec::F32, Codec::Int4].into_iter().flat_map(|codec| (0..4).map(move |seed| (codec, seed)))
        {
            let config = SwarmConfig {
                policy,
                seed,
                codec,
                training_time: (Duration::from_millis(1), Duration::from_millis(20)),
                trainer: Box::new(|id, _, z, _| z.iter().map(|z| 0.1 * (id.0 as f32 - z)).collect()),
                ..SwarmConfig::averaging(periodic_average_of_two(), vec![vec![0.0; 64], vec![1.0; 64]], rounds)
            };
            let mut swarm = SimulatedSwarm::new(config).unwrap();
            swarm.run_until_drained(HOUR).unwrap();
            let left = apart(&mut swarm);
            println!("{policy:?}, {codec}, {rounds} rounds, seed {seed}: {left} apart");
            assert!(left < 0.01, "{policy:?}, {codec}, {rounds} rounds, seed {seed}: {left} apart");
        }
    }
}

#[test]
fn two_nodes_out_of_step_end_with_less_than_a_tenth_of_the_disagreement_that_training_left() {
    const ROUNDS: u64 = 60;
    for (policy, seed) in EVERY_POLICY.into_iter().flat_map(|policy| (0..8).map(move |seed| (policy, seed))) {
        let config = SwarmConfig {
            policy,
            seed,
            training_time: (Duration::from_millis(1), Duration::from_millis(20)),
            // Each pulls towards a point of its own, always as hard.
            trainer: Box::new(|id, _, z, _| z.iter().map(|z| 0.1 * (id.0 as f32 - z)).collect()),
            ..SwarmConfig::averaging(ring(2), vec![vec![0.0], vec![1.0]], ROUNDS)
        };
        let mut swarm = SimulatedSwarm::new(config).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        let left = apart(&mut swarm);
        // A step of training moves the two apart by a tenth of the distance of their points.
        assert!(left < 0.01, "{policy:?}, seed {seed}: {left} apart");
    }
}

/// The largest number of rounds that a node has finished more than one that it sends to, in these rounds.
fn largest_lead(swarm: &SimulatedSwarm, schedule: &Schedule, rounds: &Range<u64>) -> u64 {
    let mut finished = vec![0; schedule.nodes()];
    let mut largest = 0;
    for (id, report) in rounds_of(swarm) {
        finished[id.index()] = report.round + 1;
        let leads =
            schedule.all_out_neighbours(id).iter().map(|to| (report.round + 1).saturating_sub(finished[to.index()]));
        if rounds.contains(&report.round) {
            largest = leads.fold(largest, u64::max);
        }
    }
    largest
}

#[test]
fn nodes_are_at_most_k_rounds_ahead_of_those_that_they_send_to() {
    for staleness in [1, 2, 4, 8, 16] {
        for seed in 0..3 {
            let config = SwarmConfig {
                policy: WaitPolicy::Bounded { staleness },
                seed,
                schedule: random_plan(NODES, 4, 1),
                slowness: [(NodeId(2), 8)].into(),
                keeps_up: false,
                ..least_squares(NODES, 400, 0.02)
            };
            let schedule = Arc::clone(&config.schedule);
            let mut swarm = SimulatedSwarm::new(config).unwrap();
            swarm.run_until_drained(HOUR).unwrap();
            // No node waits beyond its deadline, which is short before it knows the pace, and in rounds that only mix.
            let rounds = 20..WaitPolicy::Bounded { staleness }.training_rounds(&schedule, 400);
            let lead = largest_lead(&swarm, &schedule, &rounds);
            println!("bounded:{staleness}, seed {seed}: {lead} rounds ahead at most");
            // One round is under way, and one is over before its acknowledgement arrives.
            assert!(lead <= staleness + 2, "bounded:{staleness}, seed {seed}: {lead} rounds ahead");
        }
    }
}
