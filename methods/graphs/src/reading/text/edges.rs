//! Edges as text.

use super::super::lines::LineReader;
use super::super::{MOST_EDGES, ReadError};
use super::{INDEX_COLUMN, is_empty, unquoted};

/// Reads edges: two nodes a line, in quotes or not, separated by a comma, a semicolon, spaces or a tab; networkx writes
/// `{}` after them. A first line of words alone is a header.
pub(super) fn read(mut lines: LineReader, nodes: usize) -> Result<Vec<(u32, u32)>, ReadError> {
    let mut edges = Vec::new();
    let mut may_be_header = true;
    while let Some(line) = lines.next()? {
        if is_empty(line) {
            continue;
        }
        let content = line.split_once('{').filter(|(_, data)| data.trim_end().ends_with('}'));
        let content = content.map_or(line, |(ends, _)| ends);
        let parts = parts(content);
        let is_header = std::mem::take(&mut may_be_header) && parts.iter().all(|part| part.parse::<f64>().is_err());
        if parts.contains(&"") {
            let reason =
                if is_header { INDEX_COLUMN } else { "a cell is empty: an edge is two numbers of nodes, such as 0,5" };
            return Err(lines.fault(reason));
        }
        match parts[..] {
            _ if is_header => {}
            [one, other] => match edge([one, other], nodes) {
                Ok(edge) => edges.push(edge),
                Err(reason) => return Err(lines.fault(reason)),
            },
            [_, _, ..] => {
                let reason =
                    "an edge is two numbers of nodes, such as 0,5, without a weight or anything else behind them";
                return Err(lines.fault(reason));
            }
            _ => return Err(lines.fault("an edge is two numbers of nodes, such as 0,5")),
        }
        if edges.len() > MOST_EDGES {
            return Err(lines.fault(format!("more than the {MOST_EDGES} edges accepted")));
        }
    }
    if edges.is_empty() {
        return Err(lines.fault("there is no edge in it: an edge is two numbers of nodes, such as 0,5"));
    }
    Ok(edges)
}

/// The cells between blanks, commas and semicolons; one is empty where a comma or semicolon stands beside nothing. A last
/// one may precede `{}`.
fn parts(content: &str) -> Vec<&str> {
    let content = content.trim().trim_end_matches([',', ';']);
    let cells = content.split([',', ';']).map(str::trim);
    cells
        .flat_map(|cell| {
            let words = cell.split([' ', '\t']).map(unquoted).filter(|word| !word.is_empty());
            let words: Vec<&str> = words.collect();
            if words.is_empty() { vec![""] } else { words }
        })
        .collect()
}

/// The edge between the nodes with these numbers.
fn edge(ends: [&str; 2], nodes: usize) -> Result<(u32, u32), String> {
    let node = |text: &str| {
        let node: u32 = text.parse().map_err(|_| no_number(text))?;
        if node as usize >= nodes {
            return Err(format!("node {node} has no features: they are there for {nodes} nodes, from 0"));
        }
        Ok(node)
    };
    Ok((node(ends[0])?, node(ends[1])?))
}

fn no_number(name: &str) -> String {
    format!(
        "{name:?} is no number of a node: number nodes from 0 in the order of their features, and write edges with these numbers, such as 0,5"
    )
}
