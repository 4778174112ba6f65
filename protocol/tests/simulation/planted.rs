//! The test of the fault tests: each bug in the list is found, and the run that shows it becomes short.

use mingle_protocol::Planted;
use mingle_protocol::sim::{Journal, Profile, Scenario, run_scenario, shrink};

/// Seeds within which a bug must show.
const SEEDS: u64 = 50;

/// The first seed of a profile in which a bug shows.
fn first_failing(profile: Profile, bug: Planted) -> Option<u64> {
    (0..SEEDS).find(|&seed| {
        let mut scenario = Scenario::new(profile, seed);
        scenario.config.planted = Some(bug);
        run_scenario(profile, seed, scenario).failure.is_some()
    })
}

#[test]
fn every_bug_that_needs_no_exact_moment_is_found_within_fifty_seeds() {
    let hunts = [
        (Planted::SendsBeforeWriting, Profile::Kill),
        (Planted::ConfirmsBeforeWriting, Profile::Kill),
        (Planted::AppliesTwice, Profile::Kill),
        (Planted::DropsNumerators, Profile::Kill),
        (Planted::NeverDiscards, Profile::Rollback),
        (Planted::IgnoresMarks, Profile::Rollback),
    ];
    // One needs an exact moment, the other breaks no rule of the ledger: both have tests of their own.
    let others = [Planted::IgnoresChains, Planted::KeepsAll];
    for bug in Planted::ALL.into_iter().filter(|bug| !others.contains(bug)) {
        let (_, profile) =
            hunts.iter().find(|(hunted, _)| *hunted == bug).unwrap_or_else(|| panic!("nobody hunts {bug}"));
        let found = first_failing(*profile, bug);
        assert!(found.is_some(), "{bug} survives {SEEDS} seeds of {profile}");
    }
}

#[test]
fn a_failing_run_shrinks_to_a_handful_of_faults_that_fail_in_the_same_way() {
    let bugs = [Planted::SendsBeforeWriting, Planted::ConfirmsBeforeWriting, Planted::AppliesTwice];
    for bug in bugs {
        let (journal, outcome) = Journal::record(Profile::Kill, 0, Some(bug));
        let failure = outcome.failure.unwrap();
        let shrunk = shrink(&journal, 400).unwrap();
        let same_kind = std::mem::discriminant(&failure) == std::mem::discriminant(&shrunk.failure);
        assert!(same_kind, "{bug}: {failure} became {}", shrunk.failure);
        println!(
            "{bug}: {} of {} faults after {} runs",
            shrunk.journal.faults().len(),
            journal.faults().len(),
            shrunk.runs
        );
        assert!(shrunk.journal.faults().len() <= 5, "{bug}: {:?}", shrunk.journal.faults());
        let replayed = shrunk.journal.replay();
        assert!(shrunk.journal.agrees_with(&replayed), "{bug}: {replayed:?}");
        assert_eq!(replayed.failure, Some(shrunk.failure.clone()));
        assert_eq!(shrink(&journal, 400).unwrap().journal, shrunk.journal, "{bug}: shrinking must repeat itself");
        for left_out in 0..shrunk.journal.faults().len() {
            let mut faults = shrunk.journal.faults().to_vec();
            let fault = faults.remove(left_out);
            let (_, outcome) = shrunk.journal.with(faults, shrunk.journal.repair(), shrunk.journal.stop());
            let fails_so =
                outcome.failure.is_some_and(|error| std::mem::discriminant(&error) == std::mem::discriminant(&failure));
            assert!(!fails_so, "{bug}: fault {fault:?} is not needed");
        }
    }
}

#[test]
fn a_run_without_failure_has_nothing_to_shrink() {
    let (journal, _) = Journal::record(Profile::Kill, 3, None);
    assert!(shrink(&journal, 10).is_none());
}

#[test]
fn shrinking_keeps_to_its_number_of_runs() {
    let (journal, _) = Journal::record(Profile::Kill, 0, Some(Planted::ConfirmsBeforeWriting));
    for most_runs in [1, 2, 5] {
        let shrunk = shrink(&journal, most_runs).unwrap();
        assert!(shrunk.runs <= most_runs, "{} runs of {most_runs}", shrunk.runs);
        assert!(shrunk.journal.agrees_with(&shrunk.journal.replay()));
    }
}
