//! The task of this peer, and its differences from the tasks of others.

use libp2p::PeerId;

use crate::exchange::{TaskAnswer, fetch_task};
use crate::requests::MemberAnswer;
use crate::service::{MembershipService, Wanted};
use crate::task::{Assignment, UNFIT, Work};
use mingle_protocol::NodeId;

impl MembershipService {
    /// Sets the task of this peer.
    pub fn take_on(&self, work: Work) {
        self.state().work = Some(work);
    }

    /// The answer for a newcomer whose work does not fit; none if it does.
    pub(crate) fn refuse_work(&self, theirs: &Assignment) -> Option<MemberAnswer> {
        let ours = self.state().work.clone();
        let Some(ours) = ours else { return Some(MemberAnswer::NotYet) };
        // The newcomer reads it, so its own task is "here".
        let difference = ours.difference(theirs, &ours.assignment())?;
        Some(MemberAnswer::No(format!("{UNFIT}: {difference}")))
    }

    /// Requests the task of a neighbour whose task has another hash, and reports the first difference, or else
    /// `otherwise`.
    pub async fn explain(&self, mut streams: libp2p_stream::Control, node: NodeId, peer: PeerId, otherwise: String) {
        let difference = self.difference_with(&mut streams, peer).await;
        self.hand_in(Wanted::OtherTask(node, difference.unwrap_or(otherwise))).await;
    }

    /// Requests the task of a neighbour that has not connected, and reports the first difference, or else its answer.
    pub async fn look_for_missing(&self, mut streams: libp2p_stream::Control, node: NodeId, peer: PeerId) {
        let word = fetch_task(&mut streams, peer, None).await.unwrap_or(TaskAnswer::Away);
        let wanted = match self.difference(&word) {
            Some(difference) => Wanted::OtherTask(node, difference),
            None => Wanted::Missing(node, word),
        };
        self.hand_in(wanted).await;
    }

    /// The first difference between the task of this peer and that of `peer`; `None` if they agree, or it does not
    /// answer.
    async fn difference_with(&self, streams: &mut libp2p_stream::Control, peer: PeerId) -> Option<String> {
        self.difference(&fetch_task(streams, peer, None).await.ok()?)
    }

    /// The first difference between the task of this peer and this answer; `None` if they agree, or it has no task.
    pub fn difference(&self, theirs: &TaskAnswer) -> Option<String> {
        let TaskAnswer::Task(theirs) = theirs else { return None };
        let ours = self.state().work.clone()?;
        ours.difference(&ours.assignment(), theirs)
    }
}
