//! Neighbours that have not come when training is to begin: what keeps them, and whether they will.

use std::collections::BTreeMap;

use mingle_protocol::{Input, NodeId};

use super::Driver;
use crate::error::Result;
use crate::membership::TaskWord;

/// A neighbour that was there has ended once it was not found so many times in a row.
const TIMES_NOT_FOUND: u32 = 2;

/// What neighbours that have not come said.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<NodeId, Sightings>);

#[derive(Debug, Default)]
struct Sightings {
    was_there: bool,
    /// A person heard what it waits for.
    is_told: bool,
    not_found: u32,
}

/// What is new of a neighbour.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// It runs, and does not know what it trains.
    Waits,
    /// It has ended.
    Gone,
}

impl Missing {
    fn note(&mut self, node: NodeId, word: &TaskWord) -> Option<News> {
        let seen = self.0.entry(node).or_default();
        match word {
            TaskWord::Away => {
                seen.not_found += 1;
                (seen.was_there && seen.not_found == TIMES_NOT_FOUND).then_some(News::Gone)
            }
            TaskWord::NotYet | TaskWord::Task(_) => {
                (seen.was_there, seen.not_found) = (true, 0);
                let waits = matches!(word, TaskWord::NotYet) && !std::mem::replace(&mut seen.is_told, true);
                waits.then_some(News::Waits)
            }
        }
    }
}

impl Driver<'_> {
    pub(super) fn on_word_of_the_missing(&mut self, node: NodeId, word: &TaskWord) -> Result {
        if !self.node.missing_neighbours().contains(&node) {
            return Ok(());
        }
        match self.missing.note(node, word) {
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
        let mut missing = Missing::default();
        let node = NodeId(2);
        assert_eq!([(); 5].map(|()| missing.note(node, &TaskWord::Away)), [const { None }; 5]);
        assert_eq!(missing.note(node, &TaskWord::NotYet), Some(News::Waits));
        assert_eq!(missing.note(node, &TaskWord::NotYet), None, "that was said");
        assert_eq!(missing.note(node, &TaskWord::Away), None, "it may be slow to answer");
        assert_eq!(missing.note(node, &TaskWord::NotYet), None);
        assert_eq!(missing.note(node, &TaskWord::Away), None);
        assert_eq!(missing.note(node, &TaskWord::Away), Some(News::Gone));
        assert_eq!(missing.note(node, &TaskWord::Away), None, "that was said");
    }
}
