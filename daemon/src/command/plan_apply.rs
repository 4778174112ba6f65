//! `mingle plan apply`: the operator gives a swarm its plan, or another one.

mod herald;

use std::collections::{BTreeMap, BTreeSet};

use herald::Herald;
use libp2p::PeerId;
use mingle_net::printable::quoted;
use mingle_peer::error::Context;
use mingle_peer::membership::{
    self, CheckedPlan, Membership, PlanNumber, PlanOffer, Progress, Revocations, Role, Signer, Verdict, Waiting,
};
use mingle_peer::{Error, ErrorKind, Home, Result, plan};
use mingle_planner::Plan;
use mingle_protocol::STALEST_ROUNDS;

use super::operator::signer_of;
use crate::cli::PlanApplyArgs;
use crate::limits::MOST_ROUNDS;
use crate::out;

const TWO_PLANNERS: &str = "two planned at the same time, from copies of one home, or somebody has stolen the key";

/// Signs the plan, tells every member that can be reached, and says what each answered.
pub(super) fn execute(arguments: &PlanApplyArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let signer = signer_of(&home)?;
    signer.check_time()?;
    let plan = plan::read(&arguments.plan)?;
    check_expected(&plan, arguments.expect.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(ErrorKind::Unexpected, "cannot start the event loop")?;
    runtime.block_on(apply(&home, signer, plan, arguments, json))
}

async fn apply(home: &Home, signer: Signer, mut plan: Plan, arguments: &PlanApplyArgs, json: bool) -> Result {
    let kept = CheckedPlan::kept(home, signer.swarm())?;
    let mut herald = Herald::start(home, arguments, signer).await?;
    let answers = herald.ask_members(kept.as_ref()).await?;
    // Only what was signed says which plan is the newest, and who can know how far its swarm is.
    let kept_counter = kept.as_ref().map(|plan| plan.generation().counter);
    let mut newest_signed = herald.newest_plan(kept, answers.keys()).await?;
    warn_of_copies(&herald.signer, kept_counter, newest_signed.as_ref());
    let revoked = list_with(home, &herald.signer, newest_signed.as_ref())?;
    let told: Vec<Waiting> = answers.values().flat_map(|progress| progress.waiting.iter().cloned()).collect();
    let waiting = membership::entitled(home, herald.signer.swarm(), &revoked, &told)?;
    bind_the_rest(&mut plan, &herald.signer, newest_signed.as_ref(), &waiting, &revoked)?;
    answers.values().for_each(|progress| herald.look_for(progress));
    let (checked, verdicts) = loop {
        let last = newest_signed.as_ref().map_or(0, |plan| plan.generation().counter);
        let first_round = first_round(newest_signed.as_ref(), &answers);
        let revoked = list_with(home, &herald.signer, newest_signed.as_ref())?;
        let previous = newest_signed.as_ref().map(|plan| &plan.offer);
        let offer = PlanOffer::sign(&herald.signer, previous, first_round, &plan, revoked)?;
        let checked = offer.check(Some(herald.signer.swarm()))?;
        let verdicts = herald.tell(&checked, newest_signed.as_ref(), answers.keys()).await?;
        match herald.newest_in(&verdicts)? {
            Some(newer) if newer.generation().counter > last => {
                if let Some(number) = newer.offer.fork(&checked.offer) {
                    let number = PlanNumber(number);
                    eprintln!(
                        "warning: members follow another plan {number} that was signed for this swarm: {TWO_PLANNERS}"
                    );
                }
                newest_signed = Some(newer);
            }
            _ => break (checked, verdicts),
        }
    };
    let taken = verdicts.values().flatten().filter(|verdict| is_accepted(verdict)).count();
    report(&checked, &verdicts, json);
    if taken == 0 {
        return Err(Error::new(ErrorKind::Refused, "no member follows this plan"));
    }
    Membership::remember(home, herald.signer.swarm())?;
    checked.keep(home)?;
    checked.offer.revoked().keep(home)?;
    plan::write(&checked.plan, &home.plan())
}

/// A home that has planned before, and is told of a plan that its key has signed since, has a copy somewhere.
fn warn_of_copies(signer: &Signer, kept: Option<u64>, newest: Option<&CheckedPlan>) {
    let Some(newest) = newest.filter(|plan| kept.is_some_and(|kept| plan.generation().counter > kept)) else { return };
    if newest.offer.signed_by(signer.swarm()) == Some(signer.peer_id()) {
        let number = PlanNumber(newest.generation().counter);
        eprintln!("warning: plan {number} was signed with the key of this home, and not in it: {TWO_PLANNERS}");
    }
}

/// Whom the next plan turns away.
fn list_with(home: &Home, signer: &Signer, newest_signed: Option<&CheckedPlan>) -> Result<Revocations> {
    membership::turned_away(home, signer, newest_signed.map(|plan| &plan.offer))
}

/// The round that the next plan begins with: what members of the newest signed plan say, and of those that differ the one who
/// claims the least. Too few makes the swarm train some rounds again, too many would leave out what it has not trained.
fn first_round(newest_signed: Option<&CheckedPlan>, answers: &BTreeMap<PeerId, Progress>) -> u64 {
    let Some(newest) = newest_signed else { return 0 };
    let members = answers.iter().filter(|(peer, _)| plan::node_of(&newest.plan, peer).is_some());
    let rounds: Vec<u64> = members.map(|(_, progress)| progress.round).collect();
    let (least, most) = (rounds.iter().min().copied(), rounds.iter().max().copied());
    if let (Some(least), Some(most)) = (least, most)
        && most.saturating_sub(least) > STALEST_ROUNDS
    {
        eprintln!(
            "warning: one member has done {least} rounds, and another says {most}: the plan begins at round {least}"
        );
    }
    // Nobody is behind the beginning of the plan that it follows.
    least.unwrap_or_default().max(newest.first_round()).min(MOST_ROUNDS)
}

fn check_expected(plan: &Plan, expected: Option<&str>) -> Result {
    let Some(expected) = expected else { return Ok(()) };
    let hash = plan.hash().to_string();
    let wanted = expected.strip_prefix("blake3:").unwrap_or(expected);
    if wanted.len() >= 8 && hash.starts_with(wanted) {
        return Ok(());
    }
    let why = if wanted.len() < 8 { "give at least 8 digits of it" } else { "it was changed since you looked at it" };
    Err(Error::new(ErrorKind::Integrity, format!("the plan is blake3:{hash}, not {expected}: {why}")))
}

/// Binds the nodes that nobody runs yet: to the peer that they are named after, as in a plan for measured links; then to
/// the signer, to members, and to those who wait, in the order they came. The key of an operator that has a delegate is offline: it
/// runs no peer, unless it is a member.
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

fn is_accepted(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Taken | Verdict::Known)
}

