//! Edges, features and labels as text.

mod edges;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::lines::LineReader;
use super::{MOST_FEATURES, ReadError};
use crate::graph::Graph;
use crate::node_data::NodeData;

/// Features of nodes, row by row, and their labels.
struct NodeFeatures {
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
    let edges = one_of(&[named("edges.txt"), named("edges.csv")])?;
    let sparse_file = LineReader::open_one_of(&[named("features.svm")])?;
    let dense_file = LineReader::open_one_of(&[named("features.csv")])?;
    let nodes = match (sparse_file, dense_file) {
        (Some(lines), None) => sparse(lines)?,
        (None, Some(lines)) => dense(lines, one_of(&[named("labels.csv")])?)?,
        (Some(one), Some(other)) => return Err(ReadError::Twice { path: one.path, other: other.path }),
        (None, None) => return Err(ReadError::Missing { path: named("features.csv") }),
    };
    joined(edges, nodes, path)
}

/// The graph of some edges between nodes.
fn joined(edges: LineReader, nodes: NodeFeatures, path: &Path) -> Result<NodeData, ReadError> {
    let file = edges.path.clone();
    let edges = edges::read(edges, nodes.labels.len())?;
    let graph =
        Graph::from_edges(nodes.labels.len(), edges).map_err(|source| ReadError::Graph { path: file, source })?;
    let NodeFeatures { features, columns, labels } = nodes;
    NodeData::new(graph, features, columns, labels, None)
        .map_err(|source| ReadError::Data { path: path.to_owned(), source })
}

/// The one of these files that is there.
fn one_of(paths: &[PathBuf]) -> Result<LineReader, ReadError> {
    LineReader::open_one_of(paths)?.ok_or_else(|| ReadError::Missing { path: paths[0].clone() })
}

fn is_empty(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// A cell without the quotes around it.
fn unquoted(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell)
}

/// Reads a label, then `feature:value`, for each node in order. Features count from 0 if feature 0 occurs, else from 1.
fn sparse(mut lines: LineReader) -> Result<NodeFeatures, ReadError> {
    let mut labels = Vec::new();
    let mut entries = Vec::new();
    let mut columns = 0;
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
        let mut there = BTreeSet::new();
        if let Some((column, _)) = parsed.iter().find(|(column, _)| !there.insert(*column)) {
            return Err(lines.fault(format!("feature {column} is there twice: keep one of its values")));
        }
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
    Ok(NodeFeatures { features, columns, labels })
}

fn too_many(nodes: usize, columns: usize) -> String {
    format!("{nodes} nodes of {columns} features are more than the {MOST_FEATURES} numbers accepted")
}

fn entry(text: &str) -> Option<(usize, f32)> {
    let (feature, value) = text.split_once(':')?;
    let column = feature.parse::<usize>().ok().filter(|&column| column < MOST_FEATURES)?;
    Some((column, value.parse::<f32>().ok().filter(|value| value.is_finite())?))
}

/// A label; `Some(None)` where it is unknown, `None` where the text is no label. Programs write whole numbers beside
/// gaps as `3.0`, and gaps as `nan`.
fn label(text: &str) -> Option<Option<u16>> {
    let text = unquoted(text);
    if ["", "-1", "-1.0"].contains(&text) || text.eq_ignore_ascii_case("nan") || text == "NA" {
        return Some(None);
    }
    text.strip_suffix(".0").unwrap_or(text).parse().ok().map(Some)
}

/// A matrix in row-major order.
#[derive(Default)]
struct Matrix {
    values: Vec<f32>,
    columns: usize,
    /// `true` if a first line of words named the columns.
    has_header: bool,
}

/// Labels, and their first line.
#[derive(Default)]
struct Labels {
    known: Vec<Option<u16>>,
    /// `true` if a first line of words named the column.
    has_header: bool,
    /// `true` if the first line is `0`: pandas calls a column without a name so.
    begins_with_zero: bool,
}

