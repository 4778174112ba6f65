//! The round from which an attempt goes on: the newest that all nodes have kept. Where all nodes have one model, those
//! that lack it, such as one that has joined, get it from another.

use std::collections::{BTreeMap, BTreeSet};

use super::{Keeping, RoundsNode, short};
use crate::error::SolveError;
use crate::learning::{About, Kept, LearningError, RoundStore};

/// Kept rounds that a node offers to the others: the last, and the one before.
const OFFERED: usize = 2;
/// The entry of an offer that stands for no round.
const NOTHING: f64 = -1.0;
/// Bytes in a number that an f64 holds exactly.
const BYTES_IN_NUMBER: usize = 6;
const HASH: usize = 32;

/// A kept round as a node offers it: its number, and a part of the hash of what the nodes had alike in it.
type KeptOffer = [f64; 2];

/// The round that all nodes go on from, with the nodes that lack it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Agreed {
    /// The number of rounds done; 0 is the beginning.
    round: u64,
    /// The node that hands its model over, and those that get it.
    handed_over: Option<(usize, BTreeSet<usize>)>,
}

impl Agreed {
    /// The round that follows from the offers of all nodes, `[node][OFFERED]`: the newest that all have. With
    /// `has_common_model` all go on from the newest that any has, if it is one round beyond the one that counts otherwise:
    /// that is where a node knows a mean that no other has kept yet.
    fn of(offers: &[Vec<KeptOffer>], most_rounds: u64, has_common_model: bool) -> Self {
        let possible: Vec<Vec<KeptOffer>> = offers.iter().map(|of_node| possible(of_node, most_rounds)).collect();
        let of_all = newest(&possible, |offering| offering == possible.len());
        if !has_common_model {
            return Self { round: of_all.map_or(0, |[round, _]| round as u64), handed_over: None };
        }
        let base = of_all.or_else(|| newest_of_most(&possible));
        match one_round_beyond(&possible, base).or(base) {
            None => Self { round: 0, handed_over: None },
            Some(chosen) => Self::handing_over(&possible, chosen),
        }
    }

    /// All go on from this round; the first node that has it hands it over to those that lack it.
    fn handing_over(offers: &[Vec<KeptOffer>], chosen: KeptOffer) -> Self {
        let (holders, lacking): (BTreeSet<usize>, BTreeSet<usize>) =
            (0..offers.len()).partition(|&node| offers[node].contains(&chosen));
        let handed_over = holders.first().filter(|_| !lacking.is_empty()).map(|&giver| (giver, lacking));
        Self { round: chosen[0] as u64, handed_over }
    }

    /// Returns `true` if this node gets the model from another.
    fn is_lacked_by(&self, node: usize) -> bool {
        self.handed_over.as_ref().is_some_and(|(_, lacking)| lacking.contains(&node))
    }
}

impl RoundsNode {
    /// Goes back to the newest round that all have kept, or that most have where there is one model for all; else to the
    /// beginning.
    pub(super) async fn go_back(&mut self) -> Result<(), SolveError> {
        let about = self.about;
        let read = self.part.bench.run(move |learner| {
            let newest = learner.store.held().last().copied().unwrap_or(0);
            (newest, sound(learner.store.as_ref(), about))
        });
        let (newest, mut kept) = read.await;
        let agreed = self.agree_on_round(&kept).await?;
        let round = agreed.round;
        let rules = self.part.task.rules().clone();
        let state = kept.remove(&round).filter(|_| !agreed.is_lacked_by(self.collectives.me)).map(|at| {
            self.history = at.history;
            self.shared = at.shared;
            at.state
        });
        let is_kept = state.is_some();
        let best = rules.best_round(&self.history);
        let restored = self.part.bench.run(move |learner| {
            // Kept rounds after the common one would be offered again after another restart. Where all begin at the
            // beginning, rounds of another beginning or another task stay until the first round of this one is kept. The
            // round before shows that this node is in line with those that are handed the model, until they have it.
            if is_kept {
                learner.store.retain(&BTreeSet::from([round, round - 1, best]));
            }
            learner.learning.restore(state.as_ref().unwrap_or(&learner.beginning))
        });
        let restored = restored.await;
        self.agree(restored, round).await?;
        if let Some((giver, lacking)) = &agreed.handed_over {
            self.hand_over(round, *giver, lacking).await?;
        }
        self.remember_metrics();
        self.journal.note_rounds(round, self.history.last());
        self.journal.note_return(newest, round);
        Ok(())
    }

