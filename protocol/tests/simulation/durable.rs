//! Nodes with records: killed, cut off and set back, and no mass is lost while disks survive.

use mingle_protocol::sim::{Outcome, Profile, Scenario, run_scenario};

fn run(profile: Profile, seed: u64) -> Outcome {
    run_scenario(profile, seed, Scenario::new(profile, seed))
}

/// Every seed must end well; returns what happened in all.
fn survive(profile: Profile, seeds: u64) -> Vec<Outcome> {
    let outcomes = (0..seeds).map(|seed| run(profile, seed));
    outcomes.inspect(|outcome| assert_eq!(outcome.failure, None, "{profile}, seed {}", outcome.seed)).collect()
}

fn sum(outcomes: &[Outcome], count: fn(&Outcome) -> u64) -> u64 {
    outcomes.iter().map(count).sum()
}

#[test]
fn mass_survives_kill_dash_nine() {
    let outcomes = survive(Profile::Kill, 40);
    let (kills, checks) = (sum(&outcomes, |outcome| outcome.kills), sum(&outcomes, |outcome| outcome.checks));
    assert!(kills > 1_000 && checks > 10_000, "{kills} kills, {checks} checks");
    assert_eq!(sum(&outcomes, |outcome| outcome.set_backs), 0, "no disk was set back");
}

#[test]
fn mass_survives_the_loss_of_most_messages() {
    let outcomes = survive(Profile::Loss, 4);
    assert!(sum(&outcomes, |outcome| outcome.checks) > 1_000);
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
    let mut set_backs = 0;
    for (profile, seeds) in [(Profile::Rollback, 12), (Profile::LossyDisk, 6)] {
        let outcomes = survive(profile, seeds);
        assert!(sum(&outcomes, |outcome| outcome.disk_faults) > 0, "{profile}");
        set_backs += sum(&outcomes, |outcome| outcome.set_backs);
    }
    assert!(set_backs > 10, "{set_backs} set-backs");
}

#[test]
fn a_seed_gives_the_same_run_twice_in_every_profile() {
    for profile in Profile::ALL {
        let first = run(profile, 3);
        assert_eq!(first, run(profile, 3), "{profile}");
        assert_ne!(first.digest, run(profile, 4).digest, "{profile}: the seed must matter");
    }
}
