//! The exponential function without branches and calls, so that compilers compute several at once.

/// Adding it to a number whose size is below 2^22 leaves the nearest integer in the last bits.
const ROUNDING: f32 = 12_582_912.0;
/// ln 2 in two parts, the first with so few bits that its multiples by whole exponents are exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// The least argument, not far above those with subnormal results; at `MOST` the power of two is 2^126.
const LEAST: f32 = -87.0;
const MOST: f32 = 87.0;

/// `e^x`, within 3 units in the last place for x from -87 to 87, and the value at the nearer end beyond. NaN for NaN.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Not `clamp`: these comparisons are false for NaN and keep it.
    let x = if x < LEAST { LEAST } else { x };
    let x = if x > MOST { MOST } else { x };
    // x = n ln 2 + r, |r| <= ln 2 / 2
    let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
    let n = shifted - ROUNDING;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    // Cephes' polynomial (Moshier) for e^r.
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 5e-1;
    let power = p * r * r + r + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUNDING.to_bits()).wrapping_add(127) << 23;
    power * f32::from_bits(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_exponential_to_a_few_units_in_the_last_place() {
        for step in -870_000..=870_000 {
            let x = step as f32 * 1e-4;
            let (found, wanted) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found / wanted - 1.0).abs() < 2e-7, "{x}: {found} for {wanted}");
        }
    }

    #[test]
    fn far_away_it_is_nearly_nothing_or_much_and_of_no_number_none() {
        assert!(exp(f32::NEG_INFINITY) < 1e-37 && exp(f32::NEG_INFINITY) >= 0.0);
        assert!(exp(1e30) > 1e37);
        assert!(exp(f32::NAN).is_nan());
    }
}
