//! Formats of graphs that are not read, by their first words.

use super::TopologyError;

/// Formats, the beginnings of their texts in lower case, and what to do.
const FORMATS: [(&str, &[&str], &str); 4] = [
    (
        "a network of Pajek",
        &["*vertices", "*network"],
        "write GraphML: networkx.write_graphml(networkx.Graph(networkx.read_pajek(FILE)), FILE)",
    ),
    ("a matrix of Matrix Market", &["%%matrixmarket"], "write its edges, two numbers of nodes on each line"),
    ("graph6 or sparse6", &[">>graph6<<", ">>sparse6<<"], "write an edge list: networkx.write_edgelist"),
    ("a network of UCINET (DL)", &["dl n="], "write an edge list, two names on each line"),
];

/// Refuses a text that begins like one of the formats that are not read.
pub(super) fn check(text: &str) -> Result<(), TopologyError> {
    let start: String = text.trim_start().chars().take(40).collect::<String>().to_ascii_lowercase();
    if is_dot(&start, text) {
        return Err(TopologyError::Foreign {
            format: "a graph of Graphviz (DOT)",
            way_out: "write GML, as with gv2gml FILE",
        });
    }
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| start.starts_with(beginning));
    match FORMATS.into_iter().find(|(_, beginnings, _)| begins(beginnings)) {
        Some((format, _, way_out)) => Err(TopologyError::Foreign { format, way_out }),
        None => Ok(()),
    }
}

/// Returns `true` for `graph {` or `digraph name {` in the first lines. A brace behind two names holds attributes.
fn is_dot(start: &str, text: &str) -> bool {
    let begins = ["graph", "digraph", "strict"].iter().any(|word| start.starts_with(word));
    let opens = |line: &str| line.trim_end().ends_with('{') || (line.contains('{') && line.contains("--"));
    begins && text.trim_start().lines().take(3).any(opens)
}
