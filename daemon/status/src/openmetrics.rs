//! The snapshot in OpenMetrics format, beside the counters of libp2p.
//!
//! No number is counted twice: a scrape reads the snapshot that all other clients read.

use std::fmt;
use std::sync::Arc;

use libp2p_metrics::Registry;
use mingle_training::MetricDirection;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::sync::watch;

use crate::status::{LinkState, MulticastStatus, PeerState, Status};

/// Content type of the answer to a scrape.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Adds the snapshot's numbers to a registry.
pub fn register(registry: &mut Registry, status: watch::Receiver<Arc<Status>>) {
    registry.register_collector(Box::new(StatusCollector { status }));
}

/// All metrics of the registry, as text.
pub fn encode(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    text::encode(&mut text, registry)?;
    Ok(text)
}

#[derive(Debug)]
struct StatusCollector {
    status: watch::Receiver<Arc<Status>>,
}

impl Collector for StatusCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = Arc::clone(&self.status.borrow());
        let mut sheet = Sheet { encoder };
        sheet.about(&status)?;
        sheet.training(&status)?;
        sheet.gossip(&status)?;
        sheet.neighbours(&status)
    }
}

/// One label.
type Label<'a> = [(&'static str, &'a str); 1];

struct Sheet<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Sheet<'_> {
    fn about(&mut self, status: &Status) -> fmt::Result {
        self.gauges("mingle_build_info", "The release of the program", [([("version", &*status.version)], 1.0)])?;
        if let Some(plan) = &status.plan {
            self.gauges("mingle_plan_info", "The plan that is run", [([("hash", &*plan.hash)], 1.0)])?;
        }
        let states =
            PeerState::ALL.map(|state| ([("state", state.name())], f64::from(u8::from(state == status.state))));
        self.gauges("mingle_state", "1 for what the peer is doing", states)?;
        self.gauge(
            "mingle_joined",
            "1 once all neighbours were up and training began",
            f64::from(u8::from(status.joined)),
        )?;
        self.gauge(
            "mingle_incarnation",
            "Which life of the peer this is",
            mingle_home::units::count(status.incarnation),
        )
    }

    fn training(&mut self, status: &Status) -> fmt::Result {
        self.gauge("mingle_round", "Rounds done", mingle_home::units::count(status.round))?;
        self.gauge("mingle_rounds", "Rounds wanted", mingle_home::units::count(status.rounds))?;
        self.gauge("mingle_eta_seconds", "Time that the rounds still to do will take", status.eta_s)?;
        self.gauge(
            "mingle_solve_residual",
            "How far the last iteration moved the peer that moved most",
            status.residual,
        )?;
        self.gauge(
            "mingle_solve_gap",
            "Duality gap of a robust model: none within reach is better by more",
            status.gap,
        )?;
        self.gauge("mingle_train_loss", "Mean loss over the last local steps", status.train_loss)?;
        let attached = status.trainer.as_ref().map(|trainer| f64::from(u8::from(trainer.attached.is_some())));
        self.gauge("mingle_trainer_attached", "Whether a program is there that trains for this peer", attached)?;
        if let Some(spending) = &status.privacy {
            let settings = &spending.settings;
            self.gauge("mingle_privacy_epsilon", "Privacy spent, as epsilon", spending.epsilon)?;
            self.gauge("mingle_privacy_epsilon_max", "Epsilon that is never exceeded", settings.epsilon_max())?;
            self.gauge("mingle_privacy_delta", "Delta at which epsilon is told", settings.delta())?;
        }
        let evaluation = status.evaluation.iter().flat_map(|last| last.metrics.iter());
        self.gauges(
            "mingle_evaluation",
            "What was last measured of the model on held-out samples",
            evaluation.map(|(metric, value)| ([("metric", metric)], value)),
        )?;
        let directions = status.evaluation.iter().flat_map(|last| &last.directions);
        self.gauges(
            "mingle_evaluation_direction",
            "1 for a metric that is better when it is larger, -1 for one that is better when it is smaller",
            directions.map(|(metric, direction)| {
                let sign = match direction {
                    MetricDirection::Max => 1.0,
                    MetricDirection::Min => -1.0,
                };
                ([("metric", metric.as_str())], sign)
            }),
        )
    }

    fn gossip(&mut self, status: &Status) -> fmt::Result {
        self.gauge("mingle_pushsum_weight", "Push-sum weight w", status.weight.value)?;
        self.gauge(
            "mingle_pushsum_weight_share",
            "Push-sum weight over its settled value, w / w*",
            status.weight.share,
        )?;
        self.gauge("mingle_gossip_disagreement", "Relative distance to the models heard", status.disagreement)?;
        let radius = status.robust.as_ref().and_then(|robust| robust.radius);
        self.gauge("mingle_robust_radius", "Distance from the own model within which others are not clipped", radius)?;
        let contraction = status.contraction;
        self.gauge("mingle_contraction_observed", "Factor of disagreement per round, measured", contraction.observed)?;
        self.gauge(
            "mingle_contraction_predicted",
            "Factor of disagreement per round by the plan",
            contraction.forecast,
        )?;
        self.counters(
            "mingle_gossip_bytes",
            "Bytes on all links",
            [([("dir", "out")], status.sent_bytes), ([("dir", "in")], status.received_bytes)],
        )?;
        if let Some(encoding) = &status.encoding {
            self.gauges("mingle_codec_info", "How models are sent", [([("codec", &*encoding.codec)], 1.0)])?;
            self.counters(
                "mingle_gossip_saved_bytes",
                "Bytes that sending all parcels in f32 would have taken besides",
                [([("dir", "out")], encoding.saved_bytes)],
            )?;
            let parcels = encoding.parcels.iter().map(|(codec, count)| ([("codec", codec.as_str())], *count));
            self.counters("mingle_gossip_encoded_parcels", "Parcels sent, by codec", parcels)?;
        }
        self.multicast(status)?;
        self.gauge(
            "mingle_followers",
            "Followers that get the model from this peer",
            Some(mingle_home::units::count(status.followers as u64)),
        )?;
        let sent = status.neighbours.iter().filter_map(|neighbour| neighbour.outgoing).map(|link| link.parcels).sum();
        let received =
            status.neighbours.iter().filter_map(|neighbour| neighbour.incoming).map(|link| link.parcels).sum();
        self.counters(
            "mingle_gossip_parcels",
            "Parcels on all links",
            [([("dir", "out")], sent), ([("dir", "in")], received)],
        )?;
        let reasons = status.refusals.iter().map(|(reason, count)| ([("reason", reason.as_str())], *count));
        self.counters("mingle_refusals", "Inputs that were not taken", reasons)
    }

    fn multicast(&mut self, status: &Status) -> fmt::Result {
        let Some(MulticastStatus { traffic, .. }) = &status.multicast else { return Ok(()) };
        let bytes = [
            ("packets", traffic.packet_bytes),
            ("repair", traffic.repair_bytes),
            ("streams_would", traffic.stream_bytes),
        ];
        let bytes = bytes.map(|(what, bytes)| ([("what", what)], bytes));
        self.counters("mingle_multicast_bytes", "Bytes in packets, and those that streams would have carried", bytes)?;
        let parcels = [
            ("sent", traffic.sent_parcels),
            ("by_stream_in_the_end", traffic.resorted_parcels),
            ("received", traffic.received_parcels),
        ];
        let parcels = parcels.map(|(what, count)| ([("what", what)], count));
        self.counters("mingle_multicast_parcels", "Parcels whose payload was offered by multicast", parcels)?;
        let packets = [("strange", traffic.strange_packets), ("refused", traffic.refused_packets)];
        let packets = packets.map(|(what, count)| ([("what", what)], count));
        self.counters("mingle_multicast_dropped_packets", "Packets of the group that were dropped", packets)?;
        let Some(slots) = traffic.slots else { return Ok(()) };
        let payloads = [("on_time", slots.on_time), ("late", slots.late), ("split", slots.split)];
        let payloads = payloads.map(|(what, count)| ([("what", what)], count));
        self.counters("mingle_multicast_slots", "Payloads sent in slots of the plan", payloads)
    }

    fn neighbours(&mut self, status: &Status) -> fmt::Result {
        let count = |state| {
            mingle_home::units::count(
                status.neighbours.iter().filter(|neighbour| neighbour.state == state).count() as u64
            )
        };
        let states = LinkState::ALL.map(|state| ([("state", state.name())], count(state)));
        self.gauges("mingle_neighbours", "Neighbours by state", states)?;
        let of_each = |number: fn(&crate::status::NeighbourStatus) -> f64| {
            status.neighbours.iter().map(move |neighbour| ([("peer", neighbour.peer.as_str())], number(neighbour)))
        };
        let is_up = of_each(|neighbour| f64::from(u8::from(neighbour.state == LinkState::Up)));
        self.gauges("mingle_peer_up", "Whether a neighbour takes part", is_up)?;
        let behind = of_each(|neighbour| mingle_home::units::count(neighbour.steps_behind));
        self.gauges("mingle_peer_staleness_steps", "Steps that a neighbour is behind", behind)?;
        let known = status.neighbours.iter().filter_map(|neighbour| {
            neighbour.round_trip_ms.map(|time| ([("peer", neighbour.peer.as_str())], time / 1e3))
        });
        self.gauges("mingle_peer_rtt_seconds", "The last round trip to a neighbour", known)?;
        let owed = of_each(|neighbour| {
            neighbour.outgoing.map_or(0.0, |link| mingle_home::units::weight(link.unacknowledged_units))
        });
        self.gauges("mingle_peer_unacknowledged_weight", "Weight that a neighbour has not acknowledged", owed)?;
        let given = of_each(|neighbour| neighbour.outgoing.map_or(0.0, |link| link.given_weight));
        self.gauges("mingle_peer_given_weight", "Weight that a neighbour was given by the plan", given)?;
        let received = of_each(|neighbour| neighbour.incoming.map_or(0.0, |link| link.received_weight));
        self.gauges("mingle_peer_received_weight", "Weight that came from a neighbour by the plan", received)?;
        self.accounts(status)?;
        self.clipped(status)
    }

    /// The weight that each neighbour took and gave of late.
    fn accounts(&mut self, status: &Status) -> fmt::Result {
        let accounts =
            || status.neighbours.iter().filter_map(|peer| Some(([("peer", peer.peer.as_str())], peer.account?)));
        let taken = accounts().filter_map(|(label, account)| Some((label, account.taken?)));
        self.gauges("mingle_peer_taken_share", "Weight that a neighbour took of late over that of the plan", taken)?;
        let given = accounts().filter_map(|(label, account)| Some((label, account.given?)));
        self.gauges("mingle_peer_gave_share", "Weight that a neighbour gave of late over that of the plan", given)?;
        let ahead = accounts().map(|(label, account)| (label, account.periods_ahead));
        self.gauges("mingle_peer_periods_ahead", "Periods by which a neighbour took more than it gave", ahead)
    }

    /// Clipping of each neighbour's models.
    fn clipped(&mut self, status: &Status) -> fmt::Result {
        let clipped = || {
            let of_link = |neighbour: &crate::status::NeighbourStatus| neighbour.incoming.and_then(|link| link.clipped);
            status.neighbours.iter().filter_map(move |from| Some(([("peer", from.peer.as_str())], of_link(from)?)))
        };
        let parcels = clipped().map(|(label, clipped)| (label, clipped.parcels));
        self.counters("mingle_peer_clipped_parcels", "Parcels of a neighbour that were clipped", parcels)?;
        let norms = clipped().map(|(label, clipped)| (label, clipped.norm));
        self.gauges("mingle_peer_clipped_norm", "Weight times norm of what was clipped of a neighbour's parcels", norms)
    }

    /// Writes a gauge, if its value is known.
    fn gauge(&mut self, name: &str, help: &str, value: impl Into<Option<f64>>) -> fmt::Result {
        let Some(value) = value.into() else { return Ok(()) };
        let metric = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    fn gauges<'l>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Label<'l>, f64)>,
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (label, value) in values {
            ConstGauge::new(value).encode(metric.encode_family(&label)?)?;
        }
        Ok(())
    }

    fn counters<'l>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Label<'l>, u64)>,
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (label, value) in values {
            ConstCounter::new(value).encode(metric.encode_family(&label)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::{BTreeMap, BTreeSet};

    use mingle_net::traffic::{MulticastTraffic, SlotTraffic};

    use super::*;
    use crate::status::{
        Contraction, Evaluated, IncomingLink, NeighbourStatus, OutgoingLink, PlanFacts, RobustReceiving, TrainerStatus,
        Weight, WeightAccount,
    };
    use mingle_net::traffic::ParameterEncoding;
    use mingle_privacy::{PrivacySettings, PrivacySpending};
    use mingle_protocol::{Clipped, Robust};

    /// Metrics by name as Prometheus knows them: type and labels.
    type Catalogue = BTreeMap<String, (String, BTreeSet<String>)>;

    /// A status with a value in every field.
    fn talkative() -> Status {
        let known = || Some(0.5);
        let parcels = BTreeMap::from([("int8".to_owned(), 3)]);
        let neighbour = NeighbourStatus {
            node: 1,
            peer: "12D3KooWOther".to_owned(),
            state: LinkState::Up,
            reason: None,
            round_trip_ms: known(),
            incarnation: 1,
            outgoing: Some(OutgoingLink {
                parcels: 3,
                unacknowledged_parcels: 1,
                unacknowledged_units: 5,
                given_weight: 1.5,
            }),
            incoming: Some(IncomingLink {
                parcels: 2,
                queued_parcels: 0,
                received_weight: 1.0,
                clipped: Some(Clipped::default()),
            }),
            account: Some(WeightAccount {
                taken: known(),
                given: known(),
                periods_ahead: 0.5,
                credit_periods: known(),
            }),
            steps_behind: 1,
            sent_bytes: 10,
            received_bytes: 9,
            multicast: None,
        };
        Status {
            plan: Some(PlanFacts {
                hash: "00".to_owned(),
                method: String::new(),
                nodes: 2,
                origin: String::new(),
                local_steps: 1,
            }),
            eta_s: known(),
            weight: Weight { units: 1, value: 0.5, stationary: known(), share: known() },
            evaluation: Some(Evaluated::new(1, [("accuracy", 0.5)].into_iter().collect())),
            train_loss: known(),
            privacy: PrivacySettings::new(1.0, 4.0, 8.0, 1e-5).ok().map(|settings| {
                let [changes, changes_left] = [0, 39];
                PrivacySpending { settings, changes, epsilon: 0.0, changes_left, is_spent: false }
            }),
            trainer: Some(TrainerStatus { attached: None }),
            residual: known(),
            gap: known(),
            disagreement: known(),
            robust: Some(RobustReceiving {
                rule: Robust::Clip,
                radius: known(),
                clipped_parcels: 0,
                clipped: BTreeMap::new(),
            }),
            contraction: Contraction { observed: known(), forecast: known() },
            multicast: Some(MulticastStatus {
                traffic: MulticastTraffic { slots: Some(SlotTraffic::default()), ..MulticastTraffic::default() },
                ..MulticastStatus::default()
            }),
            encoding: Some(ParameterEncoding { codec: "int8".to_owned(), parcels, saved_bytes: 7, reason: None }),
            refusals: BTreeMap::from([("other_life".to_owned(), 1)]),
            neighbours: vec![neighbour],
            ..Status::starting("12D3KooWMine".to_owned())
        }
    }

    fn exported() -> Catalogue {
        let (_sender, receiver) = watch::channel(Arc::new(talkative()));
        let mut registry = Registry::default();
        register(&mut registry, receiver);
        let page = encode(&registry).unwrap();
        let kinds: BTreeMap<&str, &str> =
            page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
        let mut catalogue = Catalogue::new();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (sample, _) = line.rsplit_once(' ').unwrap();
            let (name, labels) = sample.trim_end_matches('}').split_once('{').unwrap_or((sample, ""));
            let family = name.strip_suffix("_total").unwrap_or(name);
            let labels = labels.split(',').filter_map(|label| label.split_once('=')).map(|(label, _)| label.to_owned());
            let entry = catalogue.entry(name.to_owned()).or_insert_with(|| (kinds[family].to_owned(), BTreeSet::new()));
            entry.1.extend(labels);
        }
        catalogue
    }

    /// Rows of the table in the documentation: names in one cell have the same type and labels.
    fn documented() -> Catalogue {
        let page = include_str!("../../../docs/watching.md");
        let quoted = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
        let mut catalogue = Catalogue::new();
        for row in page.lines().filter(|line| line.starts_with("| `mingle_")) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for name in quoted(cells[1]) {
                // The values that a label can have follow it in brackets.
                let label = quoted(cells[3]).into_iter().take(1).collect();
                catalogue.insert(name, (cells[2].to_owned(), label));
            }
        }
        catalogue
    }

    #[test]
    fn the_table_of_metrics_in_the_documentation_is_what_is_exported() {
        assert_eq!(documented(), exported());
    }
}
