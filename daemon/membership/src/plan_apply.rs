//! Giving a swarm its plan, or another one: it is signed with an authorised key, and sent to every member that can be
//! reached.

mod publisher;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use mingle_planner::Plan;
use mingle_protocol::STALEST_ROUNDS;

use crate::plan_peers::node_of;
use crate::{
    CheckedPlan, Membership, PeerProgress, PlanNumber, PlanOffer, PlanVerdict, PlannedBy, Revocations, Role, Signer,
    Waiting,
};
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::{Home, write_file};
use publisher::Publisher;

pub use crate::plan_without::NextPlan;

/// Largest number of rounds of a run: a round a millisecond for thirty years.
pub const MOST_ROUNDS: u64 = 1_000_000_000_000;

const TWO_PLANNERS: &str = "two planned at the same time, from copies of one home, or somebody has stolen the key";

/// Addresses at which members are looked for, and limits of the search.
#[derive(Clone, Debug)]
pub struct ApplyOptions {
    /// Addresses of members, besides those on which the peer of the home listens.
    pub via: Vec<Multiaddr>,
    /// Timeout of members' answers.
    pub timeout: Duration,
    /// The kind of planner: an automatic one does not replace the plan of a person.
    pub planner: PlannedBy,
}

/// A finding that the planner should know, and that prevents nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanWarning {
    /// Members follow another plan of the same number.
    Fork(PlanNumber),
    /// A plan was signed with the key of this home, but not in this home.
    SignedElsewhere(PlanNumber),
    /// Members claim very different numbers of rounds.
    RoundsApart {
        /// The smallest, with which the plan begins.
        least: u64,
        /// The largest.
        most: u64,
    },
}

impl fmt::Display for PlanWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fork(number) => {
                write!(f, "members follow another plan {number} that was signed for this swarm: {TWO_PLANNERS}")
            }
            Self::SignedElsewhere(number) => {
                write!(f, "plan {number} was signed with the key of this home, and not in it: {TWO_PLANNERS}")
            }
            Self::RoundsApart { least, most } => write!(
                f,
                "one member has done {least} rounds, and another says {most}: the plan begins at round {least}"
            ),
        }
    }
}

/// A signed plan, and each member's verdict on it.
pub struct AppliedPlan {
    /// The plan.
    pub plan: CheckedPlan,
    /// The verdicts; `None` for members that were not reached.
    pub verdicts: BTreeMap<PeerId, Option<PlanVerdict>>,
    signer: Signer,
}

impl AppliedPlan {
    /// Number of members that follow the plan.
    pub fn accepted(&self) -> usize {
        let is_accepted = |verdict: &&PlanVerdict| matches!(verdict, PlanVerdict::Taken | PlanVerdict::Known);
        self.verdicts.values().flatten().filter(is_accepted).count()
    }

    /// Keeps the plan in the signer's home.
    ///
    /// # Errors
    /// No member follows it; the home cannot be written.
    pub fn keep(&self, home: &Home) -> Result {
        if self.accepted() == 0 {
            return Err(Error::new(ErrorKind::Refused, "no member follows this plan"));
        }
        Membership::remember(home, self.signer.swarm())?;
        self.plan.keep(home)?;
        self.plan.offer.revoked().keep(home)?;
        write_file(&home.plan(), self.plan.plan.to_json().as_bytes())
    }
}

/// Signs a plan and sends it to every member that can be reached. Free nodes are bound to members and to pending
/// peers.
///
/// # Errors
/// No member answers, another key signs for the swarm by now, there are too few peers for the plan, or none of the members
/// to leave out is in it.
pub async fn apply(
    home: &Home,
    signer: Signer,
    next: NextPlan,
    options: &ApplyOptions,
    warn: &dyn Fn(PlanWarning),
) -> Result<AppliedPlan> {
    let kept = CheckedPlan::kept(home, signer.swarm())?;
    let mut publisher = Publisher::start(home, options, signer).await?;
    let answers = publisher.ask_members(kept.as_ref()).await?;
    // Only a signed plan shows which one is the newest, and which members can know the swarm's progress.
    let kept_counter = kept.as_ref().map(|plan| plan.generation().counter);
    let mut newest_signed = publisher.newest_plan(kept, answers.keys()).await?;
    copied(&publisher.signer, kept_counter, newest_signed.as_ref()).into_iter().for_each(warn);
    let revoked = list_with(home, &publisher.signer, newest_signed.as_ref())?;
    let told: Vec<Waiting> = answers.values().flat_map(|progress| progress.waiting.iter().cloned()).collect();
    let waiting = crate::entitled(home, publisher.signer.swarm(), &revoked, &told)?;
    let mut plan = next.after(newest_signed.as_ref())?;
    bind_the_rest(&mut plan, &publisher.signer, newest_signed.as_ref(), &waiting, &revoked)?;
    answers.values().for_each(|progress| publisher.look_for(progress));
    let (plan, verdicts) = loop {
        let last = newest_signed.as_ref().map_or(0, |plan| plan.generation().counter);
        let first_round = first_round(newest_signed.as_ref(), &answers, warn);
        let revoked = list_with(home, &publisher.signer, newest_signed.as_ref())?;
        let previous = newest_signed.as_ref().map(|plan| &plan.offer);
        let offer = PlanOffer::sign(&publisher.signer, previous, first_round, &plan, revoked, options.planner)?;
        let checked = offer.check(Some(publisher.signer.swarm()))?;
        let verdicts = publisher.tell(&checked, newest_signed.as_ref(), answers.keys()).await?;
        match publisher.newest_in(&verdicts)? {
            Some(newer) if newer.generation().counter > last => {
                if let Some(number) = newer.offer.fork(&checked.offer) {
                    warn(PlanWarning::Fork(PlanNumber(number)));
                }
                newest_signed = Some(newer);
            }
            _ => break (checked, verdicts),
        }
    };
    Ok(AppliedPlan { plan, verdicts, signer: publisher.signer })
}

