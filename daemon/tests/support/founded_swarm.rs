//! A swarm with an operator, whose peers are processes of the binary under test.

use std::path::{Path, PathBuf};

use crate::support::{RunningPeer, run, stderr, stdout, text};

/// The homes of a swarm.
pub(crate) struct Swarm {
    pub(crate) folder: tempfile::TempDir,
}

/// Enough rounds that none is over before it has been looked at.
pub(crate) const ENDLESS: [&str; 2] = ["--rounds", "1000000"];

/// The operator's peer plans by itself, and only when members come and go.
pub(crate) const PLANS_ITSELF: [&str; 4] = ["--planning", "auto", "--local-steps", "1"];

impl Swarm {
    /// A swarm founded by peer 0.
    pub(crate) fn found() -> Self {
        let swarm = Self { folder: tempfile::tempdir().unwrap() };
        let founded = run(&["init", "--home", text(&swarm.home(0)), "--swarm", "ward7"]);
        assert!(founded.status.success(), "{}", stderr(&founded));
        swarm
    }

    pub(crate) fn home(&self, peer: usize) -> PathBuf {
        self.folder.path().join(peer.to_string())
    }

    /// A ticket for so many peers.
    pub(crate) fn invite(&self, uses: usize) -> String {
        let invited = run(&["invite", "--home", text(&self.home(0)), "--uses", &uses.to_string()]);
        assert!(invited.status.success(), "{}", stderr(&invited));
        stdout(&invited).trim().to_owned()
    }

    pub(crate) fn plan(&self, topology: &str) -> PathBuf {
        self.plan_by("auto", topology)
    }

    pub(crate) fn plan_by(&self, method: &str, topology: &str) -> PathBuf {
        let plan = self.folder.path().join("plan.json");
        let made = run(&["plan", "make", "--topology", topology, "--method", method, "-o", text(&plan)]);
        assert!(made.status.success(), "{}", stderr(&made));
        plan
    }

    /// A plan for the peers 0 and 2.
    pub(crate) fn plan_without_the_first(&self, method: &str) -> PathBuf {
        let plan = self.plan_by(method, "complete:n=2");
        for (node, peer) in [(0, 0), (1, 2)] {
            let id = stdout(&run(&["id", "--home", text(&self.home(peer))]));
            let binding = format!("{node}={}", id.trim());
            assert!(run(&["plan", "bind", text(&plan), "--peer", &binding]).status.success());
        }
        plan
    }

    pub(crate) fn apply(&self, plan: &Path) -> std::process::Output {
        run(&["plan", "apply", text(plan), "--home", text(&self.home(0)), "--timeout", "4s"])
    }

    pub(crate) fn start_operator(&self, more: &[&str]) -> RunningPeer {
        self.start(0, more)
    }

    pub(crate) fn start(&self, peer: usize, more: &[&str]) -> RunningPeer {
        RunningPeer::start(&[&["--home", text(&self.home(peer))], task_beside(more), more].concat())
    }

    pub(crate) fn join(&self, peer: usize, ticket: &str, more: &[&str]) -> RunningPeer {
        RunningPeer::join(ticket, &[&["--home", text(&self.home(peer))], task_beside(more), more].concat())
    }
}

/// Training goes on until a test is over: the test's waits come first.
pub(crate) const TASK: [&str; 6] = ["--model", "softmax", "--evaluate-every", "5", "--priority", "low"];

/// The training options of peers that solve no problem, and have no trainer.
fn task_beside(more: &[&str]) -> &'static [&'static str] {
    if more.contains(&"--problem") || more.contains(&"--trainer") { &[] } else { &TASK }
}
