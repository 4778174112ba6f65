//! Neighbours that have not come when training is to begin: the reason, and whether they will come.
//!
//! | neighbour | wait |
//! | --- | --- |
//! | has not been seen | `join_timeout` |
//! | runs, and its script has not attached | [`SHORTEST_PATIENCE`], or longer where scripts of this swarm need longer |
//! | has ended, or trains something else | none |
//! | the same, where another neighbour has begun | [`USUAL_START`] at most; [`AFTER_OTHERS`] for one that is not there |
//!
//! Then this peer begins without it. The neighbour is a founder still: when it comes, it begins with the model that the
//! others have by then, and brings its whole weight.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mingle_protocol::{Input, NodeId};

use super::Driver;
use crate::error::Result;
use crate::membership::TaskAnswer;

/// Consecutive failures to find a neighbour that was there, after which it counts as ended.
const TIMES_NOT_FOUND: u32 = 3;
/// Time that scripts usually take to attach; a shorter wait is not reported. Also the wait for a script where the swarm
/// has begun.
const USUAL_START: Duration = Duration::from_secs(5);
/// Time for which a neighbour that is not there is waited for once another has begun.
const AFTER_OTHERS: Duration = Duration::from_secs(30);
/// Least time for which a neighbour that runs may wait for its script, and the others for it.
const SHORTEST_PATIENCE: Duration = Duration::from_secs(30);
/// The same relative to the time in which this peer was ready: sites of a swarm mostly run one script.
const OWN_STARTS: u32 = 2;

/// Missing neighbours, by their answers.
#[derive(Debug)]
pub(super) struct MissingNeighbours {
    seen: BTreeMap<NodeId, Sightings>,
    /// Neighbours that were asked and have not answered yet.
    asked: BTreeSet<NodeId>,
    /// Time for which a neighbour's script is waited for.
    patience: Duration,
    /// The time at which the first neighbour had begun.
    others_began: Option<Duration>,
}

#[derive(Debug, Default)]
struct Sightings {
    was_there: bool,
    /// The time at which it first said that it has nothing to train.
    waits_since: Option<Duration>,
    /// The news that the user has.
    told: Option<News>,
    not_found: u32,
}

/// A change in the state of a missing neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    /// It runs, and has no task yet.
    Waits,
    /// It has had no task for so long that this peer begins without it.
    Late,
    /// It is not there, and others have begun.
    Absent,
    /// It has ended.
    Gone,
}

impl MissingNeighbours {
    /// No neighbour has answered. This peer took `own_start` until it was ready to train.
    pub(super) fn new(own_start: Duration) -> Self {
        let patience = SHORTEST_PATIENCE.max(own_start.saturating_mul(OWN_STARTS));
        Self { seen: BTreeMap::new(), asked: BTreeSet::new(), patience, others_began: None }
    }

    /// Records that this neighbour is asked. Returns `false` while an earlier answer is outstanding.
    pub(super) fn ask(&mut self, node: NodeId) -> bool {
        self.asked.insert(node)
    }

    /// Records that it has answered, or is away.
    pub(super) fn has_answered(&mut self, node: NodeId) {
        self.asked.remove(&node);
    }

    /// Records that this neighbour was there, whatever it trains.
    pub(super) fn was_there(&mut self, node: NodeId) {
        self.seen.entry(node).or_default().was_there = true;
    }

    /// Records that a neighbour has begun: it sends parcels.
    pub(super) fn another_has_begun(&mut self, now: Duration) {
        self.others_began.get_or_insert(now);
        self.patience = USUAL_START;
    }

    /// Notes an answer at `now`, a time of this peer's clock. Returns what is new to the user.
    fn note(&mut self, node: NodeId, word: &TaskAnswer, now: Duration) -> Option<News> {
        let others_began = self.others_began.is_some_and(|began| now.saturating_sub(began) >= AFTER_OTHERS);
        let patience = self.patience;
        let seen = self.seen.entry(node).or_default();
        let news = match word {
            TaskAnswer::Away => seen.note_absence(others_began),
            TaskAnswer::NotYet => {
                seen.was_there = true;
                seen.not_found = 0;
                let waited = now.saturating_sub(*seen.waits_since.get_or_insert(now));
                match waited {
                    waited if waited >= patience => Some(News::Late),
                    waited if waited >= USUAL_START => Some(News::Waits),
                    _ => None,
                }
            }
            TaskAnswer::Task(_) => {
                seen.was_there = true;
                seen.not_found = 0;
                seen.waits_since = None;
                None
            }
        };
        let is_new = news > seen.told;
        seen.told = seen.told.max(news);
        news.filter(|_| is_new)
    }
}

