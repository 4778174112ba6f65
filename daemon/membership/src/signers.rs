//! Who may sign for the swarm, as a running peer knows it: what it learns from others, and what its home is told meanwhile.

use libp2p::PeerId;
use mingle_home::error::Result;

use crate::authority::Authority;
use crate::membership::Membership;
use crate::offer::{CheckedPlan, PlanNews, PlanNumber, PlanOffer};
use crate::revocations::Revocations;
use crate::service::{MembershipService, Wanted};
use crate::swarm::{Signer, Swarm};
use crate::turned_away::turned_away;

impl MembershipService {
    /// The swarm, where it has an operator, with the newest word on who may sign for it.
    pub fn swarm(&self) -> Option<Swarm> {
        self.state().swarm.clone()
    }

    /// This peer as one that may sign for the swarm, or why it may not. `None`: the swarm has no operator.
    pub(crate) fn signer(&self) -> Option<Result<Signer>> {
        Some(Signer::new(self.swarm()?, self.key.clone()))
    }

    /// A plan, with the newest word on who may sign for the swarm.
    pub fn news(&self, offer: PlanOffer) -> PlanNews {
        let authority = self.swarm().map(|swarm| swarm.authority().clone()).unwrap_or_default();
        PlanNews { offer, authority }
    }

    /// Checks a plan that another peer gave this one, and learns what it says of who may sign.
    ///
    /// # Errors
    /// The plan does not hold, or those who may sign now did not sign it.
    pub fn check_news(&self, news: PlanNews) -> Result<CheckedPlan> {
        self.learn(&news.authority);
        self.learn(news.offer.authority());
        news.offer.check(self.swarm().as_ref())
    }

    /// The same for the plan of a neighbour; a person is told once why this peer does not follow it.
    pub fn check_news_of(&self, neighbour: PeerId, news: PlanNews) -> Option<CheckedPlan> {
        let (hash, number) = (news.offer.hash(), PlanNumber(news.offer.counter()));
        let failure = match self.check_news(news) {
            Ok(plan) => return Some(plan),
            Err(failure) => failure,
        };
        if self.is_new_oddity([hash; 2]) {
            self.warn(format!("{neighbour} follows plan {number}, and this peer cannot: {failure:#}"));
        }
        None
    }

    /// Believes a newer word on who may sign, if those who may have signed it, and keeps it in the home.
    pub(crate) fn learn(&self, told: &Authority) {
        let is_news = self.state().swarm.as_mut().is_some_and(|swarm| swarm.learn(told));
        if is_news {
            self.remember_authority();
            self.tell_of_authority();
        }
    }

    /// Looks up what the home was told of who may sign, by commands that work there.
    pub(crate) fn read_authority(&self) {
        match Membership::of(&self.home) {
            Ok(Some(known)) => self.learn(known.swarm.authority()),
            Ok(None) => {}
            Err(failure) => self.warn(format!("{failure:#}")),
        }
    }

    /// Keeps the newest word on who may sign in the home, where that belongs to the swarm by now.
    pub(crate) fn remember_authority(&self) {
        let Some(swarm) = self.swarm() else { return };
        if let Err(failure) = Membership::remember(&self.home, &swarm) {
            self.warn(format!("who may sign for the swarm {} is not kept in the home: {failure:#}", swarm.name));
        }
    }

    /// Whom this peer turns away: what the operator or its delegate has revoked by now, where this is one of them, and what came
    /// with the plan elsewhere.
    pub(crate) fn revocations(&self) -> Result<Revocations> {
        let offer = self.last_plan();
        match self.signer() {
            Some(Ok(signer)) => turned_away(&self.home, &signer, offer.as_ref()),
            _ => Ok(offer.map(|offer| offer.revoked().clone()).unwrap_or_default()),
        }
    }

    /// Keeps the list that a plan carries as that of this home, which signed it.
    pub(crate) fn keep_revocations(&self, revoked: &Revocations) -> Result {
        if Revocations::kept(&self.home)?.as_ref() == Some(revoked) { Ok(()) } else { revoked.keep(&self.home) }
    }

    /// Only news for a person: without a reader it is dropped.
    fn tell_of_authority(&self) {
        if let Some(sentence) = self.swarm().and_then(|swarm| swarm.describe_authority()) {
            self.warn(sentence);
        }
    }

    fn warn(&self, message: String) {
        let _ = self.wanted.try_send(Wanted::Warning(message));
    }
}
