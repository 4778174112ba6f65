//! Arrays of numpy in a zip file (NEP 1): `node_features` `[nodes, features]`, `node_labels` `[nodes]` and `edges` `[edges, 2]`.
//!
//! The header of an array is a Python dictionary of three fields that numpy writes in one form. The crates that read it
//! depend on a parser generator and C, so it is parsed here. Archives are read with the `zip` crate.

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

/// Reads a graph from `file`; `path` names it in errors.
fn read_from(file: impl Read + Seek, path: &Path) -> Result<NodeData, ReadError> {
    let fault = |array: &'static str| move |reason| ReadError::Array { path: path.to_owned(), array, reason };
    let mut archive = ZipArchive::new(file).map_err(|error| fault("all")(error.to_string()))?;
    let mut array = |names: [&'static str; 3], most: usize| -> Result<(&'static str, Array), ReadError> {
        let name = name_of(&archive, names).map_err(fault(names[0]))?;
        let file = archive.by_name(&format!("{name}.npy")).map_err(|error| fault(name)(error.to_string()))?;
        Ok((name, Array::read(file, most).map_err(fault(name))?))
    };
    let (name, features) = array(["node_features", "x", "features"], MOST_FEATURES)?;
    let [nodes, columns] = features.shape[..] else { return Err(fault(name)("it is no matrix".to_owned())) };
    let (labels_name, labels) = array(["node_labels", "y", "labels"], Graph::NODES_MAX)?;
    if labels.shape != [nodes] && labels.shape != [nodes, 1] {
        return Err(fault(labels_name)(format!(
            "it has the shape {:?}, and one label is needed for each of the {nodes} nodes",
            labels.shape
        )));
    }
    let (name, edges) = array(["edges", "edge_index", "edge_list"], 2 * MOST_EDGES)?;
    let edges = edges.pairs(name == "edge_index").map_err(fault(name))?;
    let features = features.values.into_iter().map(|value| value as f32).collect();
    let labels: Option<Vec<Option<u16>>> = labels.values.into_iter().map(label).collect();
    let labels = labels.ok_or_else(|| {
        fault(labels_name)("a label is no whole number from 0, nor -1 or nan where it is not known".to_owned())
    })?;
    let pairs = edges_between(nodes, &edges.values).map_err(fault(name))?;
    let graph = Graph::from_edges(nodes, pairs).map_err(|source| ReadError::Graph { path: path.to_owned(), source })?;
    NodeData::new(graph, features, columns, labels, None)
        .map_err(|source| ReadError::Data { path: path.to_owned(), source })
}

