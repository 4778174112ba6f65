//! What a design needs besides the topology.

use std::{fmt, str::FromStr};

use super::DesignError;
use crate::{network::Network, plan::Medium};

/// What a design needs besides the topology.
#[derive(Debug, Clone, PartialEq)]
pub struct DesignOptions {
    /// `K` of Algorithm 1; a choice of [`Method::NguyenHe`](super::Method::NguyenHe) only.
    pub extra_edges: ExtraEdges,
    /// Seed of every random choice. Ties go to the lowest node, 0 to `n - 1`; with a seed other than 0 the nodes are
    /// first shuffled by it: another tree, other searches, another plan, for those who want to choose among several.
    pub seed: u64,
    /// Gradient steps per round.
    pub local_steps: u32,
    /// How different the data of the nodes are, from 0, where all look alike, to 1, where each node has one class or two:
    /// what [`Method::Auto`](super::Method::Auto) has to assume to know what disagreement costs.
    pub heterogeneity: f64,
    /// How long to search, as a number of iterations that each design scales to its own: a plan does not depend on the
    /// machine. 10 by default; twice the effort takes about twice the time.
    pub effort: u32,
    /// The most slots a round may take.
    pub budget_slots: Option<usize>,
    /// The most receivers a node may have in a period.
    pub max_out_degree: Option<usize>,
    /// Whether links share a channel.
    pub medium: Medium,
    /// What the links can carry, for a forecast in seconds and bytes. Of the topology as it is given.
    pub network: Option<Network>,
    /// The most bytes a node may send in a round; needs a network, which knows the size of a payload.
    pub max_upload_bytes: Option<u64>,
    /// What [`Method::Auto`](super::Method::Auto) chooses by.
    pub objective: Objective,
    /// Which losses the period's graph has to survive.
    pub fault_tolerance: FaultTolerance,
}

/// What [`Method::Auto`](super::Method::Auto) chooses by; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Objective {
    /// The slots of a gradient step, and what it costs that nodes with different data drift apart; see
    /// [`cost`](super::cost).
    #[default]
    Training,
    /// Slots until all agree to 1e-2: averaging alone.
    Agreement,
}

/// Which losses leave the rest of a period's graph strongly connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FaultTolerance {
    /// Any loss may cut somebody off.
    #[default]
    None,
    /// The loss of any one link does not.
    AnyLink,
    /// The loss of any one node does not.
    AnyNode,
}

/// A text that names no choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}: use {choices}")]
pub struct UnknownChoice {
    /// The text.
    pub text: String,
    /// What it should have been.
    pub what: &'static str,
    /// What there is.
    pub choices: &'static str,
}

impl FromStr for Objective {
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
            seed: 0,
            local_steps: 1,
            heterogeneity: 1.0,
            effort: 10,
            budget_slots: None,
            max_out_degree: None,
            medium: Medium::Broadcast,
            network: None,
            max_upload_bytes: None,
            objective: Objective::Training,
            fault_tolerance: FaultTolerance::None,
        }
    }
}

/// How many edges are added to the spanning tree: `K` of Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExtraEdges {
    /// The `K` that minimises \[NH\] eq. 19, see [`sweep`](super::sweep).
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
