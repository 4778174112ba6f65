//! Members that attack inside the bounds: the weight and pace that sound nodes keep.

use std::collections::BTreeSet;

use mingle_protocol::sim::{Fault, Misconduct, Profile, Scenario, SimError, run_scenario};
use mingle_protocol::{InjectedBug, WaitPolicy};

/// The seeds of `hostile` whose members attack inside the bounds.
fn sieges(seeds: u64) -> impl Iterator<Item = u64> {
    (0..seeds).map(|k| 2 * k + 1)
}

/// The attacks in a scenario.
fn attacks(scenario: &Scenario) -> BTreeSet<Misconduct> {
    let attack = |(_, fault): &(_, Fault)| if let Fault::Besiege(_, attack) = fault { Some(*attack) } else { None };
    scenario.faults.iter().filter_map(attack).collect()
}

#[test]
fn beside_fewer_than_a_third_of_attackers_sound_nodes_keep_weight_and_pace_and_are_exact_afterwards() {
    let mut seen = BTreeSet::new();
    let mut policies = BTreeSet::new();
    let mut reversible = BTreeSet::new();
    for seed in sieges(40) {
        let scenario = Scenario::new(Profile::Hostile, seed);
        seen.extend(attacks(&scenario));
        policies.insert(format!("{:?}", scenario.config.policy));
        reversible.insert(scenario.config.schedule.is_reversible());
        assert_eq!(run_scenario(Profile::Hostile, seed, scenario).failure, None, "seed {seed}");
    }
    assert_eq!(seen, Misconduct::ALL.into(), "the seeds are to show every attack");
    assert_eq!((policies.len(), reversible.len()), (3, 2), "{policies:?}, reversible {reversible:?}");
}

#[test]
fn sound_nodes_keep_weight_and_pace_in_sieges_that_once_cost_them_either() {
    // Nodes that gave away in one step of a period what they had for the next; swarms that claims of the end split in two;
    // nodes that waited for each other's permits, since made-up weight had them refuse each other's parcels.
    for seed in [500_109, 512_323, 500_033, 510_207, 511_025, 512_433, 512_235] {
        let scenario = Scenario::new(Profile::Hostile, seed);
        assert_eq!(run_scenario(Profile::Hostile, seed, scenario).failure, None, "seed {seed}");
    }
}

/// The failures of runs with a bug in which members only make these attacks.
fn failures(bug: InjectedBug, wanted: &[Misconduct]) -> Vec<SimError> {
    let is_wanted = |scenario: &Scenario| {
        scenario.config.policy == WaitPolicy::Sync && attacks(scenario).iter().all(|attack| wanted.contains(attack))
    };
    let scenarios = sieges(100).map(|seed| (seed, Scenario::new(Profile::Hostile, seed)));
    let scenarios = scenarios.filter(|(_, scenario)| is_wanted(scenario)).take(6);
    let with_bug = |(seed, mut scenario): (u64, Scenario)| {
        scenario.config.injected_bug = Some(bug);
        run_scenario(Profile::Hostile, seed, scenario).failure
    };
    scenarios.filter_map(with_bug).collect()
}

#[test]
fn nodes_that_give_without_credit_are_drained_by_members_that_take() {
    let failures = failures(InjectedBug::GivesWithoutCredit, &[Misconduct::Take, Misconduct::GiveTenth]);
    assert!(failures.iter().any(|failure| matches!(failure, SimError::Drained { .. })), "{failures:?}");
}

#[test]
fn nodes_that_believe_anyone_are_led_astray_by_members_that_claim_the_end() {
    let failures = failures(InjectedBug::BelievesAnyone, &[Misconduct::ClaimEnd]);
    let is_astray = |failure: &SimError| {
        matches!(failure, SimError::LedAstray { .. } | SimError::Misled { .. } | SimError::EndedBySiege { .. })
    };
    assert!(!failures.is_empty() && failures.iter().all(is_astray), "{failures:?}");
}
