//! Nodes with records: killed, cut off and rolled back, and no mass is lost while disks survive.

use std::time::Duration;

use mingle_protocol::sim::{Fault, Profile, Scenario, SeedOutcome, SimulatedSwarm, SwarmConfig, run_scenario};
use mingle_protocol::{Durability, NodeId, Time, WaitPolicy};

use crate::support::*;

fn run(profile: Profile, seed: u64) -> SeedOutcome {
    run_scenario(profile, seed, Scenario::new(profile, seed))
}

/// Runs so many seeds, each of which must end well; returns their outcomes.
fn survive(profile: Profile, seeds: u64) -> Vec<SeedOutcome> {
    let outcomes = (0..seeds).map(|seed| run(profile, seed));
    outcomes.inspect(|outcome| assert_eq!(outcome.failure, None, "{profile}, seed {}", outcome.seed)).collect()
}

fn sum(outcomes: &[SeedOutcome], count: fn(&SeedOutcome) -> u64) -> u64 {
    outcomes.iter().map(count).sum()
}

#[test]
fn mass_survives_kill_dash_nine() {
    let outcomes = survive(Profile::Kill, 40);
    let (kills, checks) = (sum(&outcomes, |outcome| outcome.kills), sum(&outcomes, |outcome| outcome.disk_checks));
    assert!(kills > 1_000 && checks > 10_000, "{kills} kills, {checks} checks");
    assert!(
        sum(&outcomes, |outcome| outcome.wire_checks) > 10 * checks,
        "every event is checked, not only every record"
    );
    assert_eq!(sum(&outcomes, |outcome| outcome.rollbacks), 0, "no disk was rolled back");
    assert_eq!(sum(&outcomes, |outcome| outcome.unreadable), 0, "a crash leaves nothing that cannot be relied on");
}

#[test]
fn mass_survives_in_exact_averages_of_differences() {
    let outcomes = survive(Profile::ExactAverage, 30);
    let (kills, checks) = (sum(&outcomes, |outcome| outcome.kills), sum(&outcomes, |outcome| outcome.disk_checks));
    assert!(kills > 300 && checks > 3_000, "{kills} kills, {checks} checks");
    // A deep tree, whose rounds have more than eight steps.
    assert_eq!(run(Profile::ExactAverage, 5_146).failure, None);
}

#[test]
fn mass_survives_the_loss_of_most_messages() {
    let outcomes = survive(Profile::Loss, 4);
    assert!(sum(&outcomes, SeedOutcome::checks) > 1_000);
}

#[test]
fn mass_survives_partitions_of_an_hour() {
    let outcomes = survive(Profile::Partition, 2);
    let partitions = sum(&outcomes, |outcome| outcome.partitions);
    assert!(partitions >= 8, "{partitions} partitions");
    let hours = outcomes.iter().all(|outcome| outcome.ended.micros() > 12 * 3_600_000_000);
    assert!(hours, "{outcomes:?}");
}

#[test]
fn mass_survives_everything_at_once() {
    let outcomes = survive(Profile::Mixed, 4);
    assert!(sum(&outcomes, |outcome| outcome.kills) > 40);
    assert!(sum(&outcomes, |outcome| outcome.partitions) > 0);
    assert!(sum(&outcomes, |outcome| outcome.disk_faults) > 20);
}

#[test]
fn nodes_on_disks_that_were_set_back_find_out_or_add_up() {
    let mut rollbacks = 0;
    for (profile, seeds) in [(Profile::Rollback, 12), (Profile::LossyDisk, 6)] {
        let outcomes = survive(profile, seeds);
        assert!(sum(&outcomes, |outcome| outcome.disk_faults) > 0, "{profile}");
        rollbacks += sum(&outcomes, |outcome| outcome.rollbacks);
    }
    assert!(rollbacks > 10, "{rollbacks} rollbacks");
}

/// Five nodes on records, one of which dies; its disk is harmed by `harms`, and it starts again.
fn harmed(harms: &[Fault], seed: u64) -> SimulatedSwarm {
    let config = SwarmConfig {
        durability: Durability::On,
        seed,
        drain_deadline: Duration::from_secs(3_600),
        ..averaging(random_plan(5, 6, 0), 5, u64::MAX / 8)
    };
    let mut swarm = SimulatedSwarm::new(config).unwrap();
    swarm.at(Time::from_millis(3_000), Fault::Crash(NodeId(0)));
    harms.iter().for_each(|harm| swarm.at(Time::from_millis(3_100), *harm));
    swarm.at(Time::from_millis(4_000), Fault::Restart(NodeId(0)));
    swarm
}

fn finish(swarm: &mut SimulatedSwarm) {
    let nodes: Vec<NodeId> = swarm.nodes().collect();
    nodes.into_iter().for_each(|id| swarm.at(Time::from_millis(20_000), Fault::Stop(id)));
    swarm.run_until(Time::from_millis(20_000)).unwrap();
    swarm.run_until_drained(HOUR).unwrap();
}

