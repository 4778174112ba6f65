//! Symmetric mixing matrices without negative eigenvalues, on every edge: those that clique-wise solvers such as NIDS
//! mix with (Watanabe and Sakurama, \[WS\]), and those that they are compared with.

use faer::Mat;

use super::{Design, DesignError, DesignRequest, Method};
use crate::{
    cliques::{CliqueKind, Cliques},
    mixing_matrix::MixingMatrix,
    plan::Parameter,
    spectrum::{MAX_DENSE_NODES, symmetric_moduli},
    topology::Topology,
};

/// The edge weight of `lazy-laplacian`, as a fraction of that at which a node of the largest degree would keep nothing.
const MARGIN: f64 = 0.99;

/// The matrix that the method names.
pub(super) fn design(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    let topology = request.topology;
    let mut parameters = Vec::new();
    let matrix = match request.method {
        Method::EdgePhi => MixingMatrix::phi(&Cliques::edges(topology)),
        Method::LazyMetropolis => MixingMatrix::metropolis_hastings(topology).lazy(),
        Method::LazyLaplacian => MixingMatrix::laplacian(topology, laplacian_weight(topology)).lazy(),
        Method::ScaledLaplacian => MixingMatrix::laplacian(topology, scaled_laplacian_weight(topology)?),
        _ => {
            let (cliques, kind) = Cliques::maximal_or_edges(topology);
            let kind = if kind == CliqueKind::Maximal { "maximal cliques" } else { "edges: too many maximal cliques" };
            parameters.push(("of", Parameter::Text(kind.to_owned())));
            MixingMatrix::phi(&cliques)
        }
    };
    Ok(Design { parameters, ..Design::fixed(request.scheduled_step(matrix)) })
}

/// The weight of every edge in `lazy-laplacian`, before half of each node's mass is kept back.
pub(crate) fn laplacian_weight(topology: &Topology) -> f64 {
    let degrees = (0..topology.node_count()).map(|node| topology.neighbors(node).len());
    MARGIN / degrees.max().unwrap_or(1) as f64
}

/// The weight of every edge in `scaled-laplacian`. O(n^3).
pub(crate) fn scaled_laplacian_weight(topology: &Topology) -> Result<f64, DesignError> {
    largest_eigenvalue(topology).map(|largest| 1.0 / largest)
}

