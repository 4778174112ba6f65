//! The driver's view of the node: snapshots for people, at the pace of [`SnapshotPace`].

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use libp2p::PeerId;
use mingle_net::neighbour_table::NeighbourTable;
use mingle_protocol::{NeighbourView, Node, NodeEvent, NodeId, NodeState, Robust, RoundReport};
use mingle_status::latest_rounds::{FEWEST_ROUNDS, contraction, keep_latest, mean, median};
use mingle_status::node_warnings::{fault_name, in_words};
use mingle_status::snapshot_pace::SnapshotPace;

use super::Driver;
use crate::membership::RoundCosts;
use crate::overlap::OverlapTaken;
use crate::status::{
    Evaluated, IncomingLink, LinkMulticast, LinkState, MulticastStatus, NeighbourStatus, OutgoingLink, PeerState,
    RobustReceiving, Weight,
};
use crate::training::Evaluation;

/// State that the driver keeps for its snapshots.
pub(super) struct Watching {
    names: BTreeMap<NodeId, String>,
    /// Durations of the last rounds.
    pace: VecDeque<Duration>,
    /// Duration of a local step in each of them.
    local_steps: VecDeque<Duration>,
    /// Round and disagreement of the last rounds in which a parcel was absorbed.
    disagreements: VecDeque<(u64, f64)>,
    weight: Option<Weight>,
    evaluation: Option<Evaluated>,
    /// The last round trip to each neighbour, by its PeerId.
    round_trips: BTreeMap<String, Duration>,
    snapshots: SnapshotPace,
}

impl Watching {
    pub(super) fn new(peers: &BTreeMap<NodeId, PeerId>) -> Self {
        Self {
            names: peers.iter().map(|(node, peer)| (*node, peer.to_string())).collect(),
            pace: VecDeque::new(),
            local_steps: VecDeque::new(),
            disagreements: VecDeque::new(),
            weight: None,
            evaluation: None,
            round_trips: BTreeMap::new(),
            snapshots: SnapshotPace::default(),
        }
    }

    /// Resets the neighbours and the measurements of their agreement for another plan.
    pub(super) fn follow(&mut self, peers: &BTreeMap<NodeId, PeerId>) {
        let round_trips = std::mem::take(&mut self.round_trips);
        let evaluation = self.evaluation.take();
        *self = Self { evaluation, round_trips, ..Self::new(peers) };
    }

    /// The PeerId of a node of the plan.
    pub(super) fn peer_of(&self, node: NodeId) -> Option<String> {
        self.names.get(&node).cloned()
    }

    /// Records a round trip to a peer; only those of neighbours are kept.
    pub(super) fn note_round_trip(&mut self, peer: &PeerId, time: Duration) {
        let name = peer.to_string();
        if self.names.values().any(|neighbour| *neighbour == name) {
            self.round_trips.insert(name, time);
        }
    }

    /// Notes a change that should be shown at once.
    pub(super) fn note(&mut self) {
        self.snapshots.note();
    }

    /// Notes an event of the node. All but rounds are shown at once.
    pub(super) fn note_event(&mut self, event: &NodeEvent) {
        if !matches!(event, NodeEvent::RoundFinished(_)) {
            self.note();
        }
    }

    pub(super) fn note_round(&mut self, report: &RoundReport) {
        keep_latest(&mut self.pace, report.took);
        if let Some(disagreement) = report.disagreement.filter(|value| value.is_finite()) {
            keep_latest(&mut self.disagreements, (report.round, disagreement));
        }
        self.weight = Some(Weight::of(report.mass.units(), report.stationary_weight));
        self.snapshots.note_round();
    }

    /// Records the time that `steps` local steps took together.
    pub(super) fn note_local_steps(&mut self, steps: u32, took: Duration) {
        keep_latest(&mut self.local_steps, took / steps.max(1));
    }

    pub(super) fn note_evaluation(&mut self, round: u64, evaluation: &Evaluation) {
        self.evaluation = Some(Evaluated::new(round, evaluation.metrics.clone()));
        self.snapshots.note();
    }

    fn round_trip_ms(&self, node: NodeId) -> Option<f64> {
        let time = self.round_trips.get(self.names.get(&node)?)?;
        Some(time.as_secs_f64() * 1e3)
    }

    fn neighbour(&self, view: &NeighbourView, node: &Node, links: &NeighbourTable) -> NeighbourStatus {
        let own_step = node.step();
        let is_robust = node.config().robust != Robust::Off;
        let traffic = links.traffic_with(view.id);
        let state = match view {
            NeighbourView { has_left: true, .. } => LinkState::Left,
            NeighbourView { is_up: false, .. } => LinkState::Down,
            NeighbourView { suspended: Some(_), .. } => LinkState::Suspended,
            _ => LinkState::Up,
        };
        NeighbourStatus {
            node: view.id.index(),
            peer: self.names.get(&view.id).cloned().unwrap_or_default(),
            state,
            reason: view.suspended.map(|reason| in_words(reason).to_owned()),
            round_trip_ms: self.round_trip_ms(view.id).filter(|_| state == LinkState::Up),
            incarnation: view.incarnation,
            outgoing: view.outgoing.map(|link| OutgoingLink {
                parcels: traffic.sent_parcels(),
                unacknowledged_parcels: link.unacknowledged_parcels,
                unacknowledged_units: link.unacknowledged.units(),
                given_weight: link.given,
            }),
            incoming: view.incoming.map(|link| IncomingLink {
                parcels: traffic.received_parcels,
                queued_parcels: link.queued_parcels,
                received_weight: link.received,
                clipped: is_robust.then_some(link.clipped),
            }),
            account: Some(view.account.into()),
            steps_behind: own_step.saturating_sub(view.passed_steps),
            sent_bytes: traffic.sent_bytes,
            received_bytes: traffic.received_bytes,
            multicast: links.hears(view.id).map(|hears| LinkMulticast {
                hears,
                sent_parcels: traffic.multicast.sent_parcels,
                resorted_parcels: traffic.multicast.resorted_parcels,
                received_parcels: traffic.multicast.received_parcels,
            }),
        }
    }
}

