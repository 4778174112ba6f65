//! Options of a design.

use std::{fmt, str::FromStr};

use super::DesignError;
use crate::{network::NetworkCapacity, plan::Medium};

/// The inputs of a design besides the topology.
#[derive(Debug, Clone, PartialEq)]
pub struct DesignOptions {
    /// `K` of Algorithm 1; a choice of [`Method::NguyenHe`](super::Method::NguyenHe) only.
    pub extra_edges: ExtraEdges,
    /// `false` to leave out step 4 of Algorithm 1, the links that fit into its slots: an ablation, of
    /// [`Method::NguyenHe`](super::Method::NguyenHe) only. `K` is that of the whole algorithm.
    pub augments: bool,
    /// Seed of every random choice. Ties go to the lowest node, 0 to `n - 1`. A seed other than 0 first shuffles the
    /// nodes, which gives another tree, other searches and another plan, for a choice among several.
    pub seed: u64,
    /// Gradient steps per round.
    pub local_steps: u32,
    /// Difference between the data of the nodes, from 0, where all look alike, to 1, where each node has one class or
    /// two. [`Method::Auto`](super::Method::Auto) derives the cost of disagreement from it.
    pub heterogeneity: f64,
    /// Length of the search, as a number of iterations that each design scales to its own: a plan does not depend on
    /// the machine. 10 by default; twice the effort takes about twice the time.
    pub effort: u32,
    /// The most slots a round may take.
    pub budget_slots: Option<usize>,
    /// The most receivers a node may have in a period.
    pub max_out_degree: Option<usize>,
    /// The kind of medium: links that share a channel, or separate ones.
    pub medium: Medium,
    /// The capacities of the links of the topology as given, for a forecast in seconds and bytes.
    pub network: Option<NetworkCapacity>,
    /// The most bytes a node may send in a round; needs a network, which holds the size of a payload.
    pub max_upload_bytes: Option<u64>,
    /// The bytes of a difference to an exact average as a share of those of a whole payload, by the codec of the peers:
    /// [`FOUR_BITS`](crate::load::FOUR_BITS) by default. 1 where they send whole ones. Only prices on a point-to-point
    /// medium depend on it.
    pub coded_share: f64,
    /// The cost by which [`Method::Auto`](super::Method::Auto) chooses.
    pub objective: DesignObjective,
    /// The losses that the period's graph has to survive.
    pub fault_tolerance: FaultTolerance,
}

/// The cost by which [`Method::Auto`](super::Method::Auto) chooses; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DesignObjective {
    /// The slots of a gradient step, and the cost of the drift between nodes with different data; see
    /// [`cost`](super::cost).
    #[default]
    Training,
    /// Slots until all nodes agree to 1e-2: averaging alone.
    Agreement,
}

/// The losses that leave the rest of a period's graph strongly connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FaultTolerance {
    /// Any loss may cut nodes off.
    #[default]
    None,
    /// The loss of any one link cuts no node off.
    AnyLink,
    /// The loss of any one node cuts no other off.
    AnyNode,
}

/// The error for a text that names no choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}: use {choices}")]
pub struct UnknownChoice {
    /// The text.
    pub text: String,
    /// The kind of choice that was expected.
    pub what: &'static str,
    /// The possible choices.
    pub choices: &'static str,
}

impl FromStr for DesignObjective {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "training" => Ok(Self::Training),
            "agreement" => Ok(Self::Agreement),
            _ => Err(UnknownChoice { text: text.to_owned(), what: "an objective", choices: "training or agreement" }),
        }
    }
}

impl FromStr for FaultTolerance {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "link" => Ok(Self::AnyLink),
            "node" => Ok(Self::AnyNode),
            _ => Err(UnknownChoice { text: text.to_owned(), what: "a loss to survive", choices: "none, link or node" }),
        }
    }
}

impl Default for DesignOptions {
    fn default() -> Self {
        Self {
            extra_edges: ExtraEdges::Auto,
            augments: true,
            seed: 0,
            local_steps: 1,
            heterogeneity: 1.0,
            effort: 10,
            budget_slots: None,
            max_out_degree: None,
            medium: Medium::Broadcast,
            network: None,
            max_upload_bytes: None,
            coded_share: crate::load::FOUR_BITS,
            objective: DesignObjective::Training,
            fault_tolerance: FaultTolerance::None,
        }
    }
}

/// The number of edges added to the spanning tree: `K` of Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExtraEdges {
    /// The `K` that minimises \[NH\] eq. 19 after step 3, up to the number of edges outside the spanning tree, but at
    /// most `2 n` or 256, whichever is more.
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
