//! Runnable walk-throughs of the libraries, and programs that measure them, in `examples/`:
//!
//! - `average_on_a_planned_graph`: plan a graph, run the production nodes on it over a bad network, and audit the mass.
//! - `train_and_export`: train a model alone and read it back from the file that PyTorch would read.
//! - `wire`: the speed of messages over one link of this machine, compared with libp2p alone and a plain socket.
//! - `solver_iterations`: the experiments of Watanabe and Sakurama, and the iterations that each method takes.
//!
//! `cargo run -p mingle-examples --example average_on_a_planned_graph`
