//! Edge lists: two node names per line, `#` starts a comment, `->` between them makes the link one-way. The names may
//! be followed by what networkx writes: attributes in braces, or a number on every line.

use std::collections::BTreeSet;

use super::TopologyError;
use super::builder::Builder;
use super::reading::{TopologyFormat, TopologyReading};

/// Names of the two columns with which a table of edges begins, in lower case.
const HEADERS: [(&str, &str); 4] = [("source", "target"), ("from", "to"), ("src", "dst"), ("u", "v")];

/// One edge of the list.
struct EdgeLine<'t> {
    number: usize,
    text: &'t str,
    u: &'t str,
    v: &'t str,
    one_way: bool,
    /// A third column.
    third: Option<&'t str>,
    /// The text in braces.
    attributes: &'t str,
}

impl EdgeLine<'_> {
    fn error(&self) -> TopologyError {
        TopologyError::EdgeList { line: self.number, text: shown(self.text) }
    }
}

/// Reads an edge list. Nodes are numbered in ascending order where all names are numbers, otherwise as they appear.
pub(super) fn read(text: &str) -> Result<TopologyReading, TopologyError> {
    let mut lines = Vec::new();
    for (at, text) in text.lines().enumerate() {
        if text.trim_start().starts_with('#') || text.trim().is_empty() {
            continue;
        }
        let wrong = || TopologyError::EdgeList { line: at + 1, text: shown(text) };
        lines.push(read_line(at + 1, text).ok_or_else(wrong)?);
    }
    if starts_with_a_header(&lines) {
        lines.remove(0);
    }
    check_third_columns(&lines)?;
    let mut builder = Builder::default();
    let mut numeric = numbers(&lines).unwrap_or_default();
    numeric.sort_unstable();
    numeric.dedup();
    for number in numeric {
        builder.node(&number.to_string())?;
    }
    for line in lines {
        let ends = (builder.node(line.u)?, builder.node(line.v)?);
        builder.link(ends, line.one_way);
        builder.note_attributes(line.third.map(|_| "weight").into_iter().chain(keys(line.attributes)));
    }
    builder.finish(TopologyFormat::EdgeList)
}

/// The start of a line, for a message.
fn shown(line: &str) -> String {
    line.trim().chars().take(80).collect()
}

/// An edge, if the line is written like one.
fn read_line(number: usize, text: &str) -> Option<EdgeLine<'_>> {
    let (names, attributes) = without_attributes(text)?;
    let words: Vec<&str> = names.split([' ', '\t', ',']).map(str::trim).filter(|word| !word.is_empty()).collect();
    let (u, v, one_way, third) = match words[..] {
        [u, "->", v] => (u, v, true, None),
        [u, v] => (u, v, false, None),
        [u, v, third] => (u, v, false, Some(third)),
        _ => return None,
    };
    let has_arrow = [u, v].contains(&"->") || third == Some("->");
    (!has_arrow).then_some(EdgeLine { number, text, u, v, one_way, third, attributes })
}

/// The text before the braces or the comment, and the text in the braces.
fn without_attributes(text: &str) -> Option<(&str, &str)> {
    let comment = text.find('#').unwrap_or(text.len());
    let brace = [" {", "\t{", ",{"].iter().filter_map(|mark| text.find(mark)).min();
    let Some(brace) = brace.filter(|&brace| brace < comment) else {
        return Some((&text[..comment], ""));
    };
    let (names, braced) = text.split_at(brace + 1);
    let end = braced.rfind('}')?;
    let behind = braced[end + 1..].trim_start();
    (behind.is_empty() || behind.starts_with('#')).then_some((names, &braced[1..end]))
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

/// Returns `true` if the first line names the columns: as an edge it would join two nodes that no other line names.
fn starts_with_a_header(lines: &[EdgeLine<'_>]) -> bool {
    let [first, rest @ ..] = lines else { return false };
    let names = (first.u.to_ascii_lowercase(), first.v.to_ascii_lowercase());
    HEADERS.contains(&(names.0.as_str(), names.1.as_str()))
        && !rest.is_empty()
        && !rest.iter().any(|line| [line.u, line.v].iter().any(|name| *name == first.u || *name == first.v))
}

/// Checks that third columns are weights: numbers, on every line. A list of neighbours (`0 1 5` for 0 - 1 and 0 - 5)
/// can look the same, and is refused where it does.
fn check_third_columns(lines: &[EdgeLine<'_>]) -> Result<(), TopologyError> {
    let Some(first) = lines.first() else { return Ok(()) };
    for line in lines {
        let is_number = |text: &str| text.parse::<f64>().is_ok();
        if line.third.is_some() != first.third.is_some() || line.third.is_some_and(|third| !is_number(third)) {
            return Err(line.error());
        }
    }
    let nodes: BTreeSet<&str> = lines.iter().flat_map(|line| [line.u, line.v]).collect();
    let starts: BTreeSet<&str> = lines.iter().map(|line| line.u).collect();
    let could_be_a_neighbor = |line: &EdgeLine<'_>| {
        line.third.is_some_and(|third| third != line.u && third != line.v && nodes.contains(third))
    };
    if starts.len() == lines.len() && lines.iter().all(could_be_a_neighbor) {
        return Err(TopologyError::WeightOrNeighbor { line: first.number, text: shown(first.text) });
    }
    Ok(())
}

/// The names as numbers, if all of them are, in their usual form.
fn numbers(lines: &[EdgeLine<'_>]) -> Option<Vec<u64>> {
    let names = lines.iter().flat_map(|line| [line.u, line.v]);
    names.map(|name| name.parse::<u64>().ok().filter(|number| number.to_string() == name)).collect()
}