impl Matrix {
    fn rows(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    /// Returns `true` if the first row counts 0, 1, 2 or 1, 2, 3, as a generated header does, and no other is the same.
    fn begins_with_numbers_of_columns(&self) -> bool {
        let mut rows = self.values.chunks_exact(self.columns.max(1));
        let Some(first) = rows.next().filter(|_| !self.has_header && self.columns >= 2) else { return false };
        count_up(&first.iter().copied()) && !rows.any(|row| row == first)
    }

    /// Returns `true` if the first column counts the rows from 0 or 1, as an index that a program has written does.
    fn begins_with_numbers_of_rows(&self) -> bool {
        let column = self.values.chunks_exact(self.columns.max(1)).map(|row| row[0]);
        !self.has_header && self.columns >= 2 && self.rows() >= ROWS_COUNTED && count_up(&column)
    }
}

/// Returns `true` if the values count up by one, from 0 or 1.
fn count_up(values: &(impl Iterator<Item = f32> + Clone)) -> bool {
    let counts_from = |begin: usize| values.clone().zip(begin..).all(|(value, number)| value == number as f32);
    counts_from(0) || counts_from(1)
}

/// The error for a first column without a name.
const INDEX_COLUMN: &str =
    "the first column has no name: it looks like the index that pandas writes; leave it out with index=False";
/// The fewest rows that are taken for counted by the first column.
const ROWS_COUNTED: usize = 5;
/// Names of columns that number nodes, in lower case.
const NUMBERS_OF_NODES: [&str; 8] = ["id", "node", "nodeid", "node_id", "node id", "index", "idx", "unnamed: 0"];

/// Reads a row of numbers for each node, separated by commas, semicolons or tabs, and a label for each in another file.
/// First lines of words are headers. A first line that counts columns is one where the labels are fewer by one, and a
/// node where their first line is a word, or no number that a program gives to a column.
fn dense(mut features: LineReader, mut labels: LineReader) -> Result<NodeFeatures, ReadError> {
    let mut matrix = read_matrix(&mut features)?;
    let Labels { known, has_header, begins_with_zero } = read_labels(&mut labels)?;
    let fault = |reason: &str| ReadError::Line { path: features.path.clone(), line: 1, reason: reason.to_owned() };
    if matrix.begins_with_numbers_of_columns() {
        if known.len() + 1 == matrix.rows() {
            matrix.values.drain(..matrix.columns);
        } else if !has_header && begins_with_zero {
            return Err(fault(
                "this line counts its columns, and the labels begin with 0: are these headers, or a node? Write a first line \
                 with names that are no numbers into both files, in place of these lines or above them",
            ));
        }
    }
    if matrix.begins_with_numbers_of_rows() {
        return Err(fault(
            "the first column counts the rows: leave it out if it is the number of the node; if it is a feature, write a first \
             line with the names of the columns",
        ));
    }
    let nodes = matrix.rows();
    if known.len() > nodes {
        return Err(
            labels.fault(format!("a label too many: there are features of {nodes} nodes, and {} labels", known.len()))
        );
    }
    if known.len() < nodes {
        return Err(labels.fault(format!("{} labels, and features of {nodes} nodes", known.len())));
    }
    Ok(NodeFeatures { features: matrix.values, columns: matrix.columns, labels: known })
}

fn read_matrix(lines: &mut LineReader) -> Result<Matrix, ReadError> {
    let mut matrix = Matrix::default();
    let mut may_be_header = true;
    while let Some(line) = lines.next()? {
        if is_empty(line) {
            continue;
        }
        let cells: Vec<&str> = line.split([',', ';', '\t']).map(unquoted).collect();
        let row: Option<Vec<f32>> = cells.iter().map(|cell| feature(cell)).collect();
        let is_header = std::mem::take(&mut may_be_header) && cells.iter().all(|cell| feature(cell).is_none());
        if is_header && cells[0].is_empty() {
            return Err(lines.fault(INDEX_COLUMN));
        }
        let numbers_nodes = |cell: &&&str| NUMBERS_OF_NODES.contains(&cell.to_ascii_lowercase().as_str());
        if let Some(name) = cells.iter().find(numbers_nodes).filter(|_| is_header) {
            let reason = format!(
                "the column `{name}` looks like the number of the node, and would be a feature: order the lines by it and leave it out"
            );
            return Err(lines.fault(reason));
        }
        matrix.has_header |= is_header;
        match row {
            Some(row) if matrix.columns == 0 || row.len() == matrix.columns => {
                matrix.columns = row.len();
                matrix.values.extend(row);
            }
            Some(row) => {
                let reason = format!("{} numbers, where the lines before have {}", row.len(), matrix.columns);
                return Err(lines.fault(reason));
            }
            None if is_header => {}
            None => {
                let cell = cells.iter().find(|cell| feature(cell).is_none()).copied().unwrap_or_default();
                let reason = format!("{cell:?} is no finite number: features are, with commas between them");
                return Err(lines.fault(reason));
            }
        }
        if matrix.values.len() > MOST_FEATURES {
            return Err(lines.fault(too_many(matrix.rows(), matrix.columns)));
        }
    }
    Ok(matrix)
}

/// A number, or `True` and `False` as 1 and 0.
fn feature(cell: &str) -> Option<f32> {
    match cell {
        "True" | "TRUE" | "true" => Some(1.0),
        "False" | "FALSE" | "false" => Some(0.0),
        _ => cell.parse().ok().filter(|value: &f32| value.is_finite()),
    }
}

/// Reads one label a line; empty lines at the end are ignored.
fn read_labels(lines: &mut LineReader) -> Result<Labels, ReadError> {
    let mut labels = Labels::default();
    let known = &mut labels.known;
    let mut gap = 0;
    while let Some(line) = lines.next()? {
        let is_gap = line.trim().is_empty();
        let is_word = line.parse::<f64>().is_err();
        let is_zero = unquoted(line) == "0";
        let label = label(line);
        let is_first = lines.line() == 1;
        labels.begins_with_zero |= is_first && is_zero;
        match label {
            Some(_) if is_gap => gap += 1,
            Some(label) => {
                known.extend(std::iter::repeat_n(None, std::mem::take(&mut gap)));
                known.push(label);
            }
            None if is_first && is_word => labels.has_header = true,
            None => return Err(lines.fault(no_label(lines.text()))),
        }
        if known.len() + gap > Graph::NODES_MAX {
            return Err(lines.fault(format!("more than the {} nodes accepted", Graph::NODES_MAX)));
        }
    }
    Ok(labels)
}

fn no_label(line: &str) -> &'static str {
    if line.contains([',', ';', '\t']) {
        return "a line holds a label and nothing else: leave the other columns out, with the lines in the order of the features";
    }
    "a label is a whole number from 0; -1 or nothing where it is not known"
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

