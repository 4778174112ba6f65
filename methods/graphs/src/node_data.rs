//! A graph whose nodes have features and, most of them, a class.

use thiserror::Error;

use crate::graph::{Dropped, Graph};

/// A graph with features and classes of its nodes. It is checked: one row of features a node, all of them finite, and
/// every label below the number of classes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeData {
    graph: Graph,
    /// Row by row, `[nodes, features]`.
    features: Vec<f32>,
    columns: usize,
    labels: Vec<Option<u16>>,
    classes: usize,
    /// The edges of the list that a simple graph cannot have.
    dropped: Dropped,
}

/// Errors of combining features and labels with a graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum NodeDataError {
    /// There are no nodes.
    #[error("the graph has no nodes")]
    NoNodes,
    /// There are no features.
    #[error("the nodes have no features: give each node at least one number, such as its degree")]
    NoFeatures,
    /// The number of features is wrong.
    #[error("{nodes} nodes of {columns} features need {} numbers, not {numbers}", nodes * columns)]
    Features {
        /// The number of nodes.
        nodes: usize,
        /// The number of features of each node.
        columns: usize,
        /// The number of values given.
        numbers: usize,
    },
    /// The number of labels is wrong.
    #[error("{labels} labels do not go with {nodes} nodes")]
    Labels { nodes: usize, labels: usize },
    /// A feature is infinite or not a number.
    #[error("feature {feature} of node {node} is not finite")]
    NotFinite { node: usize, feature: usize },
    /// A label is not below the number of classes.
    #[error("node {node} has label {label}, but there are {classes} classes")]
    Label { node: usize, label: u16, classes: usize },
}

impl NodeData {
    /// A graph with features, row by row, and labels from 0; `None` is a node whose class is unknown. `classes` is the
    /// number of classes, also where no node here has some of them; without it, it is one more than the largest label.
    ///
    /// # Errors
    ///
    /// Lengths that do not fit, features that are not finite, or labels that are no class.
    pub fn new(
        (graph, dropped): (Graph, Dropped),
        features: Vec<f32>,
        columns: usize,
        labels: Vec<Option<u16>>,
        classes: Option<usize>,
    ) -> Result<Self, NodeDataError> {
        let nodes = graph.node_count();
        if nodes == 0 {
            return Err(NodeDataError::NoNodes);
        }
        if columns == 0 {
            return Err(NodeDataError::NoFeatures);
        }
        if nodes.checked_mul(columns) != Some(features.len()) {
            return Err(NodeDataError::Features { nodes, columns, numbers: features.len() });
        }
        if labels.len() != nodes {
            return Err(NodeDataError::Labels { nodes, labels: labels.len() });
        }
        if let Some(at) = features.iter().position(|value| !value.is_finite()) {
            return Err(NodeDataError::NotFinite { node: at / columns, feature: at % columns });
        }
        let most = labels.iter().flatten().map(|&label| usize::from(label) + 1).max().unwrap_or(0);
        let classes = classes.unwrap_or(most);
        if let Some((node, label)) = first_above(&labels, classes) {
            return Err(NodeDataError::Label { node, label, classes });
        }
        Ok(Self { graph, features, columns, labels, classes, dropped })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.graph.node_count()
    }

    /// The features of all nodes, row by row.
    pub fn features(&self) -> &[f32] {
        &self.features
    }

    /// The number of features of each node.
    pub fn feature_count(&self) -> usize {
        self.columns
    }

    /// The class of each node, where it is known.
    pub fn labels(&self) -> &[Option<u16>] {
        &self.labels
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The edges that were left out of the list.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// The number of nodes of each class.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes];
        self.labels.iter().flatten().for_each(|&label| counts[usize::from(label)] += 1);
        counts
    }

    /// The number of columns of features that are zero at every node.
    pub fn zero_features(&self) -> usize {
        let mut is_zero = vec![true; self.columns];
        for row in self.features.chunks_exact(self.columns) {
            is_zero.iter_mut().zip(row).for_each(|(zero, value)| *zero &= *value == 0.0);
        }
        is_zero.into_iter().filter(|&zero| zero).count()
    }

