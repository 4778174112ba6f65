//! Edge lists: two node names per line, `#` starts a comment, `->` between them makes the link one-way. The names may
//! be followed by what networkx writes: attributes in braces, or a number on every line. Tables of edges, as
//! spreadsheets and Gephi write them, have a first line that names the columns.
//!
//! Cells are separated by blanks and commas, or by the tab, semicolon, bar or comma that all lines have. Quotes hold a
//! name with a separator together. Lines that could be read in two ways are refused.

mod columns;
mod split;

use std::borrow::Cow;
use std::collections::BTreeSet;

use self::columns::Columns;
use self::split::{ListLine, separator};
use super::TopologyError;
use super::builder::Builder;
use super::reading::{TopologyFormat, TopologyReading};

/// A line with its cells.
struct Row<'t> {
    line: ListLine<'t>,
    cells: Vec<Cow<'t, str>>,
}

impl Row<'_> {
    fn error(&self) -> TopologyError {
        not_an_edge(self.line)
    }

    fn fault(&self, reason: impl Into<String>) -> TopologyError {
        fault(self.line, reason)
    }

    /// Returns `true` for `u -> v`.
    fn is_arrow(&self) -> bool {
        self.cells.len() == 3 && self.cells[1] == "->"
    }

    /// Returns `true` for two names and a number.
    fn has_weight(&self) -> bool {
        self.cells.len() == 3 && !self.is_arrow() && is_number(&self.cells[2])
    }

    /// Returns `true` for two names, with an arrow between them or a number behind them.
    fn is_edge(&self) -> bool {
        let has_names = |cells: &[Cow<'_, str>]| cells.iter().all(|name| !name.is_empty() && name != "->");
        match &self.cells[..] {
            [u, _, v] if self.is_arrow() => has_names(&[u.clone(), v.clone()]),
            [ends @ .., _] if self.has_weight() => has_names(ends),
            ends => ends.len() == 2 && has_names(ends),
        }
    }
}

/// One edge of the list.
struct ListEdge<'t> {
    line: ListLine<'t>,
    ends: [Cow<'t, str>; 2],
    one_way: bool,
    /// The names of the columns beside its ends that hold something.
    columns: Vec<Cow<'t, str>>,
}

/// The edges of a list.
struct EdgeTable<'t> {
    edges: Vec<ListEdge<'t>>,
    has_header: bool,
    /// `true` if the rows have a separator of their own.
    has_separator: bool,
}

/// Reads an edge list. Nodes are numbered in ascending order where all names are numbers, otherwise as they appear.
pub(super) fn read(text: &str) -> Result<TopologyReading, TopologyError> {
    let mut lines = Vec::new();
    for (at, text) in text.lines().enumerate() {
        let is_comment = text.trim_start().starts_with('#') || (lines.is_empty() && is_foreign_comment(text));
        if is_comment || text.trim().is_empty() {
            continue;
        }
        let wrong = || TopologyError::EdgeList { line: at + 1, text: shown(text) };
        lines.push(ListLine::of(at + 1, text).ok_or_else(wrong)?);
    }
    let table = table(&lines)?;
    let mut builder = Builder::default();
    let mut numeric = numbers(&table.edges).unwrap_or_default();
    numeric.sort_unstable();
    numeric.dedup();
    for number in numeric {
        builder.node(&number.to_string())?;
    }
    for edge in &table.edges {
        builder.at_line(edge.line.number);
        let ends = (builder.node(&edge.ends[0])?, builder.node(&edge.ends[1])?);
        builder.link(ends, edge.one_way)?;
        builder.note_attributes(edge.columns.iter().map(|name| &**name).chain(keys(edge.line.attributes)));
    }
    builder.finish(TopologyFormat::EdgeList).map_err(|error| header_or(error, &table))
}

/// Returns `true` for a line of words with which KONECT, Pajek and others begin a list.
fn is_foreign_comment(text: &str) -> bool {
    ["%", "//"].iter().any(|mark| text.trim_start().starts_with(mark))
}

