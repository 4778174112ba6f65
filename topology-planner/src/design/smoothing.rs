//! A smooth approximation of an extreme eigenvalue (Nesterov, "Smoothing technique and its applications in semidefinite
//! optimization", 2007), with the square of the shares as penalty instead of their entropy: it needs no exponentials,
//! and so gives the same bits on every machine.

/// The shares `q` on the simplex that minimise `sum q_k values_k + smoothing / 2 ||q||^2`, for ascending values:
/// water-filling of the lowest ones. The minimum lies between the lowest value and `smoothing / 2` more.
pub(super) fn shares_of_lowest(values: &[f64], smoothing: f64) -> Vec<f64> {
    let mut level = f64::INFINITY;
    let mut sum = 0.0;
    for (index, &value) in values.iter().enumerate() {
        if value >= level {
            break;
        }
        sum += value;
        level = (smoothing + sum) / (index + 1) as f64;
    }
    let mut shares: Vec<f64> = values.iter().map(|&value| ((level - value) / smoothing).max(0.0)).collect();
    let total: f64 = shares.iter().sum();
    if total > 0.0 {
        shares.iter_mut().for_each(|share| *share /= total);
    } else if let Some(lowest) = shares.first_mut() {
        // The smoothing is negligible.
        *lowest = 1.0;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_the_lowest_values_first() {
        assert_eq!(shares_of_lowest(&[1.0, 1.0, 5.0], 1.0), [0.5, 0.5, 0.0]);
        assert_eq!(shares_of_lowest(&[1.0, 1.5, 9.0], 1.0), [0.75, 0.25, 0.0]);
        assert_eq!(shares_of_lowest(&[1.0, 2.0], f64::MIN_POSITIVE), [1.0, 0.0]);
    }

    #[test]
    fn the_smoothed_value_lies_between_the_lowest_and_half_the_smoothing_more() {
        let values = [-0.3, -0.29, 0.0, 0.4, 2.0];
        for smoothing in [1e-6, 0.01, 0.3, 5.0] {
            let shares = shares_of_lowest(&values, smoothing);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let value: f64 = shares.iter().zip(values).map(|(q, value)| q * value + smoothing / 2.0 * q * q).sum();
            assert!((values[0] - 1e-12..=values[0] + smoothing / 2.0 + 1e-12).contains(&value), "{smoothing}: {value}");
        }
    }
}
