//! The differences of the numbers of one block: none, few or many of each class changed.

use crate::classes::Classes;
use crate::error::PatchError;
use crate::streams::{self, PatchReader};

/// Most numbers of a block.
pub(crate) const BLOCK: usize = 1 << 20;
/// The share of changed numbers, one in so many, below which only the changed ones are written.
const FEW: usize = 3;
/// Most bytes of a gap: numbers below [`BLOCK`] in groups of seven bits.
const LONGEST_GAP: usize = 3;

const UNCHANGED: u8 = 0;
const SPARSE: u8 = 1;
const DENSE: u8 = 2;

/// Writes the difference of a block of numbers of this width in bytes.
pub(crate) fn put(patch: &mut Vec<u8>, width: usize, before: &[u8], after: &[u8]) {
    match width {
        2 => put_block::<2>(patch, before, after),
        4 => put_block::<4>(patch, before, after),
        8 => put_block::<8>(patch, before, after),
        _ => put_block::<1>(patch, before, after),
    }
}

/// Changes a block of numbers of this width by the next difference of a patch.
pub(crate) fn change(patch: &mut PatchReader<'_>, width: usize, numbers: &mut [u8]) -> Result<(), PatchError> {
    match width {
        2 => change_block::<2>(patch, numbers),
        4 => change_block::<4>(patch, numbers),
        8 => change_block::<8>(patch, numbers),
        _ => change_block::<1>(patch, numbers),
    }
}

fn put_block<const WIDTH: usize>(patch: &mut Vec<u8>, before: &[u8], after: &[u8]) {
    let before = before.as_chunks::<WIDTH>().0;
    let classes = Classes::of(before);
    let before = classes.gathered(before);
    let after = classes.gathered(after.as_chunks::<WIDTH>().0);
    for range in classes.ranges() {
        put_class(patch, &before[range.clone()], &after[range.clone()]);
    }
}

fn put_class<const WIDTH: usize>(patch: &mut Vec<u8>, before: &[[u8; WIDTH]], after: &[[u8; WIDTH]]) {
    let changed = before.iter().zip(after).filter(|(before, after)| before != after).count();
    if changed == 0 {
        patch.push(UNCHANGED);
    } else if changed < before.len() / FEW {
        patch.push(SPARSE);
        put_few(patch, changed, before, after);
    } else {
        patch.push(DENSE);
        put_planes(patch, before.iter().zip(after).map(|(before, after)| folded(*before, *after)), before.len());
    }
}

fn put_few<const WIDTH: usize>(patch: &mut Vec<u8>, changed: usize, before: &[[u8; WIDTH]], after: &[[u8; WIDTH]]) {
    let mut gaps = Vec::with_capacity(changed);
    let mut differences = Vec::with_capacity(changed);
    let mut expected = 0;
    for (index, (before, after)) in before.iter().zip(after).enumerate() {
        if before != after {
            put_gap(&mut gaps, index - expected);
            // None of them is zero.
            differences.push(less_one(folded(*before, *after)));
            expected = index + 1;
        }
    }
    patch.extend((changed as u32).to_le_bytes());
    patch.extend((gaps.len() as u32).to_le_bytes());
    streams::put(patch, &gaps);
    put_planes(patch, differences.into_iter(), changed);
}

/// Writes numbers plane by plane: all their lowest bytes, all their second ones, and so on.
fn put_planes<const WIDTH: usize>(patch: &mut Vec<u8>, numbers: impl Iterator<Item = [u8; WIDTH]>, count: usize) {
    let mut planes: [Vec<u8>; WIDTH] = std::array::from_fn(|_| Vec::with_capacity(count));
    for number in numbers {
        planes.iter_mut().zip(number).for_each(|(plane, byte)| plane.push(byte));
    }
    planes.iter().for_each(|plane| streams::put(patch, plane));
}

fn change_block<const WIDTH: usize>(patch: &mut PatchReader<'_>, numbers: &mut [u8]) -> Result<(), PatchError> {
    let numbers = numbers.as_chunks_mut::<WIDTH>().0;
    let classes = Classes::of(numbers);
    let mut gathered = classes.gathered(numbers);
    for range in classes.ranges() {
        change_class(patch, &mut gathered[range.clone()])?;
    }
    classes.scatter(&gathered, numbers);
    Ok(())
}

fn change_class<const WIDTH: usize>(
    patch: &mut PatchReader<'_>,
    numbers: &mut [[u8; WIDTH]],
) -> Result<(), PatchError> {
    match patch.array()? {
        [UNCHANGED] => Ok(()),
        [SPARSE] => change_few(patch, numbers),
        [DENSE] => {
            let planes = planes::<WIDTH>(patch, numbers.len())?;
            for (index, number) in numbers.iter_mut().enumerate() {
                *number = unfolded(*number, planes.each_ref().map(|plane| plane[index]));
            }
            Ok(())
        }
        _ => Err(PatchError::Block),
    }
}

