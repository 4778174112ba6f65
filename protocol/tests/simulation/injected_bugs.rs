//! The test of the fault tests: each bug in the list is found, and the run that shows it becomes short.

use mingle_protocol::sim::{Journal, Profile, Scenario, Shrunk, SimError, run_scenario, shrink};
use mingle_protocol::{Effect, Generation, InjectedBug, Input, Message, Node, NodeConfig, NodeId, Time};

use crate::rollbacks::{a_moment_back, a_new_life};
use crate::support::random_plan;

/// Seeds within which a bug must show.
const SEEDS: u64 = 50;

/// The effect of a bug.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Harm {
    /// Something does not add up, or breaks a rule that is checked during the run.
    Ledger,
    /// A swarm that comes to its end without the bug does not with it.
    Standstill,
}

/// The runs in which a bug is looked for: of a profile, or of little swarms whose nodes come back as they were, or
/// begin new lives.
#[derive(Clone, Copy, Debug)]
enum Ground {
    Of(Profile),
    MomentBack,
    NewLife,
}

/// Every bug with the ground it is found on and a seed that is likely to show it, which is tried first.
const HUNTS: [(InjectedBug, Ground, u64, Harm); 23] = [
    (InjectedBug::SendsBeforeWriting, Ground::Of(Profile::Kill), 5, Harm::Ledger),
    (InjectedBug::ConfirmsBeforeWriting, Ground::Of(Profile::Kill), 0, Harm::Ledger),
    (InjectedBug::AppliesTwice, Ground::Of(Profile::Kill), 0, Harm::Ledger),
    (InjectedBug::IgnoresLives, Ground::NewLife, 0, Harm::Ledger),
    (InjectedBug::IgnoresGenerations, Ground::Of(Profile::LossyDisk), 17, Harm::Ledger),
    (InjectedBug::DropsNumerators, Ground::Of(Profile::Kill), 0, Harm::Ledger),
    (InjectedBug::NeverDiscards, Ground::Of(Profile::Rollback), 1, Harm::Standstill),
    (InjectedBug::KeepsMassAfterRollback, Ground::Of(Profile::Rollback), 1, Harm::Ledger),
    (InjectedBug::IgnoresAckEchoes, Ground::MomentBack, 17, Harm::Standstill),
    (InjectedBug::RenumbersForNewLives, Ground::NewLife, 0, Harm::Ledger),
    (InjectedBug::ForgetsOutboxes, Ground::Of(Profile::Kill), 0, Harm::Ledger),
    (InjectedBug::IgnoresWindow, Ground::Of(Profile::Kill), 1, Harm::Ledger),
    (InjectedBug::LeavesWithMass, Ground::Of(Profile::Churn), 0, Harm::Ledger),
    (InjectedBug::LeavesWithLearning, Ground::Of(Profile::Churn), 14, Harm::Ledger),
    (InjectedBug::DropsUncarried, Ground::Of(Profile::Loss), 0, Harm::Ledger),
    (InjectedBug::ForgetsHeldBack, Ground::Of(Profile::Loss), 0, Harm::Ledger),
    (InjectedBug::LeavesUnheard, Ground::Of(Profile::Churn), 31, Harm::Standstill),
    (InjectedBug::NeverReserves, Ground::Of(Profile::Churn), 2, Harm::Ledger),
    (InjectedBug::BelievesAnyone, Ground::Of(Profile::Hostile), 5, Harm::Ledger),
    (InjectedBug::HearsParcelsOnly, Ground::Of(Profile::LossyDisk), 0, Harm::Standstill),
    (InjectedBug::BelievesTornRecords, Ground::Of(Profile::Kill), 3, Harm::Ledger),
    (InjectedBug::OverlooksNewestRecord, Ground::Of(Profile::Kill), 0, Harm::Ledger),
    (InjectedBug::TrustsUnsyncedRecords, Ground::Of(Profile::Kill), 5, Harm::Ledger),
];

fn failure_of(ground: Ground, seed: u64, injected_bug: Option<InjectedBug>) -> Option<SimError> {
    match ground {
        Ground::Of(profile) => {
            let mut scenario = Scenario::new(profile, seed);
            scenario.config.injected_bug = injected_bug;
            run_scenario(profile, seed, scenario).failure
        }
        Ground::MomentBack => a_moment_back(seed, injected_bug).err(),
        Ground::NewLife => a_new_life(seed, injected_bug).err(),
    }
}

fn shows(ground: Ground, seed: u64, bug: InjectedBug, harm: Harm) -> bool {
    let Some(failure) = failure_of(ground, seed, Some(bug)) else {
        return false;
    };
    match failure {
        SimError::NotDrained { .. } => harm == Harm::Standstill && failure_of(ground, seed, None).is_none(),
        _ => harm == Harm::Ledger,
    }
}

