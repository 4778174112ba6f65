//! A state that every node computes alike from the same table.
//!
//! If the next state is a pure function of the present one and of all rows of a [`ReplicatedTable`], every node can compute it
//! alone and all have the same, to the bit.

use super::ReplicatedTable;

/// A state that every node computes alike, and the version of the [`ReplicatedTable`] that its next step waits for.
///
/// All nodes have the same state, to the bit, as long as the step keeps three rules: it adds in the order it is given
/// the rows in (by ascending id), it uses no mathematics but `+ - * /`, square roots and comparisons (exponentials and
/// logarithms differ from one library to the next), and nothing that came out of an average.
///
/// ```
/// use mingle_protocol::collective::{Replicated, ReplicatedTable};
/// use mingle_protocol::{NodeId, Schedule, Step};
///
/// // Alone, a node has the table as soon as it has published.
/// let plan = Schedule::new(1, &[Step { keep: vec![1.0], links: vec![] }], 0)?;
/// let mut table = ReplicatedTable::new(&plan, NodeId(0))?;
/// let mut total = Replicated::new(0_u64, 1);
/// let add = |total: &u64, rows: &[&[u8]]| total + rows.iter().map(|row| u64::from(row[0])).sum::<u64>();
/// assert!(!total.advance(&table, add));
/// table.publish(total.version(), &[41])?;
/// assert!(total.advance(&table, add));
/// assert_eq!((*total.state(), total.version()), (41, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replicated<State> {
    state: State,
    version: u64,
}

impl<State> Replicated<State> {
    /// The state that all begin with, and the first version that changes it.
    pub fn new(state: State, first_version: u64) -> Self {
        Self { state, version: first_version }
    }

    /// The present state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The version that is waited for: the one to [publish](ReplicatedTable::publish) one's own row in.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Goes on to the next state and returns `true`, if all rows of the version waited for are there.
    ///
    /// `next` is given the present state and all rows by ascending id. See [`Replicated`] for what it may do.
    pub fn advance(&mut self, table: &ReplicatedTable, next: impl FnOnce(&State, &[&[u8]]) -> State) -> bool {
        let Some(rows) = table.complete(self.version) else {
            return false;
        };
        self.state = next(&self.state, &rows);
        self.version += 1;
        true
    }
}
