//! The mean of all nodes' vectors again and again, while the vectors settle: push-sum with memory.
//!
//! ```text
//!   k-th input:   s_i += v_i^k - v_i^(k-1);   R rounds of  s = A s, w = A w;   result_i = s_i / w_i
//! ```

use std::sync::Arc;

use super::mixing::{PushSumMixing, Share, check_inputs};
use super::{Collective, CollectiveError, CollectiveFault};
use crate::mass::Mass;
use crate::schedule::{NodeId, Schedule};

/// One node's part in computing a sequence of means.
///
/// The first result is that of push-sum without memory (Kempe, Dobra, Gehrke, FOCS 2003). Its error is at most
/// `C λ₂^R max_j |v_j - mean|`, with C about 1 / min_i w_i. On a plan that averages exactly within R rounds (one-peer
/// exponential with 2^R nodes) it is the mean up to the rounding of f64.
///
/// The sum of all s is the sum of the latest inputs after every injection. So if the inputs converge, every result
/// converges to the exact mean of their limits, for any R >= 1: where an average is begun anew for every input, the
/// error of its first result stays. The algorithm around it must tolerate the delay: λ₂^R <= 0.3 is the default
/// ([`tracking_rounds`](super::tracking_rounds)).
///
/// One lost share breaks the sum for good. Links must lose nothing, or be served by a
/// [`ReliableChannel`](super::ReliableChannel); after a node is gone for good, all begin anew.
///
/// ```
/// use std::sync::Arc;
/// use mingle_protocol::collective::{Collective, TrackingAverage};
/// use mingle_protocol::{NodeId, Schedule, Step};
///
/// // Alone, a node is its own mean.
/// let plan = Arc::new(Schedule::new(1, &[Step { keep: vec![1.0], links: vec![] }], 0)?);
/// let mut node = TrackingAverage::new(plan, NodeId(0), &[1.0, 2.0], 3)?;
/// assert_eq!(node.result(), Some(&[1.0, 2.0][..]));
/// node.begin(&[5.0, 2.0])?;
/// assert_eq!(node.result(), Some(&[5.0, 2.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TrackingAverage {
    mixing: PushSumMixing,
    previous: Vec<f64>,
    rounds: u64,
    iteration: u64,
}

impl TrackingAverage {
    /// Takes part as node `me` of `schedule`, with `value` as input of iteration 0, `[dimension]`, and `rounds` steps
    /// of the schedule in every iteration.
    ///
    /// # Errors
    /// [`CollectiveError`] when `me` is not in the plan, `value` is empty, too long or not finite, or there are no
    /// rounds.
    pub fn new(schedule: Arc<Schedule>, me: NodeId, value: &[f64], rounds: u64) -> Result<Self, CollectiveError> {
        if rounds == 0 {
            return Err(CollectiveError::NoRounds);
        }
        let mut mixing = PushSumMixing::new(schedule, me, value)?;
        mixing.run(rounds);
        Ok(Self { mixing, previous: value.to_vec(), rounds, iteration: 0 })
    }

    /// Begins the next iteration with `value`, `[dimension]`.
    ///
    /// # Errors
    /// [`CollectiveError`] when the iteration before is not complete, or `value` is not finite or has another length;
    /// nothing has changed then.
    pub fn begin(&mut self, value: &[f64]) -> Result<(), CollectiveError> {
        if !self.is_complete() {
            return Err(CollectiveError::NotComplete { iteration: self.iteration });
        }
        if value.len() != self.previous.len() {
            return Err(CollectiveError::DimensionChanged { got: value.len(), expected: self.previous.len() });
        }
        check_inputs(value)?;
        self.mixing.inject(value.iter().zip(&self.previous).map(|(value, previous)| value - previous));
        self.previous.copy_from_slice(value);
        self.iteration += 1;
        self.mixing.run(self.rounds);
        Ok(())
    }

    /// The iteration under way, or the last one complete; from 0.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// The mean as this node has it, once the rounds of the present iteration are done, `[dimension]`.
    pub fn result(&self) -> Option<&[f64]> {
        self.is_complete().then(|| self.mixing.ratio())
    }

    /// The weight this node holds. Over all nodes and shares under way it sums to the number of nodes, exactly.
    pub fn mass(&self) -> Mass {
        self.mixing.mass()
    }

    /// The sum this node holds, `[dimension]`. Over all nodes and shares under way it adds up to the sum of the latest
    /// inputs, up to rounding.
    pub fn sum(&self) -> &[f64] {
        self.mixing.sum()
    }

    #[cfg(test)]
    pub(super) fn mixing(&self) -> &PushSumMixing {
        &self.mixing
    }
}

impl Collective for TrackingAverage {
    type Message = Share;

    fn poll(&mut self) -> Option<(NodeId, Share)> {
        self.mixing.poll()
    }

    fn handle(&mut self, from: NodeId, share: Share) -> Result<(), CollectiveFault> {
        self.mixing.handle(from, share)
    }

    fn is_complete(&self) -> bool {
        self.mixing.is_complete()
    }
}
