//! The search for this peer's place: the plan, from a file, a bootstrap peer, the home or the operator, and the node
//! that is bound to its key.

use std::time::Duration;

use libp2p::PeerId;
use mingle_net::transport::{Network, NetworkEvent};
use mingle_planner::Plan;
use tokio::sync::mpsc;

use super::long_wait::LongWait;
use super::plan_search::PlanSearch;
use super::{GivenPlan, Peer};
use crate::error::{Error, ErrorKind, Result};
use crate::events::Event;
use crate::membership::{
    self, CheckedPlan, Membership, MembershipService, PlanNumber, PlanOffer, PlanVerdict, PlannedBy, Revocations,
    Signer, Standing, Wanted,
};
use crate::place::Place;
use crate::plan;
use crate::status::PeerState;

/// Pause between two requests for the plan.
pub(super) const FETCH_PAUSE: Duration = Duration::from_millis(200);
/// Largest number of unreachable addresses that are reported.
const MAX_FAILURES: usize = 1024;

/// Sources of events for a peer that searches for its plan.
pub(super) struct PlanReceivers<'a> {
    pub(super) network: &'a Network,
    pub(super) events: &'a mut mpsc::Receiver<NetworkEvent>,
    pub(super) wanted: &'a mut mpsc::Receiver<Wanted>,
    /// The bootstrap peers that answered so far, while this one had another question.
    pub(super) search: PlanSearch,
}

impl<'a> PlanReceivers<'a> {
    pub(super) fn new(
        network: &'a Network,
        events: &'a mut mpsc::Receiver<NetworkEvent>,
        wanted: &'a mut mpsc::Receiver<Wanted>,
    ) -> Self {
        Self { network, events, wanted, search: PlanSearch::default() }
    }
}

impl Peer {
    /// Gets the plan and finds this peer in it.
    pub(super) async fn find_place(
        &mut self,
        receivers: &mut PlanReceivers<'_>,
        service: &MembershipService,
    ) -> Result<Place> {
        let (plan, origin) = match self.membership.clone() {
            Some(membership) => self.find_signed_plan(receivers, service, &membership).await?,
            None => {
                let (plan, origin) = self.find_plan(receivers.network, receivers.events).await?;
                let (plan, origin) = self.leave_out(plan, origin)?;
                (PlanOffer::unsigned(&plan)?.check(None)?, origin)
            }
        };
        let place = Place::of(plan, origin, self.identity.peer_id())?;
        plan::write(&place.plan.plan, &self.home.plan())?;
        if let Some(membership) = &self.membership {
            membership.write(&self.home)?;
            place.plan.keep(&self.home)?;
        }
        self.log.tell(Event::Plan {
            hash: place.hash.clone(),
            method: place.plan.plan.method().to_string(),
            nodes: place.plan.plan.node_count(),
            node: place.node.index(),
            origin: place.origin.clone(),
        });
        service.follow(&place.plan);
        self.board.update(|status| status.waiting = service.waiting());
        Ok(place)
    }

    /// The plan less the peers to leave out. Where it named one, this peer goes on from its model in a run by another plan.
    fn leave_out(&mut self, plan: Plan, origin: String) -> Result<(Plan, String)> {
        let Some(next) = plan::without(&plan, &self.options.without)? else { return Ok((plan, origin)) };
        self.options.continues = !self.options.fresh;
        let names: Vec<String> = self.options.without.iter().map(ToString::to_string).collect();
        Ok((next, format!("{origin}, without {}", names.join(", "))))
    }

    /// The operator's plan: the one kept in the home, else the first that names this peer.
    async fn find_signed_plan(
        &mut self,
        receivers: &mut PlanReceivers<'_>,
        service: &MembershipService,
        membership: &Membership,
    ) -> Result<(CheckedPlan, String)> {
        let swarm = &membership.swarm;
        if let Some(peer) = self.options.without.first() {
            let message = format!(
                "the swarm {} has an operator, who alone leaves members out: --without is not for it",
                swarm.name
            );
            return Err(Error::new(ErrorKind::BadInput, message)
                .hint(format!("where the operator's key is: mingle plan apply --without {peer}")));
        }
        if let Some(kept) = CheckedPlan::kept(&self.home, swarm)? {
            if self.options.plan.is_some() {
                return Err(Error::new(ErrorKind::BadInput, format!("the swarm {} has a plan already", swarm.name))
                    .hint("give all of it another one with: mingle plan apply FILE"));
            }
            let origin = format!("plan {} of {}", PlanNumber(kept.generation().counter), swarm.name);
            return Ok((kept, origin));
        }
        if let Some(given) = &self.options.plan {
            let Ok(signer) = Signer::new(swarm.clone(), self.identity.keypair().clone()) else {
                return Err(Error::new(
                    ErrorKind::BadInput,
                    format!("the plans of the swarm {} come from its operator, not from --plan", swarm.name),
                )
                .hint("leave --plan out: this peer gets the plan once it is named in it"));
            };
            let offer =
                PlanOffer::sign(&signer, None, 0, &given.plan, Revocations::of(&self.home)?, PlannedBy::Person)?;
            return Ok((offer.check(Some(swarm))?, given.origin.clone()));
        }
        self.board.update(|status| status.state = PeerState::WaitingForPlan);
        self.log.tell(Event::WaitingForPlan { swarm: swarm.name.clone() });
        self.wait_for_plan(receivers, service, membership).await
    }

