//! The airtime of a round of several designs on several graphs: forecast, and measured by three kinds of senders.

mod table;

use std::time::Duration;

use mingle_planner::{DesignError, DesignOptions, Method, Plan, Topology, design};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::{
    counts::seconds,
    rank_correlation::spearman,
    round::{PlayError, Played, RoundPayload, Slotting, play_multicast, play_slots, play_streams},
    settings::{Acknowledgements, AirSettings, CarrierSense},
    unicast_slots::unicast_slots,
};

/// A round that takes so many times its forecast is given up.
const MOST_TIMES_FORECAST: u32 = 1_000;

/// Designs and graphs to compare, on one medium.
#[derive(Debug, Clone)]
pub struct AirtimeRequest {
    /// The graphs, with their names.
    pub graphs: Vec<(String, Topology)>,
    /// The designs.
    pub designs: Vec<Method>,
    /// The medium. Carrier sense and acknowledgements are those of each kind of sender.
    pub settings: AirSettings,
    /// The payload of a parcel.
    pub payload: RoundPayload,
    /// The slots of those who keep them.
    pub slotting: Slotting,
    /// Runs of senders without slots, each with a seed of its own; their median counts. At least one.
    pub runs: u32,
}

/// The airtime of a round of one design on one graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AirtimeRow {
    /// The graph.
    pub graph: String,
    /// The design.
    pub design: &'static str,
    /// Slots of a round.
    pub slots: f64,
    /// Slots times slot length.
    #[serde(rename = "forecast_s", serialize_with = "seconds")]
    pub forecast: Duration,
    /// Measured, by senders that keep the slots.
    #[serde(rename = "slotted_s", serialize_with = "seconds")]
    pub slotted: Duration,
    /// Payloads that these did not deliver.
    pub slotted_undelivered: usize,
    /// Measured, by multicast with carrier sense and repair.
    #[serde(rename = "multicast_s", serialize_with = "seconds")]
    pub multicast: Duration,
    /// Slots of a round with a transmission for each link.
    pub unicast_slots: f64,
    /// Slot length times these.
    #[serde(rename = "unicast_slotted_s", serialize_with = "seconds")]
    pub unicast_slotted: Duration,
    /// Measured, by unicast streams with carrier sense, acknowledgements and retries.
    #[serde(rename = "streams_s", serialize_with = "seconds")]
    pub streams: Duration,
}

/// All rows, and how well the forecast ranks them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AirtimeComparison {
    /// The rows: graph by graph, design by design.
    pub rows: Vec<AirtimeRow>,
    /// Spearman's rank correlation of forecast and slotted senders.
    pub slotted_correlation: Option<f64>,
    /// That of forecast and multicast.
    pub multicast_correlation: Option<f64>,
    /// That of forecast and streams.
    pub streams_correlation: Option<f64>,
}

/// A comparison that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AirtimeError {
    /// A design refused a graph.
    #[error("{design} makes no plan for {graph}")]
    Design {
        /// The design.
        design: &'static str,
        /// The graph.
        graph: String,
        /// The reason.
        source: Box<DesignError>,
    },
    /// A picture of no graph.
    #[error("there is no graph to draw a round on")]
    NoGraph,
    /// A plan of several steps, whose receivers change.
    #[error(
        "{design} makes a plan of {steps} steps for {graph}: a picture is of a plan with one, such as that of d-psgd"
    )]
    Steps {
        /// The design.
        design: &'static str,
        /// The graph.
        graph: String,
        /// The number of its steps.
        steps: usize,
    },
    /// A plan could not be played.
    #[error("the plan of {design} for {graph} could not be played")]
    Play {
        /// The design.
        design: &'static str,
        /// The graph.
        graph: String,
        /// The reason.
        source: PlayError,
    },
}

