//! A running peer seen from another process: a dashboard on a terminal, its end, and its numbers for TensorBoard.
//!
//! | module | contents |
//! | --- | --- |
//! | [`dashboard`] | a peer on the whole terminal, with curves and events, until the user quits |
//! | [`goodbye`] | the end of a peer on request, with what it said last |
//! | [`status_lines`] | one snapshot of a peer, and its neighbours, in lines of text |
//! | [`tensorboard`] | a peer's metrics, as an event file |
//!
//! All but the last reach the peer only through its local interface; ending the dashboard does not affect it.

pub mod dashboard;
pub mod goodbye;
mod screen;
pub mod status_lines;
pub mod tensorboard;
mod view;
