//! Finding this peer's place: the plan, from a file, a bootstrap peer or the home, and the node that is bound to its key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libp2p::PeerId;
use mingle_planner::Plan;
use mingle_protocol::{NodeId, Schedule};
use tokio::sync::mpsc;

use super::Peer;
use crate::events::Event;
use crate::failure::{Failure, Kind, Outcome};
use crate::plan;
use crate::plan_exchange::{self, ServedPlan};
use crate::transport::{Network, NetworkEvent};

/// Between two requests for the plan.
const FETCH_PAUSE: Duration = Duration::from_millis(200);

/// This peer's place in the plan.
pub(super) struct Place {
    pub(super) plan: Plan,
    pub(super) hash: String,
    pub(super) origin: String,
    pub(super) node: NodeId,
    pub(super) peers: BTreeMap<NodeId, PeerId>,
    pub(super) schedule: Arc<Schedule>,
}

impl Place {
    /// The peers that this one sends to, and those that it hears from, over the whole period.
    pub(super) fn neighbours(&self) -> (BTreeMap<NodeId, PeerId>, BTreeMap<NodeId, PeerId>) {
        let of = |nodes: &[NodeId]| nodes.iter().map(|node| (*node, self.peers[node])).collect();
        (of(self.schedule.all_out_neighbours(self.node)), of(self.schedule.all_in_neighbours(self.node)))
    }
}

impl Peer<'_> {
    /// Gets the plan and finds this peer in it.
    pub(super) async fn find_place(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
        shared: &OnceLock<ServedPlan>,
    ) -> Outcome<Place> {
        let (plan, origin) = self.find_plan(network, events).await?;
        let peer = self.identity.peer_id();
        let node = plan::node_of(&plan, &peer).ok_or_else(|| {
            Failure::new(Kind::Refused, format!("this peer, {peer}, is not in the plan blake3:{}", plan.hash()))
                .hint(format!("mingle plan bind PLAN --peer NODE={peer}"))
        })?;
        let peers = plan::peers(&plan)?;
        let served = ServedPlan::new(&plan)?;
        let schedule = Arc::new(plan::schedule(&plan)?);
        plan::write(&plan, &self.home.plan())?;
        let hash = plan.hash().to_string();
        self.log.tell(Event::Plan {
            hash: hash.clone(),
            method: plan.method().to_string(),
            nodes: plan.node_count(),
            node: node.index(),
            origin: origin.clone(),
        });
        // Set once, here: this peer has one plan for its whole run.
        let _ = shared.set(served);
        Ok(Place { plan, hash, origin, node, peers, schedule })
    }

    /// The plan and where it came from: the file named, else a bootstrap peer, else the home.
    async fn find_plan(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
    ) -> Outcome<(Plan, String)> {
        if let Some(path) = &self.arguments.plan {
            return Ok((plan::read(path)?, path.display().to_string()));
        }
        let kept = self.home.plan();
        if self.arguments.bootstrap.is_empty() {
            if kept.exists() {
                return Ok((plan::read(&kept)?, kept.display().to_string()));
            }
            return Err(Failure::new(Kind::BadInput, "this peer has no plan")
                .hint("give it one with --plan FILE, or a peer that has it with --bootstrap ADDR"));
        }
        match self.fetch_plan(network, events).await {
            Err(failure) if kept.exists() && failure.is(Kind::Unreachable) => {
                self.log.tell(Event::Warning { message: format!("{failure}; the plan of the last run is used") });
                Ok((plan::read(&kept)?, kept.display().to_string()))
            }
            other => other,
        }
    }

    /// Asks the bootstrap peers until one gives the plan or the time is up.
    async fn fetch_plan(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
    ) -> Outcome<(Plan, String)> {
        let patience = Duration::from_secs(self.arguments.bootstrap_timeout_s);
        let mut search = PlanSearch::default();
        let found = tokio::time::timeout(patience, self.search_plan(network, events, &mut search)).await;
        found.unwrap_or_else(|_| Err(search.failure(patience)))
    }

    async fn search_plan(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
        search: &mut PlanSearch,
    ) -> Outcome<(Plan, String)> {
        let local = self.identity.peer_id();
        let mut streams = network.streams.clone();
        loop {
            for (&peer, address) in &search.answered {
                match plan_exchange::fetch(&mut streams, local, peer).await {
                    Ok(Some(plan)) => return Ok((plan, format!("from {peer} at {address}"))),
                    Ok(None) => {}
                    Err(refusal) => {
                        search.refusals.insert(peer, refusal);
                    }
                }
            }
            let all_refuse = search.refusals.len() == search.answered.len();
            if search.answers >= self.arguments.bootstrap.len()
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
                () = pause => {}
            }
        }
    }

    /// Keeps track of who answered and who did not; each failure is told once.
    fn note(&mut self, event: NetworkEvent, search: &mut PlanSearch) {
        match event {
            NetworkEvent::Bootstrapped { peer, address } => {
                search.answers += 1;
                search.answered.insert(peer, address.to_string());
            }
            NetworkEvent::DialFailed { peer, attempts } => {
                let attempts = attempts.iter().map(ToString::to_string);
                let fresh: Vec<String> = attempts.filter(|attempt| search.failures.insert(attempt.clone())).collect();
                if !fresh.is_empty() {
                    self.log.tell(Event::DialFailed { peer: peer.map(|peer| peer.to_string()), attempts: fresh });
                }
            }
        }
    }
}

/// What came of asking for the plan so far.
#[derive(Default)]
struct PlanSearch {
    /// How many of the bootstrap addresses have answered.
    answers: usize,
    /// The peers behind them, with an address each.
    answered: BTreeMap<PeerId, String>,
    /// Those that will not give this peer their plan, or gave one that does not hold.
    refusals: BTreeMap<PeerId, Failure>,
    /// The addresses that did not answer, with the reason.
    failures: BTreeSet<String>,
}

impl PlanSearch {
    /// What to say when the time is up.
    fn failure(&mut self, patience: Duration) -> Failure {
        if let Some((_, refusal)) = self.refusals.pop_first() {
            return refusal;
        }
        let seconds = patience.as_secs();
        if self.answered.is_empty() {
            let tried: Vec<&str> = self.failures.iter().map(String::as_str).collect();
            return Failure::new(
                Kind::Unreachable,
                format!("no bootstrap peer could be reached in {seconds} s; tried\n  {}", tried.join("\n  ")),
            )
            .hint("is that peer running, and does it listen on an address that this machine can reach? its log says where it listens");
        }
        let peers: Vec<String> = self.answered.iter().map(|(peer, address)| format!("{peer} at {address}")).collect();
        Failure::new(Kind::Unreachable, format!("no peer had a plan within {seconds} s; asked {}", peers.join(", ")))
            .hint("start one of them with --plan FILE")
    }
}
