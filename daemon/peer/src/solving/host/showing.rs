//! Status and events of a solver.

use std::collections::BTreeMap;
use std::time::Instant;

use libp2p::PeerId;
use mingle_federated::SPENT;
use mingle_protocol::NodeId;
use mingle_solving::{Part, ProblemTask, WentBack};
use mingle_training::Metrics;

use super::Host;
use super::ending::{named, with_own_epsilon};
use crate::connections::Connections;
use crate::events::Event;
use crate::member::Member;
use crate::status::{Evaluated, LinkState, NeighbourStatus, PeerState};

/// A residual is reported if it is smaller than the last reported one by this factor.
const WORTH_TELLING: f64 = 0.1;

/// The reports to the user so far.
pub(super) struct Reported {
    /// The last residual.
    pub(super) residual: f64,
    /// The last round of learning.
    rounds: u64,
    /// `true` once the user was warned of a spent budget.
    has_spent: bool,
    /// The time since which neighbours are missing.
    waiting_since: Option<Instant>,
}

impl Reported {
    /// The seconds since which neighbours are missing, unless none is.
    pub(super) fn waited_s(&mut self, has_all: bool) -> Option<u64> {
        if has_all {
            self.waiting_since = None;
            return None;
        }
        Some(self.waiting_since.get_or_insert_with(Instant::now).elapsed().as_secs())
    }
}

impl Default for Reported {
    fn default() -> Self {
        Self { residual: f64::INFINITY, rounds: 0, has_spent: false, waiting_since: None }
    }
}

/// Reports the data that a part in learning in rounds was read from.
pub(super) fn tell_data(member: &Member<'_>, part: &Part) {
    if let Part::Rounds(part) = part
        && !part.found().is_empty()
    {
        member.log.tell(Event::Warning { message: format!("data: {}", part.found()) });
    }
}

impl Host<'_, '_> {
    pub(super) fn show(&mut self) {
        let (iterations, checked, gap, round, went_back) = {
            let mut entries = self.peer.journal().read();
            (entries.iterations, entries.checked, entries.gap, entries.round.clone(), entries.went_back.take())
        };
        if let Some(WentBack { kept, to }) = went_back {
            self.told.rounds = self.told.rounds.min(to);
            self.warn_of_lost_rounds(kept, to);
        }
        // Of a round before a restart nothing may be known.
        let round = round.filter(|record| record.round > self.told.rounds && !record.is_unknown());
        let joined = self.joined;
        self.member.board.update(|status| {
            status.state = if joined { PeerState::Solving } else { PeerState::Waiting };
            status.joined = joined;
            status.round = iterations;
            status.residual = checked.map(|(_, residual)| residual);
            status.gap = gap;
        });
        if let (Some(record), ProblemTask::Rounds(task)) = (round, &self.problem.task) {
            self.told.rounds = record.round;
            let names = task.rules().metrics();
            let own = named(names, &record.own);
            let metrics = with_own_epsilon(&named(names, &record.mean), &own);
            self.warn_of_spent_budget(&own);
            let evaluated = Evaluated::new(record.round, metrics.clone());
            self.member.board.update(|status| status.evaluation = Some(evaluated));
            self.member.log.tell(Event::Measured { round: record.round, metrics, own });
        }
        if let Some((iteration, residual)) = checked {
            let left = gap.unwrap_or(residual);
            if left <= self.told.residual * WORTH_TELLING {
                self.told.residual = left;
                self.member.log.tell(Event::Iterated { iteration, residual, gap });
            }
        }
    }

    /// Warns the user of rounds that were done and are trained anew, if they are more than the one that was under way.
    fn warn_of_lost_rounds(&self, kept: u64, to: u64) {
        if kept > to + 1 {
            let message = format!(
                "this home has kept {kept} rounds, and all go on from round {to}: members have kept no later one alike, or \
                 those here are of other data or another problem"
            );
            self.member.log.tell(Event::Warning { message });
        }
    }

    /// Warns the user, once, that its budget of differential privacy is spent.
    fn warn_of_spent_budget(&mut self, own: &Metrics) {
        if !self.told.has_spent && own.get(SPENT).is_some_and(|spent| spent > 0.0) {
            self.told.has_spent = true;
            let message = "this member's budget of differential privacy is spent (privacy.json): from now on it adds noise alone, and the \
                           others learn nothing from its data";
            self.member.log.tell(Event::Warning { message: message.to_owned() });
        }
    }

    /// Shows the neighbours' states, and the traffic of the links.
    pub(super) fn show_links(&self) {
        let Connections { place, links, .. } = &self.member.connections;
        let (out, inward) = place.neighbours();
        let (all, up): (BTreeMap<NodeId, PeerId>, _) = (out.into_iter().chain(inward).collect(), links.up());
        let neighbour = |(node, peer): (NodeId, PeerId)| {
            let traffic = links.traffic_with(node);
            NeighbourStatus {
                node: node.index(),
                peer: peer.to_string(),
                state: if up.contains(&node) { LinkState::Up } else { LinkState::Down },
                reason: None,
                round_trip_ms: None,
                incarnation: 0,
                outgoing: None,
                incoming: None,
                account: None,
                steps_behind: 0,
                sent_bytes: traffic.sent_bytes,
                received_bytes: traffic.received_bytes,
                multicast: None,
            }
        };
        let neighbours: Vec<NeighbourStatus> = all.into_iter().map(neighbour).collect();
        self.member.board.update(|status| {
            let traffic = self.member.traffic();
            status.sent_bytes = traffic.sent_bytes;
            status.received_bytes = traffic.received_bytes;
            status.neighbours = neighbours;
        });
    }
}
