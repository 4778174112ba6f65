//! A row from every node, at every node: flooding of new rows.
//!
//! Every row has the version its maker gave it. A row that is new is kept and passed on to all out-neighbours, once; so
//! after as many exchanges as the plan's [diameter](super::diameter) every node has every row, bit for bit as it was
//! made.
//!
//! A step that consumes version k waits until all n rows of version k are there. A node that has them may publish
//! version k + 1 while a slower node still waits for some row of version k. But no node can publish k + 2 before that
//! slower node has published k + 1. So the two latest versions of every row are kept and passed on, and none is missed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fault::MAX_ROW_BYTES;
use super::{Collective, CollectiveError, CollectiveFault};
use crate::schedule::{NodeId, Schedule};

/// Longest encoding of a message of rows.
pub const MAX_ROWS_BYTES: usize = 48 * 1024;
/// Versions of a row that are kept.
const HISTORY: usize = 2;
/// The most bytes of a row on the wire besides its payload.
const ROW_HEAD_BYTES: usize = 20;

/// One version of a node's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The node that made it.
    pub id: NodeId,
    /// Its version; versions of one node rise.
    pub version: u64,
    /// Its content, at most [`MAX_ROW_BYTES`].
    pub payload: Arc<[u8]>,
}

/// New rows, from a neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRows(pub Vec<TableRow>);

/// One node's copy of the table.
///
/// A step that consumes version k waits until [`complete(k)`](Self::complete) has all rows, and then publishes version
/// k + 1. The two latest versions of every row are kept and passed on, so a slower node misses none. A node that lost
/// its table cannot take part in it again: all begin a new one.
///
/// ```
/// use std::sync::Arc;
/// use mingle_protocol::collective::{Collective, ReplicatedTable};
/// use mingle_protocol::{NodeId, Schedule, Step};
///
/// let (a, b) = (NodeId(0), NodeId(1));
/// let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
/// let plan = Schedule::new(2, &[step], 0)?;
/// let mut tables = [ReplicatedTable::new(&plan, a)?, ReplicatedTable::new(&plan, b)?];
/// tables[0].publish(1, b"forty")?;
/// tables[1].publish(1, b"two")?;
/// for (from, to) in [(a, b), (b, a)] {
///     while let Some((_, rows)) = tables[from.index()].poll() {
///         tables[to.index()].handle(from, rows)?;
///     }
/// }
/// assert_eq!(tables[0].complete(1), Some(vec![&b"forty"[..], &b"two"[..]]));
/// assert_eq!(tables[0], ReplicatedTable::clone(&tables[0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedTable {
    me: NodeId,
    in_neighbours: Vec<NodeId>,
    /// Per node, its latest versions.
    rows: Vec<BTreeMap<u64, Arc<[u8]>>>,
    /// Per out-neighbour, the rows that it has not been sent.
    pending: BTreeMap<NodeId, BTreeSet<(u64, NodeId)>>,
}

impl ReplicatedTable {
    /// The empty table of node `me`, with a row for every node of `schedule`.
    ///
    /// # Errors
    /// [`CollectiveError::NotInPlan`].
    pub fn new(schedule: &Schedule, me: NodeId) -> Result<Self, CollectiveError> {
        let nodes = schedule.nodes();
        if me.index() >= nodes {
            return Err(CollectiveError::NotInPlan { id: me, nodes });
        }
        Ok(Self {
            me,
            in_neighbours: schedule.all_in_neighbours(me).to_vec(),
            rows: vec![BTreeMap::new(); nodes],
            pending: schedule.all_out_neighbours(me).iter().map(|to| (*to, BTreeSet::new())).collect(),
        })
    }

    /// Sets this node's own row.
    ///
    /// # Errors
    /// [`CollectiveError::RowTooLong`] beyond [`MAX_ROW_BYTES`], [`CollectiveError::Version`] unless `version` is larger
    /// than the one before.
    pub fn publish(&mut self, version: u64, payload: &[u8]) -> Result<(), CollectiveError> {
        if payload.len() > MAX_ROW_BYTES {
            return Err(CollectiveError::RowTooLong { bytes: payload.len() });
        }
        if let Some(latest) = self.latest_version(self.me).filter(|latest| *latest >= version) {
            return Err(CollectiveError::Version { version, latest });
        }
        self.keep(TableRow { id: self.me, version, payload: payload.into() }, None);
        Ok(())
    }

