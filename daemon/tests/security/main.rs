//! Members and strangers that do not keep to the protocol, and the operator's measures against them and for lost keys.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod expulsion;
mod flood;
mod hostile;
mod lost_keys;
mod made_up_progress;
mod strangers;
mod within_bounds;
