//! The hot loops.
fn main() {}
