#![allow(clippy::unwrap_used)]
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use mingle_builtin::options::TrainingOptions;

use super::*;

/// The words of late peers and warnings, by node.
#[derive(Default)]
struct Words(Mutex<Vec<(usize, String)>>);

impl Words {
    fn take(&self) -> Vec<(usize, String)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Watcher for Words {
    fn see(&self, event: &DemoEvent<'_>) {
        if let DemoEvent::Late { node, message } | DemoEvent::Warned { node, message } = *event {
            self.0.lock().unwrap().push((node, message.to_owned()));
        }
    }
}

/// A demo of three peers in this folder.
fn demo_in(folder: &Path) -> TrainingDemo {
    let training = TrainingOptions { split: Some("iid".to_owned()), rounds: 10, ..TrainingOptions::default() };
    TrainingDemo::prepare(DemoOptions::new(3, training, folder.join("demo"))).unwrap()
}

/// The swarm of a demo before any peer is started.
fn swarm_of(demo: &TrainingDemo, watcher: Arc<Words>) -> Swarm<'_> {
    let program = PeerProgram { file: PathBuf::from("mingle"), hidden_variables: Vec::new() };
    Swarm::new(&demo.options, &demo.output, &demo.plan, program, watcher, Kills::default()).unwrap()
}

#[tokio::test]
async fn a_peer_that_ends_late_with_a_result_is_no_failure_and_one_that_fails_otherwise_is() {
    let folder = tempfile::tempdir().unwrap();
    let (demo, words) = (demo_in(folder.path()), Arc::new(Words::default()));
    let mut swarm = swarm_of(&demo, words.clone());
    let failed = |kind| PeerEvent::Failed(kind, "this peer skipped 6 of 10 rounds".to_owned());
    let without_result = swarm.on_event(1, failed(ErrorKind::TimedOut)).unwrap_err();
    assert!(without_result.to_string().contains("peer 1"), "{without_result}");
    swarm.results[1] = Some(PeerResult { accuracy: 0.9, sent_bytes: 0, peak_resident_bytes: None });
    assert!(swarm.on_event(1, failed(ErrorKind::Integrity)).is_err());
    assert!(swarm.late.is_empty());
    swarm.on_event(1, failed(ErrorKind::TimedOut)).unwrap();
    assert_eq!(swarm.late, BTreeSet::from([1]));
    assert_eq!(words.take(), [(1, "this peer skipped 6 of 10 rounds".to_owned())]);
}

#[tokio::test]
async fn a_warning_of_several_peers_is_shown_once() {
    let folder = tempfile::tempdir().unwrap();
    let (demo, words) = (demo_in(folder.path()), Arc::new(Words::default()));
    let mut swarm = swarm_of(&demo, words.clone());
    let warns = |message: &str| PeerEvent::Said(Event::Warning { message: message.to_owned() });
    for (node, message) in [(2, "the disk is full"), (0, "the disk is full"), (2, "another")] {
        swarm.on_event(node, warns(message)).unwrap();
    }
    assert_eq!(words.take(), [(2, "the disk is full".to_owned()), (2, "another".to_owned())]);
}
