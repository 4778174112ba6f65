//! The signing keys of the swarm as a running peer knows them: from certificates of other peers, and from its home.

use libp2p::PeerId;
use mingle_home::error::Result;

use crate::authority::Authority;
use crate::membership::Membership;
use crate::offer::{CheckedPlan, PlanNews, PlanNumber, PlanOffer};
use crate::revocations::Revocations;
use crate::service::{MembershipService, Wanted};
use crate::swarm::{Signer, SwarmIdentity};
use crate::turned_away::turned_away;

impl MembershipService {
    /// The swarm, if it has an operator, with its newest authority certificate.
    pub fn swarm(&self) -> Option<SwarmIdentity> {
        self.state().swarm.clone()
    }

    /// This peer as a signer for the swarm, or the reason why it may not sign. `None` if the swarm has no operator.
    pub(crate) fn signer(&self) -> Option<Result<Signer>> {
        Some(Signer::new(self.swarm()?, self.key.clone()))
    }

    /// A plan, with the newest authority certificate of the swarm.
    pub fn news(&self, offer: PlanOffer) -> PlanNews {
        let authority = self.swarm().map(|swarm| swarm.authority().clone()).unwrap_or_default();
        PlanNews { offer, authority }
    }

    /// Checks a plan from another peer, and learns its authority certificates.
    ///
    /// # Errors
    /// The plan is not valid, or not signed by a key that may sign now.
    pub fn check_news(&self, news: PlanNews) -> Result<CheckedPlan> {
        self.learn(&news.authority);
        self.learn(news.offer.authority());
        news.offer.check(self.swarm().as_ref())
    }

    /// Checks the plan of a neighbour, and learns its certificates; on failure warns a person once that this peer
    /// cannot follow it.
    pub fn check_news_of(&self, neighbour: PeerId, news: PlanNews) -> Option<CheckedPlan> {
        let hash = news.offer.hash();
        let number = PlanNumber(news.offer.counter());
        let failure = match self.check_news(news) {
            Ok(plan) => return Some(plan),
            Err(failure) => failure,
        };
        if self.is_new_oddity([hash; 2]) {
            self.warn(format!("{neighbour} follows plan {number}, and this peer cannot: {failure:#}"));
        }
        None
    }

    /// Accepts a newer authority certificate if its signatures are valid, and stores it in the home.
    pub(crate) fn learn(&self, told: &Authority) {
        let is_news = self.state().swarm.as_mut().is_some_and(|swarm| swarm.learn(told));
        if is_news {
            self.remember_authority();
            self.tell_of_authority();
        }
    }

    /// Reads the authority certificate in the home, which other commands may have updated.
    pub(crate) fn read_authority(&self) {
        match Membership::of(&self.home) {
            Ok(Some(known)) => self.learn(known.swarm.authority()),
            Ok(None) => {}
            Err(failure) => self.warn(format!("{failure:#}")),
        }
    }

    /// Stores the newest authority certificate in the home, if that belongs to the swarm by now.
    pub(crate) fn remember_authority(&self) {
        let Some(swarm) = self.swarm() else { return };
        if let Err(failure) = Membership::remember(&self.home, &swarm) {
            self.warn(format!("who may sign for the swarm {} is not kept in the home: {failure:#}", swarm.name));
        }
    }

    /// The peers and invitations that this peer refuses: the present list of the operator or its delegate, if this is
    /// one of them, and otherwise the list of the plan.
    pub(crate) fn revocations(&self) -> Result<Revocations> {
        let offer = self.last_plan();
        match self.signer() {
            Some(Ok(signer)) => turned_away(&self.home, &signer, offer.as_ref()),
            _ => Ok(offer.map(|offer| offer.revoked().clone()).unwrap_or_default()),
        }
    }

    /// Stores the list of a plan in this home, which signed it.
    pub(crate) fn keep_revocations(&self, revoked: &Revocations) -> Result {
        if Revocations::kept(&self.home)?.as_ref() == Some(revoked) { Ok(()) } else { revoked.keep(&self.home) }
    }

    /// Only informs a person: without a reader it is dropped.
    fn tell_of_authority(&self) {
        if let Some(sentence) = self.swarm().and_then(|swarm| swarm.describe_authority()) {
            self.warn(sentence);
        }
    }

    fn warn(&self, message: String) {
        let _ = self.wanted.try_send(Wanted::Warning(message));
    }
}
