//! The sender of a plan to the members of a swarm: a short-lived peer with a temporary key, since the plan is signed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};
use libp2p_metrics::Registry;
use mingle_net::transport::{Network, NetworkEvent, NetworkOptions};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::ApplyOptions;
use crate::plan_peers::peers;
use crate::{CheckedPlan, PeerProgress, Permission, PlanNews, PlanVerdict, Signer};
use mingle_home::error::{Error, ErrorKind, Result};
use mingle_home::home::Home;

/// Timeout of a second member's answer about its progress.
const SECOND_ANSWER: Duration = Duration::from_secs(2);
/// Pause between two attempts to reach members.
const PAUSE: Duration = Duration::from_millis(100);

/// A member's answer to the question for its progress.
type Answered = (PeerId, Result<Option<PeerProgress>>);

pub(super) struct Publisher {
    network: Network,
    events: mpsc::Receiver<NetworkEvent>,
    /// The signer of the plan.
    pub(super) signer: Signer,
    local: PeerId,
    /// Addresses at which members may be.
    addresses: Vec<Multiaddr>,
    /// `true` if the user named some of them.
    names_members: bool,
    patience: Duration,
    /// Permission to ask members for their progress.
    permission: Permission,
}

impl Publisher {
    /// Begins to dial the addresses that the user names, and those on which the peer of this home listens.
    ///
    /// # Errors
    /// No address is known, or there is no network.
    pub(super) async fn start(home: &Home, options: &ApplyOptions, signer: Signer) -> Result<Self> {
        let mut addresses = options.via.clone();
        addresses.extend(home.addresses()?.into_iter().filter(|address| !options.via.contains(address)));
        if addresses.is_empty() {
            return Err(Error::new(ErrorKind::BadInput, "no address of a member is known")
                .hint("start this peer with `mingle run`, or name a member with --via ADDR"));
        }
        let mut uncounted = Registry::default();
        let own = Keypair::generate_ed25519();
        let local = own.public().to_peer_id();
        let permission = signer.permit_to_ask(&local)?;
        let (network, events) = Network::start(&own, &NetworkOptions::default(), &mut uncounted).await?;
        network.bootstrap(addresses.clone()).await;
        let names_members = !options.via.is_empty();
        let patience = options.timeout;
        Ok(Self { network, events, signer, local, addresses, names_members, patience, permission })
    }

