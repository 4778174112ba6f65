//! Handlers of the node's events, and their reports to the user.

use std::sync::Arc;
use std::time::Instant;

use mingle_net::objections::{ONE_PROCESS_A_KEY, Objection};
use mingle_protocol::{
    Durability, InputFault, Mismatch, NodeEvent, NodeId, Robust, RoundReport, SMALLEST_WORKING_MASS, SkippedDelta,
};
use mingle_status::node_warnings::{Remedy, in_words, source_of, warning};
use mingle_status::warnings::Source;

use super::{Driver, UnderEvaluation};
use crate::error::{Error, ErrorKind, Result};
use crate::events::Event;
use crate::records;
use crate::timeline::SpanKind;
use crate::training::thread::Haste;
use crate::training::{Evaluation, PrivacySpending};

/// The warning of a peer that ends without being asked to.
const NOTHING_TO_GO_ON_WITH: &str = "all neighbours have stopped, and one of them has the weight of this peer: it ends, and goes on when \
                                     they are started again, and it too";

impl Driver<'_> {
    pub(super) fn on_node_event(&mut self, event: NodeEvent) -> Result {
        self.watching.note_event(&event);
        match event {
            NodeEvent::Started { .. } => {
                if self.parts.config.durability == Durability::Off {
                    records::discard(self.member.home)?;
                    // On disk before the first weight moves: a crash from here on must not begin with weight again.
                    let incarnation = self.parts.config.identity.incarnation;
                    self.member.home.spend_incarnation(&self.member.connections.place.hash, incarnation)?;
                }
                self.joined = true;
                let neighbours = self.member.connections.links.up().len();
                let missing = self.node.missing_neighbours().iter().map(|node| node.index()).collect();
                self.member.log.tell(Event::Joined { neighbours, missing, network: self.member.network.counts() });
            }
            NodeEvent::CaughtUp { from, to } => self.on_skipped(from, to),
            NodeEvent::ProgressDoubted { peer, claimed, credible } => {
                let [claimed, credible] = [claimed, credible].map(|round| self.first_round.saturating_add(round));
                let sentence = format!(
                    "node {peer} says that it has done {claimed} rounds; neither another neighbour nor the time it had bears \
                     out more than {credible}, so this peer goes on at its own pace"
                );
                self.member.warn_of(Source::Neighbour(peer), sentence);
            }
            NodeEvent::RoundFinished(report) => self.on_round(&report)?,
            NodeEvent::Refused { peer, mismatch: Mismatch::Task { ours, theirs } } => {
                self.ask_for_the_difference(peer, Mismatch::Task { ours, theirs }.to_string());
            }
            NodeEvent::Refused { peer, mismatch } => self.on_mismatch(peer, &mismatch)?,
            // Neighbours that are done before this peer may leave.
            NodeEvent::NeighbourSuspended { peer, reason } if self.rounds < self.last_round() => {
                self.member.log.tell(Event::Suspended { node: peer.index(), reason: in_words(reason).to_owned() });
            }
            NodeEvent::RollbackDetected { incarnation, discarded } => {
                self.member.log.tell(Event::SetBack { incarnation, discarded_units: discarded.units() });
            }
            NodeEvent::AnotherProcess { ends: true, .. } => {
                let message = "another process uses this peer's key, and has done so for longer: this one ends";
                return Err(Error::new(ErrorKind::Refused, message).hint(ONE_PROCESS_A_KEY));
            }
            // The neighbour's streams carry the same plan, and its operator has applied that once more.
            NodeEvent::NewerPlan { peer, .. } => drop(self.member.compare_plans(peer)),
            NodeEvent::NeighbourBack { peer } => self.member.log.tell(Event::Resumed { node: peer.index() }),
            // The end of this peer's training was reported once.
            NodeEvent::DeltaSkipped { reason: SkippedDelta::NoSteps, .. }
                if self.has_spent_its_privacy() || self.trains_elsewhere() => {}
            // The local steps of a round that a request to stop has ended.
            NodeEvent::Ignored { fault: InputFault::UnexpectedTraining, .. } if self.stopping => {}
            other => {
                self.gave_up |= matches!(other, NodeEvent::DrainGaveUp { .. });
                match self.in_words(&other) {
                    Some(message) => self.member.warn_of(source_of(&other), message),
                    None => tracing::debug!(?other, "node"),
                }
                self.note_unusable_steps(&other)?;
            }
        }
        Ok(())
    }

    /// Returns `true` if this peer is about to end in the middle of the training without being asked to: it has no weight,
    /// and all who could send it some have stopped.
    fn has_nothing_to_go_on_with(&self) -> bool {
        let is_early = !self.stopping && !self.node.has_left() && self.rounds < self.last_round();
        is_early && self.node.mass() < SMALLEST_WORKING_MASS
    }

    /// The warning that an event causes, with the way back in this swarm.
    fn in_words(&self, event: &NodeEvent) -> Option<String> {
        if matches!(event, NodeEvent::Draining { .. }) && self.has_nothing_to_go_on_with() {
            return Some(NOTHING_TO_GO_ON_WITH.to_owned());
        }
        let peer_of = |node: NodeId| self.watching.peer_of(node);
        let has_operator = self.member.service.swarm().is_some();
        let away = self.node.missing_neighbours().first().copied();
        warning(event, &Remedy { has_operator, home: self.member.home.root(), peer_of: &peer_of, away })
    }

    fn on_mismatch(&mut self, peer: NodeId, mismatch: &Mismatch) -> Result {
        self.object(peer, Objection::mismatch(mismatch, self.parts.advice.same_task))
    }

    /// Updates the privacy spent after a round's training.
    pub(super) fn note_privacy(&mut self, privacy: Option<PrivacySpending>) {
        let was_spent = self.has_spent_its_privacy();
        self.parts.privacy = privacy;
        if let Some(spending) = privacy.filter(|spending| spending.is_spent && !was_spent) {
            self.member.log.tell(Event::PrivacySpent { spending });
        }
    }

    /// Returns `true` if another program trains; its absence is reported elsewhere.
    fn trains_elsewhere(&self) -> bool {
        self.member.board.look().borrow().trainer.is_some()
    }

    fn has_spent_its_privacy(&self) -> bool {
        self.parts.privacy.is_some_and(|spending| spending.is_spent)
    }

    fn on_skipped(&mut self, from: u64, to: u64) {
        let round_length = self.parts.config.schedule.round_length();
        let [from, to] = [from, to].map(|step| self.first_round.saturating_add(step / round_length));
        let rounds = to.saturating_sub(from);
        if rounds > 0 {
            self.rounds = self.rounds.max(to);
            self.member.skipped_rounds.note(from, to);
            let skipped = self.member.skipped_rounds;
            self.member.log.tell(Event::Skipped { rounds, from, to, total: skipped.total });
            if let Err(failure) = self.member.home.keep_skipped_rounds(skipped) {
                self.member.warn(format!("the number of skipped rounds is not kept for a restart: {failure:#}"));
            }
        }
    }

    fn on_round(&mut self, report: &RoundReport) -> Result {
        self.rounds = self.first_round + report.round + 1;
        self.watching.note_round(report);
        self.note_end_of_round();
        if let Some(began) = Instant::now().checked_sub(report.took) {
            self.member.timeline.note(SpanKind::Round { round: self.rounds }, began);
        }
        let clipped = (self.parts.config.robust != Robust::Off).then_some(report.clipped);
        self.member.log.tell(Event::Round { round: self.rounds, weight_units: report.mass.units(), clipped });
        let followers = &self.member.followers;
        let plan = &self.member.connections.place.hash;
        followers.note_round(self.rounds, self.last_round(), plan, || self.node.ratio());
        let due = self.rounds.is_multiple_of(self.parts.evaluate_every) || self.rounds == self.last_round();
        // Rounds without training can outrun the evaluation; one at a time is enough.
        if due && self.evaluating.is_none() {
            let model = self.node.ratio();
            self.evaluating = Some(UnderEvaluation { rounds: self.rounds, report: *report, model: Arc::clone(&model) });
            self.parts.training.evaluate(report.round, model, Haste::GiveUp)?;
        }
        Ok(())
    }

    pub(super) fn tell_evaluation(&mut self, rounds: u64, report: &RoundReport, evaluation: &Evaluation) {
        self.watching.note_evaluation(rounds, evaluation);
        // A reader of the event must find it in the status.
        self.show();
        let sent_bytes = self.member.traffic().sent_bytes;
        self.member.log.tell(Event::Evaluated {
            round: rounds,
            metrics: evaluation.metrics.clone(),
            train_loss: self.train_loss,
            weight_units: report.mass.units(),
            disagreement: report.disagreement,
            sent_bytes,
        });
    }
}
