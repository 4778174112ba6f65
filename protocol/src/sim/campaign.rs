//! A fault test: one seed after the other, each to its end.

use super::error::SimError;
use super::profile::{Profile, Scenario};
use super::swarm::{Fault, Swarm};
use crate::effect::Event;
use crate::time::Time;

/// Rounding of f32 over some thousand rounds, as a fraction of a sum of numerators; random, not growing.
const LARGEST_DRIFT: f64 = 1e-3;

/// What became of one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Processes killed.
    pub kills: u64,
    /// How often the ledger was added up.
    pub checks: u64,
    /// How often a node found out that it had been set back.
    pub set_backs: u64,
    /// How many things happened, and a hash of all of them.
    pub events: u64,
    /// Equal for equal runs.
    pub digest: [u8; 32],
    /// What went wrong.
    pub failure: Option<SimError>,
}

/// Runs a scenario to its end: all faults, repair, and until every node has drained.
///
/// Where disks keep what is on them the sum of weights is checked after every write, and at the end the nodes hold all
/// of it, with the sum of numerators that they began with. Where a disk was set back, either its node found out, or the
/// disks add up all the same.
pub fn run_scenario(profile: Profile, seed: u64, scenario: Scenario) -> Outcome {
    let Scenario { config, faults, end } = scenario;
    let mut outcome = Outcome { seed, kills: 0, checks: 0, set_backs: 0, events: 0, digest: [0; 32], failure: None };
    match Swarm::new(config) {
        Ok(mut swarm) => {
            outcome.failure = run(&mut swarm, profile, &faults, end).err();
            let set_back = |event: &Event| matches!(event, Event::SetBack { .. });
            outcome.kills = swarm.crashes();
            outcome.checks = swarm.checks();
            outcome.set_backs = swarm.events().iter().filter(|(_, _, event)| set_back(event)).count() as u64;
            outcome.events = swarm.trace_length();
            outcome.digest = swarm.digest();
        }
        Err(error) => outcome.failure = Some(error),
    }
    outcome
}

fn run(swarm: &mut Swarm, profile: Profile, faults: &[(Time, Fault)], end: Time) -> Result<(), SimError> {
    for &(at, fault) in faults {
        swarm.at(at, fault);
    }
    for node in swarm.nodes() {
        swarm.at(end, Fault::Stop(node));
    }
    let limit = Time::from_millis(end.micros() / 1_000 * 3);
    swarm.run_until(end)?;
    swarm.run_until_drained(limit)?;
    if profile.loses_records() && swarm.events().iter().any(|(_, _, event)| matches!(event, Event::SetBack { .. })) {
        return Ok(());
    }
    let now = swarm.now();
    let (held, _, expected) = swarm.on_disk();
    if held != expected {
        return Err(SimError::TotalMass { now, total: held, expected });
    }
    if swarm.was_replanned() {
        return Ok(());
    }
    let (numerators, expected) = swarm.numerators();
    let is_off = |(sum, expected): (&f64, &f64)| (sum - expected).abs() > LARGEST_DRIFT * expected.abs().max(1.0);
    match numerators.iter().zip(&expected).position(|pair| is_off(pair)) {
        Some(at) => Err(SimError::Numerators { now, total: numerators[at], expected: expected[at] }),
        None => Ok(()),
    }
}