    /// Waits as a pending peer at the members that it can reach, until a plan names it.
    async fn wait_for_plan(
        &mut self,
        receivers: &mut PlanReceivers<'_>,
        service: &MembershipService,
        membership: &Membership,
    ) -> Result<(CheckedPlan, String)> {
        let swarm = &membership.swarm;
        let local = self.identity.peer_id();
        let mut search = std::mem::take(&mut receivers.search);
        let mut streams = receivers.network.streams.clone();
        let give_up = tokio::time::Instant::now() + self.options.bootstrap_timeout;
        let mut wait = LongWait::begin();
        let is_operator = service.is_operator();
        let was_member = self.home.plan().exists();
        let claim = membership.invite.as_ref().map(|invite| invite.claim(swarm, &local)).transpose()?;
        loop {
            for (peer, address) in search.answered.clone() {
                // A plan may name a former member again, whose invitation holds no more.
                if was_member && let Some(plan) = self.plan_at(&mut streams, service, peer, &mut search).await {
                    return Ok((plan, format!("from {peer} at {address}")));
                }
                if let Some(claim) = claim.as_ref().filter(|_| !search.admitted.contains(&peer)) {
                    let admitted = self.request_admission(&mut streams, service, peer, swarm, claim).await;
                    if !self.on_admission(peer, admitted, membership, &mut search)? {
                        continue;
                    }
                }
                // A peer that does not count this one as a member yet may do so with the next plan.
                if let Some(plan) = self.plan_at(&mut streams, service, peer, &mut search).await {
                    return Ok((plan, format!("from {peer} at {address}")));
                }
            }
            let nobody_answers = search.answered.is_empty() && !is_operator;
            tokio::select! {
                Some(event) = receivers.events.recv() => self.note(event, &mut search),
                Some(wanted) = receivers.wanted.recv() => {
                    if let Some(plan) = self.on_wanted(wanted, local, service) {
                        return Ok((plan, "from the operator".to_owned()));
                    }
                }
                () = wait.is_long(), if nobody_answers => self.warn(search.remark(self.options.bootstrap_timeout, "")),
                () = tokio::time::sleep_until(give_up), if nobody_answers => {
                    return Err(search.failure(self.options.bootstrap_timeout));
                }
                () = tokio::time::sleep(FETCH_PAUSE), if !search.answered.is_empty() => {}
            }
        }
    }

    /// The plan that a member follows, if it names this peer and can be followed.
    async fn plan_at(
        &mut self,
        streams: &mut libp2p_stream::Control,
        service: &MembershipService,
        peer: PeerId,
        search: &mut PlanSearch,
    ) -> Option<CheckedPlan> {
        let local = self.identity.peer_id();
        let news = membership::fetch_plan(streams, local, peer, None).await.ok().flatten()?;
        match service.check_news(news) {
            // The operator also receives plans that do not name it.
            Ok(plan) => Some(plan).filter(|plan| plan::node_of(&plan.plan, &local).is_some()),
            Err(failure) => {
                if search.warned.insert(peer) {
                    self.warn(format!("the plan sent by {peer} cannot be followed: {failure:#}"));
                }
                None
            }
        }
    }

    /// Answers requests to a peer without a plan. Returns the plan, once a request brings one that names it.
    pub(super) fn on_wanted(
        &mut self,
        wanted: Wanted,
        local: PeerId,
        service: &MembershipService,
    ) -> Option<CheckedPlan> {
        match wanted {
            // The receiver of the answer may be gone.
            Wanted::Model(answer) => drop(answer.send(None)),
            Wanted::Standing(answer) => drop(answer.send(Standing::default())),
            Wanted::Warning(message) => self.warn(message),
            Wanted::JoinRequested(peer) => {
                self.board.update(|status| status.waiting = service.waiting());
                self.log.tell(Event::JoinRequested { peer: peer.to_string() });
            }
            // Only a running peer asks for a model, measures its rounds, or meets others that train something else.
            Wanted::PlanWithModel(..) | Wanted::LocalSteps(..) | Wanted::OtherTask(..) | Wanted::Missing(..) => {}
            Wanted::Plan(plan, answer) => {
                if plan::node_of(&plan.plan, &local).is_some() {
                    let _ = answer.send(PlanVerdict::Taken);
                    return Some(*plan);
                }
                let _ = answer.send(PlanVerdict::Refused("the plan does not name this peer".to_owned()));
            }
        }
        None
    }

