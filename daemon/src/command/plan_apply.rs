//! `mingle plan apply`: the operator gives a swarm its plan, or another one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use libp2p::PeerId;
use libp2p::identity::Keypair;
use libp2p_metrics::Registry;
use mingle_net::printable::quoted;
use mingle_net::transport::{Network, NetworkEvent, NetworkOptions};
use mingle_peer::error::Context;
use mingle_peer::membership::{self, CheckedPlan, PlanOffer, Progress, Revocations, Swarm, Verdict, Waiting};
use mingle_peer::{Error, ErrorKind, Home, Result, plan};
use mingle_planner::Plan;
use mingle_protocol::STALEST_ROUNDS;
use tokio::sync::mpsc;

use super::invite::operator_of;
use crate::cli::PlanApplyArgs;
use crate::limits::MOST_ROUNDS;
use crate::out;

/// So long a second member may take to say where it stands.
const SECOND_ANSWER: Duration = Duration::from_secs(2);
/// Between two attempts to reach members.
const PAUSE: Duration = Duration::from_millis(100);

const TWO_PLANNERS: &str = "two planned at the same time, from copies of one home, or somebody has stolen the key";

/// Signs the plan, tells every member that can be reached, and says what each answered.
pub(super) fn execute(arguments: &PlanApplyArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let (swarm, identity) = operator_of(&home)?;
    let mut plan = plan::read(&arguments.plan)?;
    check_expected(&plan, arguments.expect.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(ErrorKind::Unexpected, "cannot start the event loop")?;
    runtime.block_on(async {
        let mut herald = Herald::start(&home, arguments, swarm, identity.keypair()).await?;
        let kept = CheckedPlan::kept(&home, &herald.swarm)?;
        let answers = herald.ask_members(kept.as_ref()).await?;
        let kept_revoked = Revocations::kept(&home)?;
        let revoked = list_with(kept_revoked.as_ref(), kept.as_ref());
        let told: Vec<Waiting> = answers.values().flat_map(|progress| progress.waiting.iter().cloned()).collect();
        let waiting = membership::entitled(&home, &herald.swarm, &revoked, &told)?;
        bind_the_rest(&mut plan, identity.peer_id(), kept.as_ref(), &waiting, &revoked)?;
        answers.values().for_each(|progress| herald.look_for(progress));
        // Only what the operator signed says which plan is the newest, and who can know how far its swarm is.
        let mut newest_signed = kept.clone();
        let (checked, verdicts) = loop {
            let last = newest_signed.as_ref().map_or(0, |plan| plan.generation().counter);
            let first_round = first_round(newest_signed.as_ref(), &answers);
            let revoked = list_with(kept_revoked.as_ref(), newest_signed.as_ref());
            let previous = newest_signed.as_ref().map(|plan| &plan.offer);
            let offer =
                PlanOffer::sign(&herald.swarm, previous, first_round, &plan, revoked, identity.keypair())?;
            let checked = offer.check(Some(&herald.swarm))?;
            let verdicts = herald.tell(&checked, newest_signed.as_ref(), answers.keys()).await?;
            match newest(&verdicts, &herald.swarm) {
                Some(newer) if newer.generation().counter > last => {
                    if let Some(number) = newer.offer.fork(&checked.offer) {
                        eprintln!("warning: members follow another plan {number} that this swarm's key has signed: {TWO_PLANNERS}");
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
        checked.keep(&home)?;
        if kept_revoked.is_none() {
            checked.offer.revoked().keep(&home)?;
        }
        plan::write(&checked.plan, &home.plan())
    })
}

/// Whom the next plan turns away: the list of the home, and where it has lost that, the one of the newest signed plan.
fn list_with(kept: Option<&Revocations>, newest_signed: Option<&CheckedPlan>) -> Revocations {
    let of_plan = || newest_signed.map(|plan| plan.offer.revoked().clone());
    kept.cloned().or_else(of_plan).unwrap_or_default()
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
/// the operator, to members, and to those who wait, in the order they came.
fn bind_the_rest(
    plan: &mut Plan,
    operator: PeerId,
    kept: Option<&CheckedPlan>,
    waiting: &[PeerId],
    revoked: &Revocations,
) -> Result {
    let bound: BTreeSet<String> = plan.nodes().filter_map(|(_, peer)| peer.map(str::to_owned)).collect();
    let members = kept.into_iter().flat_map(|kept| kept.plan.nodes().filter_map(|(_, peer)| peer.map(str::to_owned)));
    let mut free: Vec<String> = Vec::new();
    for peer in std::iter::once(operator.to_string()).chain(members).chain(waiting.iter().map(PeerId::to_string)) {
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

/// The newest plan that a member follows instead, with the operator's signature under it.
fn newest(verdicts: &BTreeMap<PeerId, Option<Verdict>>, swarm: &Swarm) -> Option<CheckedPlan> {
    let signed = |verdict: &Verdict| match verdict {
        Verdict::Older(offer) => offer.clone().check(Some(swarm)).ok(),
        _ => None,
    };
    verdicts.values().flatten().filter_map(signed).max_by_key(|plan| plan.generation().counter)
}

fn is_accepted(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Taken | Verdict::Known)
}

/// A short-lived peer without a name: what it brings is signed, so anybody may bring it.
struct Herald {
    network: Network,
    events: mpsc::Receiver<NetworkEvent>,
    swarm: Swarm,
    patience: Duration,
    /// That it may ask members where they stand.
    permission: Vec<u8>,
}

impl Herald {
    async fn start(home: &Home, arguments: &PlanApplyArgs, swarm: Swarm, operator: &Keypair) -> Result<Self> {
        let addresses = if arguments.via.is_empty() { home.addresses()? } else { arguments.via.clone() };
        if addresses.is_empty() {
            return Err(Error::new(ErrorKind::BadInput, "no address of a member is known")
                .hint("start this peer with `mingle run`, or name a member with --via ADDR"));
        }
        let mut uncounted = Registry::default();
        let own = Keypair::generate_ed25519();
        let permission = swarm.permit_to_ask(&own.public().to_peer_id(), operator)?;
        let (network, events) = Network::start(&own, &NetworkOptions::default(), &mut uncounted).await?;
        network.bootstrap(addresses).await;
        Ok(Self { network, events, swarm, patience: arguments.timeout, permission })
    }

    /// The first peer that answers, and a second one where there is one: another address that was named, or another member of
    /// the plan.
    async fn ask_members(&mut self, kept: Option<&CheckedPlan>) -> Result<BTreeMap<PeerId, Progress>> {
        let until = tokio::time::Instant::now() + self.patience;
        let (first, progress) = self.next_answer(until).await?;
        self.look_for(&progress);
        let mut answers = BTreeMap::from([(first, progress)]);
        let others = kept.map_or(Ok(BTreeMap::new()), |kept| plan::peers(&kept.plan))?;
        let others: BTreeSet<PeerId> = others.into_values().filter(|peer| *peer != first).collect();
        if others.is_empty() {
            return Ok(answers);
        }
        self.network.seek(others.clone()).await;
        let until = until.min(tokio::time::Instant::now() + SECOND_ANSWER);
        while answers.len() < 2 && tokio::time::Instant::now() < until {
            for peer in &others {
                let mut streams = self.network.streams.clone();
                let asking = membership::ask_progress(&mut streams, *peer, &self.swarm, &self.permission);
                if let Ok(Ok(Some(progress))) = tokio::time::timeout_at(until, asking).await {
                    answers.insert(*peer, progress);
                    break;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(answers)
    }

    async fn next_answer(&mut self, until: tokio::time::Instant) -> Result<(PeerId, Progress)> {
        let mut streams = self.network.streams.clone();
        let mut refusal = None;
        let mut failures = BTreeSet::new();
        while let Ok(event) = tokio::time::timeout_at(until, self.events.recv()).await {
            match event {
                Some(NetworkEvent::Bootstrapped { peer, .. }) => {
                    match membership::ask_progress(&mut streams, peer, &self.swarm, &self.permission).await {
                        Ok(Some(progress)) => return Ok((peer, progress)),
                        Ok(None) => {}
                        Err(failure) => refusal = Some(failure),
                    }
                }
                Some(NetworkEvent::DialFailed { attempts, .. }) => {
                    failures.extend(attempts.iter().map(ToString::to_string));
                }
                Some(NetworkEvent::RoundTrip { .. }) => {}
                None => break,
            }
        }
        Err(refusal.unwrap_or_else(|| {
            let tried: Vec<String> = failures.into_iter().collect();
            Error::new(
                ErrorKind::Unreachable,
                format!("no member of the swarm answers; tried\n  {}", tried.join("\n  ")),
            )
            .hint("start this peer with `mingle run`, or name a member that is up with --via ADDR")
        }))
    }

    /// Dials peers where the member that answered is connected to them.
    fn look_for(&self, progress: &Progress) {
        for (peer, addresses) in &progress.addresses {
            let Ok(peer) = peer.parse() else { continue };
            let addresses = addresses.iter().filter_map(|address| address.parse().ok()).collect();
            let reach = self.network.reach();
            // It is told as soon as it is connected, below.
            tokio::spawn(async move { reach.connect(peer, addresses).await });
        }
    }

    /// Tells the members of the plan and of the one before; `None`: not reached.
    async fn tell(
        &self,
        plan: &CheckedPlan,
        before: Option<&CheckedPlan>,
        answered: impl Iterator<Item = &PeerId>,
    ) -> Result<BTreeMap<PeerId, Option<Verdict>>> {
        let mut verdicts: BTreeMap<PeerId, Option<Verdict>> = BTreeMap::new();
        for plan in std::iter::once(plan).chain(before) {
            verdicts.extend(plan::peers(&plan.plan)?.into_values().map(|peer| (peer, None)));
        }
        // The others are found through those that have answered.
        for peer in answered {
            verdicts.entry(*peer).or_default();
        }
        self.network.seek(verdicts.keys().copied().collect()).await;
        let mut streams = self.network.streams.clone();
        let until = tokio::time::Instant::now() + self.patience;
        while verdicts.values().any(Option::is_none) && tokio::time::Instant::now() < until {
            let missing: Vec<PeerId> =
                verdicts.iter().filter(|(_, told)| told.is_none()).map(|(peer, _)| *peer).collect();
            for peer in missing {
                let telling = membership::announce(&mut streams, peer, &plan.offer);
                if let Ok(Ok(Some(verdict))) = tokio::time::timeout_at(until, telling).await {
                    verdicts.insert(peer, Some(verdict));
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(verdicts)
    }
}

fn report(plan: &CheckedPlan, verdicts: &BTreeMap<PeerId, Option<Verdict>>, json: bool) {
    let words = |verdict: &Option<Verdict>| match verdict {
        Some(Verdict::Taken) => "accepted".to_owned(),
        Some(Verdict::Known) => "follows it already".to_owned(),
        Some(Verdict::Older(newer)) => format!("follows plan {}, which is newer", newer.counter()),
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
            "previous": (plan.generation().counter > 1).then(|| hex::encode(plan.offer.previous())),
            "hash": plan.plan.hash().to_string(),
            "accepted": verdicts.values().flatten().filter(|verdict| is_accepted(verdict)).count(),
            "members": members,
        }));
        return;
    }
    let counter = plan.generation().counter;
    out::line(format!("plan {counter}     blake3:{}, from round {} on", plan.plan.hash(), plan.first_round()));
    for (peer, verdict) in verdicts {
        out::line(format!("{peer}  {}", words(verdict)));
    }
}
