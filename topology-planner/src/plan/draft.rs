//! What a plan is made of: the draft before it is checked, the medium, the values of parameters, and how nodes are named.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::StepDraft;
use crate::{network::Network, topology::Topology};

/// What a plan is made of, before it is checked. Positions of the topology are not part of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanDraft {
    /// Who can hear whom.
    pub base: Topology,
    /// The name of the design.
    pub method: String,
    /// All that the design needs to make the same plan again.
    pub parameters: BTreeMap<String, Parameter>,
    /// Whether links share a channel.
    pub medium: Medium,
    /// What the links can carry, where it is known.
    pub network: Option<Network>,
    /// The period.
    pub steps: Vec<StepDraft>,
    /// Gradient steps per round, taken at its start.
    pub local_steps: u32,
    /// Mixing steps in a round, from one training to the next; divides the period. None: the whole period is a round.
    pub round_length: Option<usize>,
}

/// How links share the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// One channel for all: links are active in slots, and interfere.
    Broadcast,
    /// A connection for each link: no slots.
    PointToPoint,
}

/// The value of a design parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Parameter {
    /// Yes or no.
    Flag(bool),
    /// A number, not negative.
    Whole(u64),
    /// A finite number.
    Real(f64),
    /// A word.
    Text(String),
}

impl Parameter {
    /// A zero from a file may carry a sign, which JSON does not keep, and which would show in the hash.
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
