//! Training of peers: built-in models, options of training, and trainers that are other programs.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod begin_with;
mod best_model;
mod codecs;
mod compare_alone;
mod contraction;
mod crashing_trainers;
mod early_end;
mod faithful;
mod late_scripts;
mod local_steps;
mod optimizers;
mod overlap;
mod personal_layers;
mod privacy;
mod regression;
mod robust;
mod rounds_of_the_swarm;
mod site_weight;
mod slow_site;
mod tasks;
mod text;
mod trainer_ends;
mod trainer_swarms;
mod trainer_tcp;
mod trainers;
