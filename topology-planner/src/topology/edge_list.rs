//! Edge lists: two node names per line, `#` starts a comment, `->` between them makes the link one-way.

use super::{Builder, Topology, TopologyError};

/// Reads an edge list. Nodes are numbered in ascending order where all names are numbers, else as they appear.
pub(super) fn read(text: &str) -> Result<Topology, TopologyError> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let wrong = || TopologyError::EdgeList { line: at + 1, text: content.chars().take(80).collect() };
        lines.push(read_line(content).ok_or_else(wrong)?);
    }
    let mut builder = Builder::default();
    let mut numeric = numbers(&lines).unwrap_or_default();
    numeric.sort_unstable();
    numeric.dedup();
    for number in numeric {
        builder.node(&number.to_string())?;
    }
    for (u, v, one_way) in lines {
        let edge = (builder.node(u)?, builder.node(v)?);
        if one_way {
            builder.one_way.push(edge);
        } else {
            builder.edges.push(edge);
        }
    }
    builder.finish()
}

/// The two names on a line and whether an arrow stands between them.
fn read_line(content: &str) -> Option<(&str, &str, bool)> {
    let words: Vec<&str> = content.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
    match words[..] {
        [u, "->", v] if v != "->" => Some((u, v, true)),
        [u, v] if u != "->" && v != "->" => Some((u, v, false)),
        _ => None,
    }
}

/// The names as numbers, if all of them are, written in the usual way.
fn numbers(lines: &[(&str, &str, bool)]) -> Option<Vec<u64>> {
    let names = lines.iter().flat_map(|&(u, v, _)| [u, v]);
    names.map(|name| name.parse::<u64>().ok().filter(|number| number.to_string() == name)).collect()
}
