//! Members that leave for good, neighbours that were away meanwhile, and parcels that all refuse.

use std::time::Duration;

use mingle_protocol::sim::{Fault, NetworkModel, Profile, Scenario, SimulatedSwarm, SwarmConfig, run_scenario};
use mingle_protocol::*;

use super::support::{linked, seconds};

const SOMEONE_AWAY: NodeId = NodeId(0);
const LEAVER: NodeId = NodeId(1);

/// Four durable nodes that average over slow links, until they are stopped. All of them send to all, except that the
/// leaver does not send to the one that will be away: it would have to wait for that one to take what it owes.
fn swarm(seed: u64) -> SwarmConfig {
    let initial = (0..4).map(|node| vec![node as f32, 1.0]).collect();
    SwarmConfig {
        durability: Durability::On,
        policy: WaitPolicy::Async,
        seed,
        network: NetworkModel {
            delay: (Duration::from_millis(50), Duration::from_millis(400)),
            ..NetworkModel::streams()
        },
        ..SwarmConfig::averaging(linked(&[&[1, 2, 3], &[2, 3], &[0, 1, 3], &[0, 1, 2]]), initial, u64::MAX / 8)
    }
}

fn count(swarm: &SimulatedSwarm, is_one: impl Fn(NodeId, &NodeEvent) -> bool) -> usize {
    swarm.events().iter().filter(|(_, id, event)| is_one(*id, event)).count()
}

#[test]
fn a_neighbour_that_was_away_takes_back_what_the_leaver_did_not_apply() {
    let mut returned = 0;
    for seed in 0..20 {
        let mut swarm = SimulatedSwarm::new(swarm(seed)).unwrap();
        swarm.at(seconds(3), Fault::LinkDown(SOMEONE_AWAY, LEAVER));
        swarm.at(seconds(4), Fault::Leave(LEAVER));
        // It must not matter that the link comes back: the leaver is gone.
        swarm.at(seconds(30), Fault::LinkUp(SOMEONE_AWAY, LEAVER));
        for node in 0..4 {
            swarm.at(seconds(60), Fault::Stop(NodeId(node)));
        }
        swarm.run_until(seconds(60)).unwrap();
        swarm.run_until_drained(seconds(600)).unwrap();
        assert!(swarm.node(LEAVER).is_none(), "seed {seed}: it is still there");
        assert_eq!(count(&swarm, |_, event| *event == NodeEvent::MemberLeft { peer: LEAVER }), 3, "seed {seed}");
        assert_eq!(swarm.held(), 4 * u128::from(UNITS_PER_ONE), "seed {seed}");
        let is_return =
            |id, event: &NodeEvent| id == SOMEONE_AWAY && matches!(event, NodeEvent::MassReturned { peer: LEAVER, .. });
        returned += count(&swarm, is_return);
        let (numerators, expected) = swarm.numerators();
        assert!((numerators[0] - expected[0]).abs() < 1e-3, "seed {seed}: {numerators:?}, {expected:?}");
    }
    assert!(returned >= 5, "{returned} returns");
}

#[test]
fn a_leaver_that_is_killed_on_its_way_out_leaves_all_the_same() {
    for seed in 0..20 {
        let mut swarm = SimulatedSwarm::new(swarm(seed)).unwrap();
        swarm.at(seconds(4), Fault::Leave(LEAVER));
        for kill in 0..6 {
            let at = Time::from_millis(4_100 + 700 * kill);
            swarm.at(at, Fault::Crash(LEAVER));
            swarm.at(at + Duration::from_millis(300), Fault::Restart(LEAVER));
        }
        for node in 0..4 {
            swarm.at(seconds(90), Fault::Stop(NodeId(node)));
        }
        swarm.run_until(seconds(90)).unwrap();
        swarm.run_until_drained(seconds(900)).unwrap();
        assert!(swarm.node(LEAVER).is_none(), "seed {seed}: it is still there");
        assert_eq!(swarm.held(), 4 * u128::from(UNITS_PER_ONE), "seed {seed}");
    }
}

#[test]
fn parcels_that_cannot_be_believed_go_back_and_their_sender_is_left_alone_with_its_mass() {
    for seed in 0..20 {
        let mut config = SwarmConfig { largest_norm: Some(100.0), ..swarm(seed) };
        config.initial[0] = vec![1e6, 1e6];
        let mut swarm = SimulatedSwarm::new(config).unwrap();
        swarm.at(seconds(5), Fault::Crash(NodeId(2)));
        swarm.at(seconds(7), Fault::Restart(NodeId(2)));
        for node in 0..4 {
            swarm.at(seconds(60), Fault::Stop(NodeId(node)));
        }
        swarm.run_until(seconds(60)).unwrap();
        swarm.run_until_drained(seconds(600)).unwrap();
        assert_eq!(swarm.held(), 4 * u128::from(UNITS_PER_ONE), "seed {seed}");
        for node in (1..4).map(NodeId) {
            let ratio = swarm.ratio(node);
            // A mean of 1, 2 and 3, of which some went to the fourth node before it was left alone.
            assert!((1.0..=3.0).contains(&ratio[0]), "seed {seed}: node {node} is at {ratio:?}");
            let is_refusal = |id, event: &NodeEvent| id == node && matches!(event, NodeEvent::ParcelRefused { .. });
            assert!(count(&swarm, is_refusal) >= 1, "seed {seed}: node {node} refused nothing");
        }
        assert!(count(&swarm, |id, event| id == NodeId(0) && matches!(event, NodeEvent::MassReturned { .. })) >= 1);
        assert_eq!(count(&swarm, |_, event| matches!(event, NodeEvent::RollbackDetected { .. })), 0, "seed {seed}");
    }
}

#[test]
fn weights_add_up_where_all_members_of_a_plan_leave_before_it_begins() {
    // The processes that the plan leaves out end with parcels under way, in a generation that none replaces.
    for seed in [100_635, 101_754, 3_000_015, 3_000_570] {
        let scenario = Scenario::new(Profile::Churn, seed);
        assert_eq!(run_scenario(Profile::Churn, seed, scenario).failure, None, "seed {seed}");
    }
}
