//! Spearman's rank correlation.

/// Spearman's rank correlation of two series of equal length: the correlation of their ranks, equal values sharing the
/// mean of theirs. `None` with fewer than two values, and where one of the series is constant.
///
/// # Panics
///
/// If the series differ in length.
#[must_use]
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    assert_eq!(a.len(), b.len(), "series of different lengths");
    let first = centred_ranks(a);
    let second = centred_ranks(b);
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let scale = (product(&first, &first) * product(&second, &second)).sqrt();
    (scale > 0.0).then(|| product(&first, &second) / scale)
}

/// The rank of each value, less the mean rank.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mean = (values.len() as f64 - 1.0) / 2.0;
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + (equal - 1.0) / 2.0
    };
    values.iter().map(|value| rank(value) - mean).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn ranks_count_and_values_do_not() {
        assert_eq!(spearman(&[1.0, 2.0, 3.0, 4.0], &[10.0, 11.0, 500.0, 1e9]), Some(1.0));
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(spearman(&[1.0, 1.0], &[3.0, 2.0]), None);
        assert_eq!(spearman(&[], &[]), None);
    }

    #[test]
    fn equal_values_share_a_rank() {
        // Ranks 0, 1.5, 1.5, 3 and 0, 1, 2, 3: 4.5 / sqrt(4.5 * 5).
        let found = spearman(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((found - 4.5 / (4.5_f64 * 5.0).sqrt()).abs() < 1e-12, "{found}");
    }
}
