//! The pace of rounds: a round is one of the whole swarm. Nodes that are cut off keep to its pace, and leave no node
//! behind.

use std::time::Duration;

use mingle_protocol::sim::{Fault, NetworkModel, Profile, Scenario, SimulatedSwarm, SwarmConfig, run_scenario};
use mingle_protocol::{InjectedBug, Node, NodeEvent, NodeId, Time, WaitPolicy};

use crate::support::*;
use crate::training::least_squares;

/// Eight nodes that are far from each other: a round of the swarm takes far longer than training.
fn swarm(policy: WaitPolicy, seed: u64, injected_bug: Option<InjectedBug>) -> SimulatedSwarm {
    let config = SwarmConfig {
        policy,
        seed,
        injected_bug,
        network: NetworkModel {
            delay: (Duration::from_millis(50), Duration::from_millis(400)),
            ..NetworkModel::streams()
        },
        training_time: (Duration::from_millis(1), Duration::from_millis(5)),
        ..least_squares(8, 3_000, 0.01)
    };
    SimulatedSwarm::new(config).unwrap()
}

/// Cuts nodes 0 and 1 off, each alone, for so many seconds. Returns the rounds of all nodes at the end of that, and the
/// rounds that each skipped until the swarm ended.
fn cut_two_off(mut swarm: SimulatedSwarm, span: u64) -> (Vec<u64>, Vec<u64>) {
    let from = 60;
    for (a, b) in [0, 1].into_iter().flat_map(|a| (a + 1..8).map(move |b| (NodeId(a), NodeId(b)))) {
        swarm.at(seconds(from), Fault::LinkDown(a, b));
        swarm.at(seconds(from + span), Fault::LinkUp(a, b));
    }
    swarm.run_until(seconds(from + span)).unwrap();
    let rounds = ids(8).map(|id| swarm.node(id).unwrap().round()).collect();
    swarm.run_until_drained(HOUR + Duration::from_secs(36_000)).unwrap();
    let skipped = |id| {
        let by = |(_, at, event): &(_, NodeId, NodeEvent)| match event {
            NodeEvent::CaughtUp { from, to } if *at == id => to - from,
            _ => 0,
        };
        swarm.events().iter().map(by).sum()
    };
    (rounds, ids(8).map(skipped).collect())
}

#[test]
fn nodes_that_are_cut_off_keep_the_pace_and_nobody_skips_rounds_when_they_are_back() {
    for policy in [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 4 }] {
        for seed in 1..4 {
            let (rounds, skipped) = cut_two_off(swarm(policy, seed, None), 8);
            println!("{policy:?}, seed {seed}: {rounds:?}, skipped {skipped:?}");
            let (slowest, fastest) = (rounds.iter().min().unwrap(), rounds.iter().max().unwrap());
            assert!(fastest - slowest <= 40, "{policy:?}, seed {seed}: {rounds:?}");
            assert_eq!(skipped, [0; 8], "{policy:?}, seed {seed}");
        }
    }
}

/// A peer that is stopped for an hour must not find that the nodes that stayed have used up its rounds.
#[test]
fn those_who_stay_keep_the_pace_when_the_others_stop_in_good_order() {
    for policy in [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 4 }] {
        let rounds = |injected_bug| {
            let mut swarm = swarm(policy, 5, injected_bug);
            for node in (0..8).filter(|node| *node != 3) {
                swarm.at(seconds(60), Fault::Stop(NodeId(node)));
            }
            swarm.run_until(seconds(60)).unwrap();
            let before = swarm.node(NodeId(3)).unwrap().round();
            swarm.run_until(seconds(90)).unwrap();
            (before, swarm.node(NodeId(3)).unwrap().round())
        };
        let (before, after) = rounds(None);
        println!("{policy:?}: {before} rounds in 60 s, {after} in 90 s");
        assert!(before > 50 && after > before && after < 2 * before, "{policy:?}: {before}, {after}");
        let (before, after) = rounds(Some(InjectedBug::NeverPaces));
        assert!(after > 2 * before, "{policy:?}, without a pace: {before}, {after}");
    }
}

#[test]
fn without_a_pace_they_race_ahead_and_the_others_skip_a_thousand_rounds() {
    let policy = WaitPolicy::Bounded { staleness: 4 };
    let sum = |skipped: &[u64]| skipped.iter().sum::<u64>();
    let (mut few_of_all, mut many_of_all) = (0, 0);
    for seed in 0..3 {
        let (paced, few) = cut_two_off(swarm(policy, seed, None), 60);
        let (rounds, many) = cut_two_off(swarm(policy, seed, Some(InjectedBug::NeverPaces)), 60);
        println!("with a pace {paced:?}, skipped {few:?}; without {rounds:?}, skipped {many:?}");
        assert_eq!(rounds[0], 3_000, "it is through with all of them");
        assert!(paced[0] < 2_500 && sum(&many) > 1_000, "{paced:?}, without a pace {many:?}");
        (few_of_all, many_of_all) = (few_of_all + sum(&few), many_of_all + sum(&many));
    }
    // It was 1.8 and 1.95 times as many over six seeds each.
    assert!(3 * few_of_all < 2 * many_of_all, "{few_of_all}, without a pace {many_of_all}");
}

#[test]
fn a_liar_does_not_hurry_a_swarm_that_averages_without_training() {
    // In the first, a node claims ever more progress, and others have no neighbour left that is due to send to them; in
    // the second its parcels are of steps that no node has come to. Others went through millions of rounds in a second.
    for seed in [666, 758] {
        let outcome = run_scenario(Profile::Hostile, seed, Scenario::new(Profile::Hostile, seed));
        assert_eq!(outcome.failure, None, "seed {seed}");
        assert!(outcome.events < 1_000_000, "seed {seed}: {} events", outcome.events);
    }
}

#[test]
fn a_liar_whose_parcels_are_of_far_steps_does_not_hurry_a_neighbour_that_does_not_train() {
    // A node took four thousand steps in an instant, with each message that came, until memory was gone.
    let scenario = Scenario::new(Profile::Hostile, 2_001_310);
    let mut swarm = SimulatedSwarm::new(scenario.config).unwrap();
    for (at, fault) in scenario.faults {
        swarm.at(at, fault);
    }
    swarm.run_until(Time::from_millis(13_300)).unwrap();
    let furthest = ids(5).filter_map(|id| swarm.node(id)).map(Node::step).max();
    assert!(furthest.is_some_and(|step| step < 1_000), "{furthest:?}");
}

#[test]
fn a_root_that_has_all_weight_of_a_tree_hands_it_down_without_waiting_for_a_permit() {
    // A round takes as long as a deadline here, since disks are slow. Once it was missed, the root took part in twenty rounds
    // with all weight, and gave none.
    let scenario = Scenario::new(Profile::Hostile, 2_000_037);
    // Without its faults: no node attacks.
    let mut swarm = SimulatedSwarm::new(scenario.config).unwrap();
    swarm.run_until(seconds(60)).unwrap();
    let rounds = rounds_of(&swarm).filter(|(id, _)| *id == NodeId(0));
    let without_parcel: Vec<bool> = rounds.map(|(_, report)| report.absorbed == 0).collect();
    let longest = without_parcel.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).max();
    assert!(without_parcel.len() > 20 && longest.is_none_or(|rounds| rounds < 5), "{without_parcel:?}");
}
