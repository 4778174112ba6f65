//! The `mingle` binary.
fn main() {}