fn report(plan: &CheckedPlan, verdicts: &BTreeMap<PeerId, Option<Verdict>>, json: bool) {
    let words = |verdict: &Option<Verdict>| match verdict {
        Some(Verdict::Taken) => "accepted".to_owned(),
        Some(Verdict::Known) => "follows it already".to_owned(),
        Some(Verdict::Older(newer)) => format!("follows plan {}, which is newer", PlanNumber(newer.offer.counter())),
        Some(Verdict::Refused(why)) => format!("refused: {}", quoted(why)),
        None => "not reached: it hears of the plan from its neighbours".to_owned(),
    };
    if json {
        let members: BTreeMap<String, String> =
            verdicts.iter().map(|(peer, verdict)| (peer.to_string(), words(verdict))).collect();
        out::line(serde_json::json!({
            "schema": "mingle.plan-apply/1",
            "counter": plan.generation().counter,
            "first_round": plan.first_round(),
            "signed_hash": hex::encode(plan.offer.hash()),
            "previous": (plan.offer.previous() != [0; 32]).then(|| hex::encode(plan.offer.previous())),
            "hash": plan.plan.hash().to_string(),
            "accepted": verdicts.values().flatten().filter(|verdict| is_accepted(verdict)).count(),
            "members": members,
        }));
        return;
    }
    let number = PlanNumber(plan.generation().counter);
    out::line(format!("plan {number}     blake3:{}, from round {} on", plan.plan.hash(), plan.first_round()));
    for (peer, verdict) in verdicts {
        out::line(format!("{peer}  {}", words(verdict)));
    }
}
