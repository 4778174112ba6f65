//! Asking a peer to stop.

use tokio::sync::mpsc;

/// A handle that asks a peer to stop. When all of them are gone the peer goes on.
#[derive(Clone, Debug)]
pub struct StopHandle(mpsc::Sender<String>);

/// What a peer hears of that.
#[derive(Debug)]
pub struct StopRequests {
    requests: mpsc::Receiver<String>,
    /// So many were heard.
    heard: usize,
}

/// A handle and what it is heard by.
pub fn channel() -> (StopHandle, StopRequests) {
    // One to stop in good order, one to stop at once: more say nothing.
    let (sender, receiver) = mpsc::channel(2);
    (StopHandle(sender), StopRequests { requests: receiver, heard: 0 })
}

impl StopHandle {
    /// Asks to stop in good order, saying why; asked again, the peer stops at once. Returns whether there is one to hear.
    pub fn stop(&self, reason: &str) -> bool {
        let sent = self.0.try_send(reason.to_owned());
        !matches!(sent, Err(mpsc::error::TrySendError::Closed(_)))
    }
}

impl StopRequests {
    /// Waits for the next request, and says why; for ever, where nobody can ask any more.
    pub async fn next(&mut self) -> String {
        match self.requests.recv().await {
            Some(reason) => {
                self.heard += 1;
                reason
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until the peer was asked for the second time: it is to stop at once.
    pub(crate) async fn insists(&mut self) -> String {
        loop {
            let reason = self.next().await;
            if self.heard > 1 {
                return reason;
            }
        }
    }
}
