//! A campaign of fault tests: the scenario of one seed after the other, each run to its end and checked.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::error::SimError;
use super::fault::Fault;
use super::profile::{Profile, Scenario};
use super::resilience::Siege;
use super::swarm::SimulatedSwarm;
use super::trace_entry::TraceEntry;
use crate::effect::NodeEvent;
use crate::time::Time;

/// Rounding of f32 over some thousand rounds, as a fraction of a sum of numerators; random, not growing.
pub(super) const LARGEST_DRIFT: f64 = 1e-3;

/// The result of one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedOutcome {
    /// The seed.
    pub seed: u64,
    /// Nodes in the swarm.
    pub nodes: u32,
    /// The time when it ended.
    pub ended: Time,
    /// Processes killed.
    pub kills: u64,
    /// Times at which two pairs of nodes or more lost each other together.
    pub partitions: u64,
    /// Pairs of nodes that lost each other.
    pub link_cuts: u64,
    /// Faults that made a disk full, slow, old, empty or spoiled, or its next write fail.
    pub disk_faults: u64,
    /// Checks of a node by the parcels it gave and took, after an event or when it handed in a record.
    pub wire_checks: u64,
    /// Sums over all disks together, after a write.
    pub disk_checks: u64,
    /// Starts of nodes that could not rely on their disks, and began without them.
    pub unreadable: u64,
    /// Rollbacks that nodes detected in themselves.
    pub rollbacks: u64,
    /// Reports of sound nodes that name a sound neighbour as one that keeps weight.
    pub false_suspicions: u64,
    /// Events of the run.
    pub events: u64,
    /// A hash of all events: equal for equal runs.
    pub digest: [u8; 32],
    /// The failure, if there was one.
    pub failure: Option<SimError>,
}

/// Runs a scenario to its end: all faults, repair, and until every node has drained.
///
/// Where disks keep what is on them the sum of weights is checked after every write. At the end the nodes hold all of
/// it, with the sum of numerators that they began with and of all that they learnt, unless parcels were clipped. Where a
/// disk was rolled back, either its node found out, or the disks add up all the same.
///
/// ```
/// use mingle_protocol::sim::{Profile, Scenario, run_scenario};
///
/// let outcome = run_scenario(Profile::Kill, 7, Scenario::new(Profile::Kill, 7));
/// assert_eq!(outcome.failure, None);
/// assert!(outcome.kills > 10 && outcome.disk_checks > outcome.kills && outcome.wire_checks > outcome.disk_checks);
/// ```
pub fn run_scenario(profile: Profile, seed: u64, scenario: Scenario) -> SeedOutcome {
    watch_scenario(profile, seed, scenario, |_| ())
}

/// Runs a scenario, and also returns the log of its faults and of the events that nodes reported, except finished
/// rounds.
pub fn trace_scenario(profile: Profile, seed: u64, scenario: Scenario) -> (SeedOutcome, Vec<(Time, TraceEntry)>) {
    let faults: Vec<_> = scenario.faults.iter().map(|&(at, fault)| (at, TraceEntry::Fault(fault))).collect();
    let mut log = Vec::new();
    let outcome = watch_scenario(profile, seed, scenario, |swarm| {
        let events = swarm.events().iter().filter(|(_, _, event)| !matches!(event, NodeEvent::RoundFinished(_)));
        log.extend(faults.into_iter().filter(|(at, _)| *at <= swarm.now()));
        log.extend(events.map(|(at, id, event)| (*at, TraceEntry::Event(*id, event.clone()))));
    });
    log.sort_by_key(|(at, _)| *at);
    (outcome, log)
}

