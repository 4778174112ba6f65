//! Forecasts: the cost of a plan per period, and the speed at which the nodes agree.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    coloring,
    conflict_graph::ConflictGraph,
    consensus::steps_to_accuracy,
    digraph::{Digraph, Link},
    distance::{self, Diameter},
    load::RoundLoad,
    medium::Medium,
    network::NetworkCapacity,
    objective::{ln_objective_16, ln_objective_19},
    recurrence::{RecurrenceError, recurrent_nodes},
    resilience::Resilience,
    spectrum,
    step::MixingStep,
    topology::Topology,
};

/// The name and version of the document [`Forecast::to_json`] writes.
pub const SCHEMA: &str = "mingle.forecast/1";

/// The most nodes times steps for which a search bounds the slots: it goes through all nodes for each step. Above, the
/// bound of a step is the most links into one receiver.
const MAX_BOUNDED: usize = 1 << 24;

/// The most visits of links to find the diameter of a graph of more than [`distance::MAX_SEARCHED_NODES`] nodes.
const DIAMETER_VISITS: usize = 1 << 30;

/// Branches of the search for a lower bound on the slots of a period's steps, all steps together.
const BOUND_BRANCHES: usize = 8_000;

/// Relative difference up to which a stored number agrees with a recomputed one.
const AGREEMENT: f64 = 1e-6;

/// The cost and speed of a plan, computed from its matrices and slots.
///
/// Degrees, diameter and objectives are those of the graph of all links of the period. Real numbers are rounded to 10
/// significant digits, so that machines whose last bits differ write the same plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forecast {
    /// Broadcast slots per period; 0 on a point-to-point medium.
    pub slots_per_period: usize,
    /// Different links used in a period.
    pub links: usize,
    /// `D+`: the most receivers a node has.
    pub max_out_degree: usize,
    /// `D-`: the most senders a node has.
    pub max_in_degree: usize,
    /// `Delta`: the largest distance in hops. On graphs of more than 4,096 nodes it is the largest found in some 10^9
    /// visits of links; the parameters of a plan contain `diameter_at_least` where pairs may be farther apart.
    pub diameter: usize,
    /// Logarithm of \[NH\] eq. 16; none where there are no slots.
    pub ln_objective_16: Option<f64>,
    /// Logarithm of \[NH\] eq. 19.
    pub ln_objective_19: f64,
    /// `|lambda_2|` of the period's product: the factor by which disagreement shrinks per period in the long run.
    pub lambda_2: Option<f64>,
    /// The reason why `lambda_2` is not known.
    pub lambda_2_note: Option<String>,
    /// Slots until disagreement has shrunk by a factor e in the long run: slots per period / -ln `lambda_2`.
    pub slots_per_neper: Option<f64>,
    /// Slots until a random start is averaged to within 1 % by [`steps_to_accuracy`], to the end of a step; none where
    /// there are no slots or it takes too long to try.
    #[serde(rename = "slots_to_1e-2")]
    pub slots_to_1e_2: Option<usize>,
    /// Periods, including a begun one, until a random start is averaged to within 1 % by `steps_to_accuracy`, on any
    /// medium.
    #[serde(rename = "periods_to_1e-2")]
    pub periods_to_1e_2: Option<usize>,
    /// The reason why `slots_to_1e_2` and `periods_to_1e_2` are not known.
    #[serde(rename = "periods_to_1e-2_note")]
    pub periods_to_1e_2_note: Option<String>,
    /// The smallest push-sum weight a node ends with, `n` times the Perron vector. The average is 1.
    pub perron_min: Option<f64>,
    /// The largest push-sum weight a node ends with.
    pub perron_max: Option<f64>,
    /// Transmissions per period: broadcasts, counted once for each slot a node transmits in; on a point-to-point medium
    /// one for each link of each step.
    pub payloads_per_period: usize,
    /// A proven lower bound on the slots of a period, step by step; none where there are no slots. Equal to
    /// `slots_per_period` for schedules that are known to be optimal.
    pub slots_lower_bound: Option<usize>,
    /// Number of nodes without which the others are no longer strongly connected.
    pub critical_nodes: usize,
    /// Number of links without which the graph is no longer strongly connected.
    pub critical_links: usize,
    /// Seconds that a period takes to mix; none without link measurements.
    pub seconds_per_period: Option<f64>,
    /// Seconds until a random start is averaged to within 1 %, to the end of a step; none without link measurements.
    #[serde(rename = "seconds_to_1e-2")]
    pub seconds_to_1e_2: Option<f64>,
    /// The most bytes that a node sends in a period; none without link measurements.
    pub bytes_per_node_per_period: Option<usize>,
}

