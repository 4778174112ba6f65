//! A node's part in a problem, without any network or clock.
#![allow(clippy::unwrap_used)]

mod attempts;
mod certificates;
mod failures;
mod robust;
mod solutions;
mod support;
