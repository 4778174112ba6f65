//! The state that a node keeps of a round, as bytes.
//!
//! ```text
//!   BLAKE3 of the rest (32)   task (32)   data (32)   shared (32)   length of the history (u64 LE)   history (JSON)   state
//! ```

use super::{LearningError, RoundRecord};

/// The longest state of a node.
pub const MOST_STATE_BYTES: usize = 4 << 30;
const HASH: usize = 32;
const HEAD: usize = 4 * HASH + 8;

/// The identity of a kept state: the task of all nodes, and the data of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) task: [u8; HASH],
    pub(crate) data: [u8; HASH],
}

/// The state and the history of a node after a round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    /// A hash of all results that the nodes had alike in these rounds: states of one round that were kept in different attempts
    /// may belong to different models.
    pub(crate) shared: [u8; HASH],
    pub(crate) history: Vec<RoundRecord>,
    pub(crate) state: Vec<u8>,
}

impl Kept {
    pub(crate) fn encode(&self, about: About) -> Result<Vec<u8>, LearningError> {
        if self.state.len() > MOST_STATE_BYTES {
            let bytes = self.state.len();
            return Err(LearningError(format!(
                "a state of {bytes} bytes is too long to be kept: at most {MOST_STATE_BYTES}"
            )));
        }
        let history = serde_json::to_vec(&self.history)
            .map_err(|error| LearningError(format!("cannot encode the metrics: {error}")))?;
        let mut bytes = vec![0; HASH];
        bytes.reserve_exact(HEAD - HASH + history.len() + self.state.len());
        bytes.extend(about.task);
        bytes.extend(about.data);
        bytes.extend(self.shared);
        bytes.extend((history.len() as u64).to_le_bytes());
        bytes.extend(history);
        bytes.extend(&self.state);
        let hash = blake3::hash(&bytes[HASH..]);
        bytes[..HASH].copy_from_slice(hash.as_bytes());
        Ok(bytes)
    }

    /// Decodes a node's state, if the bytes are whole, belong to this task and data, and are of this many rounds.
    pub(crate) fn decode(bytes: &[u8], about: About, rounds: u64) -> Option<Self> {
        let (hash, rest) = bytes.split_first_chunk::<HASH>()?;
        if blake3::hash(rest).as_bytes() != hash {
            return None;
        }
        let (task, rest) = rest.split_first_chunk::<HASH>()?;
        let (data, rest) = rest.split_first_chunk::<HASH>()?;
        if (About { task: *task, data: *data }) != about {
            return None;
        }
        let (shared, rest) = rest.split_first_chunk::<HASH>()?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let (history, state) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let history: Vec<RoundRecord> = serde_json::from_slice(history).ok()?;
        let is_whole =
            history.len() as u64 == rounds && history.iter().zip(1..).all(|(record, round)| record.round == round);
        is_whole.then(|| Self { shared: *shared, history, state: state.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_state_reads_back_and_one_that_is_damaged_cut_or_about_something_else_is_none() {
        let about = About { task: [1; 32], data: [2; 32] };
        let record = |round| RoundRecord { round, mean: vec![Some(0.1), None], own: vec![None, Some(1.0 / 3.0)] };
        let kept = Kept { shared: [9; 32], history: vec![record(1), record(2)], state: vec![7; 100] };
        let bytes = kept.encode(about).unwrap();
        assert_eq!(Kept::decode(&bytes, about, 2), Some(kept));
        assert_eq!(Kept::decode(&bytes, about, 3), None);
        assert_eq!(Kept::decode(&bytes, About { data: [3; 32], ..about }, 2), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Kept::decode(&damaged, about, 2), None, "byte {at}");
            assert_eq!(Kept::decode(&bytes[..at], about, 2), None, "cut at {at}");
        }
    }
    #[test]
    fn mutated_states_are_none_or_of_as_many_rounds() {
        let about = About { task: [1; 32], data: [2; 32] };
        let history = vec![RoundRecord { round: 1, mean: vec![Some(0.1), None], own: vec![None] }];
        let sound = Kept { shared: [9; 32], history, state: vec![7; 9] }.encode(about).unwrap();
        // Behind the right checksum.
        mingle_mutations::for_each_input("round_state", &[sound[HASH..].to_vec()], |input| {
            let file = [blake3::hash(input).as_bytes(), input].concat();
            for rounds in [0, 1, 2] {
                let kept = Kept::decode(&file, about, rounds);
                assert!(kept.is_none_or(|kept| kept.history.len() as u64 == rounds));
            }
        });
    }
}