/// A warning if there is a copy of this home: it has planned before, and a plan that its key has signed since is
/// reported.
fn copied(signer: &Signer, kept: Option<u64>, newest: Option<&CheckedPlan>) -> Option<PlanWarning> {
    let newest = newest.filter(|plan| kept.is_some_and(|kept| plan.generation().counter > kept))?;
    let is_ours = newest.offer.signed_by(signer.swarm()) == Some(signer.peer_id());
    is_ours.then(|| PlanWarning::SignedElsewhere(PlanNumber(newest.generation().counter)))
}

/// Peers and invitations that the next plan revokes.
fn list_with(home: &Home, signer: &Signer, newest_signed: Option<&CheckedPlan>) -> Result<Revocations> {
    crate::turned_away(home, signer, newest_signed.map(|plan| &plan.offer))
}

/// The first round of the next plan: the smallest of the rounds that members of the newest signed plan claim. A number
/// too small makes the swarm repeat some rounds; one too large would skip rounds that it has not trained.
fn first_round(
    newest_signed: Option<&CheckedPlan>,
    answers: &BTreeMap<PeerId, PeerProgress>,
    warn: &dyn Fn(PlanWarning),
) -> u64 {
    let Some(newest) = newest_signed else { return 0 };
    let members = answers.iter().filter(|(peer, _)| node_of(&newest.plan, peer).is_some());
    let rounds: Vec<u64> = members.map(|(_, progress)| progress.round).collect();
    let (least, most) = (rounds.iter().min().copied(), rounds.iter().max().copied());
    if let (Some(least), Some(most)) = (least, most)
        && most.saturating_sub(least) > STALEST_ROUNDS
    {
        warn(PlanWarning::RoundsApart { least, most });
    }
    // No member is behind the beginning of the plan that it follows.
    least.unwrap_or_default().max(newest.first_round()).min(MOST_ROUNDS)
}

/// Binds free nodes: to the peer that they are named after, as in a plan for measured links; then to the signer, to
/// members, and to pending peers in the order in which they came. The key of an operator that has a delegate is
/// offline: it runs no peer, unless it is a member.
fn bind_the_rest(
    plan: &mut Plan,
    signer: &Signer,
    newest: Option<&CheckedPlan>,
    waiting: &[PeerId],
    revoked: &Revocations,
) -> Result {
    let bound: BTreeSet<String> = plan.nodes().filter_map(|(_, peer)| peer.map(str::to_owned)).collect();
    let named = |plan: &CheckedPlan| -> Vec<String> {
        plan.plan.nodes().filter_map(|(_, peer)| peer.map(str::to_owned)).collect()
    };
    let members = newest.map(named).unwrap_or_default();
    let own = signer.peer_id().to_string();
    let is_offline = signer.role() == Role::Operator && signer.swarm().authority().delegation_number() > 0;
    let own = Some(own).filter(|own| !is_offline || members.contains(own));
    let mut free: Vec<String> = Vec::new();
    for peer in own.into_iter().chain(members).chain(waiting.iter().map(PeerId::to_string)) {
        let is_expelled = peer.parse().is_ok_and(|peer| revoked.has_peer(&peer));
        if !bound.contains(&peer) && !free.contains(&peer) && !is_expelled {
            free.push(peer);
        }
    }
    let bind = |plan: &mut Plan, node: usize, peer: &str| {
        plan.bind(node, peer).context(ErrorKind::BadInput, "cannot bind the plan")
    };
    let unbound = |plan: &Plan| -> Vec<(usize, String)> {
        let nodes = plan.nodes().enumerate().filter(|(_, (_, peer))| peer.is_none());
        nodes.map(|(index, (name, _))| (index, name.to_owned())).collect()
    };
    for (node, name) in unbound(plan) {
        if let Some(place) = free.iter().position(|peer| *peer == name) {
            bind(plan, node, &free.remove(place))?;
        }
    }
    let unbound = unbound(plan);
    if unbound.len() > free.len() {
        return Err(Error::new(
            ErrorKind::BadInput,
            format!("{} nodes of the plan are not bound, and {} peers are there for them", unbound.len(), free.len()),
        )
        .hint("invite more peers with `mingle invite`, or make a plan for fewer"));
    }
    unbound.into_iter().zip(&free).try_for_each(|((node, _), peer)| bind(plan, node, peer))
}
