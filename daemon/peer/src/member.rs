//! A peer among the members of a plan: what it has, answers and takes up alike, whatever it works on with them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use libp2p::PeerId;
use mingle_net::traffic::Traffic;
use mingle_net::transport::{DialAttempt, Network};
use mingle_protocol::NodeId;
use mingle_status::warnings::{Source, Warnings};

use crate::api::Interface;
use crate::connections::{Connections, Raised};
use crate::error::Result;
use crate::event_loop::EventReceivers;
use crate::events::{Event, EventLog};
use crate::home::Home;
use crate::membership::{self, CheckedPlan, MembershipService, RoundCosts, Verdict, Wanted};
use crate::objections::Objection;
use crate::place::Place;
use crate::plan;
use crate::status::StatusBoard;
use crate::timeline::Timeline;

/// So many addresses that cannot be reached are told of.
const MAX_DIAL_FAILURES: usize = 1024;

/// What a member of a plan has.
pub(crate) struct Member<'a> {
    pub home: &'a Home,
    /// This peer.
    pub local: PeerId,
    /// Its place in the plan, and the streams there.
    pub connections: Connections,
    /// What others may ask of this process.
    pub service: Arc<MembershipService>,
    pub network: &'a Network,
    pub log: &'a mut EventLog,
    pub board: &'a StatusBoard,
    pub interface: &'a Interface,
    pub timeline: Timeline,
    pub started: Instant,
    pub notices: Notices,
}

/// What was told or counted before.
#[derive(Default)]
pub(crate) struct Notices {
    /// What went over the links of earlier plans.
    past: Traffic,
    dial_failures: BTreeSet<String>,
    warnings: Warnings,
}

impl Member<'_> {
    /// What went over all links since this process began.
    pub(crate) fn traffic(&self) -> Traffic {
        self.notices.past + self.connections.links.traffic()
    }

    /// Warns a person of what this peer itself has come upon.
    pub(crate) fn warn(&mut self, message: String) {
        self.warn_of(Source::Own, message);
    }

    /// Warns a person, or the log alone once the source has caused too many warnings.
    pub(crate) fn warn_of(&mut self, source: Source, message: String) {
        match self.notices.warnings.admit(source, message) {
            Ok(message) => self.log.tell(Event::Warning { message }),
            Err(hidden) => tracing::warn!(hidden),
        }
    }

    /// Notes an objection of a neighbour, or to it, and tells of it.
    pub(crate) fn object(&mut self, node: NodeId, objection: Objection) -> Raised {
        let raised = self.connections.object(node, objection);
        raised.warning.iter().for_each(|sentence| self.warn_of(Source::Neighbour(node), sentence.clone()));
        raised
    }

    /// Tells of addresses that cannot be reached, each once.
    pub(crate) fn tell_dial_failure(&mut self, peer: Option<PeerId>, attempts: &[DialAttempt]) {
        let known = &mut self.notices.dial_failures;
        let attempts = attempts.iter().map(ToString::to_string);
        let mut is_news = |text: &String| known.len() < MAX_DIAL_FAILURES && known.insert(text.clone());
        let fresh: Vec<String> = attempts.filter(|text| is_news(text)).collect();
        if !fresh.is_empty() {
            self.log.tell(Event::DialFailed { peer: peer.map(|peer| peer.to_string()), attempts: fresh });
        }
    }

    /// Does what any peer does when others want something; what is left is for its work to answer.
    pub(crate) fn answer(&mut self, wanted: Wanted) -> Option<Wanted> {
        match wanted {
            Wanted::Warning(message) => self.warn_of(Source::Others, message),
            Wanted::LocalSteps(steps, RoundCosts { local_step_s, exchange_s }) => {
                self.log.tell(Event::LocalSteps { steps, local_step_s, exchange_s });
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

    /// What is to be said to a plan that replaces nothing; `None` where it is newer than this peer's.
    pub(crate) fn verdict_on(&self, plan: &CheckedPlan) -> Option<Verdict> {
        let (ours, theirs) = (&self.connections.place.plan, plan.generation());
        if theirs == ours.generation() {
            return Some(Verdict::Known);
        }
        (!theirs.replaces(&ours.generation())).then(|| Verdict::Older(Box::new(self.service.news(ours.offer.clone()))))
    }

    /// Whether the plan still names this peer; it is told if not.
    pub(crate) fn is_named_by(&mut self, plan: &CheckedPlan) -> bool {
        let is_named = plan::node_of(&plan.plan, &self.local).is_some();
        if !is_named {
            self.log.tell(Event::PlannedOut { counter: plan.generation().counter });
        }
        is_named
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
        // What is still in the queue came over streams of the old plan.
        (self.connections, receivers.edges) = Connections::open(streams, place, boot_nonce, dimension, &self.timeline)?;
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
            if let Ok(Some(Verdict::Older(newer))) = membership::announce(&mut streams, peer, &news).await
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
    if let Ok(Verdict::Refused(why)) = verdict.await {
        tracing::warn!(why, "a newer plan cannot be followed");
    }
}
