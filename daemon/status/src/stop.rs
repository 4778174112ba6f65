//! Requests to a peer to stop.

use tokio::sync::mpsc;

/// A handle to request that a peer stop. The peer goes on when all handles are dropped.
#[derive(Clone, Debug)]
pub struct StopHandle(mpsc::Sender<String>);

/// The peer's end of the channel of stop requests.
#[derive(Debug)]
pub struct StopRequests {
    requests: mpsc::Receiver<String>,
    /// Number of requests received.
    heard: usize,
}

/// A handle and the peer's end of its channel.
pub fn channel() -> (StopHandle, StopRequests) {
    // One to stop in good order, one to stop at once: further ones have no effect.
    let (sender, receiver) = mpsc::channel(2);
    (StopHandle(sender), StopRequests { requests: receiver, heard: 0 })
}

impl StopHandle {
    /// Requests a stop in good order, with a reason; after a second request the peer stops at once. Returns `true` if
    /// the peer still exists.
    pub fn stop(&self, reason: &str) -> bool {
        let sent = self.0.try_send(reason.to_owned());
        !matches!(sent, Err(mpsc::error::TrySendError::Closed(_)))
    }
}

impl StopRequests {
    /// Waits for the next request, and returns its reason. Waits for ever if all handles are gone.
    pub async fn next(&mut self) -> String {
        match self.requests.recv().await {
            Some(reason) => {
                self.heard += 1;
                reason
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until the peer was requested to stop for the second time, which means at once.
    pub async fn insists(&mut self) -> String {
        loop {
            let reason = self.next().await;
            if self.heard > 1 {
                return reason;
            }
        }
    }
}
