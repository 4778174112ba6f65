//! Runnable walk-throughs of the libraries, one a file in `examples/`:
//!
//! - `average_on_a_planned_graph`: plan a graph, run the production nodes on it over a bad network, and watch the books.
//! - `train_and_export`: train a model alone and read it back from the file that PyTorch would read.
//!
//! `cargo run -p mingle-examples --example average_on_a_planned_graph`
