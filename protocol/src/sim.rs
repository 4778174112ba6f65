//! A deterministic simulator: many production nodes in one thread, on virtual time, with faults.
//!
//! Nothing here is a model of the protocol. The nodes are [`Node`](crate::Node)s, their messages pass through the real
//! [`wire`](crate::wire) format, and after every single event the mass of the whole swarm is added up as integers, from
//! the parcels the simulator saw on the wire rather than from the nodes' own books. Where nodes keep records, they are
//! killed, their disks fill up, fail and lose what was not yet on them, and the mass is added up from the records on
//! disk. A run is a function of its seed; two runs with the same [digest](SimulatedSwarm::digest) are the same to the bit.
//!
//! ```
//! use std::sync::Arc;
//! use mingle_protocol::{NodeId, Schedule, Step, Time, sim::{SimulatedSwarm, SwarmConfig}};
//!
//! // Three nodes in a ring, each keeping half: they agree on the average of 0, 3 and 6.
//! let links = (0..3).map(|i| (NodeId(i), NodeId((i + 1) % 3), 0.5)).collect();
//! let plan = Schedule::new(3, &[Step { keep: vec![0.5; 3], links }], 0)?;
//! let config = SwarmConfig::averaging(Arc::new(plan), vec![vec![0.0], vec![3.0], vec![6.0]], 40);
//! let mut swarm = SimulatedSwarm::new(config)?;
//! swarm.run_until_drained(Time::from_millis(60_000))?;
//! assert!((swarm.ratio(NodeId(1))[0] - 3.0).abs() < 1e-5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agenda;
mod campaign;
mod config;
mod conservation;
mod disk;
mod durable_ledger;
mod error;
mod fault;
mod hostile;
mod journal;
mod keys;
mod learning;
mod misconduct;
mod network;
mod plans;
mod profile;
mod resilience;
mod shrink;
mod soak;
mod swarm;
mod trace;
mod trace_entry;
mod variant;

pub use agenda::Agenda;
pub use campaign::{SeedOutcome, run_scenario, trace_scenario};
pub use config::{SwarmConfig, TrainFunction};
pub use error::SimError;
pub use fault::Fault;
pub use journal::{JOURNAL_SCHEMA, Journal, JournalError, LONGEST_RUN, MOST_FAULTS};
pub use misconduct::Misconduct;
pub use network::NetworkModel;
pub use profile::{Profile, Scenario, UnknownProfile};
pub use shrink::{Shrunk, shrink};
pub use soak::{Day, Soak};
pub use swarm::SimulatedSwarm;
pub use trace_entry::TraceEntry;
pub use variant::Variant;
