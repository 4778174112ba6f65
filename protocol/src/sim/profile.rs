//! What goes wrong in a fault test: from a seed, a swarm and a list of faults.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::config::SwarmConfig;
use super::fault::Fault;
use super::network::NetworkModel;
use super::plans::random_step;
use crate::codec::Codec;
use crate::config::{Durability, WaitPolicy};
use crate::schedule::{NodeId, Schedule, ScheduleError, Step};
use crate::time::Time;

/// A kind of bad weather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Processes are killed at any moment, also while they write, and start again; the network loses and reorders.
    Kill,
    /// Six to seven of ten messages are lost.
    Loss,
    /// The swarm falls apart for an hour at a time, in slow motion.
    Partition,
    /// Members come and go: they leave, are removed and join, and plans change under way.
    Churn,
    /// Kills, pauses, partitions, full and slow disks, members that come and go, in swarms of up to 64.
    Mixed,
    /// Disks come back as an older copy of themselves.
    Rollback,
    /// Disks come back empty, as an older copy, or with flipped bits, files cut off and sectors that were never written.
    LossyDisk,
    /// A member sends whatever it likes, until a plan without it begins a new generation.
    Hostile,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Kill,
        Self::Loss,
        Self::Partition,
        Self::Churn,
        Self::Mixed,
        Self::Rollback,
        Self::LossyDisk,
        Self::Hostile,
    ];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Loss => "loss",
            Self::Partition => "partition",
            Self::Churn => "churn",
            Self::Mixed => "mixed",
            Self::Rollback => "rollback",
            Self::LossyDisk => "lossy-disk",
            Self::Hostile => "hostile",
        }
    }

    /// Whether disks lose what was on them, so that the sum of weights is not promised.
    pub const fn loses_records(self) -> bool {
        matches!(self, Self::Rollback | Self::LossyDisk)
    }

    fn most_nodes(self) -> u32 {
        match self {
            Self::Kill => 8,
            Self::Partition | Self::Churn | Self::Rollback | Self::LossyDisk | Self::Hostile => 16,
            Self::Loss | Self::Mixed => 64,
        }
    }

    /// Whether the faults of this profile include kills, and so on; how many of each per 120 s.
    fn mix(self) -> Mix {
        match self {
            Self::Kill => Mix { kills: 55, breaks: 15, ..Mix::default() },
            Self::Loss => Mix { kills: 30, mutes: 10, ..Mix::default() },
            Self::Partition => Mix { kills: 40, partitions: 7, ..Mix::default() },
            Self::Churn => {
                Mix { kills: 10, breaks: 5, replans: 2, resizes: 5, rewirings: 6, leaves: 3, ..Mix::default() }
            }
            Self::Mixed => Mix {
                kills: 30,
                breaks: 15,
                partitions: 2,
                pauses: 8,
                full_disks: 5,
                slow_disks: 5,
                replans: 2,
                resizes: 2,
                rewirings: 3,
                leaves: 1,
                mutes: 5,
                failed_syncs: 3,
                ..Mix::default()
            },
            Self::Rollback => Mix { kills: 5, breaks: 5, rollbacks: 1, ..Mix::default() },
            Self::LossyDisk => {
                Mix { kills: 15, breaks: 5, rollbacks: 4, wipes: 4, damages: 6, replans: 4, ..Mix::default() }
            }
            Self::Hostile => Mix { kills: 10, breaks: 5, mutes: 3, hostile: 1, ..Mix::default() },
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

/// A name that is no profile's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile \"{0}\": take {names}", names = Profile::ALL.map(Profile::name).join(", "))]
pub struct UnknownProfile(String);

/// Faults of each kind during the bad weather.
#[derive(Clone, Copy, Debug, Default)]
struct Mix {
    kills: u32,
    breaks: u32,
    partitions: u32,
    pauses: u32,
    full_disks: u32,
    slow_disks: u32,
    rollbacks: u32,
    wipes: u32,
    /// Flipped bits, files cut off, lost sectors.
    damages: u32,
    replans: u32,
    resizes: u32,
    rewirings: u32,
    leaves: u32,
    mutes: u32,
    failed_syncs: u32,
    hostile: u32,
}

/// A swarm and what happens to it.
#[derive(Debug)]
pub struct Scenario {
    /// The swarm.
    pub config: SwarmConfig,
    /// What goes wrong, ascending; all of it before the repair.
    pub faults: Vec<(Time, Fault)>,
    /// When everything is repaired.
    pub repair: Time,
    /// When the swarm has had time to recover, and nodes are asked to stop.
    pub end: Time,
    /// When every node must have drained.
    pub limit: Time,
    /// How many times as slow as usual everything in it is.
    pub(super) pace: u32,
}

impl Scenario {
    /// The scenario of a seed. The same seed gives the same scenario.
    ///
    /// # Panics
    /// Never: the plans made here are valid.
    pub fn new(profile: Profile, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let nodes = rng.random_range(3..=profile.most_nodes());
        let config = swarm(profile, nodes, seed, &mut rng).expect("a ring with chords is a plan");
        let pace = pace(profile);
        let faults = Weather { nodes, pace, faults: Vec::new(), rng }.brewed(profile.mix());
        let repair = Time::default() + Duration::from_secs(Weather::SECONDS + 30) * pace;
        let end = repair + Duration::from_secs(30) * pace;
        Self { config, faults, repair, end, limit: Time(end.micros() * 3), pace }
    }

    /// Undoes everything, for a swarm of so many nodes.
    pub(super) fn repairs(nodes: u32) -> Vec<Fault> {
        let mut repairs = Vec::new();
        for a in (0..nodes).map(NodeId) {
            repairs.extend([Fault::SlowDisk(a, 1), Fault::FreeDisk(a), Fault::Restart(a)]);
            repairs.extend((a.0 + 1..nodes).map(|b| Fault::LinkUp(a, NodeId(b))));
        }
        repairs.push(Fault::DismissRemoved);
        repairs
    }
}

/// A piece of bad weather from a seed, ascending from time zero, and how long it is; what it mends may come later.
pub(super) fn bad_weather(profile: Profile, nodes: u32, seed: u64) -> (Vec<(Time, Fault)>, Duration) {
    let (pace, rng) = (pace(profile), ChaCha8Rng::seed_from_u64(seed));
    let faults = Weather { nodes, pace, faults: Vec::new(), rng }.brewed(profile.mix());
    (faults, Duration::from_secs(Weather::SECONDS) * pace)
}

/// How much slower than usual everything is: partitions of an hour are only bearable in a swarm with long rounds.
fn pace(profile: Profile) -> u32 {
    if profile == Profile::Partition { 300 } else { 1 }
}

/// Shortest and longest: with every other seed disks take their time, so that kills find them writing.
fn write_time(seed: u64, pace: u32) -> (Duration, Duration) {
    if seed.is_multiple_of(2) {
        (Duration::from_micros(200), Duration::from_millis(5))
    } else {
        (Duration::from_millis(5) * pace, Duration::from_millis(300) * pace)
    }
}

fn swarm(profile: Profile, nodes: u32, seed: u64, rng: &mut ChaCha8Rng) -> Result<SwarmConfig, ScheduleError> {
    let members: Vec<NodeId> = (0..nodes).map(NodeId).collect();
    let steps: Vec<Step> = (0..rng.random_range(1..=2)).map(|_| random_step(nodes as usize, &members, rng)).collect();
    let schedule = Arc::new(Schedule::new(nodes as usize, &steps, u32::from(rng.random_bool(0.7)))?);
    let initial = (0..nodes).map(|node| vec![node as f32, 1.0]).collect();
    let policies = [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 4 }, WaitPolicy::Async];
    let pace = pace(profile);
    let config = SwarmConfig {
        durability: Durability::On,
        codec: Codec::ALL[rng.random_range(0..Codec::ALL.len())],
        largest_norm: (profile == Profile::Hostile).then_some(1e6),
        policy: policies[rng.random_range(0..3)],
        seed,
        training_time: (Duration::from_millis(100) * pace, Duration::from_millis(1_000) * pace),
        write_time: write_time(seed, pace),
        heartbeat: Duration::from_secs(2) * pace,
        drain_deadline: Duration::from_secs(3_600) * pace,
        ..SwarmConfig::averaging(schedule, initial, u64::MAX / 8)
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

/// The bad weather of a scenario, in the making: 120 s of it at pace 1.
struct Weather {
    nodes: u32,
    pace: u32,
    faults: Vec<(Time, Fault)>,
    rng: ChaCha8Rng,
}

impl Weather {
    const SECONDS: u64 = 120;

    /// All of it, ascending.
    fn brewed(mut self, mix: Mix) -> Vec<(Time, Fault)> {
        self.brew(mix);
        self.faults.sort_by_key(|(at, _)| *at);
        self.faults
    }

    fn brew(&mut self, mix: Mix) {
        for _ in 0..mix.kills {
            let (node, at) = (self.node(), self.time());
            self.add(at, Fault::Crash(node));
            let down = self.span(0, 10_000);
            self.add(at + down, Fault::Restart(node));
        }
        for _ in 0..mix.breaks * self.nodes / 4 {
            let (a, b, at) = (self.node(), self.node(), self.time());
            self.add(at, Fault::LinkDown(a, b));
            let down = self.span(0, 10_000);
            self.add(at + down, Fault::LinkUp(a, b));
        }
        for _ in 0..mix.partitions {
            self.partition();
        }
        for _ in 0..mix.pauses {
            let (node, at, span) = (self.node(), self.time(), self.span(1_000, 30_000));
            self.add(at, Fault::Pause(node, span));
        }
        for _ in 0..mix.full_disks {
            let (node, at) = (self.node(), self.time());
            self.add(at, Fault::FillDisk(node));
            let full = self.span(1_000, 30_000);
            self.add(at + full, Fault::FreeDisk(node));
        }
        for _ in 0..mix.slow_disks {
            let (node, at) = (self.node(), self.time());
            let slowness = self.rng.random_range(10..1_000);
            self.add(at, Fault::SlowDisk(node, slowness));
        }
        for _ in 0..mix.replans {
            let (at, seed) = (self.time(), self.rng.random());
            self.add(at, Fault::Replan(seed));
        }
        for _ in 0..mix.resizes {
            let (at, seed) = (self.time(), self.rng.random());
            let members = self.rng.random_range(1..=self.nodes);
            self.add(at, Fault::Resize(members, seed));
        }
        for _ in 0..mix.rewirings {
            let (at, seed) = (self.time(), self.rng.random());
            self.add(at, Fault::Rewire(seed));
        }
        for _ in 0..mix.leaves {
            let (at, node) = (self.time(), self.node());
            self.add(at, Fault::Leave(node));
        }
        for _ in 0..mix.mutes * self.nodes / 4 {
            let (a, b, at) = (self.node(), self.node(), self.time());
            self.add(at, Fault::Mute(a, b));
            let deaf = self.span(0, 20_000);
            self.add(at + deaf, Fault::LinkUp(a, b));
        }
        for _ in 0..mix.failed_syncs {
            let (node, at) = (self.node(), self.time());
            self.add(at, Fault::FailSync(node));
            let down = self.span(1_000, 20_000);
            self.add(at + down, Fault::Restart(node));
        }
        for _ in 0..mix.hostile {
            // The last third of the time is for the others, with a ledger that begins anew.
            let (node, at) = (self.node(), self.span(0, 40_000));
            self.add(Time::default() + at, Fault::Corrupt(node));
            let expelled = self.span(60_000, 80_000);
            let seed = self.rng.random();
            self.add(Time::default() + expelled, Fault::Expel(node, seed));
        }
        for _ in 0..mix.rollbacks {
            self.disk_fault(Fault::RestoreDisk);
        }
        for _ in 0..mix.wipes {
            self.disk_fault(Fault::WipeDisk);
        }
        for _ in 0..mix.damages {
            let (damage, seed) = (self.rng.random_range(0..3), self.rng.random());
            self.disk_fault(|id| match damage {
                0 => Fault::FlipBit(id, seed),
                1 => Fault::TruncateSlot(id, seed),
                _ => Fault::LoseSectors(id, seed),
            });
        }
    }

    /// Cuts every link between two halves, for 12 s at pace 1: an hour at that of partitions.
    fn partition(&mut self) {
        let at = self.time();
        let heal = at + self.span(4_000, 20_000);
        let side: Vec<bool> = (0..self.nodes).map(|_| self.rng.random_bool(0.5)).collect();
        for a in 0..self.nodes {
            for b in a + 1..self.nodes {
                if side[a as usize] != side[b as usize] {
                    self.add(at, Fault::LinkDown(NodeId(a), NodeId(b)));
                    self.add(heal, Fault::LinkUp(NodeId(a), NodeId(b)));
                }
            }
        }
    }

    /// A copy is made, the node is killed some time later, and its disk is not what it was.
    fn disk_fault(&mut self, fault: impl Fn(NodeId) -> Fault) {
        let (node, copied) = (self.node(), self.time());
        self.add(copied, Fault::BackUpDisk(node));
        let killed = copied + self.span(0, 20_000);
        self.add(killed, Fault::Crash(node));
        self.add(killed, fault(node));
        let down = self.span(0, 10_000);
        self.add(killed + down, Fault::Restart(node));
    }

    fn add(&mut self, at: Time, fault: Fault) {
        self.faults.push((at, fault));
    }

    fn node(&mut self) -> NodeId {
        NodeId(self.rng.random_range(0..self.nodes))
    }

    fn time(&mut self) -> Time {
        Time::default() + Duration::from_millis(self.rng.random_range(0..1_000 * Self::SECONDS)) * self.pace
    }

    fn span(&mut self, shortest: u64, longest: u64) -> Duration {
        Duration::from_millis(self.rng.random_range(shortest..longest)) * self.pace
    }
}
