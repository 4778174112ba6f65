//! The parts of a plan: the draft before it is checked, the medium, the values of parameters, and references to nodes.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{medium::Medium, network::NetworkCapacity, step::StepDraft, topology::Topology};

/// A plan before it is checked. Positions of the topology are not part of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanDraft {
    /// The base graph: the pairs of nodes that can receive from each other.
    pub base: Topology,
    /// The name of the design.
    pub method: String,
    /// All parameters that the design needs to make the same plan again.
    pub parameters: BTreeMap<String, Parameter>,
    /// The kind of medium: links that share a channel, or separate ones.
    pub medium: Medium,
    /// The capacities of the links, where they are known.
    pub network: Option<NetworkCapacity>,
    /// The period.
    pub steps: Vec<StepDraft>,
    /// Gradient steps per round, taken at its start.
    pub local_steps: u32,
    /// Mixing steps in a round, from one training to the next; divides the period. `None` if the whole period is a
    /// round.
    pub round_length: Option<usize>,
}

/// The value of a design parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Parameter {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number, not negative.
    Whole(u64),
    /// A finite number.
    Real(f64),
    /// A text.
    Text(String),
}

impl Parameter {
    /// Removes the sign of a zero from a file, which JSON does not keep, and which would show in the hash.
    pub(super) fn unsigned_zero(self) -> Self {
        match self {
            Self::Real(number) => Self::Real(number + 0.0),
            other => other,
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Whole(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A node of a plan, by its number or its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRef<'a> {
    /// By number.
    Number(usize),
    /// By name.
    Name(&'a str),
}

impl From<usize> for NodeRef<'_> {
    fn from(number: usize) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<&'a str> for NodeRef<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}
