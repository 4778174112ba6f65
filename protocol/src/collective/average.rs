//! The mean of all nodes' vectors, once: push-sum without memory (Kempe, Dobra, Gehrke, FOCS 2003).
//!
//! ```text
//!   s_i = v_i, w_i = 1;   R rounds of  s = A s, w = A w;   result_i = s_i / w_i
//! ```

use std::sync::Arc;

use super::mixing::{PushSumMixing, Share};
use super::{Collective, CollectiveError, CollectiveFault};
use crate::mass::Mass;
use crate::schedule::{NodeId, Schedule};

/// One node's part in computing one mean. See the [module](super) for how to drive it.
///
/// The error is at most `C λ₂^R max_j |v_j - mean|`, with C about 1 / min_i w_i. On a plan that averages exactly within
/// a period (one-peer exponential with 2^k nodes: k rounds) the result is the mean up to the rounding of f64.
///
/// As a linear map of the inputs, R rounds are row-stochastic but in general not column-stochastic: the results' mean
/// is not the inputs'. An algorithm that relies on that, such as gradient tracking or dual ascent, is biased by it; it
/// wants a [`TrackingAverage`](super::TrackingAverage).
#[derive(Clone, Debug)]
pub struct Average {
    mixing: PushSumMixing,
}

impl Average {
    /// Takes part as node `me` of `schedule` with `value`, `[dimension]`, for `rounds` steps of the schedule from its
    /// first. [`rounds_to_contract`](super::rounds_to_contract) gives their number (times the period, where the
    /// eigenvalue is that of a period).
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
        Ok(Self { mixing })
    }

    /// The mean as this node has it, once all rounds are done, `[dimension]`.
    pub fn result(&self) -> Option<Vec<f64>> {
        self.is_complete().then(|| self.mixing.ratio().to_vec())
    }

    /// The weight this node holds. Over all nodes and shares under way it sums to the number of nodes, exactly.
    pub fn mass(&self) -> Mass {
        self.mixing.mass()
    }

    /// The sum this node holds, `[dimension]`. Over all nodes and shares under way it adds up to the sum of the inputs,
    /// up to rounding.
    pub fn sum(&self) -> &[f64] {
        self.mixing.sum()
    }

    #[cfg(test)]
    pub(super) fn mixing(&self) -> &PushSumMixing {
        &self.mixing
    }
}

impl Collective for Average {
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
