//! The number of rounds that a collective needs.

use super::CollectiveError;
use crate::schedule::{NodeId, Schedule};

/// The fraction of a disagreement between two inputs that a [`TrackingAverage`](super::TrackingAverage) should leave,
/// so that the algorithm around it stays stable: 0.3. Up to 0.5 was measured to work, from 0.56 on some algorithms
/// diverge.
pub const TRACKING_CONTRACTION: f64 = 0.3;

/// The rounds after which `second_eigenvalue` to their power is at most `error`.
///
/// `second_eigenvalue` is the second largest modulus of an eigenvalue of one round's mixing matrix; of a plan with
/// several steps, that of the product of a whole period, and the answer counts periods. After R rounds the error of an
/// average is at most `C second_eigenvalue^R max_j |v_j - mean|`, where C is about 1 / min_i w_i.
///
/// ```
/// use mingle_protocol::collective::rounds_to_contract;
/// assert_eq!(rounds_to_contract(0.5, 1e-3), Ok(10));
/// assert_eq!(rounds_to_contract(0.0, 1e-3), Ok(1));
/// assert!(rounds_to_contract(1.0, 1e-3).is_err());
/// ```
///
/// # Errors
/// [`CollectiveError::SecondEigenvalue`] outside 0 ..< 1, [`CollectiveError::Contraction`] unless 0 < `error` < 1.
pub fn rounds_to_contract(second_eigenvalue: f64, error: f64) -> Result<u64, CollectiveError> {
    if !(0.0..1.0).contains(&second_eigenvalue) {
        return Err(CollectiveError::SecondEigenvalue { value: second_eigenvalue });
    }
    if !(error > 0.0 && error < 1.0) {
        return Err(CollectiveError::Contraction { value: error });
    }
    // ln 0 is minus infinity, and the quotient 0.
    let rounds = (error.ln() / second_eigenvalue.ln()).ceil();
    Ok((rounds as u64).max(1))
}

/// The rounds per input that [`TrackingAverage`](super::TrackingAverage) should run: those that leave
/// [`TRACKING_CONTRACTION`] of a disagreement.
///
/// # Errors
/// [`CollectiveError::SecondEigenvalue`] outside 0 ..< 1.
pub fn tracking_rounds(second_eigenvalue: f64) -> Result<u64, CollectiveError> {
    rounds_to_contract(second_eigenvalue, TRACKING_CONTRACTION)
}

/// The most links on a shortest path from one node to another, over the links of all steps; `None` when some node
/// cannot reach some other. After so many rounds a flood has brought every node's value to all others.
///
/// # Complexity
/// O(n links): a breadth-first search from every node.
pub fn diameter(schedule: &Schedule) -> Option<u64> {
    let nodes = schedule.nodes();
    let mut diameter = 0;
    for start in 0..nodes {
        let mut reached = vec![false; nodes];
        reached[start] = true;
        let mut frontier = vec![NodeId(start as u32)];
        let mut distance = 0;
        let mut count = 1;
        while count < nodes {
            let mut next = Vec::new();
            for to in frontier.iter().flat_map(|node| schedule.all_out_neighbours(*node)) {
                if !std::mem::replace(&mut reached[to.index()], true) {
                    next.push(*to);
                }
            }
            if next.is_empty() {
                return None;
            }
            count += next.len();
            distance += 1;
            frontier = next;
        }
        diameter = diameter.max(distance);
    }
    Some(diameter)
}