    fn lines(bytes: &[u8]) -> LineReader {
        LineReader::of("lines".into(), Cursor::new(bytes.to_vec())).unwrap()
    }

    fn graph(edges: &[u8], nodes: Result<NodeFeatures, ReadError>) -> Result<NodeData, ReadError> {
        joined(lines(edges), nodes?, Path::new("graph"))
    }

    #[test]
    fn edges_are_read_as_programs_write_them_and_never_left_out() {
        let nodes = || dense(lines(FEATURES.as_bytes()), lines(LABELS.as_bytes()));
        let count = |text: &str| graph(text.as_bytes(), nodes()).map(|data| data.graph().edge_count());
        for text in [
            "\"0\",\"1\"\n\"1\",\"2\"\n",
            "\"from\",\"to\"\r\n\"0\",\"1\"\r\n1,2\r\n",
            "0 1 {}\n1 2 {'weight': 3}\n",
            "\u{feff}0;1\n1;2\n",
        ] {
            assert_eq!(count(text).unwrap(), 2, "{text}");
        }
        let fails = |text: &str| count(text).unwrap_err().to_string();
        assert!(fails("from,to\nana,ben\n").contains("line 2: \"ana\" is no number of a node"));
        assert!(fails("ana,ben\nben,cho\n").contains("line 2: \"ben\" is no number"));
        assert!(fails("from,to\n").contains("there is no edge in it"));
        for empty in ["0,,1\n", ",0,1\n", "0,\n1\n"] {
            assert!(fails(empty).contains("line 1: "), "{empty}");
        }
        assert!(fails("0,1,0.5\n").contains("line 1: an edge is two numbers of nodes"));
    }