#[test]
fn a_disk_on_which_nothing_needed_is_spoiled_costs_nothing_and_is_still_checked() {
    let (mut exact, mut noticed) = (0, 0);
    for seed in 0..40 {
        let mut swarm = harmed(&[Fault::FlipBit(NodeId(0), seed)], seed);
        swarm.run_until(Time::from_millis(4_000)).unwrap();
        let before = swarm.disk_checks();
        finish(&mut swarm);
        let (held, owed, brought) = swarm.on_disk();
        if swarm.is_exact() {
            exact += 1;
            assert!(swarm.disk_checks() > before, "seed {seed}");
            assert_eq!((held, owed, swarm.was_rolled_back()), (brought, 0, false), "seed {seed}");
        } else {
            noticed += u64::from(swarm.was_rolled_back());
            assert!(swarm.was_rolled_back() || held == brought, "seed {seed}");
            assert_eq!(swarm.disk_checks(), before, "seed {seed}: nothing is promised, so nothing was checked");
        }
    }
    assert!(exact > 5 && noticed > 5, "{exact} exact, {noticed} noticed: both must occur");
}

#[test]
fn two_record_files_that_are_cut_off_are_reported_and_not_gone_on_from() {
    let cut = |swarm: &mut SimulatedSwarm| {
        finish(swarm);
        swarm.unreadable()
    };
    let harms = |seed: u64| [Fault::TruncateSlot(NodeId(0), seed), Fault::TruncateSlot(NodeId(0), seed + 1_000)];
    let reported: u64 = (0..20).map(|seed| cut(&mut harmed(&harms(seed), seed))).sum();
    assert!(reported > 2, "{reported} of 20");
}

/// A node that came back as a new one counts its lives from 1; those in its old records may be further.
#[test]
fn a_node_whose_disk_is_of_before_it_left_and_came_back_finds_out_or_adds_up() {
    let node = NodeId(4);
    let mut noticed = 0;
    for seed in 0..30 {
        let config = SwarmConfig {
            durability: Durability::On,
            policy: WaitPolicy::Async,
            seed,
            training_time: (Duration::from_millis(10), Duration::from_millis(300)),
            drain_deadline: Duration::from_secs(3_600),
            ..averaging(random_plan(5, 6, 1), 5, u64::MAX / 8)
        };
        let mut swarm = SimulatedSwarm::new(config).unwrap();
        let faults = [
            (3_000, Fault::Crash(node)),
            (3_000, Fault::WipeDisk(node)),
            (3_500, Fault::Restart(node)),
            (8_000, Fault::BackUpDisk(node)),
            (8_100, Fault::Resize(3, seed)),
            (9_000, Fault::DismissRemoved),
            (10_000, Fault::Resize(5, seed + 1)),
            (12_000 + 10 * seed, Fault::Crash(node)),
            (12_300, Fault::RestoreDisk(node)),
            (12_400, Fault::Restart(node)),
            (19_000, Fault::DismissRemoved),
        ];
        faults.into_iter().for_each(|(at, fault)| swarm.at(Time::from_millis(at), fault));
        finish(&mut swarm);
        let (held, owed, brought) = swarm.on_disk();
        assert!(swarm.was_rolled_back() || (held, owed) == (brought, 0), "seed {seed}: {held} of {brought}");
        noticed += u64::from(swarm.was_rolled_back());
    }
    assert!(noticed > 10, "{noticed} of 30 found out");
}

#[test]
fn a_generation_after_a_lost_disk_is_exact_again_and_checked_to_its_end() {
    for seed in 0..10 {
        let mut swarm = harmed(&[Fault::WipeDisk(NodeId(0))], seed);
        swarm.run_until(Time::from_millis(8_000)).unwrap();
        assert!(swarm.was_rolled_back() && !swarm.is_exact(), "seed {seed}");
        let before = (swarm.disk_checks(), swarm.wire_checks());
        swarm.at(Time::from_millis(8_000), Fault::Replan(seed));
        swarm.at(Time::from_millis(19_000), Fault::DismissRemoved);
        finish(&mut swarm);
        assert!(swarm.is_exact() && !swarm.was_rolled_back(), "seed {seed}");
        assert!(swarm.disk_checks() > before.0 && swarm.wire_checks() > before.1, "seed {seed}");
        let (held, owed, brought) = swarm.on_disk();
        assert_eq!((held, owed), (brought, 0), "seed {seed}");
    }
}

#[test]
fn a_seed_gives_the_same_run_twice_in_every_profile() {
    for profile in Profile::ALL {
        let first = run(profile, 3);
        assert_eq!(first, run(profile, 3), "{profile}");
        assert_ne!(first.digest, run(profile, 4).digest, "{profile}: the seed must matter");
    }
}
