//! Homophily: the frequency of equal classes at linked nodes.

use crate::graph::Graph;

/// Three measures of homophily; edges and neighbours with an unknown class are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Homophily {
    /// The share of edges whose ends have the same class.
    pub edge: f64,
    /// The mean over nodes with neighbours of the share of them that have its class.
    pub node: f64,
    /// Edge homophily beyond chance (Platonov et al. 2023, "Characterizing graph datasets for node classification", eq. 1): 1 where all
    /// edges join equals, 0 where classes do not matter. It equals the assortativity of the classes (Newman 2003). `NaN` where only one
    /// class has edges.
    pub adjusted: f64,
}

/// Measures the homophily of a graph by the classes of its nodes. `None` where no edge has two known ends. `O(nodes + edges)`.
pub fn homophily(graph: &Graph, labels: &[Option<u16>]) -> Option<Homophily> {
    let classes = labels.iter().flatten().map(|&label| usize::from(label) + 1).max()?;
    let mut edges = 0_u64;
    let mut equal = 0_u64;
    let mut degrees = vec![0_u64; classes];
    let mut shares = 0.0;
    let mut with_neighbours = 0_u64;
    for node in 0..graph.node_count() {
        let Some(own) = labels[node] else { continue };
        let known: Vec<u16> = graph.neighbours(node).iter().filter_map(|&other| labels[other as usize]).collect();
        if known.is_empty() {
            continue;
        }
        let same = known.iter().filter(|&&label| label == own).count() as u64;
        degrees[usize::from(own)] += known.len() as u64;
        edges += known.len() as u64;
        equal += same;
        shares += same as f64 / known.len() as f64;
        with_neighbours += 1;
    }
    if edges == 0 {
        return None;
    }
    // Every edge was counted from both ends.
    let edge = equal as f64 / edges as f64;
    let chance: f64 = degrees.iter().map(|&degree| (degree as f64 / edges as f64).powi(2)).sum();
    let adjusted = (edge - chance) / (1.0 - chance);
    Some(Homophily { edge, node: shares / with_neighbours as f64, adjusted })
}

/// Edge homophily as a client estimates it: over edges with both ends in its training set, 0.75 where there are none.
pub fn estimated_homophily(graph: &Graph, labels: &[Option<u16>], is_training: &[bool]) -> f64 {
    let known: Vec<Option<u16>> = labels.iter().zip(is_training).map(|(label, is)| label.filter(|_| *is)).collect();
    homophily(graph, &known).map_or(WITHOUT_EDGES, |homophily| homophily.edge)
}

/// The estimate without any edge.
const WITHOUT_EDGES: f64 = 0.75;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Zachary's karate club (1977), 34 members and 78 ties, nodes from 1 in the usual order.
    const KARATE: [(u32, &[u32]); 27] = [
        (1, &[2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32]),
        (2, &[3, 4, 8, 14, 18, 20, 22, 31]),
        (3, &[4, 8, 9, 10, 14, 28, 29, 33]),
        (4, &[8, 13, 14]),
        (5, &[7, 11]),
        (6, &[7, 11, 17]),
        (7, &[17]),
        (9, &[31, 33, 34]),
        (10, &[34]),
        (14, &[34]),
        (15, &[33, 34]),
        (16, &[33, 34]),
        (19, &[33, 34]),
        (20, &[34]),
        (21, &[33, 34]),
        (23, &[33, 34]),
        (24, &[26, 28, 30, 33, 34]),
        (25, &[26, 28, 32]),
        (26, &[32]),
        (27, &[30, 34]),
        (28, &[34]),
        (29, &[32, 34]),
        (30, &[33, 34]),
        (31, &[33, 34]),
        (32, &[33, 34]),
        (33, &[34]),
        (34, &[]),
    ];
    /// The members who stayed with the instructor.
    const INSTRUCTOR: [u32; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22];

    fn karate() -> (Graph, Vec<Option<u16>>) {
        let edges = KARATE.iter().flat_map(|&(one, others)| others.iter().map(move |&other| (one - 1, other - 1)));
        let graph = Graph::from_edges(34, edges).unwrap().0;
        let labels = (1..=34).map(|member| Some(u16::from(!INSTRUCTOR.contains(&member)))).collect();
        (graph, labels)
    }

    /// Newman's assortativity by the table of pairs: `(tr e - |e^2|) / (1 - |e^2|)`.
    fn assortativity(graph: &Graph, labels: &[Option<u16>], classes: usize) -> f64 {
        let mut table = vec![vec![0.0; classes]; classes];
        for (one, other) in graph.edges() {
            let (one, other) = (usize::from(labels[one].unwrap()), usize::from(labels[other].unwrap()));
            table[one][other] += 0.5 / graph.edge_count() as f64;
            table[other][one] += 0.5 / graph.edge_count() as f64;
        }
        let trace: f64 = (0..classes).map(|class| table[class][class]).sum();
        let square: f64 = (0..classes)
            .map(|class| table[class].iter().sum::<f64>() * table.iter().map(|row| row[class]).sum::<f64>())
            .sum();
        (trace - square) / (1.0 - square)
    }

    #[test]
    fn adjusted_homophily_of_the_karate_club_is_its_assortativity() {
        let (graph, labels) = karate();
        assert_eq!(graph.edge_count(), 78);
        let measured = homophily(&graph, &labels).unwrap();
        assert!((measured.adjusted - 0.717_531).abs() < 1e-6, "{measured:?}");
        assert!((measured.adjusted - assortativity(&graph, &labels, 2)).abs() < 1e-12);
    }

    #[test]
    fn equals_alone_have_homophily_one_by_every_measure_and_opposites_zero() {
        let (graph, _) = Graph::from_edges(6, [(0, 1), (1, 2), (3, 4)]).unwrap();
        let equals = [0, 0, 0, 1, 1, 1].map(Some);
        let measured = homophily(&graph, &equals).unwrap();
        assert_eq!((measured.edge, measured.node), (1.0, 1.0));
        assert!((measured.adjusted - 1.0).abs() < 1e-12);
        let opposites = homophily(&graph, &[0, 1, 0, 0, 1, 1].map(Some)).unwrap();
        assert_eq!((opposites.edge, opposites.node), (0.0, 0.0));
        assert!(opposites.adjusted < 0.0);
    }

    #[test]
    fn what_is_not_known_is_left_out_and_one_class_has_no_adjusted_measure() {
        let (graph, _) = Graph::from_edges(4, [(0, 1), (1, 2), (2, 3)]).unwrap();
        let some = homophily(&graph, &[Some(0), Some(0), None, Some(1)]).unwrap();
        assert_eq!(some.edge, 1.0);
        assert!(some.adjusted.is_nan());
        assert_eq!(homophily(&graph, &[None; 4]), None);
        assert_eq!(estimated_homophily(&graph, &[Some(0), Some(1), Some(0), Some(0)], &[true, false, true, true]), 1.0);
        assert_eq!(estimated_homophily(&graph, &[Some(0); 4], &[true, false, true, false]), 0.75);
    }
}
