//! Nothing to use: the tests of this crate train the same models on every device and compare them.
//!
//! They are a crate of their own because it turns on every device of `mingle-models`: `cargo test
//! --workspace` then builds all of them once, while the program builds only the default one.
