#![allow(clippy::unwrap_used)]
use mingle_peer::Home;
use mingle_peer::api::Caller;
use mingle_peer::training::{Budget, LocalTraining, MomentumStep, Patience};

use super::*;
use crate::host::HostOptions;
use crate::rounds::RoundsChoice;
use crate::training::ExternalTraining;
use crate::wire::Attach;

/// The host of a peer to which a trainer of two numbers has attached before.
fn host(home: &std::path::Path) -> TrainerHost {
    let home = Home::at(Some(home)).unwrap();
    let options = HostOptions {
        home,
        peer: "a peer".to_owned(),
        rounds: RoundsChoice::Chosen(10),
        fresh: true,
        begins_again: false,
        begin_with: None,
        end_wish: None,
        tcp: None,
        needs_every_round: false,
    };
    let host = TrainerHost::new(options).unwrap();
    let introduction = br#"{"protocol": 1, "name": "x", "layout": [["w", [2]]], "initial": "take"}"#;
    host.attach(&Attach::parse(introduction).unwrap(), Caller::default()).unwrap();
    host
}

/// A launcher of `command` that starts it again without a pause.
fn launcher(command: &str, most_crashes: u32) -> Launcher {
    let command = command.to_owned();
    let restarts = Restarts::new(&command, NonZeroU32::new(most_crashes).unwrap()).at_once();
    Launcher { command, variables: Vec::new(), restarts }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_crashes_again_and_again_ends_the_training_with_what_it_wrote() {
    let home = tempfile::tempdir().unwrap();
    let host = host(home.path());
    launcher("echo no room on the device >&2; exit 3", 4).start(&host);
    let task = host.state().task.clone().unwrap();
    let mut training = ExternalTraining::new(host.clone(), (*task).clone());
    let trained = tokio::task::spawn_blocking(move || {
        let patience = Patience::default();
        training.train(
            &[0.0; 2],
            &Budget {
                round: 0,
                local_steps: 1,
                rounds_left: 1,
                last_factor: 1.0,
                momentum: MomentumStep::default(),
                noise: None,
                patience,
            },
        )
    });
    let failure = trained.await.unwrap().unwrap_err();
    let failure = failure.downcast_ref::<Error>().unwrap();
    for words in ["is given up", "crashed 4 times", "exit status: 3", "no room on the device"] {
        assert!(failure.to_string().contains(words), "`{words}` is missing in: {failure}");
    }
    assert!(failure.next_step().is_some_and(|hint| hint.contains("start this peer again")), "{failure:?}");
    let log = std::fs::read_to_string(home.path().join("trainer.log")).unwrap();
    assert_eq!(log.matches("no room on the device").count(), 4, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_has_not_attached_is_not_waited_for_once_the_run_has_failed() {
    let home = tempfile::tempdir().unwrap();
    let host = host(home.path());
    launcher("sleep 60", 4).start(&host);
    let mut changes = host.changes();
    while !host.state().is_watched {
        changes.changed().await.unwrap();
    }
    let message = "stopped before a trainer attached".to_owned();
    host.change(|state| state.end = Some(RunEnd::Failure { kind: ErrorKind::Forced, message, hint: None }));
    let ended = async {
        while host.state().is_watched {
            changes.changed().await.unwrap();
        }
    };
    assert!(tokio::time::timeout(AFTER_A_FAILURE, ended).await.is_ok(), "it cannot know that the run is over");
}