fn change_few<const WIDTH: usize>(patch: &mut PatchReader<'_>, numbers: &mut [[u8; WIDTH]]) -> Result<(), PatchError> {
    let changed = patch.length()?;
    let gaps = patch.length()?;
    if changed > numbers.len() || gaps > changed * LONGEST_GAP {
        return Err(PatchError::Block);
    }
    let gaps = patch.piece(gaps)?;
    let planes = planes::<WIDTH>(patch, changed)?;
    let mut gaps = gaps.iter();
    let mut next = 0_usize;
    for index in 0..changed {
        let at = next + take_gap(&mut gaps)?;
        let number = numbers.get_mut(at).ok_or(PatchError::Block)?;
        *number = unfolded(*number, one_more(planes.each_ref().map(|plane| plane[index])));
        next = at + 1;
    }
    if gaps.len() == 0 { Ok(()) } else { Err(PatchError::Block) }
}

fn planes<const WIDTH: usize>(patch: &mut PatchReader<'_>, count: usize) -> Result<[Vec<u8>; WIDTH], PatchError> {
    let mut planes: [Vec<u8>; WIDTH] = std::array::from_fn(|_| Vec::new());
    for plane in &mut planes {
        *plane = patch.piece(count)?;
    }
    Ok(planes)
}

/// Writes a number below [`BLOCK`] in groups of seven bits, the lowest first; all but the last have the highest bit set.
fn put_gap(gaps: &mut Vec<u8>, mut gap: usize) {
    while gap >= 0x80 {
        gaps.push((gap & 0x7f) as u8 | 0x80);
        gap >>= 7;
    }
    gaps.push(gap as u8);
}

fn take_gap(gaps: &mut std::slice::Iter<'_, u8>) -> Result<usize, PatchError> {
    let mut gap = 0;
    for group in 0..LONGEST_GAP {
        let byte = *gaps.next().ok_or(PatchError::Block)?;
        gap |= usize::from(byte & 0x7f) << (7 * group);
        if byte & 0x80 == 0 {
            return Ok(gap);
        }
    }
    Err(PatchError::Block)
}

/// The difference of two bit patterns as integers of so many bytes, folded so that small ones of either sign are small:
/// 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
fn folded<const WIDTH: usize>(before: [u8; WIDTH], after: [u8; WIDTH]) -> [u8; WIDTH] {
    // In the highest bits of 64, so that the sign is that of the difference and overflow wraps around.
    let unused = 64 - 8 * WIDTH as u32;
    let difference = (wide(after).wrapping_sub(wide(before)) << unused).cast_signed() >> unused;
    narrow(((difference << 1) ^ (difference >> 63)).cast_unsigned())
}

/// The bit pattern after one, by their folded difference.
fn unfolded<const WIDTH: usize>(before: [u8; WIDTH], folded: [u8; WIDTH]) -> [u8; WIDTH] {
    let folded = wide(folded);
    let difference = (folded >> 1) ^ (folded & 1).wrapping_neg();
    narrow(wide(before).wrapping_add(difference))
}

fn less_one<const WIDTH: usize>(number: [u8; WIDTH]) -> [u8; WIDTH] {
    narrow(wide(number).wrapping_sub(1))
}

fn one_more<const WIDTH: usize>(number: [u8; WIDTH]) -> [u8; WIDTH] {
    narrow(wide(number).wrapping_add(1))
}

fn wide<const WIDTH: usize>(bytes: [u8; WIDTH]) -> u64 {
    let mut all = [0; 8];
    all[..WIDTH].copy_from_slice(&bytes);
    u64::from_le_bytes(all)
}

fn narrow<const WIDTH: usize>(number: u64) -> [u8; WIDTH] {
    let all = number.to_le_bytes();
    std::array::from_fn(|index| all[index])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_difference_of_any_two_bit_patterns_leads_back_and_neighbours_are_near() {
        for before in 0..=u8::MAX {
            for after in 0..=u8::MAX {
                assert_eq!(unfolded([before], folded([before], [after])), [after]);
            }
        }
        let near = |before: f32, after: f32| u32::from_le_bytes(folded(before.to_le_bytes(), after.to_le_bytes()));
        assert_eq!(near(1.0, 1.0_f32.next_up()), 2);
        assert_eq!(near(-1.0, (-1.0_f32).next_up()), 1);
        for (before, after) in [(0_u64, u64::MAX), (u64::MAX, 0), (1 << 63, (1 << 63) - 1), (7, 7)] {
            let [before, after] = [before.to_le_bytes(), after.to_le_bytes()];
            assert_eq!(unfolded(before, folded(before, after)), after);
        }
    }

    #[test]
    fn gaps_of_every_length_come_back() {
        let lengths = [0, 1, 127, 128, 16_383, 16_384, BLOCK - 1];
        let mut gaps = Vec::new();
        lengths.iter().for_each(|gap| put_gap(&mut gaps, *gap));
        let mut gaps = gaps.iter();
        for gap in lengths {
            assert_eq!(take_gap(&mut gaps).unwrap(), gap);
        }
        assert!(take_gap(&mut gaps).is_err());
        assert!(take_gap(&mut [0xff, 0xff, 0xff, 0].iter()).is_err(), "longer than any gap");
    }
}
