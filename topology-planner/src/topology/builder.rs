//! A builder of the graph of a text while it is read.

use std::collections::BTreeMap;

use super::node_details::NodeDetails;
use super::reading::{EdgeAttributes, TopologyFormat, TopologyReading};
use super::{MAX_NODES, Topology, TopologyError, node_details};

/// Nodes by id, links between them, and the attributes of both; [`Builder::finish`] checks that links are symmetric.
#[derive(Debug, Default)]
pub(super) struct Builder {
    ids: Vec<String>,
    numbers: BTreeMap<String, usize>,
    details: Vec<NodeDetails>,
    edges: Vec<(usize, usize)>,
    one_way: Vec<(usize, usize)>,
    /// The lines of the links in one direction, in the order of reading.
    one_way_lines: Vec<((usize, usize), usize)>,
    /// The present line of the text, from 1; 0 where there is none to name.
    line: usize,
    attributes: EdgeAttributes,
}

impl Builder {
    /// The number of a node, which is added if it is new.
    pub(super) fn node(&mut self, id: &str) -> Result<usize, TopologyError> {
        match self.numbers.get(id) {
            Some(&number) => Ok(number),
            None => self.add_node(id),
        }
    }

    /// Adds a node.
    pub(super) fn add_node(&mut self, id: &str) -> Result<usize, TopologyError> {
        let number = self.ids.len();
        if number == MAX_NODES {
            return Err(TopologyError::TooManyNodes { nodes: number + 1 });
        }
        if self.numbers.insert(id.to_owned(), number).is_some() {
            return Err(self.error(TopologyError::DuplicateName { name: id.to_owned() }));
        }
        self.ids.push(id.to_owned());
        self.details.push(NodeDetails::default());
        Ok(number)
    }

    /// The ids of the nodes, in the order of their numbers.
    pub(super) fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Sets the line that errors name from now on.
    pub(super) fn at_line(&mut self, line: usize) {
        self.line = line;
    }

    /// An error in the present line.
    fn error(&self, fault: TopologyError) -> TopologyError {
        fault.at_line(self.line)
    }

    /// The number of a node that the text must have listed already.
    pub(super) fn number(&self, id: String) -> Result<usize, TopologyError> {
        self.numbers.get(&id).copied().ok_or_else(|| self.error(TopologyError::UnknownNode { id }))
    }

    /// Takes an attribute of a node: keeps labels and coordinates, and ignores others.
    pub(super) fn describe(&mut self, node: usize, attribute: &str, value: &str) {
        if let Some(details) = self.details.get_mut(node) {
            details.take(attribute, value);
        }
    }

    /// Adds a link, in one direction or in both.
    pub(super) fn link(&mut self, ends: (usize, usize), one_way: bool) -> Result<(), TopologyError> {
        if ends.0 == ends.1 {
            return Err(self.error(TopologyError::SelfLoop { node: self.ids[ends.0].clone() }));
        }
        if one_way {
            self.one_way.push(ends);
            self.one_way_lines.push((ends, self.line));
        } else {
            self.edges.push(ends);
        }
        Ok(())
    }

    /// Records the names of the attributes of one edge.
    pub(super) fn note_attributes<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        self.attributes.note(names);
    }

    /// The topology, if every link in one direction has one in the other.
    pub(super) fn finish(mut self, format: TopologyFormat) -> Result<TopologyReading, TopologyError> {
        if self.ids.is_empty() {
            return Err(TopologyError::Empty);
        }
        let names = node_details::names(&self.ids, &self.details);
        let named_by_label = names.iter().zip(&self.ids).filter(|(name, id)| name != id).count();
        self.one_way.sort_unstable();
        self.edges.iter_mut().for_each(|edge| *edge = (edge.0.min(edge.1), edge.0.max(edge.1)));
        self.edges.sort_unstable();
        for &(from, to) in &self.one_way {
            let has_reverse = self.one_way.binary_search(&(to, from)).is_ok()
                || self.edges.binary_search(&(from.min(to), from.max(to))).is_ok();
            if !has_reverse {
                let line = self.one_way_lines.iter().find(|(ends, _)| *ends == (from, to)).map_or(0, |(_, line)| *line);
                let fault = TopologyError::OneWay { from: names[from].clone(), to: names[to].clone() };
                return Err(fault.at_line(line));
            }
        }
        let repeated = repetitions(&self.edges) + repetitions(&self.one_way);
        self.edges.append(&mut self.one_way);
        let topology = Topology::new(names, &self.edges)?;
        let (topology, placed) = node_details::place(topology, &self.details);
        Ok(TopologyReading { topology, format, edge_attributes: self.attributes, named_by_label, placed, repeated })
    }
}

/// The number of links of a sorted list that repeat the one before.
fn repetitions(links: &[(usize, usize)]) -> usize {
    links.windows(2).filter(|pair| pair[0] == pair[1]).count()
}
