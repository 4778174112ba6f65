//! Whole swarms in one process, on virtual time.
//!
//! | module | question |
//! | --- | --- |
//! | [`simulation`] | how well does a plan train: production nodes, real training, slots for a clock |
//! | [`evaluation`] | which design is better: suites of simulations, their records, and a report |
//! | [`methods`] | which method of learning in rounds is better: one problem, several methods, several seeds |
//! | [`solving`] | which solution do the nodes of a plan find over lossy links |
//! | [`comparison`] | what does a robust model gain and lose compared with its competitors |
//! | [`campaign`] | does the ledger hold: swarms of many seeds, killed, cut off and rolled back |
//!
//! All but the comparison take their events from the [`Agenda`](mingle_protocol::sim::Agenda) of the fault simulator,
//! which is in `mingle-protocol`. Nothing here prints or knows the command line: the caller passes the models and data
//! as [`Learners`](simulation::Learners).

pub mod campaign;
pub mod comparison;
pub mod evaluation;
pub mod methods;
mod report;
pub mod simulation;
pub mod solving;