/// A field of a stored forecast that differs from the recomputed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastDifference {
    /// The name of the field.
    pub field: &'static str,
    /// The value in the plan file.
    pub stored: String,
    /// The value that its matrices and slots give.
    pub recomputed: String,
}

impl fmt::Display for ForecastDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "forecast.{}: the file says {}, the plan gives {}", self.field, self.stored, self.recomputed)
    }
}

impl Forecast {
    /// Computes the forecast of a period that has passed the checks of a plan. Also returns `true` if the diameter is
    /// known to be exact.
    ///
    /// Up to [`crate::spectrum::MAX_DENSE_NODES`] nodes O(n^3) for the spectrum. Above, iterations end after a fixed
    /// amount of work, and so does the search for the diameter.
    pub(crate) fn of_period(
        base: &Topology,
        medium: Medium,
        network: Option<&NetworkCapacity>,
        steps: &[MixingStep],
    ) -> Result<(Self, bool), RecurrenceError> {
        let node_count = base.node_count();
        let graph = Digraph::new(node_count, steps.iter().flat_map(MixingStep::links).map(|link| link.link()));
        let modulus = spectrum::second_modulus(node_count, steps);
        let is_dense = node_count <= spectrum::MAX_DENSE_NODES;
        let recurrent = if is_dense { recurrent_nodes(node_count, steps)? } else { Vec::new() };
        let perron = spectrum::perron_weights(node_count, steps, &recurrent).ok();
        let slots_of = |steps: &[MixingStep]| steps.iter().map(|step| step.slots().len()).sum::<usize>();
        let slots = slots_of(steps);
        let has_slots = medium == Medium::Broadcast;
        // Plans are checked to be strongly connected before.
        let Diameter { hops: diameter, is_exact } = distance::diameter_within(&graph, DIAMETER_VISITS);
        let max_out_degree = graph.max_out_degree();
        let max_in_degree = graph.max_in_degree();
        // The product of one step has rounding errors; that of several steps distinguishes small from zero itself.
        let negligible = if steps.len() == 1 { 1e-9 } else { 0.0 };
        let lambda_2 = modulus.as_ref().ok().map(|&modulus| if modulus <= negligible { 0.0 } else { rounded(modulus) });
        let extreme = |pick: fn(f64, f64) -> f64| perron.iter().flatten().copied().reduce(pick).map(rounded);
        let to_1e_2 = steps_to_accuracy(node_count, steps, 1e-2);
        // Whole periods, and the first steps of another.
        let parts = to_1e_2.map(|count| (count / steps.len(), &steps[..count % steps.len()]));
        let resilience = Resilience::of(&graph);
        let seconds_of = |steps: &[MixingStep]| network.map(|network| network.seconds_per_period(steps, medium));
        let seconds = seconds_of(steps);
        let affordable = if node_count * steps.len() > MAX_BOUNDED { 0 } else { BOUND_BRANCHES / steps.len() };
        let forecast = Self {
            slots_per_period: slots,
            links: graph.link_count(),
            max_out_degree,
            max_in_degree,
            diameter,
            ln_objective_16: has_slots.then(|| rounded(ln_objective_16(slots, diameter, max_out_degree))),
            ln_objective_19: rounded(ln_objective_19(max_out_degree, max_in_degree, diameter)),
            lambda_2,
            lambda_2_note: modulus.err().map(|unresolved| unresolved.reason),
            slots_per_neper: lambda_2
                .filter(|&modulus| has_slots && modulus < 1.0)
                .map(|modulus| rounded(slots_per_neper(slots, modulus))),
            slots_to_1e_2: parts.filter(|_| has_slots).map(|(periods, rest)| periods * slots + slots_of(rest)),
            periods_to_1e_2: to_1e_2.map(|count| count.div_ceil(steps.len())),
            periods_to_1e_2_note: to_1e_2.is_none().then(|| "not reached within 7e8 multiplications".to_owned()),
            perron_min: extreme(f64::min),
            perron_max: extreme(f64::max),
            payloads_per_period: steps.iter().map(|step| payloads(step, medium)).sum(),
            slots_lower_bound: has_slots.then(|| steps.iter().map(|step| least_slots(base, step, affordable)).sum()),
            critical_nodes: resilience.critical_nodes.len(),
            critical_links: resilience.critical_links.len(),
            seconds_per_period: seconds.map(rounded),
            seconds_to_1e_2: parts
                .and_then(|(periods, rest)| Some(rounded(seconds? * periods as f64 + seconds_of(rest)?))),
            bytes_per_node_per_period: network
                .map(|network| most_sent(node_count, steps, medium).saturating_mul(network.payload_bytes as usize)),
        };
        Ok((forecast, is_exact))
    }

