//! Neighbours that have not come when training is to begin: the reason, and whether they will come.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mingle_protocol::{Input, NodeId};

use super::Driver;
use crate::error::Result;
use crate::membership::TaskAnswer;

/// Consecutive failures to find a neighbour that was there, after which it counts as ended.
const TIMES_NOT_FOUND: u32 = 3;
/// Time that scripts usually take to attach; a shorter wait is not reported.
const USUAL_START: Duration = Duration::from_secs(5);

/// Missing neighbours, by their answers.
#[derive(Debug, Default)]
pub(super) struct MissingNeighbours {
    seen: BTreeMap<NodeId, Sightings>,
    /// Neighbours that were asked and have not answered yet.
    asked: BTreeSet<NodeId>,
}

#[derive(Debug, Default)]
struct Sightings {
    was_there: bool,
    /// Set once the user was notified of the reason for its wait.
    is_told: bool,
    not_found: u32,
}

/// A change in the state of a missing neighbour.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// It runs, and has no task yet.
    Waits,
    /// It has ended.
    Gone,
}

impl MissingNeighbours {
    /// Records that this neighbour is asked. Returns `false` while an earlier answer is outstanding.
    pub(super) fn ask(&mut self, node: NodeId) -> bool {
        self.asked.insert(node)
    }

    /// Records that it has answered, or is away.
    pub(super) fn has_answered(&mut self, node: NodeId) {
        self.asked.remove(&node);
    }

    fn note(&mut self, node: NodeId, word: &TaskAnswer, waited: Duration) -> Option<News> {
        let seen = self.seen.entry(node).or_default();
        match word {
            TaskAnswer::Away => {
                seen.not_found += 1;
                (seen.was_there && seen.not_found == TIMES_NOT_FOUND).then_some(News::Gone)
            }
            TaskAnswer::NotYet | TaskAnswer::Task(_) => {
                (seen.was_there, seen.not_found) = (true, 0);
                let waits = matches!(word, TaskAnswer::NotYet) && waited >= USUAL_START;
                (waits && !std::mem::replace(&mut seen.is_told, true)).then_some(News::Waits)
            }
        }
    }
}

impl Driver<'_> {
    pub(super) fn on_word_of_the_missing(&mut self, node: NodeId, word: &TaskAnswer) -> Result {
        self.missing.has_answered(node);
        if !self.node.missing_neighbours().contains(&node) {
            return Ok(());
        }
        match self.missing.note(node, word, self.member.started.elapsed()) {
            Some(News::Waits) => {
                self.member.warn(format!(
                    "node {node} runs and has nothing to train yet: the script that trains for it has not attached; trainer.log in its \
                     home may say why"
                ));
                Ok(())
            }
            Some(News::Gone) => {
                self.member
                    .warn(format!("node {node} has ended before training began: this peer does not wait for it"));
                self.feed(Input::Gone { peer: node })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_was_never_there_may_still_come_and_one_that_was_has_ended() {
        let mut missing = MissingNeighbours::default();
        let node = NodeId(2);
        let mut look = |word, seconds| missing.note(node, &word, Duration::from_secs(seconds));
        assert_eq!([1, 2, 3, 4, 5, 6].map(|second| look(TaskAnswer::Away, second)), [const { None }; 6]);
        assert_eq!(look(TaskAnswer::NotYet, 1), None, "its script may only be starting");
        assert_eq!(look(TaskAnswer::NotYet, 9), Some(News::Waits));
        assert_eq!(look(TaskAnswer::NotYet, 10), None, "that was said");
        assert_eq!([11, 12].map(|second| look(TaskAnswer::Away, second)), [None, None], "it may be slow to answer");
        assert_eq!(look(TaskAnswer::NotYet, 13), None);
        let ended = [14, 15, 16, 17].map(|second| look(TaskAnswer::Away, second));
        assert_eq!(ended, [None, None, Some(News::Gone), None]);
    }
}