    #[test]
    fn a_line_that_counts_the_columns_is_no_node() {
        let read = |features: &str, labels: &str| dense(lines(features.as_bytes()), lines(labels.as_bytes()));
        let refused = read("0,1,2\n5,6,7\n8,9,10\n", "0\n0\n1\n").err().unwrap().to_string();
        assert!(refused.contains("line 1: this line counts its columns"), "{refused}");
        let found = read("0,1,2\n5,6,7\n8,9,10\n", "y\n0\n1.0\n").unwrap();
        assert_eq!((found.features, found.labels), (vec![5.0, 6.0, 7.0, 8.0, 9.0, 10.0], vec![Some(0), Some(1)]));
        let refused = read(",a,b\n0,5,6\n", "0\n").err().unwrap().to_string();
        assert!(refused.contains("index=False"), "{refused}");
        assert_eq!(read("True;\"7\"\nFalse;3\n", "0\nnan\n").unwrap().features, [1.0, 7.0, 0.0, 3.0]);
    }

    #[test]
    fn headers_of_numbers_and_numbers_of_nodes_are_no_nodes_and_no_features() {
        let read = |features: &str, labels: &str| dense(lines(features.as_bytes()), lines(labels.as_bytes()));
        let refused = |features: &str, labels: &str| read(features, labels).err().unwrap().to_string();
        // Two headers of numbers, as pandas writes them, would be one node more.
        let both = refused("0,1\n5,6\n7,8\n", "0\n1\n2\n");
        assert!(both.contains("line 1: this line counts its columns, and the labels begin with 0"), "{both}");
        // What the message asks for is read, in either sense.
        assert_eq!(read("a,b\n5,6\n7,8\n", "label\n1\n2\n").unwrap().labels, [Some(1), Some(2)]);
        assert_eq!(read("a,b\n0,1\n5,6\n7,8\n", "label\n0\n1\n2\n").unwrap().features[..2], [0.0, 1.0]);
        assert_eq!(read("0,1\n5,6\n", "label\n0\n1\n").unwrap().features[..2], [0.0, 1.0]);
        assert_eq!(read("0,1\n5,6\n", "1\n0\n").unwrap().features[..2], [0.0, 1.0]);
        // A row that comes again is no header: one of two columns is 1.
        assert_eq!(read("0,1\n1,0\n0,1\n", "0\n1\n0\n").unwrap().labels.len(), 3);
        for name in ["id", "Node_ID", "\"index\"", "Unnamed: 0"] {
            let refused = refused(&format!("{name},a\n1,5\n0,6\n"), "0\n1\n");
            assert!(refused.contains("line 1: the column") && refused.contains("number of the node"), "{refused}");
        }
        let counted = "0,7\n1,7\n2,8\n3,8\n4,9\n";
        assert!(refused(counted, "1\n1\n1\n1\n1\n").contains("the first column counts the rows"));
        assert_eq!(read(&format!("a,b\n{counted}"), "1\n1\n1\n1\n1\n").unwrap().columns, 2);
        let wide = refused("a,b\n1,2\n", "id,label\n0,1\n");
        assert!(wide.contains("line 2: a line holds a label and nothing else"), "{wide}");
        let twice = sparse(lines(b"0 1:1 2:1\n1 3:1 3:2\n")).err().unwrap().to_string();
        assert!(twice.contains("line 2: feature 3 is there twice"), "{twice}");
    }

    #[test]
    fn parts_of_a_graph_that_are_there_twice_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let refused = |remove: &str| {
            let refused = read(folder.path()).err().unwrap().to_string();
            std::fs::remove_file(folder.path().join(remove)).unwrap();
            refused
        };
        for (name, text) in [("edges.csv", EDGES), ("features.csv", FEATURES), ("labels.csv", LABELS)] {
            write(name, text);
        }
        for (name, text) in [("edges.txt", "0 1\n"), ("features.svm", SPARSE), ("labels.csv.gz", LABELS)] {
            write(name, text);
            let refused = refused(name);
            assert!(refused.contains(name) && refused.ends_with("are both there: keep one"), "{refused}");
        }
        assert_eq!(read(folder.path()).unwrap().graph().edge_count(), 3);
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
                if let Ok(NodeFeatures { features, columns, labels }) = &nodes {
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
            if let Ok(NodeFeatures { features, columns, labels }) = &nodes {
                assert_eq!(features.len(), columns * labels.len());
            }
            let _ = graph(b"0,1\n", nodes);
        });
    }
}
