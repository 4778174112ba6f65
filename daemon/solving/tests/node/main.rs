//! A node's part in a problem, without any network or clock.
#![allow(clippy::unwrap_used)]

mod attempts;
mod certificates;
mod failures;
mod solutions;
mod support;
