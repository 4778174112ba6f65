//! Classes of numbers of about the same size, by the numbers before: both sides know them.
//!
//! A step moves numbers of any size by about as much, so the share of changed numbers, and how many units in the last
//! place they move, depend on their exponent. Each class gets a code of its own: patches are about a third smaller.

use std::ops::Range;

/// Fewest numbers of a class: its codes take some hundred bytes.
const FEWEST: usize = 1 << 13;
/// Values of [`exponent`].
const EXPONENTS: usize = 256;

/// The numbers of a block in the order of their classes.
pub(crate) struct Classes {
    /// Places in the block, class by class, ascending in each exponent.
    order: Vec<u32>,
    /// Parts of that order.
    ranges: Vec<Range<usize>>,
}

impl Classes {
    /// The classes of the numbers of a block.
    pub(crate) fn of<const WIDTH: usize>(before: &[[u8; WIDTH]]) -> Self {
        let mut counts = [0; EXPONENTS];
        before.iter().for_each(|number| counts[exponent(*number)] += 1);
        let mut at = [0; EXPONENTS];
        let mut begin = 0;
        for (at, count) in at.iter_mut().zip(counts) {
            *at = begin;
            begin += count;
        }
        let mut order = vec![0; before.len()];
        for (index, number) in before.iter().enumerate() {
            let at = &mut at[exponent(*number)];
            // A block has far fewer numbers than 2^32.
            order[*at] = index as u32;
            *at += 1;
        }
        Self { order, ranges: ranges(&counts, before.len()) }
    }

    /// The parts of [`gathered`](Self::gathered) numbers that are coded together.
    pub(crate) fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// The numbers in the order of their classes.
    pub(crate) fn gathered<const WIDTH: usize>(&self, numbers: &[[u8; WIDTH]]) -> Vec<[u8; WIDTH]> {
        self.order.iter().map(|index| numbers[*index as usize]).collect()
    }

    /// Puts numbers in the order of their classes back into the places where they were.
    pub(crate) fn scatter<const WIDTH: usize>(&self, gathered: &[[u8; WIDTH]], numbers: &mut [[u8; WIDTH]]) {
        for (index, number) in self.order.iter().zip(gathered) {
            numbers[*index as usize] = *number;
        }
    }
}

/// Neighbouring exponents together, until they have enough numbers.
fn ranges(counts: &[usize; EXPONENTS], all: usize) -> Vec<Range<usize>> {
    let (mut ranges, mut begin, mut end): (Vec<Range<usize>>, _, _) = (Vec::new(), 0, 0);
    for count in counts {
        end += count;
        if end - begin >= FEWEST && all - end >= FEWEST {
            ranges.push(begin..end);
            begin = end;
        }
    }
    if begin < all {
        ranges.push(begin..all);
    }
    ranges
}

/// The eight bits after the sign: the exponent of `bf16` and `f32`. Bytes have none.
fn exponent<const WIDTH: usize>(number: [u8; WIDTH]) -> usize {
    match number.as_slice() {
        [.., low, high] => usize::from(high & 0x7f) << 1 | usize::from(low >> 7),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_every_number_once_and_lead_back() {
        let numbers: Vec<[u8; 4]> = (0..40_000_u32)
            .map(|index| (f32::from(index as u16) * (1.0 + (index % 97) as f32) * 1e-6).to_le_bytes())
            .collect();
        let classes = Classes::of(&numbers);
        assert!(classes.ranges().len() > 2, "{:?}", classes.ranges());
        assert!(classes.ranges().iter().all(|range| range.len() >= FEWEST));
        assert_eq!(classes.ranges().iter().flat_map(Clone::clone).collect::<Vec<_>>(), (0..40_000).collect::<Vec<_>>());
        let gathered = classes.gathered(&numbers);
        assert!(gathered.is_sorted_by_key(|number| exponent(*number)));
        let mut back = vec![[0; 4]; numbers.len()];
        classes.scatter(&gathered, &mut back);
        assert_eq!(back, numbers);
        assert_eq!(Classes::of::<2>(&[]).ranges(), []);
    }
}