    /// Takes the metrics of the last round from this process, where its record was kept without them. They are never
    /// summed twice: both sums, with a node and without it, would show what that node measured.
    fn remember_metrics(&mut self) {
        let known = self.journal.read().round.clone();
        if let (Some(last), Some(known)) = (self.history.last_mut(), known)
            && last.round == known.round
            && last.is_unknown()
        {
            *last = known;
        }
    }

    /// Exchanges which rounds the nodes have kept.
    async fn agree_on_round(&self, kept: &BTreeMap<u64, Kept>) -> Result<Agreed, SolveError> {
        let rules = self.part.task.rules();
        // A round whose best round's state is lost is of no use.
        let usable =
            |round: &u64| kept.get(round).is_some_and(|at: &Kept| kept.contains_key(&rules.best_round(&at.history)));
        let offered = kept.iter().rev().filter(|(round, _)| usable(round));
        let mut offer: Vec<KeptOffer> = offered.map(|(round, at)| [*round as f64, short(&at.shared)]).collect();
        offer.resize(OFFERED, [NOTHING; 2]);
        let offers = self.collectives.gather(offer.as_flattened()).await?;
        let offers: Vec<Vec<KeptOffer>> = offers.iter().map(|row| row.as_chunks().0.to_vec()).collect();
        Ok(Agreed::of(&offers, rules.rounds(), self.has_common_model()))
    }

    /// Gives the model of the node `giver` after this round to those that lack it. All then compare what they have.
    async fn hand_over(&mut self, round: u64, giver: usize, lacking: &BTreeSet<usize>) -> Result<(), SolveError> {
        let is_lacking = lacking.contains(&self.collectives.me);
        let common = self.part.bench.run(move |learner| learner.learning.common()).await;
        let own = if is_lacking { Vec::new() } else { [&self.shared[..], &common].concat() };
        let lengths = self.collectives.gather(&[own.len() as f64]).await?;
        let length = lengths[giver].first().map_or(0, |length| *length as usize);
        let expected = HASH + common.len();
        let fits = if length == expected { Ok(()) } else { Err(LearningError(other_length(giver, length, expected))) };
        self.agree(fits, length as u64).await?;
        let mut numbers = to_numbers(&own);
        numbers.resize(length.div_ceil(BYTES_IN_NUMBER), 0.0);
        let nodes = self.collectives.communication.schedule.nodes();
        let sources: Vec<Vec<usize>> =
            (0..nodes).map(|node| if lacking.contains(&node) { vec![giver] } else { Vec::new() }).collect();
        let pulled = self.pull_wide(&numbers, &sources).await?.remove(&giver).filter(|_| is_lacking);
        let adopted = match pulled {
            Some(numbers) => self.adopt(round, &to_bytes(&numbers, length)).await,
            None => Ok(()),
        };
        self.agree(adopted, round).await?;
        let common = self.part.bench.run(move |learner| learner.learning.common()).await;
        // A giver that sent another model would leave some with another one for ever.
        self.compare(*blake3::hash(&[&self.shared[..], &common].concat()).as_bytes()).await?;
        // Not before: a model that differs must not replace the rounds that this node has, nor be offered as theirs.
        let kept = if is_lacking { self.keep_adopted(round).await } else { Ok(()) };
        self.agree(kept, round).await
    }

    /// Goes on from the model that another node handed over. Metrics of the rounds before stay unknown.
    async fn adopt(&mut self, round: u64, handed: &[u8]) -> Result<(), LearningError> {
        let short = || LearningError("the model that was handed over is cut off".to_owned());
        let (shared, common) = handed.split_first_chunk::<HASH>().ok_or_else(short)?;
        self.history = (1..=round).map(|round| self.unmeasured(round)).collect();
        self.shared = *shared;
        let common = common.to_vec();
        self.part.bench.run(move |learner| learner.learning.adopt(&common)).await
    }

    /// Keeps the model that was handed over, for a restart.
    async fn keep_adopted(&mut self, round: u64) -> Result<(), LearningError> {
        let history = self.history.clone();
        let needed = BTreeSet::from([round, round - 1]);
        let keeping = Keeping { about: self.about, shared: self.shared, history, needed };
        self.part.bench.run(move |learner| keeping.keep(learner)).await
    }
}

