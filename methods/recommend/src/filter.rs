//! The low-pass filter of a client's graph, its cache on disk, and the similarity of graphs by their low frequencies.

mod cache;

use burn::Tensor;
use burn::tensor::{Device, TensorData};
use mingle_spectra::{LanczosOptions, WeightedGraph, smallest_of_laplacian};
use serde::{Deserialize, Serialize};

use crate::error::RecommendError;

pub use cache::SpectrumCache;

/// The smallest eigenvalues of a normalised Laplacian and their eigenvectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LowPass {
    /// Ascending, in [0, 2].
    pub eigenvalues: Vec<f64>,
    /// Users and items.
    pub nodes: usize,
    /// `[nodes, frequencies]`, orthonormal columns.
    pub vectors: Vec<f32>,
}

impl LowPass {
    /// The filter of the lowest `frequencies` of a graph: `LCF(Z) = P P^T Z`.
    ///
    /// # Errors
    /// [`RecommendError::FewNodes`] for a graph with no more nodes than frequencies, [`RecommendError::Spectrum`].
    pub fn of(graph: &WeightedGraph, frequencies: usize) -> Result<Self, RecommendError> {
        let nodes = graph.node_count();
        if frequencies >= nodes {
            return Err(RecommendError::FewNodes { nodes, filters: frequencies });
        }
        let pairs = smallest_of_laplacian(graph, frequencies, &LanczosOptions::default())?;
        let mut vectors = vec![0.0; nodes * frequencies];
        for frequency in 0..frequencies {
            for (node, value) in pairs.vector(frequency).iter().enumerate() {
                vectors[node * frequencies + frequency] = *value as f32;
            }
        }
        Ok(Self { eigenvalues: pairs.values, nodes, vectors })
    }

    /// The number of frequencies that pass.
    pub fn frequencies(&self) -> usize {
        self.eigenvalues.len()
    }

    /// The vectors on a device, `[nodes, frequencies]`.
    pub(crate) fn tensor(&self, device: &Device) -> Tensor<2> {
        let shape = [self.nodes, self.frequencies()];
        Tensor::from_data(TensorData::new(self.vectors.clone(), shape), device)
    }
}
