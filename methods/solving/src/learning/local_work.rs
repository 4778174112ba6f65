//! Long-running work: handed out by a node, run by its host.
//!
//! The node itself is polled between messages, and must not block for a minute. It places an order on the bench and
//! waits; its host takes the order, runs it on a thread or at once, and reports that it is done. This module starts no
//! threads.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use super::{RoundLearning, RoundStore};

/// The learning of a node, with its store.
pub(crate) struct Learner {
    pub(crate) learning: Box<dyn RoundLearning>,
    pub(crate) store: Box<dyn RoundStore>,
    /// The state before the first round.
    pub(crate) beginning: Vec<u8>,
}

/// A piece of local work. Run it anywhere, once, and then let the node go on with
/// [`SolverPeer::worked`](crate::SolverPeer::worked).
pub struct LocalWork(Box<dyn FnOnce() + Send>);

impl LocalWork {
    /// Runs the work.
    pub fn run(self) {
        (self.0)();
    }
}

impl fmt::Debug for LocalWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalWork")
    }
}

/// The workbench: holds the order for the host. Clones are handles on one bench.
#[derive(Clone)]
pub(crate) struct Workbench {
    order: Arc<Mutex<Option<LocalWork>>>,
    /// Locked only while a piece of work is run.
    learner: Arc<Mutex<Learner>>,
}

impl fmt::Debug for Workbench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bench")
    }
}

impl Workbench {
    pub(crate) fn new(learner: Learner) -> Self {
        Self { order: Arc::default(), learner: Arc::new(Mutex::new(learner)) }
    }

    /// Has the host run this work, and waits for its result. An order that is dropped before it was begun is never run.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce(&mut Learner) -> T + Send + 'static) -> T {
        let done: Arc<Mutex<Option<T>>> = Arc::default();
        let learner = Arc::clone(&self.learner);
        let place = Arc::clone(&done);
        let order = LocalWork(Box::new(move || {
            let result = work(&mut lock(&learner));
            *lock(&place) = Some(result);
        }));
        *lock(&self.order) = Some(order);
        poll_fn(|_| lock(&done).take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Takes the order, if there is one.
    pub(crate) fn take(&self) -> Option<LocalWork> {
        lock(&self.order).take()
    }
}

/// Locks despite poisoning: work that panicked ends its process, and until then its remains are not read.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