impl Driver<'_> {
    /// Measured costs of the rounds of the present plan; `None` before enough of them are over.
    pub(super) fn round_costs(&self) -> Option<RoundCosts> {
        let times = &self.watching.local_steps;
        let local_step = median(times).filter(|_| times.len() >= FEWEST_ROUNDS)?;
        let links = &self.member.connections.links;
        let exchange = |view: NeighbourView| {
            let traffic = links.traffic_with(view.id);
            let parcels = u32::try_from(traffic.received_parcels).ok().filter(|parcels| *parcels > 0)?;
            let round_trip = self.watching.round_trip_ms(view.id).unwrap_or_default() / 1e3;
            Some((traffic.receiving / parcels).as_secs_f64() + round_trip)
        };
        let slowest = self.node.neighbour_views().filter_map(exchange).reduce(f64::max)?;
        let exchanges = crate::units::count(self.parts.config.schedule.round_length());
        Some(RoundCosts { local_step_s: local_step.as_secs_f64(), exchange_s: exchanges * slowest })
    }

    /// Publishes a new snapshot at once.
    pub(super) fn show_now(&mut self) {
        self.watching.note();
        self.show();
    }

    /// Publishes a new snapshot if one is due.
    pub(super) fn show(&mut self) {
        let state = self.state();
        let now = Instant::now();
        if !self.watching.snapshots.is_due(state, now) {
            return;
        }
        self.watching.snapshots.note_shown(state, now);
        let traffic = self.member.traffic();
        let group = self.member.connections.group();
        let followers = self.member.followers.count();
        let node = &self.node;
        let links = &self.member.connections.links;
        let watching = &self.watching;
        let config = &self.parts.config;
        let settled = || Weight::of(node.mass().units(), config.schedule.stationary_weight(node.id(), node.step()));
        let last_weight =
            watching.weight.filter(|_| !matches!(state, PeerState::Draining | PeerState::Done | PeerState::Stopped));
        let last_round = self.last_round();
        let rounds_left = last_round.saturating_sub(self.rounds);
        let costs = self.round_costs();
        self.member.board.update(|status| {
            status.state = state;
            status.joined = self.joined;
            status.followers = followers;
            status.round = self.rounds;
            status.rounds = last_round;
            let pace = mean(&watching.pace).filter(|_| state.is_under_way());
            status.eta_s = pace.map(|pace| pace * crate::units::count(rounds_left));
            status.weight = last_weight.unwrap_or_else(settled);
            status.evaluation.clone_from(&watching.evaluation);
            (status.local_step_s, status.exchange_s) =
                costs.map(|costs| (costs.local_step_s, costs.exchange_s)).unzip();
            status.train_loss = self.train_loss;
            status.privacy = self.parts.privacy;
            status.disagreement = watching.disagreements.back().map(|(_, value)| *value);
            status.robust = RobustReceiving::of(node);
            status.contraction.observed = contraction(&watching.disagreements);
            status.sent_bytes = traffic.sent_bytes;
            status.received_bytes = traffic.received_bytes;
            status.encoding = Some(traffic.encoding(node.codec()));
            status.multicast = group.map(|group| MulticastStatus { group, traffic: traffic.multicast });
            status.momentum_across_rounds = Some(self.parts.momentum.taken());
            status.overlap = OverlapTaken::of(node);
            status.incarnation = config.identity.incarnation;
            status.refusals = node.refusals().map(|(fault, count)| (fault_name(fault), count)).collect();
            status.neighbours = node.neighbour_views().map(|view| watching.neighbour(&view, node, links)).collect();
        });
    }

    /// The time of the next snapshot, if a round is not shown yet.
    pub(super) fn shows_again_at(&self) -> Option<Instant> {
        self.watching.snapshots.next_at(self.state())
    }

    /// Publishes the last snapshot, once the loop has ended.
    pub(super) fn show_end(&mut self, evaluation: &Evaluation) {
        self.watching.note_evaluation(self.rounds, evaluation);
        self.show();
    }

    fn state(&self) -> PeerState {
        state(&self.node, self.stopping)
    }
}

fn state(node: &Node, stopping: bool) -> PeerState {
    match node.state() {
        NodeState::Gathering => PeerState::Waiting,
        NodeState::Training => PeerState::Training,
        NodeState::AwaitingRoom | NodeState::AwaitingParcels if !stopping => PeerState::WaitingForNeighbours,
        _ => PeerState::Draining,
    }
}