    /// The forecast as a JSON document of its own, with its schema.
    ///
    /// ```
    /// # use mingle_planner::{DesignOptions, Method, Topology, design};
    /// let plan = design(&Topology::generate("ring:n=4")?, Method::SgpUniform, &DesignOptions::default())?;
    /// assert!(plan.forecast().to_json().contains("\"schema\": \"mingle.forecast/1\""));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        document(&self.fields())
    }

    /// The same document with the largest momentum across rounds and the load of a round, which plan files do not store.
    pub(crate) fn to_json_with(
        &self,
        largest_momentum: &Result<f64, spectrum::Unresolved>,
        load: Option<RoundLoad>,
    ) -> String {
        let (momentum, note) = match largest_momentum {
            Ok(momentum) => (Some(*momentum), None),
            Err(unresolved) => (None, Some(unresolved.reason.as_str())),
        };
        let momentum = [("largest_momentum", Value::Real(momentum)), ("largest_momentum_note", Value::Note(note))];
        let real = |value: Option<f64>| Value::Real(value.map(rounded));
        let load = [
            ("busiest_payloads_per_round", real(load.map(|load| load.busiest_payloads))),
            ("heaviest_node_share", real(load.map(|load| load.heaviest_share))),
            ("payload_share", real(load.map(|load| load.payload_share))),
            ("seconds_per_round", real(load.and_then(|load| load.seconds))),
        ];
        document(&[&self.fields()[..], &momentum[..], &load[..]].concat())
    }

    /// The fields in which this stored forecast differs from the recomputed one. Whole numbers must be equal; real
    /// numbers agree to a millionth.
    #[must_use]
    pub fn differences(&self, recomputed: &Self) -> Vec<ForecastDifference> {
        let pairs = self.fields().into_iter().zip(recomputed.fields());
        let differing = pairs.filter(|((_, stored), (_, fresh))| !stored.agrees_with(fresh));
        differing
            .map(|((field, stored), (_, fresh))| ForecastDifference {
                field,
                stored: stored.json(),
                recomputed: fresh.json(),
            })
            .collect()
    }

    /// The first real number that is not finite, by name.
    pub(crate) fn first_not_finite(&self) -> Option<&'static str> {
        let fields = self.fields();
        fields.iter().find(|(_, value)| matches!(value, Value::Real(Some(x)) if !x.is_finite())).map(|&(name, _)| name)
    }

    /// All fields, in the order of the file.
    pub(crate) fn fields(&self) -> [(&'static str, Value<'_>); 22] {
        [
            ("slots_per_period", Value::Count(Some(self.slots_per_period))),
            ("links", Value::Count(Some(self.links))),
            ("max_out_degree", Value::Count(Some(self.max_out_degree))),
            ("max_in_degree", Value::Count(Some(self.max_in_degree))),
            ("diameter", Value::Count(Some(self.diameter))),
            ("ln_objective_16", Value::Real(self.ln_objective_16)),
            ("ln_objective_19", Value::Real(Some(self.ln_objective_19))),
            ("lambda_2", Value::Real(self.lambda_2)),
            ("lambda_2_note", Value::Note(self.lambda_2_note.as_deref())),
            ("slots_per_neper", Value::Real(self.slots_per_neper)),
            ("slots_to_1e-2", Value::Count(self.slots_to_1e_2)),
            ("periods_to_1e-2", Value::Count(self.periods_to_1e_2)),
            ("periods_to_1e-2_note", Value::Note(self.periods_to_1e_2_note.as_deref())),
            ("perron_min", Value::Real(self.perron_min)),
            ("perron_max", Value::Real(self.perron_max)),
            ("payloads_per_period", Value::Count(Some(self.payloads_per_period))),
            ("slots_lower_bound", Value::Count(self.slots_lower_bound)),
            ("critical_nodes", Value::Count(Some(self.critical_nodes))),
            ("critical_links", Value::Count(Some(self.critical_links))),
            ("seconds_per_period", Value::Real(self.seconds_per_period)),
            ("seconds_to_1e-2", Value::Real(self.seconds_to_1e_2)),
            ("bytes_per_node_per_period", Value::Count(self.bytes_per_node_per_period)),
        ]
    }
}

