//! Projections onto balls of p-norms, with `+ - * / sqrt` and comparisons alone.

use crate::weights::WeightNorm;

/// The point of `{ ||x||_p <= radius }` that is nearest to `x`, `[sites]`. Time `n log n` for `p = 1` (Held, Wolfe,
/// Crowder 1974), else `n`.
#[must_use]
pub fn project_on_ball(norm: WeightNorm, x: &[f64], radius: f64) -> Vec<f64> {
    match norm {
        WeightNorm::Infinity => x.iter().map(|value| value.clamp(-radius, radius)).collect(),
        WeightNorm::Two => {
            let length = x.iter().map(|value| value * value).sum::<f64>().sqrt();
            let factor = if length > radius { radius / length } else { 1.0 };
            x.iter().map(|value| factor * value).collect()
        }
        WeightNorm::One => {
            let threshold = threshold(x, radius);
            x.iter().map(|value| value.signum() * (value.abs() - threshold).max(0.0)).collect()
        }
    }
}

/// The amount by which magnitudes shrink until they add up to the radius.
fn threshold(x: &[f64], radius: f64) -> f64 {
    let mut magnitudes: Vec<f64> = x.iter().map(|value| value.abs()).collect();
    if magnitudes.iter().sum::<f64>() <= radius {
        return 0.0;
    }
    magnitudes.sort_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let mut threshold = 0.0;
    for (at, magnitude) in magnitudes.iter().enumerate() {
        sum += magnitude;
        let candidate = (sum - radius) / (at + 1) as f64;
        if *magnitude > candidate {
            threshold = candidate;
        }
    }
    threshold
}