#[test]
fn every_bug_is_found_within_fifty_seeds_by_what_it_does() {
    // Some bugs have their own tests. That chains distinguish parcels of one number is tested in `link`, that old
    // generations are answered, below, that the keeping of all mass, which spoils no ledger, is noticed, in `guards`,
    // that credit is needed, in `sieges`, and that nodes that are cut off keep the pace, in `pace`.
    let directed = [
        InjectedBug::IgnoresChains,
        InjectedBug::LeavesOldGenerationsAlone,
        InjectedBug::KeepsAll,
        InjectedBug::GivesWithoutCredit,
        InjectedBug::NeverPaces,
    ];
    for bug in InjectedBug::ALL.into_iter().filter(|bug| !directed.contains(bug)) {
        let hunt = HUNTS.iter().find(|(hunted, ..)| *hunted == bug).unwrap_or_else(|| panic!("nobody hunts {bug}"));
        let &(_, ground, first, harm) = hunt;
        let found = (first..SEEDS).chain(0..first).find(|&seed| shows(ground, seed, bug, harm));
        println!("{bug}: {ground:?} seed {found:?}");
        assert!(found.is_some(), "{bug} survives the first {SEEDS} seeds of {ground:?}");
    }
}

/// The effects of a greeting from generation 0 on a node of generation 1.
fn answer_to_an_older_generation(injected_bug: Option<InjectedBug>) -> Vec<Effect> {
    let (me, other) = (NodeId(0), NodeId(1));
    let member = |id: NodeId, counter: u64| {
        let generation = Generation { counter, plan_hash: [counter as u8; 32] };
        let mut config = NodeConfig::new(id, random_plan(2, 0, 0), vec![0.0], 10);
        config.generation = generation;
        injected_bug.into_iter().for_each(|bug| config.inject(bug));
        let mut node = Node::new(config).unwrap();
        node.handle(Time::default(), Input::Start);
        node
    };
    let greeting = member(other, 0).handle(Time::default(), Input::LinkUp { peer: me });
    let mut node = member(me, 1);
    node.handle(Time::default(), Input::LinkUp { peer: other });
    let greeting = greeting.into_iter().filter_map(|effect| match effect {
        Effect::Send { message, .. } => Some(Input::Received { from: other, message }),
        _ => None,
    });
    greeting.flat_map(|input| node.handle(Time::default(), input)).collect()
}

#[test]
fn a_message_of_an_older_generation_is_answered_with_the_newer_one() {
    let tells = |effects: &[Effect]| {
        let newer = |message: &Message| message.generation().is_some_and(|generation| generation.counter == 1);
        effects.iter().any(|effect| matches!(effect, Effect::Send { to: NodeId(1), message } if newer(message)))
    };
    assert!(tells(&answer_to_an_older_generation(None)));
    assert!(!tells(&answer_to_an_older_generation(Some(InjectedBug::LeavesOldGenerationsAlone))));
}

#[test]
fn a_failing_run_shrinks_to_a_handful_of_faults_that_fail_in_the_same_way() {
    for bug in [InjectedBug::SendsBeforeWriting, InjectedBug::ConfirmsBeforeWriting, InjectedBug::AppliesTwice] {
        let failing = |seed| {
            let (journal, outcome) = Journal::record(Profile::Kill, seed, Some(bug));
            Some((journal, outcome.failure?))
        };
        let shorten = |(journal, failure): (Journal, SimError)| {
            let shrunk = shrink(&journal, 400).unwrap();
            let same_kind = std::mem::discriminant(&failure) == std::mem::discriminant(&shrunk.failure);
            assert!(same_kind, "{bug}: {failure} became {}", shrunk.failure);
            let (before, after) = (journal.faults().len(), shrunk.journal.faults().len());
            println!("{bug}: {after} of {before} faults after {} runs", shrunk.runs);
            assert!(after < before, "{bug}: {:?}", shrunk.journal.faults());
            (journal, failure, shrunk)
        };
        // A fault less can change the order of all that follows, so some runs stay long.
        let mut shortened = (0..SEEDS).filter_map(failing).take(4).map(shorten);
        let is_short = |(_, _, shrunk): &(Journal, SimError, Shrunk)| shrunk.journal.faults().len() <= 5;
        let (journal, failure, shrunk) = shortened.find(is_short).unwrap_or_else(|| panic!("{bug}: all stay long"));
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
    let (journal, _) = Journal::record(Profile::Kill, 0, Some(InjectedBug::ConfirmsBeforeWriting));
    for most_runs in [1, 2, 5] {
        let shrunk = shrink(&journal, most_runs).unwrap();
        assert!(shrunk.runs <= most_runs, "{} runs of {most_runs}", shrunk.runs);
        assert!(shrunk.journal.agrees_with(&shrunk.journal.replay()));
    }
}