/// A JSON document of these fields, with its schema.
fn document(fields: &[(&str, Value<'_>)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("  \"{name}\": {}", value.json())).collect();
    format!("{{\n  \"schema\": \"{SCHEMA}\",\n{}\n}}\n", fields.join(",\n"))
}

/// Slots until disagreement has shrunk by a factor e, at `slots` per period and a second modulus of `lambda_2`.
///
/// ```
/// use mingle_planner::forecast::slots_per_neper;
/// assert_eq!(slots_per_neper(7, 0.0), 0.0); // one period averages exactly
/// ```
#[must_use]
pub fn slots_per_neper(slots: usize, lambda_2: f64) -> f64 {
    slots as f64 / -lambda_2.ln()
}

/// One field of a forecast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'f> {
    Count(Option<usize>),
    Real(Option<f64>),
    Note(Option<&'f str>),
}

impl Value<'_> {
    pub(crate) fn json(self) -> String {
        match self {
            Self::Count(Some(count)) => count.to_string(),
            Self::Real(Some(real)) => serde_json::Value::from(real).to_string(),
            Self::Note(Some(note)) => serde_json::Value::from(note).to_string(),
            Self::Count(None) | Self::Real(None) | Self::Note(None) => "null".to_owned(),
        }
    }

    fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Real(Some(a)), Self::Real(Some(b))) => (a - b).abs() <= AGREEMENT * a.abs().max(b.abs()),
            // The note names where an iteration stopped: its wording is not a promise.
            (Self::Note(a), Self::Note(b)) => a.is_some() == b.is_some(),
            _ => self == other,
        }
    }
}

/// A lower bound on the slots of the links of one step.
fn least_slots(base: &Topology, step: &MixingStep, branches: usize) -> usize {
    if step.slots().len() <= 1 {
        return step.slots().len();
    }
    let links: Vec<Link> = step.links().iter().map(|link| link.link()).collect();
    if branches == 0 {
        return coloring::most_links_into_one(&links);
    }
    let mut schedule = vec![0; links.len()];
    for (slot, members) in step.slots().iter().enumerate() {
        members.iter().filter_map(|&link| step.position(link)).for_each(|at| schedule[at] = slot);
    }
    coloring::lower_bound(&ConflictGraph::new(base, links), &schedule, branches)
}

/// The number of payloads of a step.
fn payloads(step: &MixingStep, medium: Medium) -> usize {
    let mut count = 0;
    for_each_payload(step, medium, |_| count += 1);
    count
}

/// The most payloads that one node sends in a period.
pub(crate) fn most_sent(node_count: usize, steps: &[MixingStep], medium: Medium) -> usize {
    let mut sent = vec![0; node_count];
    steps.iter().for_each(|step| for_each_payload(step, medium, |node| sent[node] += 1));
    sent.into_iter().max().unwrap_or(0)
}

/// Calls `visit` with the sender of every payload: a broadcast counts once, however many receive it.
fn for_each_payload(step: &MixingStep, medium: Medium, mut visit: impl FnMut(usize)) {
    if medium == Medium::PointToPoint {
        return step.links().iter().for_each(|link| visit(link.from));
    }
    for slot in step.slots() {
        // Links are ascending within a slot: those of one transmitter stand together.
        slot.chunk_by(|a, b| a.from == b.from).for_each(|of_one| visit(of_one[0].from));
    }
}

/// The number rounded to 10 significant digits.
fn rounded(x: f64) -> f64 {
    format!("{x:.9e}").parse().unwrap_or(x)
}
