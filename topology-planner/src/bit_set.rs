//! A set of small numbers, one bit each, for node sets of slots and neighbourhoods that hot loops intersect.

/// A set of numbers below a fixed bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// The empty set of numbers below `bound`.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self { words: vec![0; bound.div_ceil(64)] }
    }

    /// Adds a number.
    ///
    /// # Panics
    ///
    /// If the number is not below the bound.
    pub fn insert(&mut self, number: usize) {
        self.words[number / 64] |= 1 << (number % 64);
    }

    /// Returns `true` if the number is in the set.
    #[must_use]
    pub fn contains(&self, number: usize) -> bool {
        self.words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// The numbers of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| ones(word).map(move |bit| 64 * at + bit))
    }

    /// The number of elements that both sets share.
    #[must_use]
    pub fn intersection_count(&self, other: &Self) -> usize {
        self.words.iter().zip(&other.words).map(|(a, b)| (a & b).count_ones() as usize).sum()
    }

    /// Keeps only the numbers that are in the other set too.
    pub fn intersect_with(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= b);
    }

    /// Returns `true` if the two sets share no number.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & b == 0)
    }

    /// Returns `true` if the two sets share no number, except perhaps `allowed`.
    #[must_use]
    pub fn is_disjoint_but_for(&self, other: &Self, allowed: usize) -> bool {
        let pairs = self.words.iter().zip(&other.words).enumerate();
        pairs
            .map(|(at, (a, b))| if at == allowed / 64 { a & b & !(1 << (allowed % 64)) } else { a & b })
            .all(|shared| shared == 0)
    }
}

/// The positions of the ones of a word, ascending.
pub(crate) fn ones(word: u64) -> impl Iterator<Item = usize> {
    let rest = std::iter::successors(Some(word), |&word| Some(word & word.wrapping_sub(1)));
    rest.take_while(|&word| word != 0).map(|word| word.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_meet_only_where_both_hold_a_number() {
        let (mut a, mut b) = (BitSet::new(130), BitSet::new(130));
        a.insert(3);
        a.insert(129);
        b.insert(64);
        assert!(a.is_disjoint(&b));
        b.insert(129);
        assert!(!a.is_disjoint(&b));
        assert!(a.is_disjoint_but_for(&b, 129));
        assert!(!a.is_disjoint_but_for(&b, 3));
        assert!(a.contains(129) && !a.contains(128) && !a.contains(1000));
    }
}
