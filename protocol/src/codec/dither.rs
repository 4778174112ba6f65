//! The random shifts of stochastic rounding: seeded, and the same on every machine.

use super::BLOCK;
use crate::node_id::NodeId;

/// Uniform numbers in [-1/2, 1/2), one per coordinate of a block.
///
/// Added to a number that is then rounded to the nearest integer, they make it round up with the probability of its
/// fraction. Every place of a block has an xorshift generator of its own (Marsaglia, Journal of Statistical Software
/// 2003, period 2^32 - 1), so that all places advance together.
pub(crate) struct Dither {
    states: [u32; BLOCK],
}

impl Dither {
    /// The shifts of the parcels that `node` splits off in `step`: all out-links of a step share one encoding.
    pub(crate) fn of(node: NodeId, step: u64) -> Self {
        Self::seeded((u64::from(node.0) << 40) ^ step)
    }

    pub(crate) fn seeded(seed: u64) -> Self {
        let mut counter = mix(seed);
        let states = std::array::from_fn(|_| {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            // Zero is the one state that xorshift does not leave.
            ((mix(counter) >> 32) as u32).max(1)
        });
        Self { states }
    }

    /// The states of a block's places; [`advance`] each once per block.
    #[inline(always)]
    pub(super) fn places(&mut self) -> &mut [u32; BLOCK] {
        &mut self.states
    }
}

/// The next shift of a place.
#[inline(always)]
pub(super) fn advance(state: &mut u32) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    // The upper bits, behind the point of a number in [1, 2).
    f32::from_bits(1.0_f32.to_bits() | (*state >> 9)) - 1.5
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_block(dither: &mut Dither) -> Vec<f32> {
        dither.places().iter_mut().map(advance).collect()
    }

    #[test]
    fn shifts_are_uniform_between_minus_and_plus_one_half() {
        const BINS: usize = 32;
        let mut dither = Dither::of(NodeId(3), 14);
        let mut counts = [0_u32; BINS];
        let blocks = 4000;
        for shift in (0..blocks).flat_map(|_| next_block(&mut dither)) {
            assert!((-0.5..0.5).contains(&shift));
            counts[((shift + 0.5) * BINS as f32) as usize] += 1;
        }
        let expected = f64::from(blocks) * BLOCK as f64 / BINS as f64;
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        // 31 degrees of freedom: 61 is exceeded once in a thousand times.
        assert!(chi_square < 61.0, "chi-square is {chi_square}");
    }

    #[test]
    fn nodes_steps_and_blocks_have_shifts_of_their_own() {
        let mut blocks = Vec::new();
        for (node, step) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut dither = Dither::of(NodeId(node), step);
            blocks.extend([next_block(&mut dither), next_block(&mut dither)]);
        }
        for (i, a) in blocks.iter().enumerate() {
            for b in &blocks[..i] {
                let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
                assert!(equal < 3, "{equal} of {BLOCK} shifts are the same");
            }
        }
    }
}
