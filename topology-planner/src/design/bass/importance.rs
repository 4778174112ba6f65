//! Probabilities with which the subsets broadcast in the heuristic of BASS: in proportion to the centrality of their
//! nodes.

use super::subsets::Subsets;
use crate::{betweenness::betweenness, topology::Topology};

/// Probabilities of the subsets that add up to `budget`, in proportion to the importance of their nodes up to 1.
///
/// The importance of a node is its betweenness, plus the paths that begin or end at it: `2 (n - 1)` ordered pairs. A
/// node between no others has only the latter. Without them, most nodes of a windmill would never broadcast, and no
/// budget could join them.
pub(super) fn probabilities(topology: &Topology, subsets: &Subsets<'_>, budget: f64) -> Vec<f64> {
    let own_paths = 2.0 * (topology.node_count() - 1) as f64;
    let centrality = betweenness(topology);
    let of_subset = |subset: &[usize]| subset.iter().map(|&node| centrality[node] + own_paths).sum();
    let importance: Vec<f64> = subsets.iter().map(of_subset).collect();
    capped_shares(&importance, budget)
}

/// Shares in proportion to positive importances, none above 1, that add up to `total`, or all 1 if that is not
/// possible.
fn capped_shares(importance: &[f64], total: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..importance.len()).collect();
    order.sort_by(|&a, &b| importance[b].total_cmp(&importance[a]));
    let mut shares = vec![1.0; importance.len()];
    let mut rest: f64 = importance.iter().sum();
    // The most important are capped first; after one that is not capped, none is.
    for (capped, &at) in order.iter().enumerate() {
        let scale = (total - capped as f64).max(0.0) / rest;
        if scale * importance[at] <= 1.0 {
            order[capped..].iter().for_each(|&at| shares[at] = scale * importance[at]);
            break;
        }
        rest -= importance[at];
    }
    shares
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn shares_are_in_proportion_up_to_one_and_fill_the_budget() {
        assert_eq!(capped_shares(&[1.0, 8.0, 1.0], 2.0), [0.5, 1.0, 0.5]);
        assert_eq!(capped_shares(&[1.0, 2.0, 1.0], 2.0), [0.5, 1.0, 0.5]);
        assert_eq!(capped_shares(&[3.0, 1.0], 1.0), [0.75, 0.25]);
        assert_eq!(capped_shares(&[3.0, 1.0], 5.0), [1.0, 1.0]);
        assert_eq!(capped_shares(&[3.0, 1.0], 0.0), [0.0, 0.0]);
        let many: Vec<f64> = (1..30_u32).map(|k| f64::from(k * k)).collect();
        let shares = capped_shares(&many, 11.0);
        assert!((shares.iter().sum::<f64>() - 11.0).abs() < 1e-9);
        let scale = shares[0] / many[0];
        assert!(shares.iter().zip(&many).all(|(share, value)| (share - (scale * value).min(1.0)).abs() < 1e-12));
    }

    #[test]
    fn the_hub_of_a_windmill_always_broadcasts_and_the_others_equally_often() {
        let windmill = Topology::generate("windmill:cliques=3,size=21").unwrap();
        let subsets = Subsets::new(&windmill);
        assert_eq!(subsets.len(), 61);
        for (subset, share) in subsets.iter().zip(probabilities(&windmill, &subsets, 23.0)) {
            let expected = if subset == [0] { 1.0 } else { 22.0 / 60.0 };
            assert!((share - expected).abs() < 1e-12, "{subset:?}: {share}");
        }
    }
}
