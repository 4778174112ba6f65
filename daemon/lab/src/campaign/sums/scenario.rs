//! The plan, the problem and the faults of a seed.

use std::time::Duration;

use mingle_planner::{DesignOptions, Medium, Method, Plan, Topology};
use mingle_protocol::Time;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::weakness::Weakness;

/// The virtual time of one round, roughly.
const ROUND: Duration = Duration::from_millis(150);
/// The time of the exchange of keys and of statistics, roughly.
const OPENING: Duration = Duration::from_millis(100);

/// A swarm that learns in rounds over masked sums, and what happens to it.
pub(super) struct SumsScenario {
    pub(super) seed: u64,
    pub(super) nodes: usize,
    pub(super) rounds: u64,
    pub(super) dimension: usize,
    /// `true` if training that is repeated comes to other numbers, as that of a script does.
    pub(super) is_restless: bool,
    /// The share of messages that are lost.
    pub(super) loss: f64,
    pub(super) faults: Vec<(Time, SumsFault)>,
    /// The share of messages that a lying member changes, if there is one.
    pub(super) lies: Option<f64>,
    pub(super) weakness: Option<Weakness>,
    pub(super) dice: ChaCha8Rng,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SumsFault {
    /// A process dies; it is started again after a while, with this disk.
    Kill { node: usize, disk: FoundDisk, away: Duration },
    /// A copy of a disk is made, to which it may be put back.
    Copy { node: usize },
    /// Two members lose their link for a while.
    Cut { between: [usize; 2], away: Duration },
    /// The member around which sums are gathered keeps the next one to itself, and comes back without it.
    Withhold { away: Duration },
}

/// The disk that a process finds when it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundDisk {
    /// As it was.
    Whole,
    /// As it was when the last copy was made.
    PutBack,
    /// Empty.
    Empty,
}

impl SumsScenario {
    /// The scenario of a seed. With every third seed a member lies, and disks keep what is on them: relays that lie about a
    /// member whose disk came back older are another matter.
    pub(super) fn new(seed: u64, weakness: Option<Weakness>) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(seed ^ 0x5u64.rotate_right(8));
        let nodes = dice.random_range(3..=9);
        let rounds = dice.random_range(2..=4);
        let is_restless = dice.random_bool(0.5);
        let lies = (seed % 3 == 2).then(|| [0.01, 0.05, 0.3][dice.random_range(0..3)]);
        let span = OPENING + ROUND * u32::try_from(rounds).unwrap_or(u32::MAX);
        let mut faults = Vec::new();
        for _ in 0..dice.random_range(0..=6) {
            let disk =
                [FoundDisk::Whole, FoundDisk::PutBack, FoundDisk::PutBack, FoundDisk::Empty][dice.random_range(0..4)];
            let disk = if lies.is_some() { FoundDisk::Whole } else { disk };
            let node = dice.random_range(0..nodes);
            let at = moment(&mut dice, span);
            faults.push((at, SumsFault::Kill { node, disk, away: within(&mut dice, ROUND) }));
            faults.push((moment(&mut dice, span), SumsFault::Copy { node }));
        }
        for _ in 0..dice.random_range(0..=4) {
            let one = dice.random_range(0..nodes);
            let other = (one + dice.random_range(1..nodes)) % nodes;
            let away = within(&mut dice, ROUND);
            faults.push((moment(&mut dice, span), SumsFault::Cut { between: [one, other], away }));
        }
        if lies.is_none() && dice.random_bool(0.5) {
            faults.push((moment(&mut dice, span), SumsFault::Withhold { away: within(&mut dice, ROUND) }));
        }
        let dimension = dice.random_range(20..200);
        let loss = [0.0, 0.02, 0.2][dice.random_range(0..3)];
        Self { seed, nodes, rounds, dimension, is_restless, loss, faults, lies, weakness, dice }
    }

    /// The releases that the noise of each member is enough for: with many restarts not all.
    pub(super) fn releases(&self) -> u64 {
        self.rounds + 3
    }

    /// A plan of this size.
    pub(super) fn plan(&mut self) -> Result<Plan, String> {
        let n = self.nodes;
        let topology = match self.dice.random_range(0..3) {
            0 => format!("ring:n={n}"),
            1 => format!("complete:n={n}"),
            _ => format!("rg:n={n},r=0.7,seed={}", self.seed),
        };
        let topology = Topology::generate(&topology).map_err(|error| error.to_string())?;
        let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
        mingle_planner::design(&topology, Method::LazyMetropolis, &options).map_err(|error| error.to_string())
    }
}

fn moment(dice: &mut ChaCha8Rng, span: Duration) -> Time {
    Time::default() + within(dice, span)
}

fn within(dice: &mut ChaCha8Rng, span: Duration) -> Duration {
    Duration::from_micros(dice.next_u64() % u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1))
}
