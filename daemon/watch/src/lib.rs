//! A running peer on a terminal, and its numbers for TensorBoard.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`dashboard`] | following a peer on the whole terminal, with curves and events, until the user quits |
//! | [`status_lines`] | one snapshot of a peer, and its neighbours, in lines of text |
//! | [`tensorboard`] | what a peer measures, as an event file |
//!
//! The first two see the peer through its local interface alone, from another process, and ending them does nothing to it.

pub mod dashboard;
mod screen;
pub mod status_lines;
pub mod tensorboard;
mod view;
