//! The plan: a period of mixing steps with its slots, bound to peers, and its forecast.
//!
//! A [`Plan`] that exists is valid: its steps are column-stochastic on links of the base graph, its slots are free of
//! conflicts, and repeating its period brings all nodes to one value. It is written as JSON (`mingle-plan/1`) for
//! people and as postcard bytes for the wire; its [`PlanHash`] is BLAKE3 over those bytes.

mod check;
mod difference;
mod draft;
mod hash;
mod json;
mod problem;
mod wire;

use std::collections::BTreeMap;

pub use self::{
    difference::{Change, NamedLink, PlanDifference, Rekept, Reweighted, Sets, StepDifference},
    draft::{NodeRef, Parameter, PlanDraft},
    hash::{ParseHashError, PlanHash},
    problem::PlanError,
};
pub use crate::medium::Medium;
pub use crate::step::{MixingStep, StepDraft, WeightedLink};
use crate::{
    forecast::{Forecast, ForecastDifference},
    load::{self, NodeLoads, RoundLoad},
    network::NetworkCapacity,
    topology::Topology,
};

/// The name and version of the plan format.
pub const FORMAT: &str = "mingle-plan/1";

/// The most steps in a period.
pub const MAX_STEPS: usize = 65_536;

/// The most links in all steps of a period together: one-peer exponential graphs on [`crate::topology::MAX_NODES`]
/// nodes have 20 million.
pub const MAX_LINKS: usize = 1 << 25;

/// The most nodes times steps for which a plan lists in each step what every node keeps; above, it lists only the nodes
/// that do not keep all.
pub const MAX_LISTED_SHARES: usize = 1 << 22;

/// The most bytes a plan may have on the wire.
pub const MAX_WIRE_BYTES: usize = 1 << 20;

/// The most bytes in the name of a method or parameter, in a parameter's text or in a peer id.
pub const MAX_TEXT_BYTES: usize = 256;

/// The most parameters of a method.
pub const MAX_PARAMETERS: usize = 64;

/// The links of each mixing step with their weights and slots, bound to peers, with a forecast.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    base: Topology,
    peers: Vec<Option<String>>,
    method: String,
    parameters: BTreeMap<String, Parameter>,
    medium: Medium,
    network: Option<NetworkCapacity>,
    steps: Vec<MixingStep>,
    local_steps: u32,
    round_length: usize,
    forecast: Forecast,
}

impl Plan {
    /// Checks a draft and computes its forecast.
    ///
    /// # Errors
    ///
    /// The first error in the draft, with the step, node, link or slot.
    pub fn new(mut draft: PlanDraft) -> Result<Self, PlanError> {
        let steps = std::mem::take(&mut draft.steps).into_iter().map(MixingStep::sorted).collect();
        Self::checked(draft, steps, None)
    }

    /// Checks everything; `steps` are those of the draft. Keeps the given forecast or computes one.
    pub(crate) fn checked(
        mut draft: PlanDraft,
        steps: Vec<MixingStep>,
        forecast: Option<Forecast>,
    ) -> Result<Self, PlanError> {
        check::check(&draft, &steps)?;
        let node_count = draft.base.node_count();
        let forecast = match forecast {
            Some(stored) => match stored.first_not_finite() {
                Some(field) => return Err(PlanError::ForecastNotFinite { field }),
                None => stored,
            },
            None => {
                let (made, is_diameter_exact) =
                    Forecast::of_period(&draft.base, draft.medium, draft.network.as_ref(), &steps)?;
                if !is_diameter_exact {
                    draft.parameters.insert("diameter_at_least".to_owned(), Parameter::Whole(made.diameter as u64));
                }
                made
            }
        };
        Ok(Self {
            peers: vec![None; node_count],
            base: draft.base.without_positions(),
            method: draft.method,
            parameters: draft.parameters.into_iter().map(|(name, value)| (name, value.unsigned_zero())).collect(),
            medium: draft.medium,
            network: draft.network,
            local_steps: draft.local_steps,
            round_length: draft.round_length.unwrap_or(steps.len()),
            steps,
            forecast,
        })
    }

    /// The same plan with one more parameter.
    pub(crate) fn with_parameter(mut self, name: &str, value: Parameter) -> Self {
        self.parameters.insert(name.to_owned(), value);
        self
    }

