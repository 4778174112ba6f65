//! The state of a member's training, such as the moments of its optimizer, for a peer that joins.
//!
//! It is asked of the members that gave the peer its model, one after the other: unlike models, states of optimizers have
//! no median, since their bytes mean something to the training alone.

use libp2p::PeerId;

use crate::exchange::fetch_state;
use crate::requests::MemberAnswer;
use crate::service::{MembershipService, StateSource};

/// Members that are asked for their states at most.
const LENDERS: usize = 3;

/// The state of the first of these members that gives one of at most `most_bytes`.
pub async fn borrow_state(
    mut streams: libp2p_stream::Control,
    members: &[PeerId],
    most_bytes: usize,
) -> Option<(PeerId, Vec<u8>)> {
    for member in members.iter().take(LENDERS) {
        if let Some(state) = fetch_state(&mut streams, *member, most_bytes).await {
            return Some((*member, state));
        }
    }
    None
}

impl MembershipService {
    /// Lets members of the plan have the state of this peer's training.
    pub fn give_states(&self, source: StateSource) {
        self.state().states = Some(source);
    }

    /// The answer to a member that asks for the state of this peer's training.
    pub(crate) fn lend_state(&self) -> MemberAnswer {
        let source = self.state().states.clone();
        source.and_then(|source| source()).map_or(MemberAnswer::NotYet, MemberAnswer::State)
    }
}
