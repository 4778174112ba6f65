//! The sum of all nodes' vectors of integers, modulo 2^32, 2^64 or 2^128, over the trees of an [`AllReduce`](super::AllReduce).
//!
//! Such sums do not depend on their order, and a part of one says nothing where the inputs are masked.

use std::sync::Arc;

use super::trees::{TreeReduction, Trees};
use super::{Collective, CollectiveError, CollectiveFault};
use crate::schedule::NodeId;

/// The modulus of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulus {
    /// 2^32: a word holds two numbers, the first in its lower half.
    HalfWord,
    /// 2^64: a word is a number.
    Word,
    /// 2^128: two words are a number, low before high.
    TwoWords,
}

/// A sum of some nodes or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModularPartial {
    /// `true` if all nodes are in it; otherwise the sender and those below it are.
    pub is_whole: bool,
    /// `[words]`.
    pub words: Vec<u64>,
}

/// One node's part in a modular sum.
///
/// ```
/// use std::sync::Arc;
/// use mingle_protocol::collective::{Collective, ModularSum, Modulus, Trees};
/// use mingle_protocol::{NodeId, Schedule, Step};
///
/// let (a, b) = (NodeId(0), NodeId(1));
/// let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
/// let trees = Arc::new(Trees::of(&Schedule::new(2, &[step], 0)?).unwrap());
/// let mut nodes = [
///     ModularSum::new(Arc::clone(&trees), a, Modulus::Word, vec![u64::MAX])?,
///     ModularSum::new(trees, b, Modulus::Word, vec![4])?,
/// ];
/// while !nodes.iter().all(Collective::is_complete) {
///     for (from, to) in [(a, b), (b, a)] {
///         while let Some((_, partial)) = nodes[from.index()].poll() {
///             nodes[to.index()].handle(from, partial)?;
///         }
///     }
/// }
/// assert_eq!(nodes.each_ref().map(|node| node.result().unwrap()), [&[3], &[3]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ModularSum(TreeReduction<u64>);

impl ModularSum {
    /// Takes part as node `me` of the plan that the trees are of, with `words`.
    ///
    /// # Errors
    /// [`CollectiveError`] when `me` is not in the plan, or `words` is empty, too long or half a number.
    pub fn new(trees: Arc<Trees>, me: NodeId, modulus: Modulus, words: Vec<u64>) -> Result<Self, CollectiveError> {
        let combine = match modulus {
            Modulus::HalfWord => add_halves,
            Modulus::Word => add,
            Modulus::TwoWords if words.len().is_multiple_of(2) => add_with_carry,
            Modulus::TwoWords => return Err(CollectiveError::Dimension { dimension: words.len() }),
        };
        TreeReduction::new(trees, me, combine, words).map(Self)
    }

    /// The sum of all nodes, once it is there, `[words]`.
    pub fn result(&self) -> Option<&[u64]> {
        self.0.whole()
    }
}

fn add(words: &mut [u64], theirs: &[u64]) {
    words.iter_mut().zip(theirs).for_each(|(word, other)| *word = word.wrapping_add(*other));
}

fn add_halves(words: &mut [u64], theirs: &[u64]) {
    const LOWER: u64 = 0xffff_ffff;
    for (word, other) in words.iter_mut().zip(theirs) {
        let lower = (*word & LOWER).wrapping_add(*other & LOWER) & LOWER;
        *word = (*word & !LOWER).wrapping_add(*other & !LOWER) | lower;
    }
}

fn add_with_carry(words: &mut [u64], theirs: &[u64]) {
    for ([low, high], [other_low, other_high]) in words.as_chunks_mut().0.iter_mut().zip(theirs.as_chunks().0) {
        let carries;
        (*low, carries) = low.overflowing_add(*other_low);
        *high = high.wrapping_add(*other_high).wrapping_add(u64::from(carries));
    }
}

impl Collective for ModularSum {
    type Message = ModularPartial;

    fn poll(&mut self) -> Option<(NodeId, ModularPartial)> {
        self.0.poll().map(|(to, is_whole, words)| (to, ModularPartial { is_whole, words }))
    }

    fn handle(&mut self, from: NodeId, partial: ModularPartial) -> Result<(), CollectiveFault> {
        self.0.handle(from, partial.is_whole, partial.words)
    }

    fn is_complete(&self) -> bool {
        self.0.whole().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_a_word_do_not_carry_into_each_other() {
        let pack = |lower: u32, upper: u32| u64::from(lower) | u64::from(upper) << 32;
        let mut words = [pack(u32::MAX, 7), pack(1, u32::MAX), pack(0, 0)];
        add_halves(&mut words, &[pack(2, 1), pack(u32::MAX, 3), pack(5, 6)]);
        assert_eq!(words, [pack(1, 8), pack(0, 2), pack(5, 6)]);
    }
}
