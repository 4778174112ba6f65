//! The smallest eigenvalues of a normalised Laplacian.
//!
//! `L = I - B` with `B = D^-1/2 A D^-1/2` has eigenvalues in [0, 2]. The eigenvalue 0 has one eigenvector for each
//! component with an edge, the square roots of the degrees there. Plain Lanczos methods miss copies of it, so these
//! eigenvectors are computed directly. The iteration works in their orthogonal complement, where it searches for the
//! largest eigenvalues of `I + B`. An isolated node has eigenvalue 1, with itself as eigenvector (`D^-1/2 = 0` there),
//! and is excluded from the iteration too.

use crate::error::SpectrumError;
use crate::graph::WeightedGraph;
use crate::lanczos::{Eigenpairs, LanczosOptions, largest};
use crate::operator::{SparseSymmetric, SymmetricOperator};

/// The `wanted` smallest eigenvalues of the normalised Laplacian, ascending, with orthonormal eigenvectors.
///
/// # Errors
/// [`SpectrumError::TooManyWanted`] for a graph with fewer nodes, [`SpectrumError::NotConverged`].
///
/// # Complexity
/// A restart costs `O((e + n wanted) wanted)`; graphs without a gap above the wanted eigenvalues need some tens of
/// them.
pub fn smallest_of_laplacian(
    graph: &WeightedGraph,
    wanted: usize,
    options: &LanczosOptions,
) -> Result<Eigenpairs, SpectrumError> {
    let n = graph.node_count();
    if wanted > n {
        return Err(SpectrumError::TooManyWanted { wanted, dimension: n });
    }
    let operator = Shifted::of(graph);
    let zeros = operator.left_out_vectors(wanted);
    let isolated: Vec<usize> = (0..n).filter(|node| graph.degree(*node) == 0.0).collect();
    let free = n - operator.left_out();
    let iterated = (wanted - zeros.len()).min(free);
    let found = largest(&operator, iterated, options)?;

    let mut pairs: Vec<(f64, PairSource)> = (0..zeros.len()).map(|at| (0.0, PairSource::Zero(at))).collect();
    pairs.extend(found.values.iter().enumerate().map(|(at, value)| ((2.0 - value).max(0.0), PairSource::Found(at))));
    pairs.extend(isolated.iter().map(|node| (1.0, PairSource::Isolated(*node))));
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    pairs.truncate(wanted);
    let mut vectors = vec![0.0; n * pairs.len()];
    for ((_, source), vector) in pairs.iter().zip(vectors.chunks_exact_mut(n)) {
        match *source {
            PairSource::Zero(at) => vector.copy_from_slice(&zeros[at]),
            PairSource::Found(at) => vector.copy_from_slice(found.vector(at)),
            PairSource::Isolated(node) => vector[node] = 1.0,
        }
    }
    let values = pairs.into_iter().map(|pair| pair.0).collect();
    Ok(Eigenpairs { dimension: n, values, vectors, residual: found.residual, restarts: found.restarts })
}

/// The origin of an eigenpair.
enum PairSource {
    Zero(usize),
    Found(usize),
    Isolated(usize),
}

/// `I + B`, without the eigenvectors of 2 and without isolated nodes.
struct Shifted {
    adjacency: SparseSymmetric,
    /// For each node, its component among those with an edge; `None` for an isolated node.
    component: Vec<Option<u32>>,
    /// The roots of the degrees, of norm 1 on each component.
    roots: Vec<f64>,
    components: usize,
    left_out: usize,
}

impl Shifted {
    fn of(graph: &WeightedGraph) -> Self {
        let n = graph.node_count();
        let all = graph.components();
        let mut number: Vec<Option<u32>> = vec![None; all.count()];
        let mut volumes: Vec<f64> = Vec::new();
        let mut component = vec![None; n];
        let mut isolated = 0;
        for node in 0..n {
            if graph.degree(node) == 0.0 {
                isolated += 1;
                continue;
            }
            let place = *number[all.of_node(node)].get_or_insert_with(|| {
                volumes.push(0.0);
                volumes.len() as u32 - 1
            });
            volumes[place as usize] += graph.degree(node);
            component[node] = Some(place);
        }
        let root = |node: usize| component[node].map_or(0.0, |at| (graph.degree(node) / volumes[at as usize]).sqrt());
        Self {
            adjacency: graph.normalized_adjacency(),
            roots: (0..n).map(root).collect(),
            components: volumes.len(),
            left_out: volumes.len() + isolated,
            component,
        }
    }

    /// The eigenvectors of 0 of the Laplacian, `at_most` of them.
    fn left_out_vectors(&self, at_most: usize) -> Vec<Vec<f64>> {
        let mut vectors = vec![vec![0.0; self.roots.len()]; self.components.min(at_most)];
        for (node, component) in self.component.iter().enumerate() {
            if let Some(vector) = component.and_then(|at| vectors.get_mut(at as usize)) {
                vector[node] = self.roots[node];
            }
        }
        vectors
    }
}

impl SymmetricOperator for Shifted {
    fn dimension(&self) -> usize {
        self.roots.len()
    }

    fn apply(&self, block: &[f64], image: &mut [f64]) {
        self.adjacency.apply(block, image);
        image.iter_mut().zip(block).for_each(|(image, value)| *image += value);
    }

    fn left_out(&self) -> usize {
        self.left_out
    }

    fn project(&self, vector: &mut [f64]) {
        let mut shares = vec![0.0; self.components];
        for ((component, root), value) in self.component.iter().zip(&self.roots).zip(&*vector) {
            if let Some(at) = component {
                shares[*at as usize] += root * value;
            }
        }
        for ((component, root), value) in self.component.iter().zip(&self.roots).zip(vector) {
            *value = component.map_or(0.0, |at| *value - root * shares[at as usize]);
        }
    }
}
