//! A scenario: the swarm of a seed and the faults that hit it.

mod siege;

use std::sync::Arc;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fault_generator::FaultGenerator;
use super::{Profile, pace};
use crate::codec::Codec;
use crate::config::{Durability, WaitPolicy};
use crate::schedule::{NodeId, Schedule, ScheduleError, Step};
use crate::sim::config::SwarmConfig;
use crate::sim::fault::Fault;
use crate::sim::network::NetworkModel;
use crate::sim::plans::{exact_average, random_step};
use crate::time::Time;

/// The codecs of swarms that gossip.
const WHOLE: [Codec; 4] = [Codec::F32, Codec::F16, Codec::Bf16, Codec::Int8];
/// The codecs of swarms whose plan hands ratios down.
const CODED: [Codec; 3] = [Codec::Int8, Codec::Int4, Codec::Int3];

/// A swarm and its faults.
#[derive(Debug)]
pub struct Scenario {
    /// The swarm.
    pub config: SwarmConfig,
    /// The faults, ascending; all of them before the repair.
    pub faults: Vec<(Time, Fault)>,
    /// The time when everything is repaired.
    pub repair: Time,
    /// The time when the swarm has had time to recover, and nodes are asked to stop.
    pub end: Time,
    /// The time by which every node must have drained.
    pub limit: Time,
    /// The factor by which everything in it is slower than usual.
    pub(in crate::sim) pace: u32,
}

impl Scenario {
    /// The scenario of a seed. The same seed gives the same scenario.
    ///
    /// # Panics
    /// Never: the plans made here are valid.
    pub fn new(profile: Profile, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        if profile == Profile::Hostile && !seed.is_multiple_of(2) {
            return siege::scenario(profile, seed, rng).expect("a dense plan is a plan");
        }
        let nodes = rng.random_range(3..=profile.most_nodes());
        let config = swarm(profile, nodes, seed, &mut rng).expect("a ring with chords is a plan");
        let pace = pace(profile);
        let faults = FaultGenerator::new(nodes, pace, rng).generate(profile.mix());
        let repair = Time::default() + Duration::from_secs(FaultGenerator::SECONDS + 30) * pace;
        let end = repair + Duration::from_secs(30) * pace;
        Self { config, faults, repair, end, limit: Time(end.micros() * 3), pace }
    }

    /// The faults that undo all others, for a swarm of so many nodes.
    pub(in crate::sim) fn repairs(nodes: u32) -> Vec<Fault> {
        let mut repairs = Vec::new();
        for a in (0..nodes).map(NodeId) {
            repairs.extend([Fault::SlowDisk(a, 1), Fault::FreeDisk(a), Fault::Restart(a)]);
            repairs.extend((a.0 + 1..nodes).map(|b| Fault::LinkUp(a, NodeId(b))));
        }
        repairs.push(Fault::DismissRemoved);
        repairs
    }
}

/// Shortest and longest time of a write: with every other seed writes are slow, so that kills hit them.
fn write_time(seed: u64, pace: u32) -> (Duration, Duration) {
    if seed.is_multiple_of(2) {
        (Duration::from_micros(200), Duration::from_millis(5))
    } else {
        (Duration::from_millis(5) * pace, Duration::from_millis(300) * pace)
    }
}

/// A change that depends on the node and the round alone: what all of them come to can be added up.
fn small_change(id: NodeId, round: u64, dimension: usize) -> Vec<f32> {
    let eighths = |k: u64| ((u64::from(id.0) + 3 * round + k) % 5) as f32 - 2.0;
    (0..dimension as u64).map(|k| eighths(k) / 8.0).collect()
}

fn swarm(profile: Profile, nodes: u32, seed: u64, rng: &mut ChaCha8Rng) -> Result<SwarmConfig, ScheduleError> {
    let steps = steps(profile, nodes, rng);
    swarm_of(profile, nodes, &steps, seed, rng)
}

/// The steps of the plan of a profile.
fn steps(profile: Profile, nodes: u32, rng: &mut ChaCha8Rng) -> Vec<Step> {
    let members: Vec<NodeId> = (0..nodes).map(NodeId).collect();
    if profile == Profile::ExactAverage {
        return exact_average(nodes as usize, rng);
    }
    (0..rng.random_range(1..=2)).map(|_| random_step(nodes as usize, &members, rng)).collect()
}

/// The swarm of a plan.
fn swarm_of(
    profile: Profile,
    nodes: u32,
    steps: &[Step],
    seed: u64,
    rng: &mut ChaCha8Rng,
) -> Result<SwarmConfig, ScheduleError> {
    let schedule = Arc::new(Schedule::new(nodes as usize, steps, u32::from(rng.random_bool(0.7)))?);
    let codecs = if schedule.hands_ratios_down() { &CODED[..] } else { &WHOLE };
    let initial = (0..nodes).map(|node| vec![node as f32, 1.0]).collect();
    let policies = [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 4 }, WaitPolicy::Async];
    let pace = pace(profile);
    // More than a run has. Steps are counted in 64 bits.
    let rounds = u64::MAX / schedule.round_length().max(8);
    let config = SwarmConfig {
        durability: Durability::On,
        codec: codecs[rng.random_range(0..codecs.len())],
        largest_norm: (profile == Profile::Hostile).then_some(1e6),
        policy: policies[rng.random_range(0..3)],
        seed,
        training_time: (Duration::from_millis(100) * pace, Duration::from_millis(1_000) * pace),
        write_time: write_time(seed, pace),
        heartbeat: Duration::from_secs(2) * pace,
        drain_deadline: Duration::from_secs(3_600) * pace,
        trainer: Box::new(|id, round, from, _| small_change(id, round, from.len())),
        ..SwarmConfig::averaging(schedule, initial, rounds)
    };
    let (drop, duplicate) = match profile {
        Profile::Loss => (rng.random_range(0.6..0.7), rng.random_range(0.0..0.2)),
        _ if rng.random_bool(0.5) => {
            let delay = (Duration::from_millis(1), Duration::from_millis(rng.random_range(100..500)) * pace);
            return Ok(SwarmConfig { network: NetworkModel { delay, ..NetworkModel::streams() }, ..config });
        }
        _ => (rng.random_range(0.0..0.5), rng.random_range(0.0..0.2)),
    };
    let longest_delay = Duration::from_millis(rng.random_range(100..3_000)) * pace;
    Ok(SwarmConfig {
        network: NetworkModel {
            delay: (Duration::from_millis(1), longest_delay),
            ..NetworkModel::datagrams(drop, duplicate)
        },
        retransmit_after: Some(Duration::from_millis(500) * pace),
        ..config
    })
}