    /// The answers of the first peer, and of a second one if there is one: at another address that was named, or
    /// another member of the plan.
    pub(super) async fn ask_members(&mut self, kept: Option<&CheckedPlan>) -> Result<BTreeMap<PeerId, PeerProgress>> {
        let until = Instant::now() + self.patience;
        let mut answers = self.first_answers(until).await?;
        answers.values().for_each(|progress| self.look_for(progress));
        let others = kept.map_or(Ok(BTreeMap::new()), |kept| peers(&kept.plan))?;
        let others: BTreeSet<PeerId> = others.into_values().filter(|peer| !answers.contains_key(peer)).collect();
        if others.is_empty() {
            return Ok(answers);
        }
        self.network.seek(others.clone()).await;
        let until = until.min(Instant::now() + SECOND_ANSWER);
        while answers.len() < 2 && Instant::now() < until {
            for peer in &others {
                let mut streams = self.network.streams.clone();
                let asking = crate::ask_progress(&mut streams, *peer, self.signer.swarm(), Some(&self.permission));
                if let Ok(Ok(Some(progress))) = tokio::time::timeout_at(until, asking).await {
                    answers.insert(*peer, progress);
                    break;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(answers)
    }

    /// The first peer's answer about its progress, and a second one where the user named members: the peer of this home
    /// may answer first, and know nothing yet. Peers that were reached and do not answer are asked again.
    async fn first_answers(&mut self, mut until: Instant) -> Result<BTreeMap<PeerId, PeerProgress>> {
        let enough = if self.names_members { 2 } else { 1 };
        let mut search = AnswerSearch::default();
        let mut answers = BTreeMap::new();
        let mut questions: JoinSet<Answered> = JoinSet::new();
        while answers.len() < enough {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(NetworkEvent::Bootstrapped { peer, address }) => {
                        search.tried.insert(unnamed(&address));
                        if search.reached.insert(peer) {
                            questions.spawn(self.question(peer, Duration::ZERO));
                        }
                    }
                    Some(NetworkEvent::DialFailed { attempts, .. }) => {
                        search.failures.extend(attempts.iter().map(ToString::to_string));
                        search.tried.extend(attempts.iter().filter_map(|attempt| attempt.address.as_ref()).map(unnamed));
                    }
                    Some(NetworkEvent::RoundTrip { .. }) => {}
                    None => break,
                },
                Some(answered) = questions.join_next() => match answered {
                    Ok((peer, Ok(Some(progress)))) => {
                        answers.insert(peer, progress);
                        // The peer of this home may know nothing: those that were named get all of the time.
                        if peer != self.signer.peer_id() {
                            until = until.min(Instant::now() + SECOND_ANSWER);
                        }
                    }
                    Ok((peer, Ok(None))) => drop(questions.spawn(self.question(peer, PAUSE))),
                    Ok((peer, Err(refusal))) => {
                        search.refused.insert(peer);
                        search.refusal = Some(refusal);
                    }
                    Err(_) => {}
                },
                () = tokio::time::sleep_until(until) => break,
            }
            let is_over = match answers.is_empty() {
                true => search.is_in_vain(&self.addresses),
                false => search.has_heard_all(&self.addresses, &answers),
            };
            if is_over {
                break;
            }
        }
        if answers.is_empty() { Err(search.failure(&self.addresses, self.patience)) } else { Ok(answers) }
    }

    fn question(&self, peer: PeerId, pause: Duration) -> impl Future<Output = Answered> + use<> {
        let mut streams = self.network.streams.clone();
        let swarm = self.signer.swarm().clone();
        let permission = self.permission.clone();
        async move {
            tokio::time::sleep(pause).await;
            (peer, crate::ask_progress(&mut streams, peer, &swarm, Some(&permission)).await)
        }
    }

    /// The newest signed plan: the one that this home kept, or one that these members follow.
    ///
    /// # Errors
    /// Another key signs for the swarm by now.
    pub(super) async fn newest_plan(
        &mut self,
        kept: Option<CheckedPlan>,
        members: impl Iterator<Item = &PeerId>,
    ) -> Result<Option<CheckedPlan>> {
        let mut newest = kept;
        let mut streams = self.network.streams.clone();
        for peer in members {
            let asking = crate::fetch_plan(&mut streams, self.local, *peer, Some(&self.permission));
            let Ok(Ok(Some(news))) = tokio::time::timeout(SECOND_ANSWER, asking).await else { continue };
            let told = self.check(news)?;
            newest = newest.into_iter().chain(told).max_by_key(|plan| plan.generation().counter);
        }
        Ok(newest)
    }

    /// The newest of the plans that members follow instead.
    ///
    /// # Errors
    /// Another key signs for the swarm by now.
    pub(super) fn newest_in(
        &mut self,
        verdicts: &BTreeMap<PeerId, Option<PlanVerdict>>,
    ) -> Result<Option<CheckedPlan>> {
        let mut newest: Option<CheckedPlan> = None;
        for verdict in verdicts.values().flatten() {
            let PlanVerdict::Older(news) = verdict else { continue };
            let told = self.check((**news).clone())?;
            newest = newest.into_iter().chain(told).max_by_key(|plan| plan.generation().counter);
        }
        Ok(newest)
    }

    /// A plan that a member follows, if its signer was once authorised. Also learns the present signer from it.
    fn check(&mut self, news: PlanNews) -> Result<Option<CheckedPlan>> {
        self.signer.learn(&news.authority)?;
        self.signer.learn(news.offer.authority())?;
        Ok(news.offer.check_past(self.signer.swarm()).ok())
    }

    /// Dials peers at the addresses where the member that answered is connected to them.
    pub(super) fn look_for(&self, progress: &PeerProgress) {
        for (peer, addresses) in &progress.addresses {
            let Ok(peer) = peer.parse() else { continue };
            let addresses = addresses.iter().filter_map(|address| address.parse().ok()).collect();
            let reach = self.network.reach();
            // Such a peer receives the plan once it is connected, in `tell`.
            tokio::spawn(async move { reach.connect(peer, addresses).await });
        }
    }

    /// Sends the plan to its members and to those of the plan before. Returns their verdicts; `None` if not reached.
    pub(super) async fn tell(
        &self,
        plan: &CheckedPlan,
        before: Option<&CheckedPlan>,
        answered: impl Iterator<Item = &PeerId>,
    ) -> Result<BTreeMap<PeerId, Option<PlanVerdict>>> {
        let mut verdicts: BTreeMap<PeerId, Option<PlanVerdict>> = BTreeMap::new();
        for plan in std::iter::once(plan).chain(before) {
            verdicts.extend(peers(&plan.plan)?.into_values().map(|peer| (peer, None)));
        }
        // The others are found through those that have answered.
        for peer in answered {
            verdicts.entry(*peer).or_default();
        }
        self.network.seek(verdicts.keys().copied().collect()).await;
        let mut streams = self.network.streams.clone();
        let news = PlanNews { offer: plan.offer.clone(), authority: self.signer.swarm().authority().clone() };
        let until = tokio::time::Instant::now() + self.patience;
        while verdicts.values().any(Option::is_none) && tokio::time::Instant::now() < until {
            let missing: Vec<PeerId> =
                verdicts.iter().filter(|(_, told)| told.is_none()).map(|(peer, _)| *peer).collect();
            for peer in missing {
                let telling = crate::announce(&mut streams, peer, &news);
                if let Ok(Ok(Some(verdict))) = tokio::time::timeout_at(until, telling).await {
                    verdicts.insert(peer, Some(verdict));
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(verdicts)
    }
}

/// State of the search for a first answer.
#[derive(Default)]
struct AnswerSearch {
    /// Peers that were reached.
    reached: BTreeSet<PeerId>,
    /// Peers of these that would not answer, and the last one's refusal.
    refused: BTreeSet<PeerId>,
    refusal: Option<Error>,
    /// Addresses that were reached or failed, without the PeerId expected there.
    tried: BTreeSet<Multiaddr>,
    /// Addresses that cannot be reached, with the reason.
    failures: BTreeSet<String>,
}

impl AnswerSearch {
    /// Returns `true` if waiting is useless: all reached peers refuse, and no address is left where another one may be.
    fn is_in_vain(&self, addresses: &[Multiaddr]) -> bool {
        !self.refused.is_empty() && self.refused == self.reached && self.has_tried(addresses)
    }

    /// Returns `true` if all addresses were tried, and all peers behind them have answered.
    fn has_heard_all(&self, addresses: &[Multiaddr], answers: &BTreeMap<PeerId, PeerProgress>) -> bool {
        let has_answered = |peer: &PeerId| answers.contains_key(peer) || self.refused.contains(peer);
        self.reached.iter().all(has_answered) && self.has_tried(addresses)
    }

    fn has_tried(&self, addresses: &[Multiaddr]) -> bool {
        let is_tried = |address: &Multiaddr| {
            let named = |peer: &PeerId| address.iter().last() == Some(Protocol::P2p(*peer));
            self.tried.contains(&unnamed(address)) || self.reached.iter().any(named)
        };
        addresses.iter().all(is_tried)
    }

    /// The error to report when the time is up.
    fn failure(self, addresses: &[Multiaddr], patience: Duration) -> Error {
        if let Some(refusal) = self.refusal {
            return refusal;
        }
        let waited = humantime::format_duration(patience);
        let mut lines: Vec<String> = self.failures.into_iter().collect();
        lines.extend(self.reached.iter().map(|peer| format!("{peer} was reached, and has not said where it stands")));
        if lines.is_empty() {
            lines.extend(addresses.iter().map(|address| format!("{address}: no answer yet, and no failure either")));
        }
        Error::new(
            ErrorKind::Unreachable,
            format!("no member of the swarm has answered within {waited}; tried\n  {}", lines.join("\n  ")),
        )
        .hint("start this peer with `mingle run`, name a member that is up with --via ADDR, or wait longer with --timeout 60s")
    }
}

/// An address without the PeerId expected there.
fn unnamed(address: &Multiaddr) -> Multiaddr {
    let mut address = address.clone();
    if matches!(address.iter().last(), Some(Protocol::P2p(_))) {
        address.pop();
    }
    address
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn who_was_waited_for_is_named_also_where_nothing_has_failed() {
        let addresses: Vec<Multiaddr> = vec!["/ip4/192.0.2.1/udp/4717/quic-v1".parse().unwrap()];
        let patience = Duration::from_secs(4);
        let sentence = |search: AnswerSearch| search.failure(&addresses, patience).to_string();
        let silent = sentence(AnswerSearch::default());
        assert!(
            silent.contains("within 4s") && silent.contains("/ip4/192.0.2.1/udp/4717/quic-v1: no answer yet"),
            "{silent}"
        );
        let peer = PeerId::random();
        let reached = sentence(AnswerSearch { reached: [peer].into(), ..AnswerSearch::default() });
        assert!(reached.contains(&format!("{peer} was reached")) && !reached.contains("192.0.2.1"), "{reached}");
        let failed = sentence(AnswerSearch {
            failures: ["/ip4/192.0.2.1/tcp/1: refused".to_owned()].into(),
            ..AnswerSearch::default()
        });
        assert!(failed.contains("tcp/1: refused"), "{failed}");
    }

    #[test]
    fn nobody_waits_once_all_who_can_be_reached_have_refused() {
        let (first, second) = (PeerId::random(), PeerId::random());
        let [quic, tcp, silent]: [Multiaddr; 3] =
            ["/ip4/192.0.2.1/udp/4717/quic-v1", "/ip4/192.0.2.1/tcp/4717", "/ip4/192.0.2.9/tcp/1"]
                .map(|a| a.parse().unwrap());
        let named = |address: &Multiaddr| address.clone().with(Protocol::P2p(first));
        let mut search =
            AnswerSearch { reached: [first].into(), tried: [quic.clone()].into(), ..AnswerSearch::default() };
        assert!(!search.is_in_vain(std::slice::from_ref(&quic)), "it has not said anything yet");
        search.refused.insert(first);
        assert!(search.is_in_vain(&[named(&quic), named(&tcp)]), "both are its addresses");
        assert!(!search.is_in_vain(&[quic.clone(), silent.clone()]), "somebody else may answer");
        search.tried.insert(silent.clone());
        assert!(search.is_in_vain(&[quic.clone(), silent.clone()]), "nobody is there");
        search.reached.insert(second);
        assert!(!search.is_in_vain(&[quic, silent]), "it may answer");
    }
}