    pub(super) fn warn(&mut self, message: String) {
        self.log.tell(Event::Warning { message });
    }

    /// The plan and its origin: the given file, else a bootstrap peer, else the home.
    async fn find_plan(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
    ) -> Result<(Plan, String)> {
        if let Some(GivenPlan { plan, origin }) = self.options.plan.clone() {
            return Ok((plan, origin));
        }
        let kept = self.home.plan();
        // A peer that leaves others out believes none of them about the plan.
        if self.options.bootstrap.is_empty() || !self.options.without.is_empty() && kept.exists() {
            if kept.exists() {
                return Ok((plan::read(&kept)?, kept.display().to_string()));
            }
            return Err(Error::new(ErrorKind::BadInput, "this peer has no plan")
                .hint("give it one with --plan FILE, or a peer that has it with --bootstrap ADDR"));
        }
        match self.fetch_plan(network, events).await {
            Err(failure) if kept.exists() && failure.is(ErrorKind::Unreachable) => {
                self.log.tell(Event::Warning { message: format!("{failure:#}; the plan of the last run is used") });
                Ok((plan::read(&kept)?, kept.display().to_string()))
            }
            other => other,
        }
    }

    /// Asks the bootstrap peers until one sends the plan or the time is up.
    async fn fetch_plan(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
    ) -> Result<(Plan, String)> {
        let patience = self.options.bootstrap_timeout;
        let mut search = PlanSearch::default();
        let found = tokio::time::timeout(patience, self.search_plan(network, events, &mut search)).await;
        found.unwrap_or_else(|_| Err(search.failure(patience)))
    }

    async fn search_plan(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
        search: &mut PlanSearch,
    ) -> Result<(Plan, String)> {
        let local = self.identity.peer_id();
        let mut streams = network.streams.clone();
        let mut wait = LongWait::begin();
        loop {
            // A peer to be left out would give the plan that names it.
            for (&peer, address) in search.answered.iter().filter(|(peer, _)| !self.options.without.contains(peer)) {
                let fetched = membership::fetch_plan(&mut streams, local, peer, None).await;
                let checked = fetched.and_then(|news| news.map(|news| news.offer.check(None)).transpose());
                match checked {
                    Ok(Some(plan)) => {
                        self.plan_giver = Some(peer);
                        return Ok((plan.plan, format!("from {peer} at {address}")));
                    }
                    Ok(None) => {}
                    Err(refusal) => {
                        search.refusals.insert(peer, refusal);
                    }
                }
            }
            let all_refuse = search.refusals.len() == search.answered.len();
            if search.answers >= self.options.bootstrap.len()
                && all_refuse
                && let Some((_, refusal)) = search.refusals.pop_first()
            {
                return Err(refusal);
            }
            let pause = async {
                if search.answered.is_empty() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(FETCH_PAUSE).await;
            };
            tokio::select! {
                Some(event) = events.recv() => self.note(event, search),
                () = wait.is_long() => {
                    let or_else = if self.home.plan().exists() { ", then the plan of the last run is used" } else { "" };
                    self.warn(search.remark(self.options.bootstrap_timeout, or_else));
                }
                () = pause => {}
            }
        }
    }

    /// Records peers that answered and addresses that failed; each failure is reported once.
    pub(super) fn note(&mut self, event: NetworkEvent, search: &mut PlanSearch) {
        match event {
            NetworkEvent::Bootstrapped { peer, address } => {
                search.answers += 1;
                search.answered.insert(peer, address.to_string());
            }
            NetworkEvent::RoundTrip { .. } => {}
            NetworkEvent::DialFailed { peer, attempts } => {
                let attempts = attempts.iter().map(ToString::to_string);
                let known = &mut search.failures;
                let mut is_news = |text: &String| known.len() < MAX_FAILURES && known.insert(text.clone());
                let fresh: Vec<String> = attempts.filter(|attempt| is_news(attempt)).collect();
                if !fresh.is_empty() {
                    self.log.tell(Event::DialFailed { peer: peer.map(|peer| peer.to_string()), attempts: fresh });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_ends_when_the_last_one_that_answers_has_refused_and_nobody_has_let_the_peer_in() {
        let peers = [PeerId::random(), PeerId::random()];
        let answered = peers.map(|peer| (peer, "/ip4/127.0.0.1/tcp/1".to_owned())).into();
        let mut search = PlanSearch { answered, ..PlanSearch::default() };
        let refusal = |said: &str| Error::new(ErrorKind::Refused, said.to_owned());
        assert!(search.refused(peers[0], refusal("first")).is_none(), "the other may let it in");
        let last = search.refused(peers[1], refusal("second")).map(|refusal| refusal.to_string());
        assert_eq!(last.as_deref(), Some("second"), "nobody is left");

        search.admitted.insert(peers[0]);
        assert!(search.refused(peers[1], refusal("third")).is_none(), "one has let it in");
    }
}
