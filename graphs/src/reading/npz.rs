//! Arrays of numpy in a zip file (NEP 1): `node_features` `[nodes, features]`, `node_labels` `[nodes]` and `edges` `[edges, 2]`.
//!
//! The header of an array is a Python dictionary of three fields that numpy writes in one form; the crates that read it bring a parser
//! generator and C with them, so it is taken apart here. Archives are read with the `zip` crate.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use zip::ZipArchive;

use super::{MOST_EDGES, MOST_FEATURES, ReadError};
use crate::graph::Graph;
use crate::node_data::NodeData;

pub(super) fn read(path: &Path) -> Result<NodeData, ReadError> {
    let open = File::open(path).map_err(|source| ReadError::Read { path: path.to_owned(), source })?;
    read_from(BufReader::new(open), path)
}

/// The same of what is in the file at `path`.
fn read_from(file: impl Read + Seek, path: &Path) -> Result<NodeData, ReadError> {
    let mut archive = ZipArchive::new(file).map_err(|error| ReadError::Array {
        path: path.to_owned(),
        array: "all",
        reason: error.to_string(),
    })?;
    let mut array = |name: &'static str, most: usize| {
        let fault = |reason: String| ReadError::Array { path: path.to_owned(), array: name, reason };
        let file = archive.by_name(&format!("{name}.npy")).map_err(|error| fault(error.to_string()))?;
        Array::read(file, most).map_err(fault)
    };
    let fault = |array, reason: &str| ReadError::Array { path: path.to_owned(), array, reason: reason.to_owned() };
    let features = array("node_features", MOST_FEATURES)?;
    let [nodes, columns] = features.shape[..] else { return Err(fault("node_features", "it is no matrix")) };
    let labels = array("node_labels", Graph::NODES_MAX)?;
    if labels.shape != [nodes] {
        return Err(fault("node_labels", "there is not one label for each node"));
    }
    let edges = array("edges", 2 * MOST_EDGES)?;
    if edges.shape.len() != 2 || edges.shape[1] != 2 {
        return Err(fault("edges", "it is no matrix of two columns"));
    }
    let features = features.values.into_iter().map(|value| value as f32).collect();
    let labels: Option<Vec<Option<u16>>> = labels.values.into_iter().map(label).collect();
    let labels = labels.ok_or_else(|| fault("node_labels", "a label is no whole number from 0, nor -1"))?;
    let whole = |value: &f64| (*value >= 0.0 && *value < nodes as f64 && value.fract() == 0.0).then_some(*value as u32);
    let pairs: Option<Vec<(u32, u32)>> =
        edges.values.chunks_exact(2).map(|pair| Some((whole(&pair[0])?, whole(&pair[1])?))).collect();
    let pairs = pairs.ok_or_else(|| fault("edges", "an edge names a node that has no features"))?;
    let graph = Graph::from_edges(nodes, pairs).map_err(|source| ReadError::Graph { path: path.to_owned(), source })?;
    NodeData::new(graph, features, columns, labels, None)
        .map_err(|source| ReadError::Data { path: path.to_owned(), source })
}

fn label(value: f64) -> Option<Option<u16>> {
    if value == -1.0 {
        return Some(None);
    }
    (value.fract() == 0.0 && (0.0..f64::from(u16::MAX)).contains(&value)).then_some(Some(value as u16))
}

/// An array, in the order of rows.
struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Array {
    /// Reads an array of at most so many numbers. Memory grows as they arrive.
    fn read(mut file: impl Read, most: usize) -> Result<Self, String> {
        let mut head = [0; 10];
        file.read_exact(&mut head).map_err(|error| error.to_string())?;
        let (magic, length) = head.split_at(8);
        let length = match magic {
            b"\x93NUMPY\x01\x00" => u64::from(u16::from_le_bytes([length[0], length[1]])),
            _ => return Err("it is no array of numpy in format 1.0".to_owned()),
        };
        let mut header = String::new();
        file.by_ref().take(length).read_to_string(&mut header).map_err(|error| error.to_string())?;
        let Header { kind, by_columns, shape } = Header::parse(&header).ok_or("its header cannot be read")?;
        let count =
            shape.iter().try_fold(1_usize, |count, size| count.checked_mul(*size)).filter(|count| *count <= most);
        let count = count.ok_or_else(|| format!("it has more than the {most} numbers accepted"))?;
        let mut bytes = Vec::new();
        let expected = count * kind.bytes();
        file.take(expected as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() != expected {
            return Err(format!("{} of {expected} bytes are there", bytes.len()));
        }
        let values: Vec<f64> = bytes.chunks_exact(kind.bytes()).map(|bytes| kind.value(bytes)).collect();
        let values = match shape[..] {
            [rows, columns] if by_columns => (0..count).map(|at| values[at % columns * rows + at / columns]).collect(),
            _ => values,
        };
        Ok(Self { shape, values })
    }
}

/// What numbers an array has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    F32,
    F64,
    I32,
    I64,
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::I64 => 8,
        }
    }

    /// Of as many bytes.
    fn value(self, bytes: &[u8]) -> f64 {
        let four = || bytes.first_chunk().copied().unwrap_or_default();
        let eight = || bytes.first_chunk().copied().unwrap_or_default();
        match self {
            Self::F32 => f64::from(f32::from_le_bytes(four())),
            Self::I32 => f64::from(i32::from_le_bytes(four())),
            Self::F64 => f64::from_le_bytes(eight()),
            Self::I64 => i64::from_le_bytes(eight()) as f64,
        }
    }
}

