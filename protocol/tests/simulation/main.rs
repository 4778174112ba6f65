//! Whole swarms of production nodes on virtual time, with their mass added up after every event.
#![allow(clippy::unwrap_used)]

mod averaging;
mod codecs;
mod crashes;
mod determinism;
mod differences;
mod durable;
mod endings;
mod faithful;
mod faults;
mod growing;
mod guards;
mod injected_bugs;
mod journals;
mod leaving;
mod lifecycle;
mod long_attacks;
mod overlap;
mod pace;
mod robust;
mod rollbacks;
mod sieges;
mod support;
mod training;
