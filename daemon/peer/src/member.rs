//! A peer among the members of a plan: its state, and the answers and changes of plan common to all kinds of work.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use libp2p::PeerId;
use mingle_home::skipped_rounds::SkippedRounds;
use mingle_net::objections::Objection;
use mingle_net::traffic::Traffic;
use mingle_net::transport::{DialAttempt, Network};
use mingle_protocol::NodeId;
use mingle_status::warnings::{Source, Warnings};

use crate::api::Interface;
use crate::connections::{Connections, Raised};
use crate::error::Result;
use crate::event_loop::EventReceivers;
use crate::events::{Event, EventLog, LocalStepsInUse};
use crate::follow::serving::Followers;
use crate::home::Home;
use crate::medium::PeerMedium;
use crate::membership::{self, CheckedPlan, Membership, MembershipService, PlanVerdict, RoundCosts, Wanted};
use crate::place::Place;
use crate::plan;
use crate::status::StatusBoard;
use crate::timeline::Timeline;

/// Largest number of unreachable addresses that are reported.
const MAX_DIAL_FAILURES: usize = 1024;

/// The parts of a member of a plan.
pub(crate) struct Member<'a> {
    pub home: &'a Home,
    /// This peer's PeerId.
    pub local: PeerId,
    /// Its place in the plan, and the streams there.
    pub connections: Connections,
    /// Answers to other peers' requests to this process.
    pub service: Arc<MembershipService>,
    pub network: &'a Network,
    pub log: &'a mut EventLog,
    pub board: &'a StatusBoard,
    pub interface: &'a Interface,
    pub timeline: Timeline,
    /// The medium of payloads, where that is multicast.
    pub medium: Option<PeerMedium>,
    pub started: Instant,
    /// Those who follow this peer's model, and take no part.
    pub followers: Followers,
    /// Rounds that this peer skipped in its run, since its neighbours were too far ahead.
    pub skipped_rounds: SkippedRounds,
    pub notices: Notices,
}

/// Earlier notices and counts.
#[derive(Default)]
pub(crate) struct Notices {
    /// Traffic over the links of earlier plans.
    past: Traffic,
    dial_failures: BTreeSet<String>,
    warnings: Warnings,
}