#[derive(Debug, PartialEq)]
struct Header {
    kind: Kind,
    /// Whether columns come one after the other.
    by_columns: bool,
    shape: Vec<usize>,
}

impl Header {
    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (890, 2325), }`
    fn parse(text: &str) -> Option<Self> {
        let after = |field: &str| {
            let (_, rest) = text.split_once(field)?;
            rest.trim_start().strip_prefix(':').map(str::trim_start)
        };
        let kind = match after("'descr'")?.strip_prefix('\'')?.split_once('\'')?.0 {
            "<f4" => Kind::F32,
            "<f8" => Kind::F64,
            "<i4" => Kind::I32,
            "<i8" => Kind::I64,
            _ => return None,
        };
        let by_columns = after("'fortran_order'")?.starts_with("True");
        let shape = after("'shape'")?.strip_prefix('(')?.split_once(')')?.0;
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        Some(Self { kind, by_columns, shape: sizes.map(|size| size.parse().ok()).collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{Cursor, Write};

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    fn array(header: &str, values: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(values);
        bytes
    }

    #[test]
    fn arrays_are_read_by_rows_and_by_columns() {
        let values: Vec<u8> = (1..=6_i32).flat_map(i32::to_le_bytes).collect();
        let by_rows = array("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n", &values);
        let by_columns = array("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }\n", &values);
        assert_eq!(Array::read(&by_rows[..], 6).unwrap().values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(Array::read(&by_columns[..], 6).unwrap().values, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        assert!(Array::read(&by_rows[..], 5).is_err(), "more than accepted");
        assert!(Array::read(&by_rows[..by_rows.len() - 1], 6).is_err(), "cut");
    }

    #[test]
    fn mutated_archives_are_refused_or_read() {
        let of = |kind: &str, shape: &str, values: &[u8]| {
            array(&format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n"), values)
        };
        let arrays = [
            ("node_features", of("<f4", "(2, 1)", &[0, 0, 128, 63, 0, 0, 0, 64])),
            ("node_labels", of("<i4", "(2,)", &[1, 0, 0, 0, 255, 255, 255, 255])),
            ("edges", of("<i4", "(1, 2)", &[0, 0, 0, 0, 1, 0, 0, 0])),
        ];
        let seeds = [CompressionMethod::Stored, CompressionMethod::Deflated].map(|method| {
            let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
            let options = SimpleFileOptions::default().compression_method(method);
            for (name, bytes) in &arrays {
                archive.start_file(format!("{name}.npy"), options).unwrap();
                archive.write_all(bytes).unwrap();
            }
            archive.finish().unwrap().into_inner()
        });
        let read = |bytes: &[u8]| read_from(Cursor::new(bytes), Path::new("graph.npz"));
        assert!(seeds.iter().all(|seed| read(seed).unwrap().graph().edge_count() == 1));
        mingle_mutations::for_each_input("npz", &seeds, |bytes| {
            if let Ok(data) = read(bytes) {
                assert!(data.graph().node_count() > 0 || data.graph().edge_count() == 0);
            }
        });
    }

    #[test]
    fn mutated_arrays_are_refused_or_read() {
        let values: Vec<u8> = (1..=6).flat_map(|value| (value as f32).to_le_bytes()).collect();
        let seeds = ["(2, 3)", "(6,)", "(0, 3)"]
            .map(|shape| array(&format!("{{'descr': '<f4', 'fortran_order': True, 'shape': {shape}, }}\n"), &values));
        mingle_mutations::for_each_input("npy", &seeds, |bytes| {
            if let Ok(array) = Array::read(bytes, 1_000) {
                assert_eq!(array.values.len(), array.shape.iter().product::<usize>());
            }
        });
    }
}
