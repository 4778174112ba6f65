//! A limit on questions, the requests to a neighbour that its own messages cause: one at a time to each, at a low rate.
//!
//! A message costs a neighbour nothing; a question costs a stream and a task that waits for the answer. So a neighbour
//! is not asked again while an answer is pending. One that sends something else each time is asked only now and then:
//! by then a person knows that it does not fit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use mingle_protocol::NodeId;

use crate::token_bucket::TokenBucket;

/// Questions to one neighbour in a burst.
const AT_ONCE: f64 = 5.0;
/// Questions to one neighbour per second, after the burst.
const PER_SECOND: f64 = 0.2;

/// Questions of one kind to all neighbours.
#[derive(Debug, Default)]
pub struct Questions {
    open: Arc<Mutex<BTreeSet<NodeId>>>,
    allowed: BTreeMap<NodeId, TokenBucket>,
}

/// A pending question; once it is dropped, the next one may be asked.
#[derive(Debug)]
pub struct Question {
    node: NodeId,
    open: Arc<Mutex<BTreeSet<NodeId>>>,
}

impl Questions {
    /// A question to this neighbour; `None` while one is pending, or beyond the rate.
    pub fn ask(&mut self, node: NodeId, now: Instant) -> Option<Question> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = self.allowed.entry(node).or_insert(TokenBucket::new(AT_ONCE, PER_SECOND));
        if open.contains(&node) || !allowed.take(now) {
            return None;
        }
        open.insert(node);
        Some(Question { node, open: Arc::clone(&self.open) })
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.node);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_neighbour_is_asked_one_question_at_a_time() {
        let (mut questions, now) = (Questions::default(), Instant::now());
        let question = questions.ask(NodeId(1), now);
        assert!(question.is_some() && questions.ask(NodeId(1), now).is_none());
        assert!(questions.ask(NodeId(2), now).is_some(), "another one is asked beside it");
        drop(question);
        assert!(questions.ask(NodeId(1), now).is_some());
    }

    #[test]
    fn one_that_says_something_else_all_the_time_is_asked_at_a_bounded_rate() {
        let (mut questions, began) = (Questions::default(), Instant::now());
        // Ten minutes of 390 messages a second, each question answered at once.
        let moments = (0..390 * 600).map(|word| began + Duration::from_secs(1) * word / 390);
        let asked = moments.filter(|now| questions.ask(NodeId(1), *now).is_some()).count();
        assert!((120..=125).contains(&asked), "{asked}");
    }
}
