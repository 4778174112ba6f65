//! The Euclidean projection onto the simplex (Held, Wolfe and Crowder 1974; Duchi et al. 2008, figure 1).

/// The nearest point whose entries are at least 0 and add up to 1. `O(n log n)`; the same order of additions for the same input.
/// Entries are finite.
///
/// ```
/// use mingle_graphs::project_onto_simplex;
///
/// assert_eq!(project_onto_simplex(&[3.0, 0.0]), [1.0, 0.0]);
/// assert_eq!(project_onto_simplex(&[-7.0, -7.0]), [0.5, 0.5]);
/// ```
pub fn project_onto_simplex(point: &[f64]) -> Vec<f64> {
    let mut sorted = point.to_vec();
    sorted.sort_by(|one, other| other.total_cmp(one));
    let mut sum = 0.0;
    let mut shift = 0.0;
    for (place, value) in sorted.iter().enumerate() {
        sum += value;
        let candidate = (sum - 1.0) / (place + 1) as f64;
        if *value > candidate {
            shift = candidate;
        }
    }
    point.iter().map(|value| (value - shift).max(0.0)).collect()
}