/// The edges of the lines, by words or by the separator that all lines have.
fn table<'t>(lines: &[ListLine<'t>]) -> Result<EdgeTable<'t>, TopologyError> {
    let by_words = || edges(rows(lines, ListLine::words)?, false);
    let Some(separator) = separator(lines) else { return by_words() };
    let by_cells = rows(lines, |line| line.cells(separator)).and_then(|rows| edges(rows, true));
    match (by_cells, by_words()) {
        (Ok(cells), Ok(words)) => {
            let differs = |(cell, word): (&ListEdge<'t>, &ListEdge<'t>)| (cell.ends != word.ends).then_some(cell.line);
            match cells.edges.iter().zip(&words.edges).find_map(differs) {
                None => Ok(cells),
                Some(line) => Err(fault(
                    line,
                    "has blanks and other separators, and either can separate its names: put names in quotes",
                )),
            }
        }
        (Ok(cells), Err(_)) => match decimal_comma(&cells, separator) {
            None => Ok(cells),
            Some(line) => Err(fault(line, "could have a number with a decimal comma: write decimals behind a point")),
        },
        (Err(_), Ok(words)) if separator == '\t' => Ok(words),
        (Err(error), _) => Err(error),
    }
}

fn rows<'t>(
    lines: &[ListLine<'t>],
    cells: impl Fn(&ListLine<'t>) -> Option<Vec<Cow<'t, str>>>,
) -> Result<Vec<Row<'t>>, TopologyError> {
    let row = |line: &ListLine<'t>| match cells(line) {
        Some(cells) => Ok(Row { line: *line, cells }),
        None => Err(not_an_edge(*line)),
    };
    lines.iter().map(row).collect()
}

/// The edges of the rows. `is_table` if they have a separator of their own.
fn edges(mut rows: Vec<Row<'_>>, is_table: bool) -> Result<EdgeTable<'_>, TopologyError> {
    check_is_no_matrix(&rows)?;
    let Some(columns) = Columns::of(&rows)? else {
        let has_weights = rows.first().is_some_and(Row::has_weight);
        if let Some(row) = rows.iter().find(|row| is_table && names_columns(row)) {
            return Err(row.fault("names no columns `source` and `target`: call the columns with the ends of edges so"));
        }
        if let Some(row) = rows.iter().find(|row| !row.is_edge() || row.has_weight() != has_weights) {
            return Err(row.error());
        }
        check_third_columns(&rows)?;
        let edges = rows.iter().map(edge_without_header).collect();
        return Ok(EdgeTable { edges, has_header: false, has_separator: is_table });
    };
    let header = rows.remove(0);
    let edges = rows.iter().map(|row| columns.edge(row)).collect::<Result<Vec<_>, _>>()?;
    if edges.is_empty() {
        return Err(header.fault("names columns, and there is no edge below it: rename the nodes where it is an edge"));
    }
    Ok(EdgeTable { edges, has_header: true, has_separator: is_table })
}

/// Returns `true` for three words or more in which no cell is a number.
fn names_columns(row: &Row<'_>) -> bool {
    row.cells.len() > 2 && !row.is_arrow() && row.cells.iter().all(|cell| is_word(cell))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !is_number(text)
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// The edge in a row of two names, with an arrow between them or a number behind them.
fn edge_without_header<'t>(row: &Row<'t>) -> ListEdge<'t> {
    let one_way = row.is_arrow();
    let columns = if row.has_weight() { vec!["weight".into()] } else { Vec::new() };
    let ends = [row.cells[0].clone(), row.cells[if one_way { 2 } else { 1 }].clone()];
    ListEdge { line: row.line, ends, one_way, columns }
}

