//! Link measurements as a file, written by a person or a probe.
//!
//! ```toml
//! [[link]]
//! from = "ana"
//! to = "ben"
//! rtt_ms = 11.0
//! mbit_s = 94.0
//! loss = 0.01          # may be left out: 0
//!
//! [node.ana]           # may be left out: no limit
//! upload_mbit_s = 20.0
//! download_mbit_s = 100.0
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    network::{MeasuredLink, NetworkCapacity, NetworkCapacityError, check_rate},
    topology::{MAX_EDGES, Topology, TopologyError},
};

/// Measured links by the names of their ends, and the limits of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkMeasurements {
    links: BTreeMap<(String, String), Measured>,
    nodes: BTreeMap<String, NodeLimits>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Measured {
    rtt_ms: f64,
    mbit_s: f64,
    loss: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    link: Vec<LinkEntry>,
    #[serde(default)]
    node: BTreeMap<String, NodeLimits>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkEntry {
    from: String,
    to: String,
    rtt_ms: f64,
    mbit_s: f64,
    #[serde(default)]
    loss: f64,
}

/// The limits on what a node sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeLimits {
    upload_mbit_s: Option<f64>,
    download_mbit_s: Option<f64>,
}

/// An error in link measurements.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum LinkMeasurementsError {
    /// Text that is not TOML, or has other keys.
    #[error("line {line}: {message}")]
    Toml { line: usize, message: String },
    /// There are no links.
    #[error("there are no links: write a [[link]] with from, to, rtt_ms and mbit_s for each direction")]
    Empty,
    /// More links than a topology can have.
    #[error("{links} links are too many: the limit is {}", 2 * MAX_EDGES)]
    TooMany { links: usize },
    /// A link of a node to itself.
    #[error("the link from {node} to itself: a node needs none")]
    SelfLink { node: String },
    /// A direction given twice.
    #[error("the link from {from} to {to} is measured twice: keep one")]
    Twice { from: String, to: String },
    /// A node that the topology does not have.
    #[error("there is no node {node} in the topology")]
    UnknownNode { node: String },
    /// An edge of the topology without a measurement.
    #[error("the link from {from} to {to} is in the topology, and was not measured: add it, or leave out the edge")]
    Missing { from: String, to: String },
    /// A number out of range.
    #[error(transparent)]
    Number(#[from] NetworkCapacityError),
    /// The links measured in both directions do not make a topology.
    #[error("the links that are measured in both directions make no topology: {0}")]
    Topology(#[from] TopologyError),
}

impl LinkMeasurements {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Text that is not such a file (with the line), a link of a node to itself or one given twice, and numbers out of
    /// range.
    ///
    /// ```
    /// use mingle_planner::link_measurements::LinkMeasurements;
    /// let text = "[[link]]\nfrom = 'a'\nto = 'b'\nrtt_ms = 8\nmbit_s = 20\n[[link]]\nfrom = 'b'\nto = 'a'\nrtt_ms = 8\nmbit_s = 5\n";
    /// let measurements = LinkMeasurements::parse(text)?;
    /// assert_eq!(measurements.topology()?.edges(), [(0, 1)]);
    /// # Ok::<(), mingle_planner::link_measurements::LinkMeasurementsError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, LinkMeasurementsError> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            LinkMeasurementsError::Toml {
                line: 1 + text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count(),
                message: error.message().to_owned(),
            }
        })?;
        if document.link.is_empty() {
            return Err(LinkMeasurementsError::Empty);
        }
        if document.link.len() > 2 * MAX_EDGES {
            return Err(LinkMeasurementsError::TooMany { links: document.link.len() });
        }
        let mut links = BTreeMap::new();
        for LinkEntry { from, to, rtt_ms, mbit_s, loss } in document.link {
            if from == to {
                return Err(LinkMeasurementsError::SelfLink { node: from });
            }
            MeasuredLink { from: 0, to: 0, rtt_ms, mbit_s, loss }.check(|| format!("the link from {from} to {to}"))?;
            if links.insert((from.clone(), to.clone()), Measured { rtt_ms, mbit_s, loss }).is_some() {
                return Err(LinkMeasurementsError::Twice { from, to });
            }
        }
        for (name, limits) in &document.node {
            for (what, rate) in [("upload", limits.upload_mbit_s), ("download", limits.download_mbit_s)] {
                rate.map_or(Ok(()), |rate| check_rate(what, rate, || format!("node {name}")))?;
            }
        }
        Ok(Self { links, nodes: document.node })
    }

    /// The topology of all pairs that were measured in both directions; nodes in the order of their names.
    ///
    /// # Errors
    ///
    /// These pairs do not join all nodes that were measured.
    pub fn topology(&self) -> Result<Topology, LinkMeasurementsError> {
        let mut names: Vec<String> = self.links.keys().flat_map(|(from, to)| [from.clone(), to.clone()]).collect();
        names.sort_unstable();
        names.dedup();
        let number = |name: &String| names.binary_search(name).unwrap_or(0);
        let both =
            self.links.keys().filter(|(from, to)| from < to && self.links.contains_key(&(to.clone(), from.clone())));
        let edges: Vec<(usize, usize)> = both.map(|(from, to)| (number(from), number(to))).collect();
        Ok(Topology::new(names.clone(), &edges)?)
    }

    /// The network under a topology, with payloads of the given size. Measured links that are no edges are left out.
    ///
    /// # Errors
    ///
    /// A measured node that the topology does not have, or an edge that was not measured in both directions.
    pub fn network(&self, topology: &Topology, payload_bytes: u64) -> Result<NetworkCapacity, LinkMeasurementsError> {
        let names = topology.names();
        let known: BTreeMap<&str, usize> = names.iter().enumerate().map(|(node, name)| (name.as_str(), node)).collect();
        let measured = self.links.keys().flat_map(|(from, to)| [from, to]).chain(self.nodes.keys());
        if let Some(node) = measured.into_iter().find(|name| !known.contains_key(name.as_str())) {
            return Err(LinkMeasurementsError::UnknownNode { node: node.clone() });
        }
        let pairs = (0..names.len()).flat_map(|from| topology.neighbors(from).iter().map(move |&to| (from, to)));
        let link = |(from, to): (usize, usize)| {
            let key = (names[from].clone(), names[to].clone());
            let Some(&Measured { rtt_ms, mbit_s, loss }) = self.links.get(&key) else {
                return Err(LinkMeasurementsError::Missing { from: key.0, to: key.1 });
            };
            Ok(MeasuredLink { from: from as u32, to: to as u32, rtt_ms, mbit_s, loss })
        };
        let limits =
            |pick: fn(&NodeLimits) -> Option<f64>| names.iter().map(|name| pick(self.nodes.get(name)?)).collect();
        Ok(NetworkCapacity {
            payload_bytes,
            links: pairs.map(link).collect::<Result<_, _>>()?,
            upload_mbit_s: limits(|limits| limits.upload_mbit_s),
            download_mbit_s: limits(|limits| limits.download_mbit_s),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SOUND: &str = "[[link]]\nfrom='a'\nto='b'\nrtt_ms=8\nmbit_s=2e1\nloss=0.1\n[[link]]\nfrom='b'\nto='a'\nrtt_ms=8.5\n\
                         mbit_s=5\n[node.a]\nupload_mbit_s=3\n[node.b]\ndownload_mbit_s=4\n";

    #[test]
    fn mutated_files_of_links_are_refused_or_describe_a_network() {
        let whole = LinkMeasurements::parse(SOUND).unwrap();
        let topology = whole.topology().unwrap();
        assert_eq!(whole.network(&topology, 9).unwrap().links.len(), 2);
        mingle_mutations::for_each_input("links", &[SOUND.as_bytes().to_vec()], |input| {
            let Ok(read) = LinkMeasurements::parse(&String::from_utf8_lossy(input)) else { return };
            let _ = read.network(&topology, 1000);
            if let Ok(own) = read.topology() {
                assert!(own.node_count() > 1);
                let _ = read.network(&own, 1000);
            }
        });
    }
}
