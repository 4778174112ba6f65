//! The events of a running peer, whatever it works on: one wait for all of them, which can be cancelled without losing
//! any.

use mingle_net::edge::EdgeEvent;
use mingle_net::transport::NetworkEvent;
use tokio::sync::mpsc;

use crate::api::Request;
use crate::error::{Error, ErrorKind, Result};
use crate::events::Watchdog;
use crate::membership::Wanted;
use crate::records::Written;
use crate::stop::StopRequests;
use crate::training::thread::JobResult;

/// Sources of events.
pub(crate) struct EventReceivers {
    /// The streams of the present plan.
    pub edges: mpsc::Receiver<EdgeEvent>,
    pub network: mpsc::Receiver<NetworkEvent>,
    /// Requests of others that only the loop can answer.
    pub wanted: mpsc::Receiver<Wanted>,
    pub stop: StopRequests,
    /// Requests through the local interface.
    pub requests: mpsc::Receiver<Request>,
    /// `None` where nothing is trained.
    pub answers: Option<mpsc::Receiver<JobResult>>,
    /// `None` without records.
    pub written: Option<mpsc::Receiver<Written>>,
    /// Notifies the service manager that the loop runs.
    pub watchdog: Watchdog,
}

/// An event for the loop.
pub(crate) enum LoopEvent {
    Edge(EdgeEvent),
    Network(NetworkEvent),
    Wanted(Wanted),
    /// A request to stop, with its reason.
    Stop(String),
    Request(Request),
    Answer(JobResult),
    Written(Written),
}

impl EventReceivers {
    /// Waits for the next event. The wait may be cancelled at any time.
    ///
    /// # Errors
    /// A thread of this peer has ended, which none does before the loop.
    pub(crate) async fn next(&mut self) -> Result<LoopEvent> {
        loop {
            return tokio::select! {
                Some(event) = self.edges.recv() => Ok(LoopEvent::Edge(event)),
                Some(event) = self.network.recv() => Ok(LoopEvent::Network(event)),
                Some(wanted) = self.wanted.recv() => Ok(LoopEvent::Wanted(wanted)),
                event = next_local(&mut self.stop, &mut self.requests, &mut self.answers) => event,
                written = of_thread(&mut self.written, "the thread that writes records") => written.map(LoopEvent::Written),
                () = self.watchdog.turn() => continue,
            };
        }
    }

    /// Waits for the next event from this machine, once the peer is done with its neighbours.
    ///
    /// # Errors
    /// The training thread has ended.
    pub(crate) async fn next_local(&mut self) -> Result<LoopEvent> {
        loop {
            return tokio::select! {
                event = next_local(&mut self.stop, &mut self.requests, &mut self.answers) => event,
                () = self.watchdog.turn() => continue,
            };
        }
    }
}

async fn next_local(
    stop: &mut StopRequests,
    requests: &mut mpsc::Receiver<Request>,
    answers: &mut Option<mpsc::Receiver<JobResult>>,
) -> Result<LoopEvent> {
    tokio::select! {
        reason = stop.next() => Ok(LoopEvent::Stop(reason)),
        Some(request) = requests.recv() => Ok(LoopEvent::Request(request)),
        answer = of_thread(answers, "the training thread") => answer.map(LoopEvent::Answer),
    }
}

/// The next message of a thread; waits for ever if there is no thread.
async fn of_thread<T>(receiver: &mut Option<mpsc::Receiver<T>>, name: &str) -> Result<T> {
    let Some(receiver) = receiver else { return std::future::pending().await };
    let next = receiver.recv().await;
    next.ok_or_else(|| Error::new(ErrorKind::Unexpected, format!("{name} has stopped; the log says why")))
}
