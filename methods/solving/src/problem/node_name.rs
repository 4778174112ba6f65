//! A node as a problem file names it: by its number or its name.

use mingle_planner::Plan;
use serde::Deserialize;

use super::file_error::FileError;

/// A node by its number or its name.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum NodeName {
    Number(usize),
    Name(String),
}

impl NodeName {
    /// The node of this number or name.
    pub(super) fn find(&self, plan: &Plan, names: &[String], place: &dyn Fn() -> String) -> Result<usize, FileError> {
        match self {
            Self::Number(number) if *number < names.len() => Ok(*number),
            Self::Number(number) => {
                Err(FileError::NodeNumber { place: place(), number: *number, last: names.len() - 1 })
            }
            Self::Name(name) => {
                plan.node_named(name).ok_or_else(|| FileError::NodeName { place: place(), name: name.clone() })
            }
        }
    }
}
