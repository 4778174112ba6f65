//! A soak test: one swarm for many virtual days of faults, with nothing kept of the past. The sum of weights stays
//! exact, every node goes on, and memory does not grow.

use std::time::Duration;

use super::campaign::{LARGEST_DRIFT, SeedOutcome};
use super::error::SimError;
use super::fault::Fault;
use super::profile::{Profile, Scenario, fault_schedule};
use super::swarm::SimulatedSwarm;
use crate::effect::NodeEvent;
use crate::time::Time;

const DAY: Duration = Duration::from_secs(86_400);

/// Calm at the end of each day, at pace 1: everything is repaired, and every node must go on.
const CALM: Duration = Duration::from_secs(60);

/// A swarm and its days.
///
/// ```
/// use mingle_protocol::sim::{Soak, Profile};
///
/// let mut soak = Soak::new(Profile::Kill, 1).expect("processes are killed, and nothing else happens");
/// let outcome = soak.finish();
/// assert_eq!(outcome.failure, None);
/// ```
#[derive(Debug)]
pub struct Soak {
    profile: Profile,
    seed: u64,
    swarm: SimulatedSwarm,
    pace: u32,
    /// Fault schedules run so far.
    schedules: u64,
    days: u64,
    happened: SeedOutcome,
}

/// The result of one day, and of all since the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Day {
    /// Counted from 1.
    pub day: u64,
    /// Rounds that the slowest node has done since the start.
    pub rounds: u64,
    /// The outcome since the start.
    pub so_far: SeedOutcome,
}

impl Soak {
    /// The swarm of a seed. `None` for profiles in which plans change or disks lose what is on them: the test watches
    /// the sum of weights over one ledger.
    pub fn new(profile: Profile, seed: u64) -> Option<Self> {
        if !matches!(profile, Profile::Kill | Profile::Loss | Profile::Partition) {
            return None;
        }
        let Scenario { config, pace, .. } = Scenario::new(profile, seed);
        let nodes = config.schedule.nodes() as u32;
        let swarm = SimulatedSwarm::new(config).ok()?;
        let happened = SeedOutcome::of_nothing(seed, nodes);
        Some(Self { profile, seed, swarm, pace, schedules: 0, days: 0, happened })
    }

    /// Nodes in the swarm.
    pub fn nodes(&self) -> u32 {
        self.happened.nodes
    }

    /// Runs one more day: faults, and a minute of calm at its end in which every node has to go on.
    ///
    /// # Errors
    /// [`SimError`]: a broken invariant, or a node that stands still.
    pub fn next_day(&mut self) -> Result<Day, SimError> {
        self.days += 1;
        let midnight = Time::default() + DAY * u32::try_from(self.days).unwrap_or(u32::MAX);
        let repair = Time(midnight.micros() - (CALM * self.pace).as_micros() as u64);
        while self.swarm.now() < repair {
            self.run_schedule(repair)?;
        }
        for fault in Scenario::repairs(self.nodes()) {
            self.swarm.at(repair, fault);
        }
        self.swarm.run_until(repair)?;
        let rounds_at_repair = self.rounds();
        self.swarm.run_until(midnight)?;
        self.forget();
        let stuck = self.rounds().iter().zip(&rounds_at_repair).position(|(after, before)| after <= before);
        if let Some(index) = stuck {
            let waiting = self.swarm.nodes().skip(index).take(1).collect();
            return Err(SimError::NotDrained { now: midnight, waiting });
        }
        let rounds = self.rounds().into_iter().min().unwrap_or(0);
        Ok(Day { day: self.days, rounds, so_far: self.so_far() })
    }

    /// Asks all nodes to stop, and checks the mass they hold at the end.
    pub fn finish(&mut self) -> SeedOutcome {
        let failure = self.settle().err();
        self.forget();
        SeedOutcome { failure, ..self.so_far() }
    }

    /// Runs one fault schedule, but nothing after `repair`.
    fn run_schedule(&mut self, repair: Time) -> Result<(), SimError> {
        let begins = self.swarm.now();
        let schedule_seed = self.seed.wrapping_mul(1_000_003).wrapping_add(self.schedules);
        let (faults, span) = fault_schedule(self.profile, self.nodes(), schedule_seed);
        self.schedules += 1;
        let mut cuts: Vec<Time> = Vec::new();
        for (at, fault) in faults {
            let at = begins + at.since(Time::default());
            if at < repair {
                self.swarm.at(at, fault);
                if let Fault::LinkDown(..) = fault {
                    cuts.push(at);
                }
            }
        }
        self.happened.link_cuts += cuts.len() as u64;
        self.happened.partitions += cuts.chunk_by(|a, b| a == b).filter(|together| together.len() > 1).count() as u64;
        self.swarm.run_until(repair.min(begins + span))?;
        self.forget();
        Ok(())
    }

    fn settle(&mut self) -> Result<(), SimError> {
        for node in self.swarm.nodes() {
            self.swarm.at(self.swarm.now(), Fault::Stop(node));
        }
        self.swarm.run_until(self.swarm.now())?;
        let limit = self.swarm.now() + Duration::from_secs(3_600) * self.pace;
        self.swarm.run_until_drained(limit)?;
        let now = self.swarm.now();
        let (held, _, expected) = self.swarm.on_disk();
        if held != expected {
            return Err(SimError::TotalMass { now, total: held, expected });
        }
        let drift = self.drift();
        // Rounding is random: over a million rounds it grows with their square root.
        let allowed = LARGEST_DRIFT * (self.days.max(1) as f64).sqrt();
        if drift > allowed { Err(SimError::Numerators { now, total: 1.0 + drift, expected: 1.0 }) } else { Ok(()) }
    }

    fn rounds(&self) -> Vec<u64> {
        self.swarm.nodes().map(|id| self.swarm.node(id).map_or(0, crate::node::Node::round)).collect()
    }

    /// The distance of the sum of numerators from its start, as a fraction, once nothing is under way any more: the
    /// rounding of f32.
    pub fn drift(&self) -> f64 {
        let (numerators, expected) = self.swarm.numerators();
        let off = |(sum, expected): (&f64, &f64)| (sum - expected).abs() / expected.abs().max(1.0);
        numerators.iter().zip(&expected).map(off).fold(0.0, f64::max)
    }

    /// Counts the events that nodes reported, and drops them.
    fn forget(&mut self) {
        let reported = self.swarm.take_events();
        let rollbacks = reported.iter().filter(|(_, _, event)| matches!(event, NodeEvent::RollbackDetected { .. }));
        self.happened.rollbacks += rollbacks.count() as u64;
        let suspected = reported.iter().filter_map(|(_, id, event)| self.swarm.falsely_suspected(*id, event));
        self.happened.false_suspicions += suspected.count() as u64;
    }

    fn so_far(&self) -> SeedOutcome {
        SeedOutcome {
            ended: self.swarm.now(),
            kills: self.swarm.crashes(),
            wire_checks: self.swarm.wire_checks(),
            disk_checks: self.swarm.disk_checks(),
            events: self.swarm.trace_length(),
            digest: self.swarm.digest(),
            ..self.happened.clone()
        }
    }
}
