//! From a topology to a plan. One file per design.

mod d_psgd;
mod nguyen_he;
mod sgp_uniform;

use std::{fmt, str::FromStr};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use self::nguyen_he::{Sweep, SweepPoint, sweep};
use crate::{
    coloring,
    conflict_graph::ConflictGraph,
    digraph::Link,
    mixing_matrix::MixingMatrix,
    plan::{Medium, Parameter, Plan, PlanDraft, PlanError, StepDraft},
    topology::{Topology, TopologyError},
};

/// The most nodes a design takes: distances between all pairs are kept.
pub const MAX_DESIGN_NODES: usize = 4_096;

/// How to choose links, weights and slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Algorithm 1 of \[NH\]: a sparse directed graph of small diameter, filled up with links that cost no slot.
    NguyenHe,
    /// Vanilla D-PSGD: every edge both ways, symmetric Metropolis-Hastings weights.
    DPsgd,
    /// Vanilla SGP: every edge both ways, uniform columns.
    SgpUniform,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 3] = [Self::NguyenHe, Self::DPsgd, Self::SgpUniform];

    /// The name in plan files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NguyenHe => "nguyen-he",
            Self::DPsgd => "d-psgd",
            Self::SgpUniform => "sgp-uniform",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no method {text:?}: use nguyen-he, d-psgd or sgp-uniform")]
pub struct UnknownMethod {
    /// The text.
    pub text: String,
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|method| method.name() == text)
            .ok_or_else(|| UnknownMethod { text: text.to_owned() })
    }
}

/// How many edges are added to the spanning tree: `K` of Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExtraEdges {
    /// The `K` that minimises \[NH\] eq. 19, see [`sweep`].
    #[default]
    Auto,
    /// This `K`.
    Exactly(usize),
}

impl FromStr for ExtraEdges {
    type Err = DesignError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            number => {
                number.parse().map(Self::Exactly).map_err(|_| DesignError::NotExtraEdges { text: text.to_owned() })
            }
        }
    }
}

impl fmt::Display for ExtraEdges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Exactly(edges) => edges.fmt(f),
        }
    }
}

/// What a design needs besides the topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesignOptions {
    /// `K` of Algorithm 1; the vanilla designs have none.
    pub extra_edges: ExtraEdges,
    /// Ties go to the lowest node, 0 to `n - 1`. With a seed other than 0 the nodes are first shuffled by it: another
    /// tree, other searches, another plan, for those who want to choose among several.
    pub seed: u64,
    /// Gradient steps per period.
    pub local_steps: u32,
}

impl Default for DesignOptions {
    fn default() -> Self {
        Self { extra_edges: ExtraEdges::Auto, seed: 0, local_steps: 1 }
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DesignError {
    /// More nodes than [`MAX_DESIGN_NODES`].
    #[error("{nodes} nodes are too many to design for: the limit is {MAX_DESIGN_NODES}")]
    TooManyNodes {
        /// How many there are.
        nodes: usize,
    },
    /// `K` is larger than the number of edges left.
    #[error("{asked} extra edges are too many: a spanning tree leaves {available} of this topology")]
    TooManyExtraEdges {
        /// The `K` asked for.
        asked: usize,
        /// The largest possible.
        available: usize,
    },
    /// A number of extra edges was given to a method that has none.
    #[error("method {method} takes every edge: extra edges are a choice of nguyen-he only, leave them at auto")]
    NoExtraEdges {
        /// The method.
        method: Method,
    },
    /// A text is not a number of extra edges.
    #[error("{text:?} is not a number of extra edges: write \"auto\" or a whole number")]
    NotExtraEdges {
        /// The text.
        text: String,
    },
    /// The design does not make a plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The renumbered topology is refused.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Designs a plan. The same arguments give the same plan, bit for bit.
///
/// # Errors
///
/// Too many nodes, or a `K` that the topology or the method does not have.
///
/// ```
/// use mingle_planner::{DesignOptions, ExtraEdges, Method, Topology, design};
/// let topology = Topology::generate("windmill:cliques=2,size=6")?;
/// let options = DesignOptions { extra_edges: ExtraEdges::Exactly(2), ..DesignOptions::default() };
/// let plan = design(&topology, Method::NguyenHe, &options)?;
/// assert_eq!((plan.forecast().slots_per_period, plan.forecast().links), (7, 52)); // [NH] figure 3
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn design(topology: &Topology, method: Method, options: &DesignOptions) -> Result<Plan, DesignError> {
    let nodes = topology.node_count();
    if nodes > MAX_DESIGN_NODES {
        return Err(DesignError::TooManyNodes { nodes });
    }
    if method != Method::NguyenHe && options.extra_edges != ExtraEdges::Auto {
        return Err(DesignError::NoExtraEdges { method });
    }
    let order = shuffled(nodes, options.seed);
    let shuffled = topology.renumbered(&order)?;
    let mut design = match method {
        Method::NguyenHe => nguyen_he::design(&shuffled, options.extra_edges)?,
        Method::DPsgd => d_psgd::design(&shuffled),
        Method::SgpUniform => sgp_uniform::design(&shuffled),
    };
    design.step.renumber(&order);
    design.parameters.push(("seed", options.seed));
    let named = |(name, value): (&str, u64)| (name.to_owned(), Parameter::Whole(value));
    Ok(Plan::new(PlanDraft {
        base: topology.clone(),
        method: method.name().to_owned(),
        parameters: design.parameters.into_iter().map(named).collect(),
        medium: Medium::Broadcast,
        steps: vec![design.step],
        local_steps: options.local_steps,
    })?)
}

/// What a design file returns: a step, and the parameters that chose it.
struct Design {
    step: StepDraft,
    parameters: Vec<(&'static str, u64)>,
}

/// A step with the given weights whose links are put into slots by DSATUR.
fn colored_step(topology: &Topology, matrix: MixingMatrix) -> StepDraft {
    let (keep, weighted) = matrix.into_parts();
    let links: Vec<Link> = weighted.iter().map(|link| link.link()).collect();
    let graph = ConflictGraph::new(topology, links);
    let slots = coloring::slots(graph.links(), &coloring::dsatur(&graph));
    StepDraft { keep, links: weighted, slots }
}

/// The nodes in the order a seed puts them (Fisher and Yates); seed 0 leaves them as they are.
fn shuffled(nodes: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes).collect();
    if seed != 0 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for last in (1..nodes).rev() {
            // The bias of a 64-bit remainder is below 2^-50.
            order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
        }
    }
    order
}

impl StepDraft {
    /// Turns numbers of the shuffled topology back into those of the original one.
    fn renumber(&mut self, order: &[usize]) {
        let mut keep = vec![0.0; self.keep.len()];
        for (share, &node) in self.keep.iter().zip(order) {
            keep[node] = *share;
        }
        self.keep = keep;
        for link in &mut self.links {
            (link.from, link.to) = (order[link.from], order[link.to]);
        }
        for link in self.slots.iter_mut().flatten() {
            *link = Link::new(order[link.from], order[link.to]);
        }
    }
}