fn watch_scenario(profile: Profile, seed: u64, scenario: Scenario, look: impl FnOnce(&SimulatedSwarm)) -> SeedOutcome {
    let Scenario { config, faults, repair, end, limit, .. } = scenario;
    let nodes = config.schedule.nodes() as u32;
    let mut swarm = match SimulatedSwarm::new(config) {
        Ok(swarm) => swarm,
        Err(error) => return SeedOutcome { failure: Some(error), ..SeedOutcome::of_nothing(seed, nodes) },
    };
    for &(at, fault) in &faults {
        swarm.at(at, fault);
    }
    for fault in Scenario::repairs(nodes) {
        swarm.at(repair, fault);
    }
    for node in swarm.nodes() {
        swarm.at(end, Fault::Stop(node));
    }
    let siege = Siege::among(&faults);
    let ran = catch_unwind(AssertUnwindSafe(|| run(&mut swarm, profile, siege.as_ref(), end, limit)));
    let failure = ran.unwrap_or_else(|payload| Err(SimError::panicked(swarm.now(), payload.as_ref()))).err();
    look(&swarm);
    let happened = faults.iter().filter(|(at, _)| *at <= swarm.now());
    let cuts = happened.clone().filter(|(_, fault)| matches!(fault, Fault::LinkDown(..))).map(|(at, _)| *at);
    let cuts: Vec<Time> = cuts.collect();
    SeedOutcome {
        ended: swarm.now(),
        kills: swarm.crashes(),
        partitions: cuts.chunk_by(|a, b| a == b).filter(|together| together.len() > 1).count() as u64,
        link_cuts: cuts.len() as u64,
        disk_faults: happened.filter(|(_, fault)| fault.harms_disk()).count() as u64,
        wire_checks: swarm.wire_checks(),
        disk_checks: swarm.disk_checks(),
        unreadable: swarm.unreadable(),
        rollbacks: swarm.events().iter().filter(|(_, _, event)| is_rollback(event)).count() as u64,
        false_suspicions: false_suspicions(&swarm).count() as u64,
        events: swarm.trace_length(),
        digest: swarm.digest(),
        failure,
        ..SeedOutcome::of_nothing(seed, nodes)
    }
}

impl SeedOutcome {
    /// Checks of mass that could have failed.
    pub fn checks(&self) -> u64 {
        self.wire_checks + self.disk_checks
    }

    pub(super) fn of_nothing(seed: u64, nodes: u32) -> Self {
        Self {
            seed,
            nodes,
            ended: Time::default(),
            kills: 0,
            partitions: 0,
            link_cuts: 0,
            disk_faults: 0,
            wire_checks: 0,
            disk_checks: 0,
            unreadable: 0,
            rollbacks: 0,
            false_suspicions: 0,
            events: 0,
            digest: [0; 32],
            failure: None,
        }
    }
}

fn is_rollback(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::RollbackDetected { .. })
}

fn run(
    swarm: &mut SimulatedSwarm,
    profile: Profile,
    siege: Option<&Siege>,
    end: Time,
    limit: Time,
) -> Result<(), SimError> {
    if let Some(siege) = siege {
        swarm.run_until(siege.last_moment())?;
        siege.check(swarm)?;
    }
    swarm.run_until(end)?;
    swarm.run_until_drained(limit)?;
    check_suspicions(swarm, profile)?;
    // The last ledger that began may be exact, whatever disks had lost before it.
    if profile.loses_records() && !swarm.is_exact() && swarm.was_rolled_back() {
        return Ok(());
    }
    let now = swarm.now();
    let (held, owed, expected) = swarm.on_disk();
    // Where all members of the newest plan left before it began, those that it leaves out ended with parcels under way.
    let total = if swarm.has_begun_newest_plan() { held } else { held + owed };
    if total != expected {
        return Err(SimError::TotalMass { now, total, expected });
    }
    if !swarm.is_exact() || !swarm.conserves_numerators() {
        return Ok(());
    }
    let (numerators, expected) = swarm.numerators();
    // Rounding is relative to the largest values that there were.
    let pulled = swarm.largest_pull() * f64::from(f32::EPSILON);
    let largest = |expected: f64| LARGEST_DRIFT * expected.abs().max(1.0) + pulled;
    let is_off = |(sum, expected): (&f64, &f64)| (sum - expected).abs() > largest(*expected);
    match numerators.iter().zip(&expected).position(is_off) {
        Some(at) => Err(SimError::Numerators { now, total: numerators[at], expected: expected[at] }),
        None => Ok(()),
    }
}

/// Checks that nobody was named as one that keeps weight, where all are sound and no disk loses what it holds.
fn check_suspicions(swarm: &SimulatedSwarm, profile: Profile) -> Result<(), SimError> {
    if profile.loses_records() || profile == Profile::Hostile {
        return Ok(());
    }
    false_suspicions(swarm).next().map_or(Ok(()), Err)
}

/// The reports of sound nodes that name a sound neighbour as one that keeps weight.
fn false_suspicions(swarm: &SimulatedSwarm) -> impl Iterator<Item = SimError> {
    swarm.events().iter().filter_map(|(now, id, event)| {
        let peer = swarm.falsely_suspected(*id, event)?;
        Some(SimError::SoundNeighbourSuspected { now: *now, id: *id, peer })
    })
}
