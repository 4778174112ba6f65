//! Plans the mixing graph of a serverless training swarm and forecasts its costs.
//!
//! A [`Topology`] holds the nodes and the pairs of them that can receive from each other. [`design()`] turns it into a
//! [`Plan`]: a period of column-stochastic mixing steps on a directed subgraph, with the broadcast slots in which its
//! links can be active without interference. A [`Forecast`] gives, before anything runs, the slots of a period and the
//! speed at which the peers agree.
//!
//! The main design is Algorithm 1 of Nguyen and He, "Optimizing Stochastic Gradient Push under Broadcast
//! Communications" (arXiv:2604.15549), cited as \[NH\]. Each of its steps is a module of its own:
//!
//! ```text
//! topology ── minimum_degree_spanning_tree ── extra_edges ── orientation ── conflict_graph + coloring ── augmentation
//!                  (step 1)                    (step 2)       (step 3)                (step 4: slots, then free links)
//! ```
//!
//! Everything here is a pure function of its arguments: no clock, no file, no thread. The same topology, method and
//! options give the same plan, bit for bit.
//!
//! ```
//! use mingle_planner::{DesignOptions, Method, Plan, Topology, design};
//!
//! let topology = Topology::generate("windmill:cliques=2,size=6")?;
//! let plan = design(&topology, Method::NguyenHe, &DesignOptions::default())?;
//! assert!(plan.forecast().slots_per_period < 11); // every node in a slot of its own would need 11
//!
//! let copy = Plan::from_json(&plan.to_json())?;
//! assert_eq!(copy.hash(), plan.hash());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod augmentation;
pub mod betweenness;
pub mod bit_set;
pub mod cliques;
pub mod coloring;
pub mod column_weights;
pub mod conflict_graph;
pub mod consensus;
pub mod design;
pub mod digraph;
pub mod distance;
mod dominators;
mod dot_text;
pub mod draw;
pub mod drift;
pub mod edge_coloring;
pub mod extra_edges;
pub mod forecast;
pub mod link_measurements;
pub mod load;
mod medium;
pub mod minimum_degree_spanning_tree;
pub mod mixing_matrix;
pub mod network;
mod node_slots;
pub mod objective;
pub mod orientation;
pub mod plan;
pub mod reconstruction;
pub mod recurrence;
pub mod resilience;
pub mod spectrum;
mod step;
pub mod topology;
pub mod transient;

pub use design::{DesignError, DesignObjective, DesignOptions, ExtraEdges, FaultTolerance, Method, design};
pub use digraph::Link;
pub use forecast::{Forecast, ForecastDifference};
pub use node_slots::NodeSlots;
pub use plan::{Medium, MixingStep, Parameter, Plan, PlanError, PlanHash, WeightedLink};
pub use topology::{Topology, TopologyError};
