//! Split of a client's nodes into training, validation and test.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Nodes for three purposes, each ascending; all of them have labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSplit {
    /// The training nodes: a fifth.
    pub training: Vec<u32>,
    /// The validation nodes, which choose the best model: two fifths.
    pub validation: Vec<u32>,
    /// The test nodes, which evaluate it: the rest.
    pub test: Vec<u32>,
}

impl NodeSplit {
    /// Splits the nodes with labels 20 : 40 : 40 at random, at least one of each kind from three nodes on. The same for the same seed.
    pub fn random(labels: &[Option<u16>], seed: u64) -> Self {
        let mut nodes: Vec<u32> = (0..labels.len() as u32).filter(|&node| labels[node as usize].is_some()).collect();
        nodes.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let training = (nodes.len() / 5).max(1).min(nodes.len());
        let validation = ((nodes.len() - training) / 2).max(usize::from(nodes.len() > training));
        let ascending = |nodes: &[u32]| {
            let mut nodes = nodes.to_vec();
            nodes.sort_unstable();
            nodes
        };
        let (training, rest) = nodes.split_at(training);
        let (validation, test) = rest.split_at(validation);
        Self { training: ascending(training), validation: ascending(validation), test: ascending(test) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_covers_the_labelled_nodes_once_in_the_shares_promised() {
        let labels: Vec<Option<u16>> = (0..110).map(|node| (node % 11 != 0).then_some(0)).collect();
        let split = NodeSplit::random(&labels, 3);
        assert_eq!((split.training.len(), split.validation.len(), split.test.len()), (20, 40, 40));
        let mut all = [split.training.clone(), split.validation.clone(), split.test.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..110).filter(|node| node % 11 != 0).collect::<Vec<u32>>());
        assert_eq!(split, NodeSplit::random(&labels, 3));
        assert_ne!(split, NodeSplit::random(&labels, 4));
        assert_eq!(NodeSplit::random(&[None, None], 1), NodeSplit::default());
        let three = NodeSplit::random(&[Some(0); 3], 1);
        assert_eq!((three.training.len(), three.validation.len(), three.test.len()), (1, 1, 1));
    }
}
