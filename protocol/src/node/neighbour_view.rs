//! A read-only view of a neighbour, for people and metrics.

use super::peer::Neighbour;
use crate::effect::{Clipped, Suspension};
use crate::mass::Mass;
use crate::schedule::NodeId;

use super::Node;

/// A node's view of one neighbour at this instant.
#[derive(Clone, Debug, PartialEq)]
pub struct NeighbourView {
    /// Index of the neighbour in the plan.
    pub id: NodeId,
    /// `true` if the neighbour is connected, and both have greeted each other.
    pub is_up: bool,
    /// Reason for which the node neither waits for the neighbour nor sends to it.
    pub suspended: Option<Suspension>,
    /// `true` if the neighbour has left the generation for good.
    pub has_left: bool,
    /// The neighbour's present life; 0 before its first greeting.
    pub incarnation: u64,
    /// Steps that the neighbour has passed, as far as is known.
    pub passed_steps: u64,
    /// The link to the neighbour, where the plan has one.
    pub outgoing: Option<OutgoingView>,
    /// The link from the neighbour, where the plan has one.
    pub incoming: Option<IncomingView>,
    /// The weight that the neighbour took and gave of late.
    pub account: AccountView,
}

/// The weight that a neighbour took and gave, beside that of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccountView {
    /// The weight that it took in the last rounds, as a part of that in the plan; `None` before any was due.
    pub taken: Option<f64>,
    /// The weight that it gave in the last rounds, as a part of that in the plan; `None` before any was due.
    pub given: Option<f64>,
    /// Periods of the plan by which it took more than it gave, less what this node forgave.
    pub ahead: f64,
    /// Periods by which it may be ahead now; `None` without limit.
    pub credit: Option<f64>,
}

/// The sending end of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutgoingView {
    /// Parcels ever sent.
    pub parcels: u64,
    /// Parcels that the receiver has not acknowledged.
    pub unacknowledged_parcels: usize,
    /// The mass of the unacknowledged parcels.
    pub unacknowledged: Mass,
    /// The weight that the receiver's present life was given and did not return.
    pub given: f64,
}

/// The receiving end of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IncomingView {
    /// The number of the last parcel that arrived, which is how many the sender has sent on the link.
    pub parcels: u64,
    /// Parcels that have arrived and wait for their step.
    pub queued_parcels: usize,
    /// The weight that came from the sender's present life.
    pub received: f64,
    /// Parcels clipped, and their amount, since this process follows the plan, with
    /// [`Robust::Clip`](crate::Robust::Clip).
    pub clipped: Clipped,
}

impl NeighbourView {
    fn of(peer: &Neighbour, credit: Option<f64>) -> Self {
        let account = AccountView {
            taken: peer.account.taken.share(),
            given: peer.account.given.share(),
            ahead: peer.account.balance,
            credit: credit.filter(|_| peer.outgoing.is_some()),
        };
        let outgoing = peer.outgoing.as_ref().map(|link| OutgoingView {
            parcels: link.next_seq() - 1,
            unacknowledged_parcels: link.outstanding_parcels(),
            unacknowledged: link.undelivered(),
            given: link.given(),
        });
        let incoming = peer.incoming.as_ref().map(|link| IncomingView {
            parcels: link.received(),
            queued_parcels: link.queued_parcels(),
            received: link.received_weight(),
            clipped: peer.distances.clipped,
        });
        Self {
            id: peer.id,
            is_up: peer.link_up && peer.mutual,
            suspended: peer.suspended,
            has_left: peer.left,
            incarnation: peer.incarnation(),
            passed_steps: peer.steps_passed(),
            outgoing,
            incoming,
            account,
        }
    }
}

impl Node {
    /// Views of all neighbours at this instant, ascending.
    pub fn neighbour_views(&self) -> impl Iterator<Item = NeighbourView> {
        let credit = self.credit_in_periods();
        self.peers.values().map(move |peer| NeighbourView::of(peer, credit))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Arc;

    use crate::{Effect, Input, NodeConfig, Schedule, Step, Time};

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);

