//! Work that takes its time: handed out by a node, run by its host.
//!
//! The node itself is polled between messages, and must not stand still for a minute. It lays an order on the bench and
//! waits; its host takes the order, runs it on a thread or at once, and says so. Nothing here knows threads.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use super::{RoundLearning, RoundStore};

/// What a node works with.
pub(crate) struct Learner {
    pub(crate) learning: Box<dyn RoundLearning>,
    pub(crate) store: Box<dyn RoundStore>,
    /// The state before everything.
    pub(crate) beginning: Vec<u8>,
}

/// A piece of local work. Run it anywhere, once, and then let the node go on with [`SolverPeer::worked`](crate::SolverPeer::worked).
pub struct LocalWork(Box<dyn FnOnce() + Send>);

impl LocalWork {
    /// Does it.
    pub fn run(self) {
        (self.0)();
    }
}

impl fmt::Debug for LocalWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalWork")
    }
}

/// Where orders lie. Clones are handles on one bench.
#[derive(Clone)]
pub(crate) struct Bench {
    order: Arc<Mutex<Option<LocalWork>>>,
    /// Locked only while a piece of work is run.
    learner: Arc<Mutex<Learner>>,
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bench")
    }
}

impl Bench {
    pub(crate) fn new(learner: Learner) -> Self {
        Self { order: Arc::default(), learner: Arc::new(Mutex::new(learner)) }
    }

    /// Has the host do this, and waits for what comes of it. An order that is dropped before it was begun is never done.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce(&mut Learner) -> T + Send + 'static) -> T {
        let done: Arc<Mutex<Option<T>>> = Arc::default();
        let (learner, place) = (Arc::clone(&self.learner), Arc::clone(&done));
        let order = LocalWork(Box::new(move || {
            let result = work(&mut lock(&learner));
            *lock(&place) = Some(result);
        }));
        *lock(&self.order) = Some(order);
        poll_fn(|_| lock(&done).take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// What is to be done, once.
    pub(crate) fn take(&self) -> Option<LocalWork> {
        lock(&self.order).take()
    }
}

/// Work that panicked ends its process; until then what it left is not looked at.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