impl AirtimeComparison {
    /// Designs and plays all plans. `progress` is called with the graph and the design before each.
    ///
    /// # Errors
    ///
    /// A design that refuses a graph, or a plan that cannot be played.
    pub fn make(request: &AirtimeRequest, mut progress: impl FnMut(&str, &str)) -> Result<Self, AirtimeError> {
        let mut rows = Vec::new();
        for (graph, base) in &request.graphs {
            for &method in &request.designs {
                progress(graph, method.name());
                rows.push(row(request, graph, base, method)?);
            }
        }
        let of = |time: fn(&AirtimeRow) -> Duration| -> Vec<f64> {
            rows.iter().map(|row| time(row).as_secs_f64()).collect()
        };
        let forecast = of(|row| row.forecast);
        Ok(Self {
            slotted_correlation: spearman(&forecast, &of(|row| row.slotted)),
            multicast_correlation: spearman(&forecast, &of(|row| row.multicast)),
            streams_correlation: spearman(&forecast, &of(|row| row.streams)),
            rows,
        })
    }

    /// The rows as a table in Markdown, with the correlations below.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        table::markdown(self)
    }
}

fn row(request: &AirtimeRequest, graph: &str, base: &Topology, method: Method) -> Result<AirtimeRow, AirtimeError> {
    let plan = designed(graph, base, method)?;
    measured(request, graph, &plan, method.name()).map_err(|source| AirtimeError::Play {
        design: method.name(),
        graph: graph.to_owned(),
        source,
    })
}

/// The plan of a design for a graph.
pub(crate) fn designed(graph: &str, base: &Topology, method: Method) -> Result<Plan, AirtimeError> {
    design(base, method, &DesignOptions::default()).map_err(|source| AirtimeError::Design {
        design: method.name(),
        graph: graph.to_owned(),
        source: Box::new(source),
    })
}

fn measured(request: &AirtimeRequest, graph: &str, plan: &Plan, design: &'static str) -> Result<AirtimeRow, PlayError> {
    let slot = request.slotting.slot(&request.payload, &request.settings);
    let slots = plan.forecast().slots_per_period as f64 / rounds(plan);
    let slotted = play_slots(plan, &request.settings, &request.payload, request.slotting)?;
    let unicast_slots = unicast_slots(plan);
    Ok(AirtimeRow {
        graph: graph.to_owned(),
        design,
        slots,
        forecast: slot.mul_f64(slots),
        slotted: slotted.elapsed.div_f64(rounds(plan)),
        slotted_undelivered: slotted.undelivered,
        multicast: median(request, plan, play_multicast)?,
        unicast_slots,
        unicast_slotted: slot.mul_f64(unicast_slots),
        streams: median(request, plan, play_streams)?,
    })
}

/// The rounds of a period.
fn rounds(plan: &Plan) -> f64 {
    plan.steps().len() as f64 / plan.round_length() as f64
}

/// The median time of a round over all runs.
fn median(request: &AirtimeRequest, plan: &Plan, play: Unslotted) -> Result<Duration, PlayError> {
    let mut times = Vec::new();
    for run in 0..request.runs.max(1) {
        times.push(play_unslotted(request, plan, play, run)?.elapsed.div_f64(rounds(plan)));
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Plays one run of senders without slots.
pub(crate) fn play_unslotted(
    request: &AirtimeRequest,
    plan: &Plan,
    play: Unslotted,
    run: u32,
) -> Result<Played, PlayError> {
    let slot = request.slotting.slot(&request.payload, &request.settings);
    let slots = u32::try_from(plan.forecast().slots_per_period).unwrap_or(u32::MAX);
    let limit = slot.saturating_mul(slots).saturating_mul(MOST_TIMES_FORECAST);
    let settings = AirSettings {
        carrier_sense: Some(CarrierSense::default()),
        acknowledgements: Some(Acknowledgements::default()),
        seed: request.settings.seed.wrapping_add(u64::from(run)),
        ..request.settings.clone()
    };
    let starts = random_starts(plan.node_count(), slot, settings.seed);
    play(plan, &settings, &request.payload, &starts, limit)
}

/// A player of senders without slots.
pub(crate) type Unslotted = fn(&Plan, &AirSettings, &RoundPayload, &[Duration], Duration) -> Result<Played, PlayError>;

/// The starts of nodes that end their training within one slot of each other.
fn random_starts(nodes: usize, spread: Duration, seed: u64) -> Vec<Duration> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..nodes).map(|_| spread.mul_f64(random.random::<f64>())).collect()
}
