//! The columns of a table of edges, by the names in its first line.

use std::borrow::Cow;

use super::{ListEdge, Row};
use crate::topology::TopologyError;

/// Names of the two columns with the ends of edges, in lower case and with `_` for blanks and hyphens.
const ENDS: [(&str, &str); 13] = [
    ("source", "target"),
    ("from", "to"),
    ("src", "dst"),
    ("u", "v"),
    ("source_id", "target_id"),
    ("source_node", "target_node"),
    ("sourcenodeid", "targetnodeid"),
    ("from_node", "to_node"),
    ("from_node_id", "to_node_id"),
    ("fromnodeid", "tonodeid"),
    ("node1", "node2"),
    ("node_1", "node_2"),
    ("id_1", "id_2"),
];
/// Columns that are no attribute of an edge: numbers of lines and of edges.
const NUMBERS_OF_EDGES: [&str; 5] = ["", "id", "key", "index", "unnamed:_0"];

/// The places of the columns.
pub(super) struct Columns<'t> {
    names: Vec<Cow<'t, str>>,
    ends: [usize; 2],
    /// The column that holds `Directed` or `Undirected`, as in tables of Gephi.
    direction: Option<usize>,
}

impl<'t> Columns<'t> {
    /// The columns of rows whose first is a header: it has the names of the ends, and no other row does.
    ///
    /// # Errors
    ///
    /// Two columns have the same name.
    pub(super) fn of(rows: &[Row<'t>]) -> Result<Option<Self>, TopologyError> {
        let [first, rest @ ..] = rows else { return Ok(None) };
        let names: Vec<String> = first.cells.iter().map(|cell| normal(cell)).collect();
        let place = |name: &str| names.iter().position(|it| it == name);
        let found = ENDS.iter().find_map(|(source, target)| Some([place(source)?, place(target)?]));
        let Some(ends) = found else { return Ok(None) };
        if first.line.content.contains("->") {
            return Ok(None);
        }
        let is_named_again = |row: &Row<'_>| {
            ends.iter()
                .filter_map(|&end| row.cells.get(end))
                .any(|name| ends.iter().any(|&end| first.cells[end] == *name))
        };
        if names.len() == 2 && rest.iter().any(is_named_again) {
            return Ok(None);
        }
        let repeated = ends.iter().find(|&&end| names.iter().filter(|name| **name == names[end]).count() > 1);
        if let Some(&end) = repeated {
            return Err(first.fault(format!("has two columns `{}`: give each its own name", first.cells[end])));
        }
        let is_direction = |cell: &Cow<'_, str>| ["directed", "undirected"].contains(&normal(cell).as_str());
        let holds_directions = |place: &usize| rest.iter().any(|row| row.cells.get(*place).is_some_and(is_direction));
        Ok(Some(Self { names: first.cells.clone(), ends, direction: place("type").filter(holds_directions) }))
    }

    /// The edge in a row.
    ///
    /// # Errors
    ///
    /// The row has another number of cells, an end without a name, or an unknown direction.
    pub(super) fn edge(&self, row: &Row<'t>) -> Result<ListEdge<'t>, TopologyError> {
        let Self { names, ends, .. } = self;
        if row.cells.len() != names.len() {
            let reason = format!("has {} cells, and there are {} columns", row.cells.len(), names.len());
            return Err(row.fault(reason));
        }
        if let Some(&end) = ends.iter().find(|&&end| row.cells[end].is_empty()) {
            return Err(
                row.fault(format!("has nothing in the column `{}`: name the node, or leave the line out", names[end]))
            );
        }
        let direction = self.direction.map(|place| row.cells[place].to_ascii_lowercase());
        let one_way = match direction.as_deref() {
            Some("directed") => true,
            None | Some("undirected" | "mutual" | "") => false,
            Some(_) => {
                return Err(
                    row.fault("has a type that is neither Directed nor Undirected: rename the column, or the type")
                );
            }
        };
        let is_attribute = |place: &usize| {
            !ends.contains(place)
                && self.direction != Some(*place)
                && !row.cells[*place].is_empty()
                && !NUMBERS_OF_EDGES.contains(&normal(&names[*place]).as_str())
        };
        let columns = (0..names.len()).filter(is_attribute).map(|place| names[place].clone()).collect();
        Ok(ListEdge { line: row.line, ends: ends.map(|end| row.cells[end].clone()), one_way, columns })
    }
}

/// The name of a column for comparison.
fn normal(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace([' ', '-'], "_")
}