impl Member<'_> {
    /// Traffic over all links since this process began.
    pub(crate) fn traffic(&self) -> Traffic {
        self.notices.past + self.connections.traffic()
    }

    /// Warns the user of something that this peer itself found.
    pub(crate) fn warn(&mut self, message: String) {
        self.warn_of(Source::Own, message);
    }

    /// Warns the user, or only writes to the log once the source has caused too many warnings.
    pub(crate) fn warn_of(&mut self, source: Source, message: String) {
        match self.notices.warnings.admit(source, message) {
            Ok(message) => self.log.tell(Event::Warning { message }),
            Err(hidden) => tracing::warn!(hidden),
        }
    }

    /// Records an objection of a neighbour, or to it, and warns of it.
    pub(crate) fn object(&mut self, node: NodeId, objection: Objection) -> Raised {
        let raised = self.connections.object(node, objection);
        raised.warning.iter().for_each(|sentence| self.warn_of(Source::Neighbour(node), sentence.clone()));
        raised
    }

    /// Reports addresses that cannot be reached, each once.
    pub(crate) fn tell_dial_failure(&mut self, peer: Option<PeerId>, attempts: &[DialAttempt]) {
        let known = &mut self.notices.dial_failures;
        let attempts = attempts.iter().map(ToString::to_string);
        let mut is_news = |text: &String| known.len() < MAX_DIAL_FAILURES && known.insert(text.clone());
        let fresh: Vec<String> = attempts.filter(|text| is_news(text)).collect();
        if !fresh.is_empty() {
            self.log.tell(Event::DialFailed { peer: peer.map(|peer| peer.to_string()), attempts: fresh });
        }
    }

    /// Handles the requests of others that are the same for every kind of work. Returns the rest, for the work to
    /// answer.
    pub(crate) fn answer(&mut self, wanted: Wanted) -> Option<Wanted> {
        match wanted {
            Wanted::Warning(message) => self.warn_of(Source::Others, message),
            Wanted::LocalSteps(steps, RoundCosts { local_step_s, exchange_s }) => {
                self.log.tell(Event::LocalSteps(LocalStepsInUse { steps, local_step_s, exchange_s }));
            }
            Wanted::JoinRequested(peer) => {
                self.show_waiting();
                self.log.tell(Event::JoinRequested { peer: peer.to_string() });
            }
            left => return Some(left),
        }
        None
    }

    fn show_waiting(&self) {
        let waiting = self.service.waiting();
        self.board.update(|status| status.waiting = waiting);
    }

    /// The verdict on a plan that replaces nothing; `None` if it is newer than this peer's.
    pub(crate) fn verdict_on(&self, plan: &CheckedPlan) -> Option<PlanVerdict> {
        let ours = &self.connections.place.plan;
        let theirs = plan.generation();
        if theirs == ours.generation() {
            return Some(PlanVerdict::Known);
        }
        (!theirs.replaces(&ours.generation()))
            .then(|| PlanVerdict::Older(Box::new(self.service.news(ours.offer.clone()))))
    }

    /// Returns `true` if the plan still names this peer; otherwise reports it, and lets the next start ask to be admitted again.
    pub(crate) fn is_named_by(&mut self, plan: &CheckedPlan) -> bool {
        let is_named = plan::node_of(&plan.plan, &self.local).is_some();
        if !is_named {
            self.log.tell(Event::PlannedOut { counter: plan.generation().counter });
            if let Err(failure) = self.forget_plan_of_guest() {
                self.warn(format!("{failure:#}"));
            }
        }
        is_named
    }

    /// Removes the plan from the home of a peer with an invitation: with the old plan it would only receive the new one again.
    fn forget_plan_of_guest(&self) -> Result {
        let is_guest = Membership::of(self.home)?.is_some_and(|membership| membership.invite.is_some());
        if is_guest { CheckedPlan::forget(self.home) } else { Ok(()) }
    }

    /// Takes this peer's place in the operator's new plan, which is kept for the next start: closes the streams of the
    /// present plan and opens those of the new one, for parcels of `dimension` parameters.
    ///
    /// # Errors
    /// The plan does not name this peer, or cannot be kept.
    pub(crate) async fn take_up(
        &mut self,
        plan: CheckedPlan,
        boot_nonce: u64,
        dimension: usize,
        receivers: &mut EventReceivers,
    ) -> Result {
        let place = Place::of(plan, "from the operator".to_owned(), self.local)?;
        place.plan.keep(self.home)?;
        plan::write(&place.plan.plan, &self.home.plan())?;
        self.service.follow(&place.plan);
        self.log.tell(Event::NewPlan {
            counter: place.plan.generation().counter,
            hash: place.hash.clone(),
            nodes: place.peers.len(),
            node: place.node.index(),
            first_round: place.plan.first_round(),
        });
        place.show_on(self.board);
        self.show_waiting();
        self.interface.show_plan(&place.plan.plan);
        let (out, inward) = place.neighbours();
        self.network.seek(out.into_values().chain(inward.into_values()).collect()).await;
        self.notices.past += self.connections.end().await;
        let streams = &self.network.streams;
        // Events still in the queue came over streams of the old plan.
        let medium = self.medium.as_ref();
        (self.connections, receivers.edges) =
            Connections::open(streams, place, boot_nonce, dimension, medium, &self.timeline)?;
        Ok(())
    }

    /// A neighbour follows another plan: whichever of the two is newer is told to the other. False where plans are fixed.
    pub(crate) fn compare_plans(&mut self, node: NodeId) -> bool {
        let peer = self.connections.peer(node).filter(|_| self.service.swarm().is_some());
        let Some(peer) = peer else { return false };
        let Some(question) = self.connections.plan_questions.ask(node, Instant::now()) else { return true };
        let news = self.service.news(self.connections.place.plan.offer.clone());
        let service = Arc::clone(&self.service);
        let mut streams = self.network.streams.clone();
        tokio::spawn(async move {
            let _question = question;
            if let Ok(Some(PlanVerdict::Older(newer))) = membership::announce(&mut streams, peer, &news).await
                && let Some(plan) = service.check_news_of(peer, *newer)
            {
                service.note_fork(&plan.offer);
                tell_of(&service, plan).await;
            }
        });
        true
    }
}

async fn tell_of(service: &MembershipService, plan: CheckedPlan) {
    let (answer, verdict) = tokio::sync::oneshot::channel();
    service.hand_in(Wanted::Plan(Box::new(plan), answer)).await;
    if let Ok(PlanVerdict::Refused(why)) = verdict.await {
        tracing::warn!(why, "a newer plan cannot be followed");
    }
}