    fn pair(rounds: u64) -> [Node; 2] {
        let step = Step { keep: vec![0.5, 0.5], links: vec![(A, B, 0.5), (B, A, 0.5)] };
        let schedule = Arc::new(Schedule::new(2, &[step], 0).unwrap());
        [(A, 0.0), (B, 8.0)]
            .map(|(id, value)| Node::new(NodeConfig::new(id, Arc::clone(&schedule), vec![value], rounds)).unwrap())
    }

    /// Hands in these inputs and all messages that result.
    fn run(nodes: &mut [Node; 2], inputs: &[(NodeId, Input)]) {
        let mut inputs: VecDeque<_> = inputs.iter().cloned().collect();
        while let Some((id, input)) = inputs.pop_front() {
            for effect in nodes[id.index()].handle(Time::default(), input) {
                if let Effect::Send { to, message } = effect {
                    inputs.push_back((to, Input::Received { from: id, message }));
                }
            }
        }
    }

    #[test]
    fn a_neighbour_that_was_never_heard_is_down_and_one_that_is_done_has_acknowledged_everything() {
        let mut nodes = pair(10);
        let before = nodes[0].neighbour_views().next().unwrap();
        assert!(!before.is_up && before.incarnation == 0 && before.passed_steps == 0, "{before:?}");
        assert_eq!(before.outgoing.unwrap().parcels, 0);
        run(
            &mut nodes,
            &[(A, Input::Start), (B, Input::Start), (A, Input::LinkUp { peer: B }), (B, Input::LinkUp { peer: A })],
        );
        let views: Vec<NeighbourView> = nodes[0].neighbour_views().collect();
        assert_eq!(views.len(), 1);
        let after = &views[0];
        assert_eq!((after.id, after.is_up, after.suspended, after.has_left), (B, true, None, false));
        assert_eq!((after.incarnation, after.passed_steps), (1, 10));
        let outgoing = OutgoingView { parcels: 10, unacknowledged_parcels: 0, unacknowledged: Mass::ZERO, given: 5.0 };
        assert_eq!(after.outgoing, Some(outgoing));
        let incoming = IncomingView { parcels: 10, queued_parcels: 0, received: 5.0, clipped: Clipped::default() };
        assert_eq!(after.incoming, Some(incoming));
        let AccountView { taken, given, ahead, .. } = after.account;
        assert!([taken, given].iter().all(|share| share.is_some_and(|share| share > 0.9)), "{:?}", after.account);
        assert_eq!(ahead, 0.0);
    }

    #[test]
    fn what_was_sent_and_not_acknowledged_shows_with_its_mass() {
        let mut nodes = pair(10);
        let [a, b] = &mut nodes;
        // B greets and falls silent: A sends what it may, and gets no acknowledgement.
        let mut inputs = VecDeque::from([Input::Start, Input::LinkUp { peer: B }]);
        b.handle(Time::default(), Input::Start);
        let mut from_b: VecDeque<_> = b.handle(Time::default(), Input::LinkUp { peer: A }).into();
        while let Some(input) = inputs.pop_front() {
            for effect in a.handle(Time::default(), input) {
                if let Effect::Send { message: message @ crate::Message::Hello(_), .. } = effect {
                    from_b.extend(b.handle(Time::default(), Input::Received { from: A, message }));
                }
            }
            let greetings = from_b.drain(..).filter_map(|effect| match effect {
                Effect::Send { message: message @ crate::Message::Hello(_), .. } => {
                    Some(Input::Received { from: B, message })
                }
                _ => None,
            });
            inputs.extend(greetings.collect::<Vec<_>>());
        }
        let view = a.neighbour_views().next().unwrap();
        let outgoing = view.outgoing.unwrap();
        assert!(view.is_up && outgoing.parcels == 1, "{view:?}");
        assert_eq!((outgoing.unacknowledged_parcels, outgoing.unacknowledged.units()), (1, 1 << 39));
        assert_eq!(a.mass().units() + outgoing.unacknowledged.units(), Mass::ONE.units());
    }
}
