//! The air between real network namespaces.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, channel};
use std::time::{Duration, Instant};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running `mingle-air run`; killed when dropped, so that its janitor removes what it made.
struct RunningAir {
    process: Child,
    output: BufReader<ChildStdout>,
    prefix: String,
    report: tempfile::NamedTempFile,
}

impl RunningAir {
    fn start(graph: &str, nodes: usize, options: &[&str]) -> Self {
        let report = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mingle-air"));
        command.args(["run", "--graph", graph, "--report"]).arg(report.path()).args(options);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let prefix = format!("mair{}", process.id());
        for number in 0..nodes {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            assert!(line.starts_with(&format!("{number} {prefix}-{number} 10.83.0.{} ", number + 1)), "{line}");
        }
        Self { process, output, prefix, report }
    }

    fn exec(&self, node: usize, command: &[&str]) -> Command {
        let mut exec = Command::new(env!("CARGO_BIN_EXE_mingle-air"));
        exec.args(["exec", "--air", &self.prefix, &node.to_string(), "--"]).args(command);
        exec
    }

    /// Starts to receive datagrams on a port, and waits until it does.
    fn receiver(&self, node: usize, port: u16, options: &str) -> Receiver {
        let address = format!("UDP4-RECV:{port}{options}");
        let mut process = self.exec(node, &["socat", "-u", &address, "STDOUT"]).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let bound = format!(":{port:04X} ");
        wait_until("a socket is bound", || {
            let sockets = self.exec(node, &["cat", "/proc/net/udp"]).output().unwrap();
            String::from_utf8_lossy(&sockets.stdout).contains(&bound)
        });
        Receiver { process, lines }
    }

    fn send(&self, node: usize, to: &str, datagram: &str) {
        let mut sender = self.exec(node, &["socat", "-u", "STDIN", to]).stdin(Stdio::piped()).spawn().unwrap();
        sender.stdin.take().unwrap().write_all(datagram.as_bytes()).unwrap();
        assert!(sender.wait().unwrap().success());
    }

    /// Asks the air to end, and returns its report.
    fn stop(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.process.wait().unwrap().success());
        assert_eq!(namespaces(&self.prefix), Vec::<String>::new());
        std::fs::read_to_string(self.report.path()).unwrap()
    }
}

impl Drop for RunningAir {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A process that prints the datagrams that it receives.
struct Receiver {
    process: Child,
    lines: mpsc::Receiver<String>,
}

impl Receiver {
    /// The next datagram, a line.
    fn next(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// The next datagram, if it comes soon: one that collided on the air is not repeated.
    fn next_soon(&self) -> Option<String> {
        self.lines.recv_timeout(Duration::from_secs(1)).ok()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn namespaces(prefix: &str) -> Vec<String> {
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.lines().filter(|line| line.starts_with(&format!("{prefix}-"))).map(str::to_owned).collect()
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
    }
}

/// A number in the report of a node.
fn count(report: &str, node: usize, name: &str) -> f64 {
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    report["nodes"][node]["counts"][name].as_f64().unwrap_or_else(|| panic!("{name} of node {node} in {report}"))
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, socat and /dev/net/tun"]
fn neighbours_reach_each_other_and_others_do_not() {
    let air = RunningAir::start("grid:rows=1,cols=3", 3, &["--carrier-sense", "--acknowledge"]);
    let at_1 = air.receiver(1, 5_000, "");
    let at_2 = air.receiver(2, 5_000, "");
    air.send(0, "UDP4-SENDTO:10.83.0.2:5000", "from 0 to 1\n");
    assert_eq!(at_1.next(), "from 0 to 1");
    air.send(0, "UDP4-SENDTO:10.83.0.3:5000", "from 0 to 2\n");
    wait_until("node 0 has given up asking for node 2", || {
        let known = air.exec(0, &["ip", "neighbour", "show", "10.83.0.3"]).output().unwrap();
        String::from_utf8_lossy(&known.stdout).contains("FAILED")
    });
    air.send(1, "UDP4-SENDTO:10.83.0.3:5000", "from 1 to 2\n");
    assert_eq!(at_2.next(), "from 1 to 2");
    drop((at_1, at_2));
    let report = air.stop();
    // ARP requests go to all in range; datagrams and answers to one, and are acknowledged.
    assert!(count(&report, 1, "acknowledgements") >= 1.0, "{report}");
    assert!(count(&report, 2, "acknowledgements") >= 1.0, "{report}");
    assert!((0..3).all(|node| count(&report, node, "given_up") == 0.0), "{report}");
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, socat and /dev/net/tun"]
fn a_multicast_reaches_exactly_the_neighbours_and_is_on_the_air_once() {
    let air = RunningAir::start("grid:rows=1,cols=4", 4, &["--rate", "2mbit"]);
    let group = ",ip-add-membership=239.83.0.1:air0";
    let receivers = [0, 2, 3].map(|node| air.receiver(node, 6_000, group));
    let datagram = "x".repeat(999) + "\n";
    // Reports of group membership are on the air too, and may collide with a datagram.
    let mut sent = 0.0;
    let mut both = 0;
    while both < 3 {
        air.send(1, "UDP4-DATAGRAM:239.83.0.1:6000", &datagram);
        sent += 1.0;
        assert!(sent < 20.0, "{both} of {sent} datagrams arrived at both neighbours");
        let arrived = [&receivers[0], &receivers[1]].map(Receiver::next_soon);
        assert!(arrived.iter().flatten().all(|line| line.len() == 999), "{arrived:?}");
        both += usize::from(arrived.iter().all(Option::is_some));
    }
    let from_2 = std::iter::repeat_with(|| {
        air.send(2, "UDP4-DATAGRAM:239.83.0.1:6000", "from 2\n");
        receivers[2].next_soon()
    });
    let first = from_2.take(20).flatten().next();
    assert_eq!(first.as_deref(), Some("from 2"), "node 3 is out of the range of node 1");
    drop(receivers);
    let report = air.stop();
    assert_eq!((count(&report, 1, "group_frames"), count(&report, 1, "group_bytes")), (sent, sent * 1_042.0));
    let expected = sent * (100e-6 + 1_042.0 * 8.0 / 2e6);
    assert!((count(&report, 1, "group_airtime_s") - expected).abs() < 1e-6, "{report}");
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, socat and /dev/net/tun"]
fn a_command_runs_on_the_air_and_its_status_is_that_of_the_air() {
    let run = |script: &str| -> (ExitStatus, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mingle-air"));
        command.args(["run", "--graph", "ring:n=3", "--", "sh", "-c", script]);
        let output = command.output().unwrap();
        (output.status, String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let (status, output) = run("ip netns list | grep -c ^$MINGLE_AIR-; echo $MINGLE_AIR; exit 7");
    assert_eq!(status.code(), Some(7));
    let (nodes, prefix) = output.split_once('\n').unwrap();
    assert_eq!(nodes, "3");
    assert_eq!(namespaces(prefix), Vec::<String>::new());
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, socat and /dev/net/tun"]
fn an_air_that_is_killed_leaves_no_namespaces_and_no_processes_in_them() {
    let mut air = RunningAir::start("ring:n=3", 3, &[]);
    let mut inside = air.receiver(0, 5_000, "");
    air.process.kill().unwrap();
    air.process.wait().unwrap();
    // Its end is the end of what it was carrying.
    assert!(!inside.process.wait().unwrap().success());
    wait_until("the janitor has removed the namespaces", || namespaces(&air.prefix).is_empty());
    let mut rest = String::new();
    air.output.read_line(&mut rest).unwrap();
    assert_eq!(rest, "");
}
