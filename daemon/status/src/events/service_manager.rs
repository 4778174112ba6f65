//! Notifications to the service manager, by the notify protocol of systemd: datagrams of `NAME=value` lines to the
//! socket that `NOTIFY_SOCKET` names. Without that variable nothing is sent. The protocol is implemented here, on a
//! non-blocking socket: a full queue of the service manager must not hold up the event loop.
//!
//! | event | notification |
//! | --- | --- |
//! | all neighbours are up, or it trains without some of them | `READY=1` |
//! | an event of interest at a glance | `STATUS=...` |
//! | half of every watchdog period, while the event loop turns | `WATCHDOG=1` |
//! | no more rounds | `STOPPING=1` |

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

use crate::events::Event;

/// The socket of the service manager, if there is one.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    #[cfg(target_os = "linux")]
    socket: Option<(std::os::unix::net::UnixDatagram, std::os::unix::net::SocketAddr)>,
}

impl ServiceManager {
    /// The service manager that the environment names.
    pub(crate) fn of_environment() -> Self {
        #[cfg(target_os = "linux")]
        let manager = Self { socket: std::env::var_os("NOTIFY_SOCKET").and_then(|name| connect(&name)) };
        #[cfg(not(target_os = "linux"))]
        let manager = Self::default();
        manager
    }

    /// Notifies the service manager of the state after an event, if that matters to it.
    pub(crate) fn tell(&self, event: &Event) {
        if let Some(state) = state_after(event) {
            self.send(&state);
        }
    }

    /// Sends a notification and ignores errors: a service manager that does not receive it is no reason to stop
    /// training.
    fn send(&self, state: &str) {
        #[cfg(target_os = "linux")]
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = state;
    }
}

/// A socket, and the address of the service manager: a path, or an abstract name after `@`.
#[cfg(target_os = "linux")]
fn connect(name: &std::ffi::OsStr) -> Option<(std::os::unix::net::UnixDatagram, std::os::unix::net::SocketAddr)> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let address = match name.as_bytes().split_first()? {
        (b'@', abstract_name) => SocketAddr::from_abstract_name(abstract_name).ok()?,
        _ => SocketAddr::from_pathname(name).ok()?,
    };
    let socket = UnixDatagram::unbound().ok()?;
    // A full queue must not hold the event loop up.
    socket.set_nonblocking(true).ok()?;
    Some((socket, address))
}

/// The notification after an event, if any.
fn state_after(event: &Event) -> Option<String> {
    match event {
        Event::Listening { .. } => Some("STATUS=listening, looking for the plan".to_owned()),
        Event::Waiting { missing, .. } => Some(format!("STATUS=waiting for {} neighbours", missing.len())),
        Event::Joined { neighbours, .. } => Some(format!("READY=1\nSTATUS=training with {neighbours} neighbours")),
        // A service that ends well without having been ready would count as failed.
        Event::Finished { round, .. } => Some(format!("READY=1\nSTATUS=this run ended before, after {round} rounds")),
        // A peer that is restarted while a neighbour is gone trains without a `Joined` event. A second `READY=1` means
        // nothing to a service manager.
        Event::Evaluated { round, metrics, .. } => Some(format!("READY=1\nSTATUS=round {round}, {metrics}")),
        Event::Suspended { node, .. } => Some(format!("STATUS=going on without node {node}")),
        Event::Stopping { round, .. } => Some(format!("STOPPING=1\nSTATUS=stopping after round {round}")),
        Event::Done { round, metrics, .. } => Some(format!("STOPPING=1\nSTATUS=done after round {round}, {metrics}")),
        _ => None,
    }
}

/// Reports to a service manager that the event loop runs, as often as it asked for.
#[derive(Debug)]
pub struct Watchdog {
    manager: ServiceManager,
    interval: Option<Interval>,
}

impl Watchdog {
    /// The watchdog that the environment asks for, if it does. Needs a runtime.
    pub fn of_environment() -> Self {
        let variable = |name| std::env::var(name).ok();
        let period = period(variable("WATCHDOG_USEC").as_deref(), variable("WATCHDOG_PID").as_deref());
        let interval = period.map(|period| {
            let mut interval = tokio::time::interval(period / 2);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        Self { manager: ServiceManager::of_environment(), interval }
    }

    /// Waits for the next time, and notifies. Never returns if no watchdog was asked for.
    pub async fn turn(&mut self) {
        match &mut self.interval {
            Some(interval) => {
                interval.tick().await;
                self.manager.send("WATCHDOG=1");
            }
            None => std::future::pending().await,
        }
    }
}

/// The watchdog's period, if it is meant for this process.
fn period(microseconds: Option<&str>, process: Option<&str>) -> Option<Duration> {
    let is_ours = process.is_none_or(|process| process.parse() == Ok(std::process::id()));
    let period = Duration::from_micros(microseconds?.parse().ok()?);
    (is_ours && period >= Duration::from_millis(2)).then_some(period)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use mingle_net::transport::NetworkCounts;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_told_arrives_at_sockets_of_both_kinds() {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixDatagram};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let abstract_name = format!("mingle-notify-test-{}", std::process::id());
        let sockets = [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap(),
                format!("@{abstract_name}").into(),
            ),
        ];
        for (socket, name) in sockets {
            let manager = ServiceManager { socket: connect(&name) };
            manager.tell(&Event::Round { round: 3, weight_units: 1, clipped: None });
            manager.tell(&Event::Joined { neighbours: 4, missing: Vec::new(), network: NetworkCounts::default() });
            let mut buffer = [0; 256];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1\nSTATUS=training with 4 neighbours", "{name:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_socket_that_is_not_there_is_no_failure() {
        let manager = ServiceManager { socket: connect("/no/such/socket".as_ref()) };
        manager.tell(&Event::Joined { neighbours: 4, missing: Vec::new(), network: NetworkCounts::default() });
        assert!(connect("".as_ref()).is_none());
    }

    #[test]
    fn the_watchdog_is_fed_only_if_this_process_was_asked_to() {
        assert_eq!(period(Some("30000000"), None), Some(Duration::from_secs(30)));
        assert_eq!(period(Some("30000000"), Some(&std::process::id().to_string())), Some(Duration::from_secs(30)));
        assert_eq!(period(Some("30000000"), Some("1")), None);
        assert_eq!(period(Some("often"), None), None);
        assert_eq!(period(Some("0"), None), None);
        assert_eq!(period(None, None), None);
    }
}
