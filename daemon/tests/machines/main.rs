//! Machines and networks that are themselves at fault: network namespaces, small disks, clocks.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod bad_machines;
mod followers_disk;
mod machines;
mod multicast;
