//! The public interface of the models: training, checkpoints, evaluation. One program, since each one that is linked with burn is
//! 250 MB large.

#![allow(clippy::unwrap_used)]

mod checkpoints;
mod regression;
mod reproducible;
mod site_weight;
mod text;
mod training;
