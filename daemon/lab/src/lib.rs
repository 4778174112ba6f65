//! Whole swarms in one process, on virtual time.
//!
//! | module | what it answers |
//! | --- | --- |
//! | [`simulation`] | how well a plan trains: production nodes, real training, slots for a clock |
//! | [`evaluation`] | which design is better: suites of simulations, their records, and a report |
//! | [`methods`] | which method of learning in rounds is better: one problem, several ways, several seeds |
//! | [`solving`] | what the nodes of a plan find when they solve a problem over links that lose |
//! | [`comparison`] | what a robust model gains and loses beside its competitors |
//! | [`campaign`] | whether the ledger holds: swarms of many seeds, killed, cut off and rolled back |
//!
//! All but the comparison take their events from the [`Agenda`](mingle_protocol::sim::Agenda) of the fault simulator, which is in
//! `mingle-protocol`. Nothing here prints, and nothing knows the command line: what is trained is handed in as
//! [`Learners`](simulation::Learners).

pub mod campaign;
pub mod comparison;
pub mod evaluation;
pub mod methods;
pub mod simulation;
pub mod solving;
