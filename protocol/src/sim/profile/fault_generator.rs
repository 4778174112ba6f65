//! The faults of a profile, drawn from a seed: their kinds, nodes and times.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Profile, pace};
use crate::schedule::NodeId;
use crate::sim::fault::Fault;
use crate::time::Time;

/// The fault schedule of a seed, ascending from time zero, and its length; its repairs may come later.
pub(in crate::sim) fn fault_schedule(profile: Profile, nodes: u32, seed: u64) -> (Vec<(Time, Fault)>, Duration) {
    let pace = pace(profile);
    let rng = ChaCha8Rng::seed_from_u64(seed);
    let faults = FaultGenerator::new(nodes, pace, rng).generate(profile.mix());
    (faults, Duration::from_secs(FaultGenerator::SECONDS) * pace)
}

/// Faults of each kind in a schedule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix {
    pub(super) kills: u32,
    pub(super) breaks: u32,
    pub(super) partitions: u32,
    pub(super) pauses: u32,
    pub(super) full_disks: u32,
    pub(super) slow_disks: u32,
    pub(super) rollbacks: u32,
    pub(super) wipes: u32,
    /// Flipped bits, files cut off, lost sectors.
    pub(super) damages: u32,
    pub(super) replans: u32,
    pub(super) resizes: u32,
    pub(super) leaves: u32,
    pub(super) mutes: u32,
    pub(super) failed_syncs: u32,
    pub(super) hostile: u32,
}

/// The fault schedule of a scenario, in the making: 120 s at pace 1.
pub(super) struct FaultGenerator {
    nodes: u32,
    pace: u32,
    faults: Vec<(Time, Fault)>,
    rng: ChaCha8Rng,
}

impl FaultGenerator {
    pub(super) const SECONDS: u64 = 120;

    pub(super) fn new(nodes: u32, pace: u32, rng: ChaCha8Rng) -> Self {
        Self { nodes, pace, faults: Vec::new(), rng }
    }

    /// Draws all faults; returns them in ascending order of time.
    pub(super) fn generate(mut self, mix: Mix) -> Vec<(Time, Fault)> {
        self.add_all(mix);
        self.faults.sort_by_key(|(at, _)| *at);
        self.faults
    }

    fn add_all(&mut self, mix: Mix) {
        self.add_outages(mix);
        self.add_plans(mix);
        self.add_bad_peers(mix);
        self.add_lost_disks(mix);
    }

    /// Adds processes, links and disks that fail for a while.
    fn add_outages(&mut self, mix: Mix) {
        for _ in 0..mix.kills {
            let node = self.node();
            let at = self.time();
            self.add(at, Fault::Crash(node));
            let down = self.span(0, 10_000);
            self.add(at + down, Fault::Restart(node));
        }
        for _ in 0..mix.breaks * self.nodes / 4 {
            let a = self.node();
            let b = self.node();
            let at = self.time();
            self.add(at, Fault::LinkDown(a, b));
            let down = self.span(0, 10_000);
            self.add(at + down, Fault::LinkUp(a, b));
        }
        for _ in 0..mix.partitions {
            self.partition();
        }
        for _ in 0..mix.pauses {
            let node = self.node();
            let at = self.time();
            let span = self.span(1_000, 30_000);
            self.add(at, Fault::Pause(node, span));
        }
        for _ in 0..mix.full_disks {
            let node = self.node();
            let at = self.time();
            self.add(at, Fault::FillDisk(node));
            let full = self.span(1_000, 30_000);
            self.add(at + full, Fault::FreeDisk(node));
        }
        for _ in 0..mix.slow_disks {
            let node = self.node();
            let at = self.time();
            let slowness = self.rng.random_range(10..1_000);
            self.add(at, Fault::SlowDisk(node, slowness));
        }
    }

    /// Adds plans that are replaced, and members that leave.
    fn add_plans(&mut self, mix: Mix) {
        for _ in 0..mix.replans {
            let at = self.time();
            let seed = self.rng.random();
            self.add(at, Fault::Replan(seed));
        }
        for _ in 0..mix.resizes {
            let at = self.time();
            let seed = self.rng.random();
            let members = self.rng.random_range(1..=self.nodes);
            self.add(at, Fault::Resize(members, seed));
        }
        for _ in 0..mix.leaves {
            let at = self.time();
            let node = self.node();
            self.add(at, Fault::Leave(node));
        }
    }

    /// Adds faults that cannot be seen from outside: links that carry nothing, disks that do not sync, members that
    /// lie.
    fn add_bad_peers(&mut self, mix: Mix) {
        for _ in 0..mix.mutes * self.nodes / 4 {
            let a = self.node();
            let b = self.node();
            let at = self.time();
            self.add(at, Fault::Mute(a, b));
            let deaf = self.span(0, 20_000);
            self.add(at + deaf, Fault::LinkUp(a, b));
        }
        for _ in 0..mix.failed_syncs {
            let node = self.node();
            let at = self.time();
            self.add(at, Fault::FailSync(node));
            let down = self.span(1_000, 20_000);
            self.add(at + down, Fault::Restart(node));
        }
        for _ in 0..mix.hostile {
            // The last third of the time is for the others, with a ledger that begins anew.
            let node = self.node();
            let at = self.span(0, 40_000);
            self.add(Time::default() + at, Fault::Corrupt(node));
            let expelled = self.span(60_000, 80_000);
            let seed = self.rng.random();
            self.add(Time::default() + expelled, Fault::Expel(node, seed));
        }
    }

    /// Adds disks that come back with less than was on them.
    fn add_lost_disks(&mut self, mix: Mix) {
        for _ in 0..mix.rollbacks {
            self.disk_fault(Fault::RestoreDisk);
        }
        for _ in 0..mix.wipes {
            self.disk_fault(Fault::WipeDisk);
        }
        for _ in 0..mix.damages {
            let damage = self.rng.random_range(0..3);
            let seed = self.rng.random();
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

    /// Copies the disk of a node, kills the node some time later, and harms its disk.
    fn disk_fault(&mut self, fault: impl Fn(NodeId) -> Fault) {
        let node = self.node();
        let copied = self.time();
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