/// The largest eigenvalue of the Laplacian. O(n^3).
fn largest_eigenvalue(topology: &Topology) -> Result<f64, DesignError> {
    let nodes = topology.node_count();
    if nodes > MAX_DENSE_NODES {
        return Err(DesignError::TooManyNodes { nodes, method: Method::ScaledLaplacian, limit: MAX_DENSE_NODES });
    }
    let laplacian = Mat::from_fn(nodes, nodes, |row, column| {
        let neighbors = topology.neighbors(row);
        if row == column { neighbors.len() as f64 } else { -f64::from(u8::from(neighbors.contains(&column))) }
    });
    // The Laplacian has no negative eigenvalue.
    let moduli = symmetric_moduli(&laplacian).map_err(DesignError::Spectrum)?;
    Ok(moduli.first().copied().unwrap_or(1.0).max(1.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{DesignOptions, Medium, design, spectrum::symmetric_eigen};

    const GRAPHS: [&str; 5] = [
        "grid:rows=3,cols=4",
        "windmill:cliques=3,size=5",
        "rg:n=30,r=0.4,seed=3",
        "erdos-renyi:n=24,p=0.3,seed=1",
        "ring:n=9",
    ];

    fn dense(topology: &Topology, method: Method) -> Mat<f64> {
        let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
        let plan = design(topology, method, &options).unwrap();
        let step = &plan.steps()[0];
        let mut matrix = Mat::zeros(topology.node_count(), topology.node_count());
        for (node, &share) in step.keep().iter().enumerate() {
            matrix[(node, node)] = share;
        }
        step.links().iter().for_each(|link| matrix[(link.to, link.from)] = link.weight);
        matrix
    }

    fn solvers() -> impl Iterator<Item = Method> {
        Method::ALL.into_iter().filter(|method| method.is_for_solvers())
    }

    #[test]
    fn all_are_symmetric_and_doubly_stochastic_with_eigenvalues_from_0_to_1() {
        for expression in GRAPHS {
            let topology = Topology::generate(expression).unwrap();
            for method in solvers() {
                let matrix = dense(&topology, method);
                let n = topology.node_count();
                for row in 0..n {
                    let sum: f64 = (0..n).map(|column| matrix[(row, column)]).sum();
                    assert!((sum - 1.0).abs() < 1e-12, "{expression} {method}");
                    assert!((0..n).all(|column| (matrix[(row, column)] - matrix[(column, row)]).abs() < 1e-15));
                }
                let (values, _) = symmetric_eigen(&matrix).unwrap();
                assert!(values[0] > -1e-12 && (values[n - 1] - 1.0).abs() < 1e-12, "{expression} {method}: {values:?}");
                assert!(values[n - 2] < 1.0 - 1e-6, "{expression} {method}: {values:?}");
            }
        }
    }

    /// Phi as it is defined: duplicate over the cliques, replace each copy by the weighted mean of its clique, and
    /// average.
    #[test]
    fn phi_is_the_duplication_the_means_of_cliques_and_the_average_of_copies() {
        for expression in GRAPHS {
            let topology = Topology::generate(expression).unwrap();
            for (method, kind) in [(Method::CliquePhi, CliqueKind::Maximal), (Method::EdgePhi, CliqueKind::Edges)] {
                let (phi, cliques) = (dense(&topology, method), Cliques::find(&topology, kind).unwrap());
                let q = |node: usize| cliques.of_node(node).len() as f64;
                for source in 0..topology.node_count() {
                    let mut expected = vec![0.0; topology.node_count()];
                    for members in cliques.members().iter().filter(|members| members.contains(&source)) {
                        let mean = (1.0 / q(source)) / members.iter().map(|&node| 1.0 / q(node)).sum::<f64>();
                        members.iter().for_each(|&node| expected[node] += mean / q(node));
                    }
                    for (node, expected) in expected.into_iter().enumerate() {
                        assert!(
                            (phi[(node, source)] - expected).abs() < 1e-14,
                            "{expression} {method} {node} {source}"
                        );
                    }
                }
            }
        }
    }

    /// \[WS\], proposition 4.
    #[test]
    fn nodes_keep_less_by_phi_of_the_edges_than_by_the_lazy_matrices() {
        for seed in 0..20 {
            let topology = Topology::generate(&format!("rg:n=20,r=0.45,seed={seed}")).unwrap();
            let phi = dense(&topology, Method::EdgePhi);
            for method in [Method::LazyMetropolis, Method::LazyLaplacian] {
                let other = dense(&topology, method);
                assert!((0..20).all(|node| phi[(node, node)] < other[(node, node)]), "seed {seed}, {method}");
            }
        }
    }

    #[test]
    fn cliques_mix_faster_than_edges_and_both_faster_than_what_they_are_compared_with_on_a_geometric_graph() {
        let topology = Topology::generate("rg:n=50,r=0.5,seed=1").unwrap();
        let second = |method: Method| symmetric_eigen(&dense(&topology, method)).unwrap().0[48];
        let [cliques, edges, metropolis, laplacian] =
            [Method::CliquePhi, Method::EdgePhi, Method::LazyMetropolis, Method::LazyLaplacian].map(second);
        assert!(cliques < edges && edges < metropolis && metropolis < laplacian);
    }

    #[test]
    fn who_has_too_many_nodes_for_an_eigenvalue_is_pointed_at_another_matrix_for_solvers() {
        let topology = Topology::generate("ring:n=1100").unwrap();
        let refused = design(&topology, Method::ScaledLaplacian, &DesignOptions::default()).unwrap_err();
        assert!(refused.to_string().contains("use clique-phi"), "{refused}");
    }
}
