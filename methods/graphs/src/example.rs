//! An example graph: two halves of opposite homophily.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::graph::Graph;
use crate::node_data::NodeData;

/// The number of nodes. Those of the first half link to their own class, those of the second half to the opposite
/// class.
const NODES: usize = 800;
/// The number of classes; the opposite of class `c` is `(c + 2) % 4`.
const CLASSES: u16 = 4;
/// The number of groups of nodes, which a partition recovers from their links.
const GROUPS: usize = 8;
/// The number of features: a bit for each class that is set more often in it, and noise.
const FEATURES: usize = 32;
/// The number of links that each node draws.
const LINKS: usize = 5;
/// Of 100 links, those to the class that the half prefers.
const IN_CHARACTER: u32 = 80;
/// Of 100 links, those within the group.
const WITHIN_GROUP: u32 = 90;

/// A planted graph of 800 nodes in four classes and eight groups. In the first four groups 80 of 100 links join nodes
/// of one class, in the other four they join opposite classes; the rest is drawn at random. 90 of 100 links stay within
/// the group. Of 32 binary features eight are set with chance 0.35 in a class of their own and 0.15 elsewhere, the
/// others with chance 0.15 everywhere. So features alone say little of the class, and links much, in opposite ways in
/// the two halves. The same for the same seed.
pub fn two_characters(seed: u64) -> NodeData {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let class = |node: usize| (node % usize::from(CLASSES)) as u16;
    let group = |node: usize| node * GROUPS / NODES;
    let mut edges = Vec::new();
    for node in 0..NODES {
        let alike = group(node) < GROUPS / 2;
        let wanted = if alike { class(node) } else { (class(node) + 2) % CLASSES };
        for _ in 0..LINKS {
            let in_character = rng.random_range(0..100) < IN_CHARACTER;
            let within = rng.random_range(0..100) < WITHIN_GROUP;
            let other = loop {
                let other = rng.random_range(0..NODES);
                let same_half = (group(other) < GROUPS / 2) == alike;
                let fits = !in_character || class(other) == wanted;
                if other != node && fits && same_half && (group(other) == group(node)) == within {
                    break other;
                }
            };
            edges.push((node as u32, other as u32));
        }
    }
    let mut features = Vec::with_capacity(NODES * FEATURES);
    for node in 0..NODES {
        for feature in 0..FEATURES {
            let is_own = feature < 8 && (feature % usize::from(CLASSES)) as u16 == class(node);
            features.push(f32::from(u8::from(rng.random_range(0..100) < if is_own { 35 } else { 15 })));
        }
    }
    let labels = (0..NODES).map(|node| Some(class(node))).collect();
    let graph = Graph::from_edges(NODES, edges);
    let data = graph.ok().and_then(|graph| NodeData::new(graph, features, FEATURES, labels, None).ok());
    data.unwrap_or_else(|| unreachable!("nodes, features and classes are those above"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::homophily::homophily;

    #[test]
    fn the_two_halves_have_opposite_characters_and_hardly_a_link_between_them() {
        let data = two_characters(1);
        let half = |first: u32| data.induced(&(first..first + 400).collect::<Vec<u32>>());
        let measure = |half: &NodeData| homophily(half.graph(), half.labels()).unwrap();
        let (alike, opposite) = (measure(&half(0)), measure(&half(400)));
        assert!(alike.adjusted > 0.7 && opposite.adjusted < -0.2, "{alike:?} {opposite:?}");
        assert_eq!(half(0).graph().edge_count() + half(400).graph().edge_count(), data.graph().edge_count());
        assert_eq!(data, two_characters(1));
    }
}