/// The one of these names that an array in the archive has.
fn name_of(archive: &ZipArchive<impl Read + Seek>, names: [&'static str; 3]) -> Result<&'static str, String> {
    let is_there = |name: &&&str| archive.index_for_name(&format!("{name}.npy")).is_some();
    let found: Vec<&'static str> = names.iter().filter(is_there).copied().collect();
    match found[..] {
        [name] => Ok(name),
        [] => {
            let names_there = archive.file_names().filter_map(Result::ok).take(ARRAYS_SHOWN);
            let there: Vec<String> = names_there.map(|name| name.into_owned()).collect();
            Err(format!("it is not there, nor as {} or {}: {}", names[1], names[2], there.join(", ")))
        }
        _ => Err(format!("it is there more than once, as {}: keep one", found.join(" and "))),
    }
}

/// The edges with these ends in turn.
fn edges_between(nodes: usize, ends: &[f64]) -> Result<Vec<(u32, u32)>, String> {
    let node = |end: f64| {
        if end.fract() != 0.0 {
            return Err(format!("{end} is no number of a node: nodes are numbered from 0"));
        }
        let is_there = end >= 0.0 && end < nodes as f64;
        is_there
            .then_some(end as u32)
            .ok_or_else(|| format!("node {end} has no features: they are there for {nodes} nodes, from 0"))
    };
    ends.chunks_exact(2).map(|pair| Ok((node(pair[0])?, node(pair[1])?))).collect()
}

fn label(value: f64) -> Option<Option<u16>> {
    if value == -1.0 || value.is_nan() {
        return Some(None);
    }
    (value.fract() == 0.0 && (0.0..f64::from(u16::MAX)).contains(&value)).then_some(Some(value as u16))
}

/// The most names of arrays that an error lists.
const ARRAYS_SHOWN: usize = 10;
/// The most bytes of a header.
const HEADER_MAX: u64 = 1 << 16;

/// An array in row-major order.
struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Array {
    /// Reads an array of at most `most` numbers. Memory grows as they arrive.
    fn read(mut file: impl Read, most: usize) -> Result<Self, String> {
        let Header { kind, by_columns, shape } = Header::read(&mut file)?;
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

    /// The array as rows of two columns; an array of two rows is transposed. An array of two rows and two columns has
    /// its pairs in columns if `by_columns`.
    fn pairs(self, by_columns: bool) -> Result<Self, String> {
        match self.shape[..] {
            [2, columns] if by_columns || columns != 2 => Ok(self.by_columns(columns)),
            [_, 2] => Ok(self),
            _ => Err("it is no matrix of two columns, nor of two rows".to_owned()),
        }
    }

    /// Transposes an array of two rows to rows of two columns.
    fn by_columns(self, columns: usize) -> Self {
        let (first, second) = self.values.split_at(columns);
        let values = first.iter().zip(second).flat_map(|(one, other)| [*one, *other]).collect();
        Self { shape: vec![columns, 2], values }
    }
}

/// The type of an array's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NumberKind {
    family: Family,
    bytes: usize,
    is_big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Family {
    Float,
    Signed,
    /// Unsigned numbers, and truth values: bytes of 0 and 1.
    Unsigned,
}

impl NumberKind {
    /// Parses a description such as `<f4`.
    fn parse(text: &str) -> Option<Self> {
        let (order, rest) = text.split_at_checked(1)?;
        let (family, bytes) = match rest {
            "f2" => (Family::Float, 2),
            "f4" => (Family::Float, 4),
            "f8" => (Family::Float, 8),
            "i1" => (Family::Signed, 1),
            "i2" => (Family::Signed, 2),
            "i4" => (Family::Signed, 4),
            "i8" => (Family::Signed, 8),
            "b1" | "u1" => (Family::Unsigned, 1),
            "u2" => (Family::Unsigned, 2),
            "u4" => (Family::Unsigned, 4),
            "u8" => (Family::Unsigned, 8),
            _ => return None,
        };
        ["<", ">", "|", "="].contains(&order).then_some(Self { family, bytes, is_big_endian: order == ">" })
    }

    fn bytes(self) -> usize {
        self.bytes
    }

    /// The number in these bytes, which are as many as the type has.
    fn value(self, bytes: &[u8]) -> f64 {
        let push = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
        let bits = if self.is_big_endian { bytes.iter().fold(0, push) } else { bytes.iter().rev().fold(0, push) };
        match (self.family, self.bytes) {
            (Family::Float, 2) => half(bits as u16),
            (Family::Float, 4) => f64::from(f32::from_bits(bits as u32)),
            (Family::Float, _) => f64::from_bits(bits),
            (Family::Signed, 1) => f64::from(bits as u8 as i8),
            (Family::Signed, 2) => f64::from(bits as u16 as i16),
            (Family::Signed, 4) => f64::from(bits as u32 as i32),
            (Family::Signed, _) => bits as i64 as f64,
            (Family::Unsigned, _) => bits as f64,
        }
    }
}

/// A number of IEEE 754 in 16 bits.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f64::from(bits & 1023);
    sign * match exponent {
        0 => fraction * 2.0_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2.0_f64.powi(exponent - 15),
    }
}

#[derive(Debug, PartialEq)]
struct Header {
    kind: NumberKind,
    /// `true` if the array is in column-major order.
    by_columns: bool,
    shape: Vec<usize>,
}

impl Header {
    fn read(file: &mut impl Read) -> Result<Self, String> {
        let mut head = [0; 8];
        file.read_exact(&mut head).map_err(|error| error.to_string())?;
        let mut length = [0; 4];
        let width = match &head {
            b"\x93NUMPY\x01\x00" => 2,
            b"\x93NUMPY\x02\x00" | b"\x93NUMPY\x03\x00" => 4,
            _ => return Err("it is no array of numpy in format 1.0 to 3.0".to_owned()),
        };
        file.read_exact(&mut length[..width]).map_err(|error| error.to_string())?;
        let length = u64::from(u32::from_le_bytes(length)).min(HEADER_MAX);
        let mut header = String::new();
        file.take(length).read_to_string(&mut header).map_err(|error| error.to_string())?;
        Self::parse(&header)
    }

    /// Parses a header such as `{'descr': '<f4', 'fortran_order': False, 'shape': (890, 2325), }`.
    fn parse(text: &str) -> Result<Self, String> {
        let unreadable = || "its header cannot be read".to_owned();
        let after = |field: &str| {
            let (_, rest) = text.split_once(field)?;
            rest.trim_start().strip_prefix(':').map(str::trim_start)
        };
        let described = after("'descr'").and_then(|rest| rest.strip_prefix('\'')?.split_once('\''));
        let (described, _) = described.ok_or_else(unreadable)?;
        let kind = NumberKind::parse(described).ok_or_else(|| {
            let shown: String = described.chars().take(20).collect();
            format!("it holds {shown}, and no plain numbers: save it as numbers, as with array.astype(\"float32\")")
        })?;
        let by_columns = after("'fortran_order'").ok_or_else(unreadable)?.starts_with("True");
        let shape = after("'shape'").and_then(|rest| rest.strip_prefix('(')?.split_once(')')).ok_or_else(unreadable)?.0;
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        let shape = sizes.map(|size| size.parse().ok()).collect::<Option<_>>().ok_or_else(unreadable)?;
        Ok(Self { kind, by_columns, shape })
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
    fn every_plain_kind_of_number_is_read() {
        let read = |kind: &str, bytes: &[u8]| {
            let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (2,), }}\n");
            Array::read(&array(&header, bytes)[..], 9).map(|array| array.values)
        };
        assert_eq!(read("<f2", &[0x00, 0x3e, 0x00, 0xc0]).unwrap(), [1.5, -2.0]);
        assert_eq!(read("|b1", &[1, 0]).unwrap(), [1.0, 0.0]);
        assert_eq!(read("|i1", &[255, 7]).unwrap(), [-1.0, 7.0]);
        assert_eq!(read("|u1", &[255, 7]).unwrap(), [255.0, 7.0]);
        assert_eq!(read(">f4", &[0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0]).unwrap(), [1.0, -2.0]);
        assert_eq!(
            read(">i8", &[0, 0, 0, 0, 0, 0, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255]).unwrap(),
            [256.0, -1.0]
        );
        assert!(read("|O", &[0; 16]).unwrap_err().contains("it holds |O"));
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
        let renamed =
            [("x", &arrays[0].1), ("y", &arrays[1].1), ("edge_index", &of("<i4", "(2, 1)", &[0, 0, 0, 0, 1, 0, 0, 0]))];
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in renamed {
            archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
            archive.write_all(bytes).unwrap();
        }
        let renamed = archive.finish().unwrap().into_inner();
        assert_eq!(read(&renamed).unwrap(), read(&seeds[0]).unwrap(), "the names of PyTorch Geometric");
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
