//! Sums and maxima over rows of numbers, in an order that allows several operations at once.

/// The number of partial results kept side by side.
pub(super) const LANES: usize = 16;

/// The sum over all places of a term of the numbers that the rows have there. All rows have the same length.
#[inline(always)]
pub(super) fn sum<const N: usize>(rows: [&[f32]; N], term: impl Fn([f32; N]) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let split = rows.map(<[f32]>::as_chunks::<LANES>);
    let [(first, _), ..] = split.as_slice() else { return 0.0 };
    for part in 0..first.len() {
        let parts = split.map(|(parts, _)| &parts[part]);
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(parts.map(|part| part[lane]));
        }
    }
    let (_, rest) = split[0];
    for (place, sum) in lanes.iter_mut().enumerate().take(rest.len()) {
        *sum += term(split.map(|(_, rest)| rest[place]));
    }
    folded(lanes, |one, other| one + other)
}

/// The largest number of a row, or negative infinity; NaN counts as less than all.
#[inline(always)]
pub(super) fn maximum(row: &[f32]) -> f32 {
    let larger = |one: f32, other: f32| if other > one { other } else { one };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (parts, rest) = row.as_chunks::<LANES>();
    for part in parts {
        lanes.iter_mut().zip(part).for_each(|(most, number)| *most = larger(*most, *number));
    }
    lanes.iter_mut().zip(rest).for_each(|(most, number)| *most = larger(*most, *number));
    folded(lanes, larger)
}

/// Joins the upper half of the lanes to the lower one until one is left.
#[inline(always)]
fn folded(mut lanes: [f32; LANES], join: impl Fn(f32, f32) -> f32) -> f32 {
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] = join(lanes[lane], lanes[lane + half]);
        }
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_maxima_take_every_place_once() {
        for length in [0, 1, 15, 16, 17, 40] {
            // Powers of two and small whole numbers: sums are exact.
            let row: Vec<f32> = (0..length).map(|place| (place * 7 % 11) as f32 - 5.0).collect();
            let other: Vec<f32> = (0..length).map(|place| (place % 3) as f32).collect();
            assert_eq!(sum([&row], |[x]| x), row.iter().sum::<f32>());
            assert_eq!(sum([&row, &other], |[x, y]| x * y), row.iter().zip(&other).map(|(x, y)| x * y).sum::<f32>());
            assert_eq!(maximum(&row), row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }

    #[test]
    fn no_number_is_less_than_all() {
        assert_eq!(maximum(&[f32::NAN, -3.0, f32::NAN]), -3.0);
    }
}