/// The offers of a node that stand for a round that can be.
fn possible(of_node: &[KeptOffer], most_rounds: u64) -> Vec<KeptOffer> {
    let is_possible = |round: f64| round.fract() == 0.0 && round >= 1.0 && round <= most_rounds as f64;
    of_node.iter().filter(|[round, _]| is_possible(*round)).copied().collect()
}

/// The newest round that is offered by so many nodes as `is_enough` wants.
fn newest(offers: &[Vec<KeptOffer>], is_enough: impl Fn(usize) -> bool) -> Option<KeptOffer> {
    let offering = |offer: &KeptOffer| offers.iter().filter(|of_node| of_node.contains(offer)).count();
    let candidates = offers.iter().flatten().filter(|offer| is_enough(offering(offer)));
    candidates.copied().reduce(|one, other| if other[0] > one[0] { other } else { one })
}

/// The newest round that is offered by more than half of the nodes that offer any, and by two of three or more nodes: one
/// alone decides nothing.
fn newest_of_most(offers: &[Vec<KeptOffer>]) -> Option<KeptOffer> {
    let with_any = offers.iter().filter(|of_node| !of_node.is_empty()).count();
    let least = if offers.len() == 2 { 1 } else { 2 };
    newest(offers, |offering| 2 * offering > with_any && offering >= least)
}

/// The round after `base`, or the first one, that any node has kept in a line with it. Otherwise the nodes would sum that
/// round once more, and both sums of a round, with a member and without it, show what that member gave. No other node can
/// confirm it: one that makes it up brings all to a model of its choice, as it could by its contribution to any masked sum.
fn one_round_beyond(offers: &[Vec<KeptOffer>], base: Option<KeptOffer>) -> Option<KeptOffer> {
    let next = base.map_or(0.0, |[round, _]| round) + 1.0;
    // A node that was handed its model may offer nothing before it.
    let contradicts = |offer: &KeptOffer| offer[0] > next || offer[0] == next - 1.0 && Some(*offer) != base;
    let is_in_line = |of_node: &&Vec<KeptOffer>| !of_node.iter().any(contradicts);
    let beyond = |of_node: &Vec<KeptOffer>| of_node.iter().filter(|[round, _]| *round == next).copied().collect();
    let lines: Vec<Vec<KeptOffer>> = offers.iter().filter(is_in_line).map(beyond).collect();
    let most = lines.iter().flatten().map(|offer| lines.iter().filter(|line| line.contains(offer)).count()).max()?;
    newest(&lines, |offering| offering == most)
}

fn other_length(giver: usize, found: usize, wanted: usize) -> String {
    format!("node {giver} hands over a model of {found} bytes, and the one here has {wanted}")
}

/// Bytes as whole numbers of [`BYTES_IN_NUMBER`] bytes each; the last one is filled up with zeros.
fn to_numbers(bytes: &[u8]) -> Vec<f64> {
    let number = |piece: &[u8]| piece.iter().rev().fold(0.0, |number, byte| number * 256.0 + f64::from(*byte));
    bytes.chunks(BYTES_IN_NUMBER).map(number).collect()
}

/// The first `length` bytes of what [`to_numbers`] made of them. Anything else becomes some bytes.
fn to_bytes(numbers: &[f64], length: usize) -> Vec<u8> {
    let of_number = |number: &f64| (*number as u64).to_le_bytes().into_iter().take(BYTES_IN_NUMBER);
    numbers.iter().flat_map(of_number).take(length).collect()
}

