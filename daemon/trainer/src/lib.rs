//! Trainers in other programs: a peer whose local training another process does.
//!
//! The peer's side of the trainer protocol (`docs/trainer-protocol.md`). A [`TrainerHost`] stands between the training thread of
//! the peer, which wants a change for each round, and a trainer, which asks over the peer's socket, or over TCP, what to do next:
//!
//! ```text
//!   training thread                      TrainerHost                       trainer
//!   ExternalTraining::train  -- order -->           <-- GET  order ------  any program
//!                            <- change --           <-- POST exchange ---  (or curl)
//! ```
//!
//! A trainer may die, freeze, or come back at any time: the peer and its weight do not depend on it. A round whose trainer
//! does not answer takes no local steps, and the peer mixes on.

mod ending;
mod error;
mod host;
mod kept_state;
mod launch;
mod memory;
mod order;
mod output;
mod pace;
mod rounds;
mod routes;
mod run_end;
mod script_nodes;
mod session;
mod simulated_node;
mod state;
mod task;
mod tcp;
mod training;
mod vectors;
mod wire;

pub use host::{HostOptions, TrainerHost};
pub use launch::Launcher;
pub use rounds::RoundsChoice;
pub use script_nodes::{LONG_WAIT, Remark, ScriptNodes, scripts_of};
pub use simulated_node::Desertion;
pub use task::TrainerTask;
