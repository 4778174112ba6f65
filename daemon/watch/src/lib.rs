//! A dashboard of a running peer on a terminal, and its numbers for TensorBoard.
//!
//! | module | contents |
//! | --- | --- |
//! | [`dashboard`] | a peer on the whole terminal, with curves and events, until the user quits |
//! | [`status_lines`] | one snapshot of a peer, and its neighbours, in lines of text |
//! | [`tensorboard`] | a peer's metrics, as an event file |
//!
//! The first two observe the peer only through its local interface, from another process; ending them does not affect
//! it.

pub mod dashboard;
mod screen;
pub mod status_lines;
pub mod tensorboard;
mod view;
