//! Peers on this machine with a plan that names all of them from the start.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::{RunningPeer, mingle, run, stderr, stdout, text};

/// The weight with which a peer begins, in units.
pub(crate) const ONE: u64 = 1 << 40;

/// The homes of peers with a port each, and a plan that is bound to them.
pub(crate) struct PlannedSwarm {
    folder: tempfile::TempDir,
    addresses: Vec<String>,
    pub(crate) rounds: u64,
}

/// Lowest of the ports that peers are given.
const FIRST_PORT: u32 = 10_000;
/// Number of these ports. All lie below those that systems give to connections, which could take a port before its peer.
const PORTS: u32 = 20_000;

/// A port that no other peer of this process is given, and that nothing listens on.
fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = FIRST_PORT + std::process::id().wrapping_mul(97).wrapping_add(given) % PORTS;
        let port = u16::try_from(port).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl PlannedSwarm {
    pub(crate) fn new(nodes: usize, rounds: u64) -> Self {
        Self::with_design(&format!("complete:n={nodes}"), "nguyen-he", nodes, rounds)
    }

    /// A swarm with so many local steps in a round.
    pub(crate) fn with_local_steps(nodes: usize, rounds: u64, local_steps: u32) -> Self {
        let topology = format!("complete:n={nodes}");
        Self::planned(&["--topology", &topology, "--local-steps", &local_steps.to_string()], nodes, rounds)
    }

    /// A swarm for a problem, with a design on a topology of its own.
    pub(crate) fn for_a_problem(topology: &str, method: &str, nodes: usize) -> Self {
        Self::with_design(topology, method, nodes, 10)
    }

    /// A swarm that trains by a design on a topology of its own.
    pub(crate) fn with_design(topology: &str, method: &str, nodes: usize, rounds: u64) -> Self {
        Self::planned(&["--topology", topology, "--method", method], nodes, rounds)
    }

    fn planned(design: &[&str], nodes: usize, rounds: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let addresses = (0..nodes).map(|_| format!("/ip4/127.0.0.1/tcp/{}", free_port())).collect();
        let swarm = Self { addresses, folder, rounds };
        for node in 0..nodes {
            let made = run(&["init", "--home", text(&swarm.home(node))]);
            assert!(made.status.success(), "{}", stderr(&made));
        }
        swarm.plan_for(design, nodes);
        swarm
    }

    /// Makes the plan, of the first so many peers; those after them have no place in it.
    pub(crate) fn plan_for(&self, design: &[&str], nodes: usize) {
        let plan = self.plan();
        let made = run(&[&["plan", "make", "-o", text(&plan)], design].concat());
        assert!(made.status.success(), "{}", stderr(&made));
        for node in 0..nodes {
            let peer = stdout(&run(&["id", "--home", text(&self.home(node))]));
            let binding = format!("{node}={}", peer.trim());
            let bound = run(&["plan", "bind", text(&plan), "--peer", &binding]);
            assert!(bound.status.success(), "{}", stderr(&bound));
        }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.addresses.len()
    }

    /// The address on which a peer listens.
    pub(crate) fn address(&self, node: usize) -> String {
        self.addresses[node].clone()
    }

    pub(crate) fn plan(&self) -> PathBuf {
        self.folder.path().join("plan.json")
    }

    pub(crate) fn peers(&self) -> PathBuf {
        self.folder.path().join("peers")
    }

    pub(crate) fn home(&self, node: usize) -> PathBuf {
        self.peers().join(node.to_string())
    }

    /// Starts a peer, always with the same command.
    pub(crate) fn start(&self, node: usize) -> RunningPeer {
        self.start_with(node, &[])
    }

    pub(crate) fn start_with(&self, node: usize, more: &[&str]) -> RunningPeer {
        self.start_as(mingle(), node, more)
    }

    /// Starts a peer that solves a problem.
    pub(crate) fn solve(&self, node: usize, problem: &Path) -> RunningPeer {
        self.spawn(mingle(), node, &["--problem", text(problem)])
    }

    /// Starts a peer whose trainer attaches to it.
    pub(crate) fn start_for_a_trainer(&self, node: usize) -> RunningPeer {
        self.spawn(mingle(), node, &["--trainer", "attach", "--rounds", &self.rounds.to_string()])
    }

    /// Like [`start_with`](Self::start_with), with a command that runs the binary in some way of its own.
    pub(crate) fn start_as(&self, command: Command, node: usize, more: &[&str]) -> RunningPeer {
        let rounds = self.rounds.to_string();
        let task = ["--model", "softmax", "--split", "iid", "--rounds", &rounds, "--evaluate-every", "1000"];
        self.spawn(command, node, &[&task, more].concat())
    }

    /// Starts a peer that does this.
    pub(crate) fn start_task(&self, node: usize, task: &[&str]) -> RunningPeer {
        self.spawn(mingle(), node, task)
    }

    fn spawn(&self, command: Command, node: usize, task: &[&str]) -> RunningPeer {
        let (home, plan) = (self.home(node), self.plan());
        let mut arguments = vec!["run", "--home", text(&home), "--plan", text(&plan)];
        arguments.extend(["--listen", &self.addresses[node]]);
        for address in self.addresses.iter().filter(|address| **address != self.addresses[node]) {
            arguments.extend(["--bootstrap", address]);
        }
        arguments.extend(task);
        RunningPeer::spawn_as(command, &arguments)
    }

    pub(crate) fn start_all(&self) -> Vec<RunningPeer> {
        (0..self.nodes()).map(|node| self.start(node)).collect()
    }

    /// The report of `mingle audit` on the peers' disks, which must be exact; none of them runs.
    pub(crate) fn audit(&self, when: &str) -> Value {
        let output = run(&["audit", "--json", text(&self.peers())]);
        let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert!(output.status.success(), "{when}: {report:#}");
        assert_eq!(report["verdict"], "exact", "{when}: {report:#}");
        assert_eq!(report["sum_units"], self.nodes() as u64 * ONE, "{when}: {report:#}");
        assert_eq!(report["audit"]["written_off"], 0, "{when}: {report:#}");
        report
    }

    /// Waits until every peer is done, and checks the results that they leave behind.
    pub(crate) fn finish(&self, peers: &mut [RunningPeer], when: &str) {
        for (node, peer) in peers.iter_mut().enumerate() {
            let end = peer.wait_through_rounds_for("done");
            assert!(end["metrics"]["accuracy"].as_f64() > Some(0.8), "{when}, node {node}: {end}");
            assert_eq!(peer.exit_code(), Some(0), "{when}, node {node}");
            assert!(self.home(node).join("model.safetensors").exists(), "{when}, node {node}");
        }
        let report = self.audit(when);
        assert_eq!(report["audit"]["in_flight"], 0, "{when}: {report:#}");
    }
}
