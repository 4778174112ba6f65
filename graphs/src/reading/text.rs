//! Edges, features and labels as text.

use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::{MOST_EDGES, MOST_FEATURES, ReadError};
use crate::graph::Graph;
use crate::node_data::NodeData;

/// Features of nodes, row by row, and their labels.
struct Nodes {
    features: Vec<f32>,
    columns: usize,
    labels: Vec<Option<u16>>,
}

pub(super) fn read(path: &Path) -> Result<NodeData, ReadError> {
    let named = |name: &str| {
        if path.is_dir() {
            return path.join(name);
        }
        let mut prefixed = path.as_os_str().to_owned();
        prefixed.push(".");
        prefixed.push(name);
        PathBuf::from(prefixed)
    };
    let edges = first_of(&[named("edges.txt"), named("edges.csv")])?;
    let nodes = match Lines::open(&named("features.svm"))? {
        Some(lines) => sparse(lines)?,
        None => dense(first_of(&[named("features.csv")])?, first_of(&[named("labels.csv")])?)?,
    };
    joined(edges, nodes, path)
}

/// The graph of some edges between nodes.
fn joined(edges: Lines, nodes: Nodes, path: &Path) -> Result<NodeData, ReadError> {
    let file = edges.path.clone();
    let edges = read_edges(edges, nodes.labels.len())?;
    let graph =
        Graph::from_edges(nodes.labels.len(), edges).map_err(|source| ReadError::Graph { path: file, source })?;
    let Nodes { features, columns, labels } = nodes;
    NodeData::new(graph, features, columns, labels, None)
        .map_err(|source| ReadError::Data { path: path.to_owned(), source })
}

fn first_of(paths: &[PathBuf]) -> Result<Lines, ReadError> {
    for path in paths {
        if let Some(lines) = Lines::open(path)? {
            return Ok(lines);
        }
    }
    Err(ReadError::Missing { path: paths[0].clone() })
}

