//! One node's part in a problem, without any network or clock.
#![allow(clippy::unwrap_used)]

mod attempts;
mod certificates;
mod codec;
mod common_model;
mod coupling;
mod failures;
mod masked_sums;
mod robust;
mod rounds;
mod solutions;
mod support;
mod walk;
