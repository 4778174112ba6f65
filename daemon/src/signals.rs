//! Requests to stop a process: an interrupt, a termination request, a terminal that was closed, or the end of standard input.

use std::io::Read;

#[cfg(unix)]
use mingle_peer::ErrorKind;
#[cfg(unix)]
use mingle_peer::error::Context;
use mingle_peer::{Result, stop};
use tokio::sync::oneshot;

/// The request that does not come from a person.
pub(crate) const STDIN_ENDED: &str = "standard input has ended";

/// Receives requests to stop, from its creation on.
pub(crate) struct StopSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// None where the process was started to outlive its terminal.
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
    stdin_end: Option<oneshot::Receiver<()>>,
}

impl StopSignals {
    /// Starts to listen; for the end of standard input only `with_stdin`.
    pub(crate) fn listen(with_stdin: bool) -> Result<Self> {
        #[cfg(unix)]
        let signal =
            |kind| tokio::signal::unix::signal(kind).context(ErrorKind::Unexpected, "cannot listen for signals");
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(tokio::signal::unix::SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(tokio::signal::unix::SignalKind::terminate())?,
            #[cfg(unix)]
            hangup: if ignores_hangups() { None } else { Some(signal(tokio::signal::unix::SignalKind::hangup())?) },
            stdin_end: with_stdin.then(watch_stdin),
        })
    }

    /// Waits for the next request, and returns its description.
    pub(crate) async fn next(&mut self) -> &'static str {
        #[cfg(unix)]
        let signal = async {
            let hangup = async {
                match &mut self.hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.interrupt.recv() => "interrupted",
                _ = self.terminate.recv() => "asked to terminate",
                _ = hangup => "its terminal was closed",
            }
        };
        #[cfg(not(unix))]
        let signal = async {
            match tokio::signal::ctrl_c().await {
                Ok(()) => "interrupted",
                Err(_) => std::future::pending().await,
            }
        };
        let stdin_end = async {
            match &mut self.stdin_end {
                Some(end) => {
                    // An error is as good as the message: the thread has ended.
                    let _ = end.await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            reason = signal => reason,
            () = stdin_end => {
                self.stdin_end = None;
                STDIN_ENDED
            }
        }
    }
}

/// Returns `true` if the process was started with hangups ignored, as `nohup` and `trap "" HUP` do. A handler would undo
/// that. The kernel of Linux says so in the mask of ignored signals; elsewhere it is not known.
#[cfg(unix)]
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| has_hangup(mask.trim()))
}

/// Returns `true` if a mask of signals, in hexadecimal, has the lowest bit: that of signal 1, SIGHUP.
#[cfg(unix)]
fn has_hangup(mask: &str) -> bool {
    u64::from_str_radix(mask, 16).is_ok_and(|mask| mask & 1 == 1)
}

/// Forwards the requests to stop to the library, except the end of standard input.
pub(crate) fn forward() -> Result<stop::StopRequests> {
    let mut signals = StopSignals::listen(false)?;
    let (handle, requests) = stop::channel();
    tokio::spawn(async move { while handle.stop(signals.next().await) {} });
    Ok(requests)
}

/// Reads standard input to its end on a dedicated thread. The thread is never joined: it holds nothing, and ends with
/// the process.
fn watch_stdin() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while matches!(std::io::stdin().read(&mut buffer), Ok(count) if count > 0) {}
        // The receiver is gone if the process is ending.
        let _ = sender.send(());
    });
    receiver
}