/// Refuses a list of neighbours (`0 1 5` for 0 - 1 and 0 - 5) that looks like edges with a weight each.
fn check_third_columns(rows: &[Row<'_>]) -> Result<(), TopologyError> {
    let Some(first) = rows.first() else { return Ok(()) };
    let nodes: BTreeSet<&str> = rows.iter().flat_map(|row| row.cells[..2].iter().map(|name| &**name)).collect();
    let starts: BTreeSet<&str> = rows.iter().map(|row| &*row.cells[0]).collect();
    let could_be_a_neighbor =
        |row: &Row<'_>| row.has_weight() && !row.cells[..2].contains(&row.cells[2]) && nodes.contains(&*row.cells[2]);
    if starts.len() == rows.len() && rows.iter().all(could_be_a_neighbor) {
        return Err(TopologyError::WeightOrNeighbor { line: first.line.number, text: shown(first.line.text) });
    }
    Ok(())
}

/// Refuses an adjacency matrix, with the names of the nodes or without them.
fn check_is_no_matrix(rows: &[Row<'_>]) -> Result<(), TopologyError> {
    let Some(first) = rows.first() else { return Ok(()) };
    let nodes = rows.len();
    let cell = |row: usize, column: usize| &*rows[row].cells[column];
    let is_square = nodes > 2 && rows.iter().all(|row| row.cells.len() == nodes);
    let are_numbers = || rows.iter().flat_map(|row| &row.cells).all(|cell| is_number(cell));
    let is_symmetric = || (0..nodes).all(|row| (0..row).all(|column| cell(row, column) == cell(column, row)));
    // Three edges with weights are as wide as they are many.
    let is_adjacency = || nodes > 3 || (is_symmetric() && (0..nodes).all(|row| cell(row, row) == "0"));
    let has_names = || first.cells[0].is_empty() && (1..nodes).all(|node| cell(0, node) == cell(node, 0));
    if is_square && (has_names() || (are_numbers() && is_adjacency())) {
        return Err(first.fault(
            "looks like the first line of an adjacency matrix: write edges, one on each line (networkx.write_edgelist)",
        ));
    }
    Ok(())
}

/// The first line where all could end in a number with a decimal comma, as in `ana ben 0,5`.
fn decimal_comma<'t>(table: &EdgeTable<'t>, separator: char) -> Option<ListLine<'t>> {
    let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let could_be = |edge: &ListEdge<'_>| {
        let before = edge.ends[0].rsplit_once(' ').map(|(_, last)| last);
        before.is_some_and(is_whole) && is_whole(&edge.ends[1])
    };
    let is_everywhere = separator == ',' && !table.has_header && table.edges.iter().all(could_be);
    table.edges.first().filter(|_| is_everywhere).map(|edge| edge.line)
}

/// Names the first line where it may be a header with unknown names: it joins two nodes that no other line names, and
/// the graph falls into parts.
fn header_or(error: TopologyError, table: &EdgeTable<'_>) -> TopologyError {
    let [first, rest @ ..] = &table.edges[..] else { return error };
    let is_alone = !rest.iter().flat_map(|edge| &edge.ends).any(|end| first.ends.contains(end));
    let is_word = first.ends.iter().all(|end| is_word(end));
    let may_have_header = table.has_separator && !table.has_header;
    match error {
        TopologyError::Disconnected { .. } if is_alone && is_word && may_have_header && rest.len() > 1 => fault(
            first.line,
            "joins two nodes that no other line names: where it is a header, call the columns `source` and `target`, and \
             where it is an edge, add the one that joins these nodes to others",
        ),
        _ => error,
    }
}

fn not_an_edge(line: ListLine<'_>) -> TopologyError {
    TopologyError::EdgeList { line: line.number, text: shown(line.text) }
}

fn fault(line: ListLine<'_>, reason: impl Into<String>) -> TopologyError {
    TopologyError::EdgeLine { line: line.number, text: shown(line.text), reason: reason.into() }
}

/// The start of a line, for a message.
fn shown(line: &str) -> String {
    line.trim().chars().take(80).collect()
}

/// The keys of a dictionary as Python prints it: words in quotes before a colon.
fn keys(dictionary: &str) -> impl Iterator<Item = &str> {
    let mut rest = dictionary;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(['\'', '"'])?;
            let quote = if rest[start..].starts_with('"') { '"' } else { '\'' };
            let (word, behind) = rest[start + 1..].split_once(quote)?;
            rest = behind;
            if behind.trim_start().starts_with(':') {
                return Some(word);
            }
        }
    })
}

/// The names as numbers, if all of them are, in their usual form.
fn numbers(edges: &[ListEdge<'_>]) -> Option<Vec<u64>> {
    let names = edges.iter().flat_map(|edge| &edge.ends);
    names.map(|name| name.parse::<u64>().ok().filter(|number| number.to_string() == **name)).collect()
}