impl Sightings {
    fn note_absence(&mut self, others_began: bool) -> Option<News> {
        self.not_found = self.not_found.saturating_add(1);
        if self.was_there && self.not_found >= TIMES_NOT_FOUND {
            return Some(News::Gone);
        }
        others_began.then_some(News::Absent)
    }
}

impl Driver<'_> {
    pub(super) fn on_word_of_the_missing(&mut self, node: NodeId, word: &TaskAnswer) -> Result {
        self.missing.has_answered(node);
        if !self.node.missing_neighbours().contains(&node) {
            return Ok(());
        }
        let Some(news) = self.missing.note(node, word, self.member.started.elapsed()) else { return Ok(()) };
        self.member.warn(match news {
            News::Waits => format!(
                "node {node} runs and has nothing to train yet: the script that trains for it has not attached; trainer.log in its home \
                 may say why"
            ),
            News::Late => format!(
                "node {node} still waits for its script: this peer begins as soon as one of its neighbours is there, and node {node} \
                 joins with its whole weight when its script attaches"
            ),
            News::Absent => {
                format!("node {node} is not there and others have begun: this peer begins too, and node {node} may come later")
            }
            News::Gone => format!(
                "node {node} has ended before training began: this peer does not wait for it; log.txt in its home, or trainer.log of its \
                 script, says why"
            ),
        });
        if news == News::Waits { Ok(()) } else { self.feed(Input::Gone { peer: node }) }
    }

    /// Stops waiting for a neighbour that trains something else.
    pub(super) fn give_up_waiting_for(&mut self, node: NodeId) -> Result {
        self.missing.was_there(node);
        if self.joined { Ok(()) } else { self.feed(Input::Gone { peer: node }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(2);

    fn looks(missing: &mut MissingNeighbours, word: &TaskAnswer, seconds: [u64; 3]) -> [Option<News>; 3] {
        seconds.map(|second| missing.note(NODE, word, Duration::from_secs(second)))
    }

    #[test]
    fn one_that_was_never_there_may_still_come_and_one_that_was_has_ended() {
        let mut missing = MissingNeighbours::new(Duration::ZERO);
        let mut look = |word, seconds| missing.note(NODE, &word, Duration::from_secs(seconds));
        assert_eq!([1, 2, 3, 4, 5, 6].map(|second| look(TaskAnswer::Away, second)), [const { None }; 6]);
        assert_eq!(look(TaskAnswer::NotYet, 7), None, "its script may only be starting");
        assert_eq!(look(TaskAnswer::NotYet, 12), Some(News::Waits));
        assert_eq!(look(TaskAnswer::NotYet, 13), None, "that was said");
        assert_eq!([14, 15].map(|second| look(TaskAnswer::Away, second)), [None, None], "it may be slow to answer");
        assert_eq!(look(TaskAnswer::NotYet, 16), None);
        let ended = [17, 18, 19, 20].map(|second| look(TaskAnswer::Away, second));
        assert_eq!(ended, [None, None, Some(News::Gone), None]);
    }

    #[test]
    fn a_script_is_waited_for_as_long_as_scripts_of_the_swarm_take_and_for_less_where_others_have_begun() {
        let mut quick = MissingNeighbours::new(Duration::from_secs(1));
        assert_eq!(looks(&mut quick, &TaskAnswer::NotYet, [40, 69, 70]), [None, Some(News::Waits), Some(News::Late)]);
        let mut slow = MissingNeighbours::new(Duration::from_secs(20));
        assert_eq!(looks(&mut slow, &TaskAnswer::NotYet, [40, 79, 80]), [None, Some(News::Waits), Some(News::Late)]);
        let mut late = MissingNeighbours::new(Duration::from_secs(20));
        late.another_has_begun(Duration::from_secs(40));
        assert_eq!(looks(&mut late, &TaskAnswer::NotYet, [40, 44, 45]), [None, None, Some(News::Late)]);
    }

    #[test]
    fn one_that_was_never_there_holds_nobody_once_others_have_begun() {
        let mut missing = MissingNeighbours::new(Duration::ZERO);
        assert_eq!(looks(&mut missing, &TaskAnswer::Away, [1, 20, 50]), [None; 3]);
        missing.another_has_begun(Duration::from_secs(51));
        assert_eq!(looks(&mut missing, &TaskAnswer::Away, [52, 80, 81]), [None, None, Some(News::Absent)]);
    }

    #[test]
    fn one_that_ended_before_this_peer_was_ready_is_not_waited_for() {
        let mut missing = MissingNeighbours::new(Duration::from_secs(8));
        missing.was_there(NODE);
        assert_eq!(looks(&mut missing, &TaskAnswer::Away, [9, 10, 11]), [None, None, Some(News::Gone)]);
    }
}