    /// The data induced by some nodes, in the order in which they are listed, with the edges among them. The number of
    /// classes stays.
    pub fn induced(&self, nodes: &[u32]) -> Self {
        let rows = nodes.iter().flat_map(|&node| {
            let at = node as usize * self.columns;
            &self.features[at..at + self.columns]
        });
        Self {
            graph: self.graph.induced(nodes),
            features: rows.copied().collect(),
            columns: self.columns,
            labels: nodes.iter().map(|&node| self.labels[node as usize]).collect(),
            classes: self.classes,
            dropped: Dropped::default(),
        }
    }

    /// The same data with another number of classes, of which the nodes here may lack some.
    ///
    /// # Errors
    ///
    /// A node has a label that is not below `classes`.
    pub fn with_classes(mut self, classes: usize) -> Result<Self, NodeDataError> {
        if let Some((node, label)) = first_above(&self.labels, classes) {
            return Err(NodeDataError::Label { node, label, classes });
        }
        self.classes = classes;
        Ok(self)
    }

    /// Remarks for the user: everything that was left out, and everything without information.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |count: usize, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        note(self.dropped.self_loops, "edges from a node to itself were left out");
        note(self.dropped.duplicates, "edges were there before, or in the other direction too, and count once");
        note(self.graph.isolated(), "nodes have no neighbour: their bases above order 0 are zero");
        note(
            self.labels.iter().filter(|label| label.is_none()).count(),
            "nodes have no label and are neither trained nor judged on",
        );
        note(self.zero_features(), "columns of features are zero at every node");
        let counts = self.class_counts();
        let empty: Vec<String> =
            (0..counts.len()).filter(|&class| counts[class] == 0).map(|class| class.to_string()).collect();
        if !empty.is_empty() {
            notes.push(format!("classes without a node here: {}", empty.join(", ")));
        }
        if counts.iter().filter(|&&count| count > 0).count() == 1 {
            notes.push("all labelled nodes here have the same class".to_owned());
        }
        notes
    }
}

fn first_above(labels: &[Option<u16>], classes: usize) -> Option<(usize, u16)> {
    let labelled = labels.iter().enumerate().filter_map(|(node, label)| label.map(|label| (node, label)));
    labelled.into_iter().find(|(_, label)| usize::from(*label) >= classes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn path() -> (Graph, Dropped) {
        Graph::from_edges(4, [(0, 1), (1, 2), (1, 1)]).unwrap()
    }

    #[test]
    fn notes_name_isolated_nodes_gaps_in_labels_zero_features_and_what_was_dropped() {
        let labels = vec![Some(0), Some(0), None, Some(2)];
        let data = NodeData::new(path(), vec![1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0], 2, labels, None).unwrap();
        let notes = data.notes().join("\n");
        for words in [
            "1 edges from a node to itself",
            "1 nodes have no neighbour",
            "1 nodes have no label",
            "1 columns of features",
            "classes without a node here: 1",
        ] {
            assert!(notes.contains(words), "{words}: {notes}");
        }
        let one_class = NodeData::new(path(), vec![1.0; 4], 1, vec![Some(0); 4], None).unwrap();
        assert!(one_class.notes().iter().any(|note| note.contains("the same class")));
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_its_place() {
        let refused = |features: Vec<f32>, columns, labels: Vec<Option<u16>>, classes| {
            NodeData::new(path(), features, columns, labels, classes).unwrap_err().to_string()
        };
        let none = || vec![None; 4];
        assert!(refused(vec![], 0, none(), None).contains("no features"));
        assert!(refused(vec![1.0; 7], 2, none(), None).contains("need 8 numbers, not 7"));
        assert!(refused(vec![1.0; 8], 2, vec![None; 3], None).contains("3 labels"));
        let mut features = vec![1.0; 8];
        features[5] = f32::NAN;
        assert_eq!(refused(features, 2, none(), None), "feature 1 of node 2 is not finite");
        let labels = vec![Some(0), Some(3), None, None];
        assert_eq!(refused(vec![1.0; 8], 2, labels, Some(3)), "node 1 has label 3, but there are 3 classes");
    }
}
