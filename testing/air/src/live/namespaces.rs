//! Network namespaces of an air, by their names: `mair4711-0` is node 0 of the air of process 4711.

use std::io;
use std::net::Ipv4Addr;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::ethernet::station_text;

/// The beginning of the names of all airs.
const FAMILY: &str = "mair";

/// The time that processes in a namespace have to end by themselves.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time between two looks at them.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Frames in an interface that wait for the air.
const INTERFACE_FRAMES: usize = 100;

/// A command of iproute2 that failed.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// It did not start.
    #[error("`{command}` did not start")]
    Start {
        /// The command line.
        command: String,
        /// The reason.
        source: io::Error,
    },
    /// It failed.
    #[error("`{command}` failed: {message}")]
    Failed {
        /// The command line.
        command: String,
        /// Its words.
        message: String,
    },
}

/// The prefix of the air of a process.
#[must_use]
pub fn prefix_of(process: u32) -> String {
    format!("{FAMILY}{process}")
}

/// The namespace of a node of an air.
#[must_use]
pub fn namespace_name(prefix: &str, number: usize) -> String {
    format!("{prefix}-{number}")
}

/// The prefix of the air that a namespace belongs to, and its process; `None` for other namespaces.
#[must_use]
pub fn air_of_namespace(name: &str) -> Option<(&str, u32)> {
    let (prefix, number) = name.split_once('-')?;
    number.parse::<usize>().ok()?;
    let process = prefix.strip_prefix(FAMILY)?.parse().ok()?;
    (prefix == prefix_of(process)).then_some((prefix, process))
}

/// The prefixes of the airs that have namespaces, ascending.
#[must_use]
pub fn airs() -> Vec<String> {
    let mut found: Vec<String> =
        listed().iter().filter_map(|name| air_of_namespace(name)).map(|(prefix, _)| prefix.to_owned()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Removes the namespaces of an air, and ends the processes in them. Other namespaces stay.
pub fn clean(prefix: &str) {
    let is_ours = |name: &&String| air_of_namespace(name).is_some_and(|(of, _)| of == prefix);
    let ours: Vec<String> = listed().iter().filter(is_ours).cloned().collect();
    end_processes(&ours);
    for name in ours {
        // A second cleaner may have been faster.
        let _ = Command::new("ip").args(["netns", "delete", &name]).output();
    }
}

/// Removes the namespaces of airs whose process is gone; returns their prefixes.
pub fn clean_stale() -> Vec<String> {
    let is_gone = |prefix: &String| {
        let process = prefix.strip_prefix(FAMILY).unwrap_or_default();
        let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
        !name.is_ok_and(|name| name.trim() == env!("CARGO_PKG_NAME"))
    };
    let stale: Vec<String> = airs().into_iter().filter(is_gone).collect();
    stale.iter().for_each(|prefix| clean(prefix));
    stale
}

pub(super) fn add(namespace: &str) -> Result<(), NamespaceError> {
    run(&["netns", "add", namespace])
}

/// Moves the TAP interface of a namespace's name into it, and gives it its addresses and routes.
pub(super) fn set_up(namespace: &str, number: usize, address: Ipv4Addr, mtu: usize) -> Result<(), NamespaceError> {
    run(&["link", "set", namespace, "netns", namespace])?;
    let inside = |arguments: &[&str]| run(&[&["-n", namespace], arguments].concat());
    inside(&["link", "set", "lo", "up"])?;
    inside(&["link", "set", namespace, "name", "air0"])?;
    let mtu = mtu.to_string();
    let frames = INTERFACE_FRAMES.to_string();
    let station = station_text(number);
    inside(&["link", "set", "air0", "address", &station, "mtu", &mtu, "txqueuelen", &frames])?;
    // Neighbour discovery of IPv6 would take airtime that no one asked for; a kernel without IPv6 has no such file.
    let no_ipv6 = "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e $f ] || echo 1 >$f; done";
    run(&["netns", "exec", namespace, "sh", "-c", no_ipv6])?;
    inside(&["address", "add", &format!("{address}/24"), "broadcast", "+", "dev", "air0"])?;
    inside(&["link", "set", "air0", "up"])?;
    inside(&["route", "add", "224.0.0.0/4", "dev", "air0"])
}

fn run(arguments: &[&str]) -> Result<(), NamespaceError> {
    let command = || format!("ip {}", arguments.join(" "));
    let output: Output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|source| NamespaceError::Start { command: command(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(NamespaceError::Failed { command: command(), message })
}

/// The names of all namespaces; none where they cannot be listed.
fn listed() -> Vec<String> {
    let output = Command::new("ip").args(["netns", "list"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Asks the processes in namespaces to end, and ends those that do not.
fn end_processes(namespaces: &[String]) {
    let signal_all = |signal: Signal| {
        let inside = processes(namespaces);
        for &process in &inside {
            // It may have ended by itself.
            let _ = kill_process(process, signal);
        }
        inside.len()
    };
    let deadline = Instant::now() + PATIENCE;
    if signal_all(Signal::TERM) == 0 {
        return;
    }
    while !processes(namespaces).is_empty() {
        if Instant::now() > deadline {
            signal_all(Signal::KILL);
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn processes(namespaces: &[String]) -> Vec<Pid> {
    let of = |namespace: &String| {
        let output = Command::new("ip").args(["netns", "pids", namespace]).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    };
    let texts: Vec<String> = namespaces.iter().map(of).collect();
    texts.iter().flat_map(|text| text.lines()).filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_form_belong_to_an_air() {
        assert_eq!(air_of_namespace("mair4711-0"), Some(("mair4711", 4_711)));
        assert_eq!(namespace_name(&prefix_of(4_711), 12), "mair4711-12");
        for other in
            ["mair4711", "mair-0", "mair4711-x", "mgl4711-0", "mair04711-0", "mair4711-0-1", "mair4711x-0", "", "-"]
        {
            assert_eq!(air_of_namespace(other), None, "{other}");
        }
    }
}