    /// The latest row of `id`, with its version.
    pub fn latest(&self, id: NodeId) -> Option<(u64, &[u8])> {
        let (version, payload) = self.rows.get(id.index())?.last_key_value()?;
        Some((*version, payload))
    }

    /// The row of `id` in `version`.
    pub fn row(&self, id: NodeId, version: u64) -> Option<&[u8]> {
        self.rows.get(id.index())?.get(&version).map(|payload| &**payload)
    }

    /// All rows of `version` by ascending id, once all are there.
    pub fn complete(&self, version: u64) -> Option<Vec<&[u8]>> {
        self.rows.iter().map(|versions| versions.get(&version).map(|payload| &**payload)).collect()
    }

    /// The nodes whose row of `version` is missing, ascending.
    pub fn missing(&self, version: u64) -> impl Iterator<Item = NodeId> {
        let has = move |versions: &BTreeMap<u64, _>| versions.contains_key(&version);
        self.rows.iter().enumerate().filter(move |(_, row)| !has(row)).map(|(id, _)| NodeId(id as u32))
    }

    fn latest_version(&self, id: NodeId) -> Option<u64> {
        self.latest(id).map(|(version, _)| version)
    }

    /// Returns `true` if a row is to be kept: it is not here yet, and not older than those that are kept.
    fn is_new(&self, row: &TableRow) -> bool {
        let versions = &self.rows[row.id.index()];
        let oldest = versions.first_key_value().filter(|_| versions.len() >= HISTORY);
        !versions.contains_key(&row.version) && oldest.is_none_or(|(oldest, _)| row.version > *oldest)
    }

    /// Keeps a new row and plans to pass it on to all but the neighbour it came from.
    fn keep(&mut self, row: TableRow, from: Option<NodeId>) {
        let TableRow { id, version, payload } = row;
        for (_, pending) in self.pending.iter_mut().filter(|(to, _)| Some(**to) != from && **to != id) {
            pending.insert((version, id));
        }
        let versions = &mut self.rows[id.index()];
        versions.insert(version, payload);
        if versions.len() > HISTORY
            && let Some((old, _)) = versions.pop_first()
        {
            for pending in self.pending.values_mut() {
                pending.remove(&(old, id));
            }
        }
    }

    fn check(&self, row: &TableRow) -> Result<(), CollectiveFault> {
        // One's own old rows come around; one that was never made does not.
        let is_made_up = row.id == self.me && self.latest_version(self.me).is_none_or(|latest| row.version > latest);
        if row.id.index() >= self.rows.len() || is_made_up {
            return Err(CollectiveFault::NotItsRow);
        }
        if row.payload.len() > MAX_ROW_BYTES {
            return Err(CollectiveFault::TooLong);
        }
        match self.row(row.id, row.version) {
            Some(payload) if *payload != *row.payload => Err(CollectiveFault::Contradiction),
            _ => Ok(()),
        }
    }
}

impl Collective for ReplicatedTable {
    type Message = NewRows;

    /// The rows that the next out-neighbour lacks, as many as fit into one message.
    fn poll(&mut self) -> Option<(NodeId, NewRows)> {
        let (&to, pending) = self.pending.iter_mut().find(|(_, pending)| !pending.is_empty())?;
        let mut rows = Vec::new();
        let mut bytes = 0;
        while let Some(&(version, id)) = pending.first() {
            let payload = self.rows[id.index()].get(&version);
            bytes += payload.map_or(0, |payload| ROW_HEAD_BYTES + payload.len());
            if bytes > MAX_ROWS_BYTES && !rows.is_empty() {
                break;
            }
            pending.pop_first();
            rows.extend(payload.map(|payload| TableRow { id, version, payload: Arc::clone(payload) }));
        }
        Some((to, NewRows(rows)))
    }

    fn handle(&mut self, from: NodeId, NewRows(rows): NewRows) -> Result<(), CollectiveFault> {
        if self.in_neighbours.binary_search(&from).is_err() {
            return Err(CollectiveFault::NoSuchLink);
        }
        rows.iter().try_for_each(|row| self.check(row))?;
        for row in rows {
            // Of one's own row, one knows all versions there are.
            if row.id != self.me && self.is_new(&row) {
                self.keep(row, Some(from));
            }
        }
        Ok(())
    }

    /// Returns `true` if a row of every node is there, in any version. To wait for one version, use
    /// [`complete`](ReplicatedTable::complete).
    fn is_complete(&self) -> bool {
        self.rows.iter().all(|versions| !versions.is_empty())
    }
}