fn is_empty(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Two nodes a line, with a comma, spaces or a tab between them. A first line of words is a header.
fn read_edges(mut lines: Lines, nodes: usize) -> Result<Vec<(u32, u32)>, ReadError> {
    let mut edges = Vec::new();
    while let Some(line) = lines.next()? {
        if is_empty(line) {
            continue;
        }
        let mut parts = line.split([',', ' ', '\t']).filter(|part| !part.is_empty());
        let pair = (parts.next().and_then(|one| one.parse().ok()), parts.next().and_then(|other| other.parse().ok()));
        let is_header = edges.is_empty() && !line.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        match (pair, parts.next()) {
            ((Some(one), Some(other)), None) => {
                if let Some(node) = [one, other].into_iter().find(|&node: &u32| node as usize >= nodes) {
                    let reason = format!("node {node} has no features: they are there for {nodes} nodes, from 0");
                    return Err(lines.fault(reason));
                }
                edges.push((one, other));
            }
            _ if is_header => {}
            _ => return Err(lines.fault("an edge is two numbers of nodes, such as 0,5")),
        }
        if edges.len() > MOST_EDGES {
            return Err(lines.fault(format!("more than the {MOST_EDGES} edges accepted")));
        }
    }
    Ok(edges)
}

/// A label, then `feature:value`, for each node in order. Features count from 1, or from 0 where there is one of that number.
fn sparse(mut lines: Lines) -> Result<Nodes, ReadError> {
    let (mut labels, mut entries, mut columns) = (Vec::new(), Vec::new(), 0);
    while let Some(line) = lines.next()? {
        if is_empty(line) {
            continue;
        }
        let mut parts = line.split_ascii_whitespace();
        let label = parts.next().and_then(label);
        let row = labels.len();
        let parsed: Option<Vec<(usize, f32)>> = parts.map(entry).collect();
        let (Some(label), Some(parsed)) = (label, parsed) else {
            return Err(lines.fault("a node is a label and its features, such as 2 17:1 301:0.5"));
        };
        columns = parsed.iter().map(|(column, _)| column + 1).fold(columns, usize::max);
        entries.extend(parsed.into_iter().map(|(column, value)| (row, column, value)));
        labels.push(label);
        if labels.len().saturating_mul(columns) > MOST_FEATURES {
            return Err(lines.fault(too_many(labels.len(), columns)));
        }
    }
    let first = entries.iter().map(|(_, column, _)| *column).min().map_or(0, |least| least.min(1));
    let columns = columns - first;
    let mut features = vec![0.0; labels.len() * columns];
    let entries = entries.into_iter().map(|(row, column, value)| (row * columns + column - first, value));
    entries.for_each(|(place, value)| features[place] = value);
    Ok(Nodes { features, columns, labels })
}

fn too_many(nodes: usize, columns: usize) -> String {
    format!("{nodes} nodes of {columns} features are more than the {MOST_FEATURES} numbers accepted")
}

fn entry(text: &str) -> Option<(usize, f32)> {
    let (feature, value) = text.split_once(':')?;
    let column = feature.parse::<usize>().ok().filter(|&column| column < MOST_FEATURES)?;
    Some((column, value.parse::<f32>().ok().filter(|value| value.is_finite())?))
}

/// `None` where it is no label at all.
fn label(text: &str) -> Option<Option<u16>> {
    match text.trim() {
        "" | "-1" => Some(None),
        text => text.parse().ok().map(Some),
    }
}

/// A row of numbers for each node, with commas, and a label for each in a file of its own. First lines of words are headers.
fn dense(mut features: Lines, mut labels: Lines) -> Result<Nodes, ReadError> {
    let (mut values, mut columns) = (Vec::new(), 0);
    while let Some(line) = features.next()? {
        if is_empty(line) {
            continue;
        }
        let row: Result<Vec<f32>, _> = line.split(',').map(|cell| cell.trim().parse::<f32>()).collect();
        let is_header = values.is_empty() && columns == 0;
        match row {
            Ok(row) if row.iter().all(|value| value.is_finite()) && (columns == 0 || row.len() == columns) => {
                columns = row.len();
                values.extend(row);
            }
            Ok(row) if row.iter().all(|value| value.is_finite()) => {
                return Err(features.fault(format!("{} numbers, where the lines before have {columns}", row.len())));
            }
            // Once, before everything else.
            Err(_) if is_header && features.line() == 1 => {}
            _ => return Err(features.fault("features are finite numbers with commas between them")),
        }
        if values.len() > MOST_FEATURES {
            return Err(features.fault(too_many(values.len() / columns.max(1), columns)));
        }
    }
    let nodes = values.len() / columns.max(1);
    let mut known = Vec::new();
    while let Some(line) = labels.next()? {
        match label(line) {
            Some(label) if known.len() < nodes => known.push(label),
            // An empty last line is none.
            Some(None) => {}
            Some(_) => return Err(labels.fault(format!("a label too many: there are features of {nodes} nodes"))),
            None if known.is_empty() && labels.line() == 1 => {}
            None => return Err(labels.fault("a label is a whole number from 0; -1 or nothing where it is not known")),
        }
    }
    if known.len() < nodes {
        return Err(labels.fault(format!("{} labels, and features of {nodes} nodes", known.len())));
    }
    Ok(Nodes { features: values, columns, labels: known })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Cursor;

    use mingle_mutations::for_each_input;

    use super::*;

    const EDGES: &str = "one,other\n0,1\n# a triangle\n1 2\n2\t0\n1,0\n2,2\n";
    const FEATURES: &str = "a,b\n0.5,1\n-2,3e1\n0,0\n";
    const LABELS: &str = "label\n0\n-1\n2\n";
    const SPARSE: &str = "0 1:0.5 3:1\n-1\n2 2:-3e1\n";

    fn lines(bytes: &[u8]) -> Lines {
        Lines::of("lines".into(), Cursor::new(bytes.to_vec()))
    }

    fn graph(edges: &[u8], nodes: Result<Nodes, ReadError>) -> Result<NodeData, ReadError> {
        joined(lines(edges), nodes?, Path::new("graph"))
    }

    #[test]
    fn mutated_edges_are_refused_or_between_nodes() {
        let nodes = || dense(lines(FEATURES.as_bytes()), lines(LABELS.as_bytes()));
        let seeds = [EDGES.as_bytes().to_vec(), b"0,2\r\n1,2\r\n".to_vec()];
        assert_eq!(seeds.each_ref().map(|seed| graph(seed, nodes()).unwrap().graph().edge_count()), [3, 2]);
        for_each_input("graph_edges", &seeds, |input| {
            let Ok(data) = graph(input, nodes()) else { return };
            let graph = data.graph();
            assert!(graph.node_count() == 3 && graph.edge_count() <= 3);
        });
    }

    #[test]
    fn mutated_features_and_labels_are_refused_or_there_for_each_node() {
        let seeds = [FEATURES, LABELS, "1,2\r\n3,4\r\n5,6\r\n", "0\n\n1\n"].map(|seed| seed.as_bytes().to_vec());
        let edges = EDGES.as_bytes();
        assert!(graph(edges, dense(lines(&seeds[0]), lines(&seeds[3]))).is_ok());
        assert!(graph(edges, dense(lines(&seeds[2]), lines(&seeds[1]))).is_ok());
        for_each_input("graph_dense", &seeds, |input| {
            for (features, labels) in [(input, LABELS.as_bytes()), (FEATURES.as_bytes(), input)] {
                let nodes = dense(lines(features), lines(labels));
                if let Ok(Nodes { features, columns, labels }) = &nodes {
                    assert_eq!(features.len(), columns * labels.len());
                }
                let _ = graph(b"0,1\n", nodes);
            }
        });
    }

    #[test]
    fn mutated_sparse_features_are_refused_or_there_for_each_node() {
        let seeds = [SPARSE, "1 0:1\n2 4:2\n"].map(|seed| seed.as_bytes().to_vec());
        assert!(graph(EDGES.as_bytes(), sparse(lines(&seeds[0]))).is_ok() && sparse(lines(&seeds[1])).is_ok());
        for_each_input("graph_svm", &seeds, |input| {
            let nodes = sparse(lines(input));
            if let Ok(Nodes { features, columns, labels }) = &nodes {
                assert_eq!(features.len(), columns * labels.len());
            }
            let _ = graph(b"0,1\n", nodes);
        });
    }
}
