//! Data dealt out to the nodes: computed for the first node that needs them, and kept for the others in the same
//! process.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mingle_solving::LearningError;

use crate::file::NODE;

/// The parts of dealt data, once they are computed.
pub(crate) struct Dealt<T>(Mutex<Option<Arc<Vec<T>>>>);

impl<T> Default for Dealt<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> fmt::Debug for Dealt<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Dealt")
    }
}

impl<T: Clone> Dealt<T> {
    /// The part of a node among so many. `deal` makes their parts on the first call, and where a plan has another number.
    ///
    /// # Errors
    /// As of `deal`, or the node has no part.
    pub(crate) fn part(
        &self,
        node: usize,
        nodes: usize,
        deal: impl FnOnce() -> Result<Vec<T>, LearningError>,
    ) -> Result<T, LearningError> {
        let mut dealt = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = match &*dealt {
            Some(parts) if parts.len() == nodes => Arc::clone(parts),
            _ => Arc::clone(dealt.insert(Arc::new(deal()?))),
        };
        drop(dealt);
        parts.get(node).cloned().ok_or_else(|| LearningError(format!("the data were dealt out to {}", parts.len())))
    }
}

/// The data of a node where each has its own: the text with the node's name in it. None where all share one name.
///
/// # Errors
/// The node's name cannot be part of a file name.
pub(crate) fn own_data(data: &str, name: &str) -> Result<Option<String>, LearningError> {
    if !data.contains(NODE) {
        return Ok(None);
    }
    if Path::new(name).components().count() != 1 {
        return Err(LearningError(format!("node {name} cannot be in the name of a file: give it another name")));
    }
    Ok(Some(data.replace(NODE, name)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn data_are_dealt_out_once() {
        let dealt = Dealt::default();
        let twice = || Err(LearningError("asked twice".to_owned()));
        assert_eq!(dealt.part(1, 2, || Ok(vec![5, 6])), Ok(6));
        assert_eq!(dealt.part(0, 2, twice), Ok(5));
        assert!(dealt.part(2, 2, twice).unwrap_err().to_string().contains("dealt out to 2"));
        assert_eq!(dealt.part(2, 3, || Ok(vec![7, 8, 9])), Ok(9), "another plan has another number of nodes");
        assert_eq!(dealt.part(0, 3, twice), Ok(7));
    }

    #[test]
    fn no_name_of_a_node_leaves_the_folder() {
        assert_eq!(own_data("all.csv", "../x"), Ok(None));
        assert_eq!(own_data("shops/{node}.csv", "a"), Ok(Some("shops/a.csv".to_owned())));
        assert!(own_data("shops/{node}.csv", "../x").is_err());
    }
}
