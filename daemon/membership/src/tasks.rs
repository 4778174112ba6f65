//! The task of this peer, and its differences from the tasks of others.

use libp2p::PeerId;

use crate::exchange::{TaskAnswer, fetch_task};
use crate::requests::MemberAnswer;
use crate::service::{MembershipService, Wanted};
use crate::task::{Assignment, UNFIT, Work};
use mingle_protocol::NodeId;

/// Most newcomers of whose other task the user is told.
const MOST_UNFIT: usize = 64;

impl MembershipService {
    /// Sets the task of this peer.
    pub fn take_on(&self, work: Work) {
        self.state().work = Some(work);
    }

    /// The answer for a newcomer with a ticket whose work does not fit; none if it does. The first difference goes to
    /// the newcomer, and to the user of this peer.
    pub(crate) fn refuse_work(&self, newcomer: PeerId, theirs: &Assignment) -> Option<MemberAnswer> {
        let ours = self.state().work.clone();
        let Some(ours) = ours else { return Some(MemberAnswer::NotYet) };
        // Whoever reads it has its own task "here".
        let difference = ours.difference(theirs, &ours.assignment())?;
        let seen_from_here = ours.difference(&ours.assignment(), theirs).unwrap_or_default();
        if self.is_first_time(newcomer) {
            let warning = format!("{newcomer} has a ticket, and is refused: {UNFIT}: {seen_from_here}");
            // Only news for a person: without a reader it is dropped.
            let _ = self.wanted.try_send(Wanted::Warning(warning));
        }
        Some(MemberAnswer::No(format!("{UNFIT}: {difference}")))
    }

    /// Returns `true` if this newcomer has not been refused for its task before; of many newcomers, for the first ones.
    fn is_first_time(&self, newcomer: PeerId) -> bool {
        let unfit = &mut self.state().unfit_newcomers;
        unfit.len() < MOST_UNFIT && unfit.insert(newcomer)
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
