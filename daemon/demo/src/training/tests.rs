#![allow(clippy::unwrap_used)]
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use mingle_builtin::options::TrainingOptions;
use mingle_protocol::{CodecChoice, MomentumAcrossRounds, Robust};

use super::*;

/// The words of late peers, by node.
#[derive(Default)]
struct LatePeers(Mutex<Vec<(usize, String)>>);

impl Watcher for LatePeers {
    fn see(&self, event: &DemoEvent<'_>) {
        if let DemoEvent::Late { node, message } = *event {
            self.0.lock().unwrap().push((node, message.to_owned()));
        }
    }
}

fn options(output: &Path) -> DemoOptions {
    DemoOptions {
        peers: 3,
        training: TrainingOptions { split: Some("iid".to_owned()), rounds: 10, ..TrainingOptions::default() },
        method: "auto".to_owned(),
        local_steps: 1,
        kills: Vec::new(),
        restart: false,
        durability: None,
        timeline: false,
        wait: "sync".to_owned(),
        codec: CodecChoice::default(),
        robust: Robust::default(),
        momentum_across_rounds: MomentumAcrossRounds::default(),
        comparison: false,
        output: output.to_owned(),
    }
}

#[tokio::test]
async fn a_peer_that_ends_late_with_a_result_is_no_failure_and_one_that_fails_otherwise_is() {
    let folder = tempfile::tempdir().unwrap();
    let demo = TrainingDemo::prepare(options(&folder.path().join("demo"))).unwrap();
    let program = PeerProgram { file: PathBuf::from("mingle"), hidden_variables: Vec::new(), settings: Vec::new() };
    let watcher = Arc::new(LatePeers::default());
    let mut swarm = Swarm::new(&demo.options, &demo.output, &demo.plan, program, watcher.clone(), demo.kills).unwrap();
    let failed = |kind| PeerEvent::Failed(kind, "this peer skipped 6 of 10 rounds".to_owned());
    let without_result = swarm.on_event(1, failed(ErrorKind::TimedOut)).unwrap_err();
    assert!(without_result.to_string().contains("peer 1"), "{without_result}");
    swarm.results[1] = Some(PeerResult { accuracy: 0.9, sent_bytes: 0, peak_resident_bytes: None });
    assert!(swarm.on_event(1, failed(ErrorKind::Integrity)).is_err());
    assert!(swarm.late.is_empty());
    swarm.on_event(1, failed(ErrorKind::TimedOut)).unwrap();
    assert_eq!(swarm.late, BTreeSet::from([1]));
    assert_eq!(*watcher.0.lock().unwrap(), [(1, "this peer skipped 6 of 10 rounds".to_owned())]);
}
