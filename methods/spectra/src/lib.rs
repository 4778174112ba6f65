//! Spectra of large sparse graphs.
//!
//! A [`WeightedGraph`] is undirected and weighted, in compressed rows. Its [`Components`] are found by search. The eigenvalue 0
//! of its normalised Laplacian `L = I - D^-1/2 A D^-1/2`, which has one dimension for each component, is known from
//! them and never left to an iteration. The other small eigenvalues come from [`largest`], a block Lanczos method with
//! full reorthogonalisation and thick restarts. It checks its residuals, and whether a copy of a multiple eigenvalue
//! was missed.
//!
//! | | what it is |
//! | --- | --- |
//! | [`WeightedGraph`], [`Components`] | an undirected graph, and its connected components |
//! | [`SparseSymmetric`], [`SymmetricOperator`] | a matrix in compressed rows; anything that multiplies vectors |
//! | [`largest`], [`LanczosOptions`] | eigenpairs of an operator at its upper end |
//! | [`smallest_of_laplacian`] | eigenpairs of the normalised Laplacian at its lower end |
//!
//! This crate uses no network, file, clock or thread. The same input and seed give the same bits on the same kind of
//! machine. All numbers are f64; a block of vectors is one slice, column after column.
//!
//! ```
//! use mingle_spectra::{WeightedGraph, LanczosOptions, smallest_of_laplacian};
//!
//! // A path of three nodes, and one of two: two components, so 0 twice.
//! let graph = WeightedGraph::new(5, [(0, 1, 1.0), (1, 2, 1.0), (3, 4, 1.0)])?;
//! let pairs = smallest_of_laplacian(&graph, 3, &LanczosOptions::default())?;
//! assert_eq!(pairs.values[..2], [0.0, 0.0]);
//! assert!((pairs.values[2] - 1.0).abs() < 1e-12);
//! # Ok::<(), mingle_spectra::SpectrumError>(())
//! ```

mod components;
mod error;
mod graph;
mod lanczos;
mod laplacian;
mod operator;

pub use components::Components;
pub use error::SpectrumError;
pub use graph::WeightedGraph;
pub use lanczos::{Eigenpairs, LanczosOptions, largest};
pub use laplacian::smallest_of_laplacian;
pub use operator::{SparseSymmetric, SymmetricOperator};
