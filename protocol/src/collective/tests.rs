//! The collectives over links with and without faults, and their messages as bytes.
#![allow(clippy::unwrap_used)]

mod averages;
mod floods;
mod messages;
mod network;
mod plans;
mod pulls;
mod reductions;
mod sequence;
