//! Nodes with records: killed, cut off and set back, and no mass is lost while disks survive.

use mingle_protocol::sim::{Outcome, Profile, Scenario, run_scenario};

fn run(profile: Profile, seed: u64) -> Outcome {
    run_scenario(profile, seed, Scenario::new(profile, seed))
}

/// Every seed must end well; returns kills and checks in all.
fn survive(profile: Profile, seeds: u64) -> (u64, u64) {
    let outcomes = (0..seeds).map(|seed| run(profile, seed));
    outcomes.fold((0, 0), |(kills, checks), outcome| {
        assert_eq!(outcome.failure, None, "{profile}, seed {}", outcome.seed);
        (kills + outcome.kills, checks + outcome.checks)
    })
}

#[test]
fn mass_survives_kill_dash_nine() {
    let (kills, checks) = survive(Profile::Kill, 40);
    assert!(kills > 1_000 && checks > 10_000, "{kills} kills, {checks} checks");
}
