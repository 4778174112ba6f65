//! Two peers on one machine with a plan that is bound to them.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{RunningPeer, mingle, run, stderr, stdout, text};

/// Options of peers that are killed before they are done.
pub(crate) const KILLED: [&str; 4] = ["--model", "softmax", "--rounds", "1000000"];

/// The homes of two peers and their plan.
pub(crate) struct Pair {
    folder: tempfile::TempDir,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let pair = Self { folder: tempfile::tempdir().unwrap() };
        pair.replan(&[]);
        pair
    }

    /// Makes the plan anew with these options, for the same peers.
    pub(crate) fn replan(&self, options: &[&str]) -> PathBuf {
        let plan = self.plan();
        let made = run(&[&["plan", "make", "--topology", "complete:n=2", "-o", text(&plan)], options].concat());
        assert!(made.status.success(), "{}", stderr(&made));
        for node in 0..2 {
            let peer = stdout(&run(&["init", "--home", text(&self.home(node))]));
            let binding = format!("{node}={}", peer.trim());
            let bound = run(&["plan", "bind", text(&plan), "--peer", &binding]);
            assert!(bound.status.success(), "{}", stderr(&bound));
        }
        plan
    }

    pub(crate) fn homes(&self) -> [PathBuf; 2] {
        [self.home(0), self.home(1)]
    }

    /// A path for a file of the test.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn plan(&self) -> PathBuf {
        self.file("plan.json")
    }

    pub(crate) fn home(&self, node: usize) -> PathBuf {
        self.file(&node.to_string())
    }

    /// Starts both, the second with the address of the first, each with these arguments.
    pub(crate) fn start(&self, arguments: &[&str]) -> [RunningPeer; 2] {
        self.start_as(mingle, arguments)
    }

    /// Like [`start`](Self::start), with commands that run the binary in some way of their own.
    pub(crate) fn start_as(&self, command: fn() -> Command, arguments: &[&str]) -> [RunningPeer; 2] {
        let (home, plan) = (self.home(0), self.plan());
        let start = |options: &[&str]| RunningPeer::start_as(command(), &[options, arguments].concat());
        let mut first = start(&["--home", text(&home), "--plan", text(&plan)]);
        let home = self.home(1);
        let second = start(&["--home", text(&home), "--bootstrap", &first.address()]);
        [first, second]
    }

    /// Starts the first peer alone.
    pub(crate) fn start_first(&self, arguments: &[&str]) -> RunningPeer {
        let (home, plan) = (self.home(0), self.plan());
        RunningPeer::start(&[&["--home", text(&home), "--plan", text(&plan)], arguments].concat())
    }

    /// Trains a small model to its end.
    pub(crate) fn train(&self) {
        let mut peers = self.start(&["--model", "softmax", "--rounds", "8"]);
        for peer in &mut peers {
            assert_eq!(peer.wait_for("done")["round"], 8);
            assert_eq!(peer.exit_code(), Some(0));
        }
    }

    /// Trains a small model and kills both peers while they train.
    pub(crate) fn train_and_kill(&self) {
        let mut peers = self.start(&KILLED);
        for _ in 0..30 {
            assert_eq!(peers[0].wait_for("round")["event"], "round");
        }
        peers.iter_mut().for_each(RunningPeer::kill);
    }
}
