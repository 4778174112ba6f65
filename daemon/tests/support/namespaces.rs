//! Machines for a test: network namespaces, joined by bridges in a namespace of their own. They touch nothing of the
//! host, and are gone with the test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::{PATIENCE, RunningPeer, text, undisturbed};

/// Networks with machines in them.
pub(crate) struct Networks {
    /// The namespace of the bridges.
    name: String,
    folder: tempfile::TempDir,
}

/// A machine: its own interfaces, its own disk.
pub(crate) struct Machine {
    namespace: String,
    home: PathBuf,
}

impl Networks {
    /// No network yet. Panics where this system does not let us make namespaces: the tests that need them are ignored
    /// by default.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("mgl{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        run("ip", &["netns", "add", &name]);
        Self { name, folder: tempfile::tempdir().unwrap() }
    }

    /// A folder that all machines can read.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A network, by a name of at most four letters.
    pub(crate) fn add_network(&self, network: &str) {
        self.ip(&["link", "add", network, "type", "bridge"]);
        self.ip(&["link", "set", network, "up"]);
    }

    /// A machine with an address, such as `10.77.1.5/16`, in each of these networks.
    pub(crate) fn add_machine(&self, machine: &str, addresses: &[(&str, &str)]) -> Machine {
        let namespace = format!("{}-{machine}", self.name);
        run("ip", &["netns", "add", &namespace]);
        run("ip", &["-n", &namespace, "link", "set", "lo", "up"]);
        for (network, address) in addresses {
            let (port, interface) = (port(machine, network), format!("to{network}"));
            self.ip(&["link", "add", &port, "type", "veth", "peer", "name", &interface, "netns", &namespace]);
            self.ip(&["link", "set", &port, "master", network, "up"]);
            run("ip", &["-n", &namespace, "address", "add", address, "dev", &interface]);
            run("ip", &["-n", &namespace, "link", "set", &interface, "up"]);
        }
        Machine { namespace, home: self.folder.path().join(machine) }
    }

    /// A router that hides the first network behind its address in the second one.
    pub(crate) fn add_nat(&self, router: &str, inside: (&str, &str), outside: (&str, &str)) {
        let machine = self.add_machine(router, &[inside, outside]);
        let script = format!(
            "echo 1 > /proc/sys/net/ipv4/ip_forward && nft add table ip nat && \
             nft 'add chain ip nat out {{ type nat hook postrouting priority 100 ; }}' && \
             nft add rule ip nat out oifname to{} masquerade",
            outside.0
        );
        run("ip", &["netns", "exec", &machine.namespace, "sh", "-c", &script]);
    }

    /// Pulls the cable between a machine and a network, or plugs it in.
    pub(crate) fn set_cable(&self, machine: &str, network: &str, plugged: bool) {
        self.ip(&["link", "set", &port(machine, network), if plugged { "up" } else { "down" }]);
    }

    fn ip(&self, arguments: &[&str]) {
        run("ip", &[&["-n", &self.name], arguments].concat());
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        // Machines have the name of their networks before their own.
        let listed = Command::new("ip").args(["netns", "list"]).output();
        let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let ours = |name: &&str| *name == self.name || name.starts_with(&format!("{}-", self.name));
        for namespace in listed.lines().filter_map(|line| line.split_whitespace().next()).filter(ours) {
            // The failure of a test that has failed already is enough.
            let _ = Command::new("ip").args(["netns", "delete", namespace]).status();
        }
    }
}

impl Machine {
    /// A command of the binary under test on this machine.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, env!("CARGO_BIN_EXE_mingle")]);
        let mut command = undisturbed(command);
        command.env("MINGLE_HOME", &self.home);
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Starts a peer, or joins one.
    pub(crate) fn start(&self, arguments: &[&str]) -> RunningPeer {
        RunningPeer::spawn_as(self.command(), arguments)
    }

    /// The home of its peer.
    pub(crate) fn home(&self) -> &str {
        text(&self.home)
    }

    /// Starts another program on this machine.
    pub(crate) fn spawn(&self, program: &str, arguments: &[&str]) -> Child {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]).args(arguments).stdin(Stdio::null());
        command.spawn().unwrap()
    }

    /// Waits until an interface that another program makes has its address.
    pub(crate) fn wait_for_route(&self) {
        let deadline = Instant::now() + PATIENCE;
        let has_route = || {
            let listed = Command::new("ip").args(["-n", &self.namespace, "route"]).output().unwrap();
            !listed.stdout.is_empty()
        };
        while !has_route() {
            assert!(Instant::now() < deadline, "{} got no interface", self.namespace);
        }
    }

    /// Sends packets for other networks through this address.
    pub(crate) fn set_gateway(&self, address: &str) {
        run("ip", &["-n", &self.namespace, "route", "add", "default", "via", address]);
    }

    /// Limits the rate into a network, such as to `2mbit`.
    pub(crate) fn limit_rate(&self, network: &str, rate: &str) {
        let interface = format!("to{network}");
        let limit = ["tbf", "rate", rate, "burst", "16kb", "latency", "200ms"];
        run("tc", &[&["-n", &self.namespace, "qdisc", "add", "dev", &interface, "root"], &limit[..]].concat());
    }
}

/// The end of a machine's cable at the bridge.
fn port(machine: &str, network: &str) -> String {
    format!("{machine}-{network}")
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
