//! Commands that need no swarm: plans, suites, files, and the program's documents.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod air_rate;
mod audit;
mod care;
mod configuration;
mod deployment;
mod documents;
mod evaluate;
mod fault_test;
mod foreign_files;
mod model_files;
mod momentum;
mod output_files;
mod periodic_average;
mod piped_inputs;
mod plan_commands;
mod plan_comparison;
mod predict;
mod simulate;
mod simulated_trainers;
mod table_sums;
mod topology_commands;
mod unwritable_output;
