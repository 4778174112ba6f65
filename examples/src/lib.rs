//! Runnable walk-throughs of the libraries, and programs that measure them, in `examples/`:
//!
//! - `average_on_a_planned_graph`: plan a graph, run the production nodes on it over a bad network, and watch the books.
//! - `train_and_export`: train a model alone and read it back from the file that PyTorch would read.
//! - `wire`: how fast messages cross one link of this machine, beside libp2p alone and a plain socket.
//! - `solver_iterations`: the experiments of Watanabe and Sakurama, how many iterations each method takes.
//!
//! `cargo run -p mingle-examples --example average_on_a_planned_graph`