/// The rounds in a store that are whole and belong to this task and data.
fn sound(store: &dyn RoundStore, about: About) -> BTreeMap<u64, Kept> {
    let read = |round: u64| Some((round, Kept::decode(&store.load(round).ok()?, about, round)?));
    store.held().into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: KeptOffer = [NOTHING; 2];

    fn offers(of_nodes: &[[KeptOffer; OFFERED]]) -> Vec<Vec<KeptOffer>> {
        of_nodes.iter().map(|offers| offers.to_vec()).collect()
    }

    fn agreed(of_nodes: &[[KeptOffer; OFFERED]]) -> (u64, Option<(usize, Vec<usize>)>) {
        let Agreed { round, handed_over } = Agreed::of(&offers(of_nodes), 100, true);
        (round, handed_over.map(|(giver, lacking)| (giver, lacking.into_iter().collect())))
    }

    #[test]
    fn the_newest_round_that_all_have_comes_first() {
        let behind = [[9.0, 2.0], [8.0, 1.0]];
        let ahead = [[10.0, 3.0], [9.0, 2.0]];
        let own = Agreed::of(&offers(&[behind, ahead, ahead]), 100, false);
        assert_eq!(own, Agreed { round: 9, handed_over: None }, "two repeat a round, whose models are their own");
        assert_eq!(agreed(&[[NONE; 2]; 3]), (0, None));
    }

    #[test]
    fn a_round_beyond_that_any_node_has_kept_comes_before_those_that_more_have() {
        let behind = [[9.0, 2.0], [8.0, 1.0]];
        let ahead = [[10.0, 3.0], [9.0, 2.0]];
        assert_eq!(agreed(&[behind, ahead, ahead]), (10, Some((1, vec![0]))));
        assert_eq!(agreed(&[behind, behind, ahead]), (10, Some((2, vec![0, 1]))));
        assert_eq!(agreed(&[[NONE; 2], behind, ahead, behind]), (10, Some((2, vec![0, 1, 3]))), "and with a newcomer");
        assert_eq!(agreed(&[[NONE; 2], [[1.0, 5.0], NONE]]), (1, Some((1, vec![0]))), "the first mean too");
        let other = [[10.0, 4.0], [9.0, 2.0]];
        assert_eq!(agreed(&[other, ahead, ahead]), (10, Some((1, vec![0]))), "of two lines that of more nodes");
    }

    #[test]
    fn a_round_that_does_not_follow_on_that_of_the_others_is_no_round_beyond() {
        let others = [[9.0, 2.0], [8.0, 1.0]];
        for odd in [[[10.0, 3.0], [9.0, 7.0]], [[11.0, 3.0], [9.0, 2.0]], [[11.0, 3.0], [10.0, 2.0]]] {
            assert_eq!(agreed(&[others, odd, others]).0, 9, "{odd:?}");
        }
        assert_eq!(agreed(&[others, [[10.0, 3.0], NONE], others]), (10, Some((1, vec![0, 2]))), "it was handed over");
        assert_eq!(agreed(&[[NONE; 2], [[1.0, 5.0], [0.5, 5.0]], [[2.0, 5.0], [1.0, 4.0]]]).0, 1);
    }

    #[test]
    fn a_node_without_any_round_gets_that_of_the_others() {
        let others = [[9.0, 2.0], [8.0, 1.0]];
        assert_eq!(agreed(&[[NONE; 2], others, others]), (9, Some((1, vec![0]))));
        assert_eq!(agreed(&[others, [NONE; 2], others, [NONE; 2], [NONE; 2]]), (9, Some((0, vec![1, 3, 4]))));
        assert_eq!(agreed(&[others, [NONE; 2]]), (9, Some((0, vec![1]))));
        let alone = Agreed::of(&offers(&[[NONE; 2], others, others]), 100, false);
        assert_eq!(alone, Agreed { round: 0, handed_over: None }, "models of their own cannot be handed over");
    }

    #[test]
    fn one_of_several_nodes_does_not_bring_all_to_a_round_that_no_other_has() {
        let liar = [[99.0, 2.0], [98.0, 1.0]];
        assert_eq!(agreed(&[[NONE; 2], liar, [NONE; 2]]), (0, None));
    }

    #[test]
    fn a_node_with_other_rounds_is_outvoted_and_no_half_counts() {
        let others = [[9.0, 2.0], [8.0, 1.0]];
        for odd in [[[50.0, 2.0], [49.0, 2.0]], [[9.0, 7.0], [8.0, 7.0]], [[3.0, 1.0], NONE]] {
            assert_eq!(agreed(&[odd, others, others]), (9, Some((1, vec![0]))));
            assert_eq!(agreed(&[odd, others]), (0, None));
        }
        let liars = [[101.0, 1.0], [f64::NAN, 1.0]];
        assert_eq!(agreed(&[liars, others, liars, others]), (9, Some((1, vec![0, 2]))), "no such round can be");
    }

    #[test]
    fn bytes_survive_as_numbers() {
        for length in [0, 1, 5, 6, 7, 40] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 37 + 200) as u8).collect();
            let numbers = to_numbers(&bytes);
            assert_eq!(numbers.len(), bytes.len().div_ceil(BYTES_IN_NUMBER));
            assert_eq!(to_bytes(&numbers, bytes.len()), bytes);
        }
        assert_eq!(to_bytes(&[f64::NAN, -1.0, 1e300], 13).len(), 13);
    }
}