    /// Reads a plan file and checks all of it but the forecast, which [`Plan::forecast_differences`] compares.
    ///
    /// # Errors
    ///
    /// Text that is not a plan of this format (with line and column; unknown keys are errors), or the first error in
    /// the plan.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        json::read(text)
    }

    /// The plan file: JSON with one link per line, the same text for the same plan.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// Reads a plan from its wire bytes, with the same checks as a file.
    ///
    /// # Errors
    ///
    /// More than [`MAX_WIRE_BYTES`], bytes that are not the canonical encoding of a plan, or the first error in the
    /// plan.
    pub fn from_postcard(bytes: &[u8]) -> Result<Self, PlanError> {
        wire::read(bytes)
    }

    /// The canonical bytes for the wire.
    ///
    /// # Errors
    ///
    /// [`PlanError::TooLarge`] when no peer would accept the bytes.
    pub fn to_postcard(&self) -> Result<Vec<u8>, PlanError> {
        if !self.lists_all_shares() {
            return Err(PlanError::TooLarge { bytes: size_of::<f64>() * self.node_count() * self.steps.len() });
        }
        let bytes = wire::write(self);
        if bytes.len() > MAX_WIRE_BYTES {
            return Err(PlanError::TooLarge { bytes: bytes.len() });
        }
        Ok(bytes)
    }

    /// BLAKE3 over the canonical bytes: everything in the plan, bound peers and forecast included.
    #[must_use]
    pub fn hash(&self) -> PlanHash {
        PlanHash::of(&wire::write(self))
    }

    /// Binds a node to a peer, in place of the one it was bound to.
    ///
    /// ```
    /// use mingle_planner::{DesignOptions, Method, Topology, design};
    /// let mut plan = design(&Topology::generate("ring:n=4")?, Method::DPsgd, &DesignOptions::default())?;
    /// plan.bind(0, "12D3KooWana")?;
    /// plan.bind("node-1", "12D3KooWben")?;
    /// assert_eq!(plan.node_of("12D3KooWben"), Some(1));
    /// assert!(plan.bind(2, "12D3KooWana").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// No such node, an unusable peer id, or a peer that another node is bound to.
    pub fn bind<'a>(&mut self, node: impl Into<NodeRef<'a>>, peer: &str) -> Result<(), PlanError> {
        let node = self.resolve(node.into())?;
        check::check_peer(node, peer)?;
        if let Some(other) = self.node_of(peer).filter(|&other| other != node) {
            return Err(PlanError::PeerTwice { peer: peer.to_owned(), first: other, second: node });
        }
        self.peers[node] = Some(peer.to_owned());
        Ok(())
    }

    /// The number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.base.node_count()
    }

    /// The nodes, in the order of their numbers: name, and peer once bound.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (&str, Option<&str>)> {
        self.base.names().iter().zip(&self.peers).map(|(name, peer)| (name.as_str(), peer.as_deref()))
    }

    /// The peer a node is bound to.
    #[must_use]
    pub fn peer(&self, node: usize) -> Option<&str> {
        self.peers.get(node)?.as_deref()
    }

    /// The node a peer is bound to.
    #[must_use]
    pub fn node_of(&self, peer: &str) -> Option<usize> {
        self.peers.iter().position(|bound| bound.as_deref() == Some(peer))
    }

    /// The node of this name.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<usize> {
        self.base.names().iter().position(|known| known == name)
    }

    /// The base graph: the pairs of nodes that can receive from each other.
    #[must_use]
    pub const fn base(&self) -> &Topology {
        &self.base
    }

    /// The name of the design.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// All parameters that the design needs to make the same plan again.
    #[must_use]
    pub const fn parameters(&self) -> &BTreeMap<String, Parameter> {
        &self.parameters
    }

    /// The kind of medium: links that share a channel, or separate ones.
    #[must_use]
    pub const fn medium(&self) -> Medium {
        self.medium
    }

    /// The capacities of the links, where they are known.
    #[must_use]
    pub const fn network(&self) -> Option<&NetworkCapacity> {
        self.network.as_ref()
    }

    /// The period, at least one step.
    #[must_use]
    pub fn steps(&self) -> &[MixingStep] {
        &self.steps
    }

    /// Gradient steps per round, taken at its start.
    #[must_use]
    pub const fn local_steps(&self) -> u32 {
        self.local_steps
    }

    /// Mixing steps in a round, from one training to the next. It divides the period.
    #[must_use]
    pub const fn round_length(&self) -> usize {
        self.round_length
    }

    /// The forecast. In a plan that was read, it is its author's: see [`Plan::forecast_differences`].
    #[must_use]
    pub const fn forecast(&self) -> &Forecast {
        &self.forecast
    }

    /// The forecast computed anew from the steps.
    ///
    /// # Errors
    ///
    /// None for a plan that exists; the check is repeated along the way.
    pub fn recompute_forecast(&self) -> Result<Forecast, PlanError> {
        Ok(Forecast::of_period(&self.base, self.medium, self.network.as_ref(), &self.steps)?.0)
    }

    /// The fields of the stored forecast that differ from the recomputed one; none for an honest file.
    ///
    /// # Errors
    ///
    /// None for a plan that exists; see [`Plan::recompute_forecast`].
    pub fn forecast_differences(&self) -> Result<Vec<ForecastDifference>, PlanError> {
        Ok(self.forecast.differences(&self.recompute_forecast()?))
    }

    /// The largest momentum across rounds that the plan bears, in hundredths from 0 to 0.99: see
    /// [`crate::spectrum::largest_momentum`]. It is computed from the steps each time, whatever the author of the plan
    /// forecasts.
    ///
    /// # Errors
    ///
    /// It cannot be computed for a plan of this size.
    pub fn largest_momentum(&self) -> Result<f64, crate::spectrum::Unresolved> {
        crate::spectrum::largest_momentum(self.node_count(), &self.steps, self.round_length)
    }

    /// The load of a round, for peers whose differences to exact averages have `coded_share` of the bytes of a whole
    /// payload, such as [`FOUR_BITS`](load::FOUR_BITS). `None` on a broadcast medium, where slots count.
    #[must_use]
    pub fn round_load(&self, coded_share: f64) -> Option<RoundLoad> {
        if self.medium == Medium::Broadcast {
            return None;
        }
        let nodes = self.node_count();
        let steps = self.steps();
        let rounds = steps.len() as f64 / self.round_length as f64;
        let payload_share = load::payload_share(nodes, steps, self.round_length, self.local_steps, coded_share);
        Some(RoundLoad {
            busiest_payloads: load::busiest(nodes, steps) as f64 / rounds,
            heaviest_share: NodeLoads::of(nodes, steps).heaviest_share(),
            payload_share,
            seconds: self.network().map(|network| network.seconds(steps, self.medium, payload_share) / rounds),
        })
    }

    /// The forecast as a JSON document of its own: [`Forecast::to_json`], `largest_momentum` with the reason where it is
    /// not known, and the [`RoundLoad`] where peers take the codec that suits the plan.
    #[must_use]
    pub fn forecast_to_json(&self) -> String {
        self.forecast.to_json_with(&self.largest_momentum(), self.round_load(load::FOUR_BITS))
    }

    /// `n pi`: the push-sum weight each node has at the start of a period in the long run.
    ///
    /// # Errors
    ///
    /// The iteration for a plan of more than [`crate::spectrum::MAX_DENSE_NODES`] nodes did not converge.
    pub fn perron_weights(&self) -> Result<Vec<f64>, crate::spectrum::Unresolved> {
        let unresolved =
            |error: crate::recurrence::RecurrenceError| crate::spectrum::Unresolved { reason: error.to_string() };
        let recurrent = crate::recurrence::recurrent_nodes(self.node_count(), &self.steps).map_err(unresolved)?;
        crate::spectrum::perron_weights(self.node_count(), &self.steps, &recurrent)
    }

    /// Returns `true` if every step lists what all nodes keep.
    fn lists_all_shares(&self) -> bool {
        self.node_count() * self.steps.len() <= MAX_LISTED_SHARES
    }

    fn resolve(&self, node: NodeRef<'_>) -> Result<usize, PlanError> {
        let found = match node {
            NodeRef::Number(number) => Some(number).filter(|&number| number < self.node_count()),
            NodeRef::Name(name) => self.node_named(name),
        };
        found.ok_or_else(|| PlanError::NoSuchNode {
            node: match node {
                NodeRef::Number(number) => number.to_string(),
                NodeRef::Name(name) => format!("{name:?}"),
            },
        })
    }
}
