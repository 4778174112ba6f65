//! Journals: a run of a fault test as a file that replays to the same digest.
//!
//! ```text
//!   seed -> swarm          faults (as listed) -> repair -> stop          events, digest, failure
//!   \______ made again ______/ \______ read from the journal ______/     \____ compared ____/
//! ```
//!
//! The swarm follows from the profile and the seed; the faults are listed, so that some can be left out. Times are
//! whole microseconds of virtual time. Journals come from files of strangers: one that is not of a run that could have
//! been recorded is refused when it is read.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::campaign::{SeedOutcome, run_scenario, trace_scenario};
use super::fault::Fault;
use super::profile::{Profile, Scenario};
use super::trace_entry::TraceEntry;
use super::variant::Variant;
use crate::config::Robust;
use crate::injected_bug::{InjectedBug, InjectionError};
use crate::overlap::TrainingOverlap;
use crate::schedule::NodeId;
use crate::time::Time;

/// The format that this release writes and reads.
pub const JOURNAL_SCHEMA: &str = "mingle.fault-journal/3";

/// Most faults in a journal: several times what any profile makes.
pub const MOST_FAULTS: usize = 50_000;

/// The longest run: a week of virtual time.
pub const LONGEST_RUN: Duration = Duration::from_secs(7 * 86_400);

/// The largest factor by which a disk may be slower than usual.
const SLOWEST_DISK: u32 = 1_000_000;

/// A run that can be run again.
///
/// ```
/// use mingle_protocol::sim::{Journal, Profile};
///
/// let (journal, outcome) = Journal::record(Profile::Kill, 7, None);
/// assert!(journal.agrees_with(&journal.replay()));
/// assert_eq!(journal.replay(), outcome);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "WrittenJournal", try_from = "WrittenJournal")]
pub struct Journal {
    profile: Profile,
    seed: u64,
    variant: Variant,
    nodes: u32,
    faults: Vec<(Time, Fault)>,
    repair: Time,
    stop: Time,
    made_by: String,
    ended: Time,
    events: u64,
    digest: [u8; 32],
    failure: Option<String>,
}

impl Journal {
    /// Runs a seed, with such nodes, and records it.
    pub fn record(profile: Profile, seed: u64, variant: impl Into<Variant>) -> (Self, SeedOutcome) {
        let scenario = Scenario::new(profile, seed);
        let variant = variant.into();
        let journal = Self {
            profile,
            seed,
            variant,
            nodes: scenario.config.schedule.nodes() as u32,
            faults: scenario.faults,
            repair: scenario.repair,
            stop: scenario.end,
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            ended: Time::default(),
            events: 0,
            digest: [0; 32],
            failure: None,
        };
        journal.recorded()
    }

    /// Runs it again.
    pub fn replay(&self) -> SeedOutcome {
        run_scenario(self.profile, self.seed, self.scenario())
    }

    /// Runs it again and returns its log, in order: all faults, and the events that nodes reported except for finished
    /// rounds.
    pub fn trace(&self) -> (SeedOutcome, Vec<(Time, TraceEntry)>) {
        trace_scenario(self.profile, self.seed, self.scenario())
    }

    /// Returns `true` if a run was the recorded one, to the bit.
    pub fn agrees_with(&self, outcome: &SeedOutcome) -> bool {
        let failure = outcome.failure.as_ref().map(ToString::to_string);
        (self.digest, self.events, self.ended) == (outcome.digest, outcome.events, outcome.ended)
            && self.failure == failure
    }

    /// Records another run of the same seed, with other faults and another end.
    #[must_use]
    pub fn with(&self, faults: Vec<(Time, Fault)>, repair: Time, stop: Time) -> (Self, SeedOutcome) {
        Self { faults, repair, stop, ..self.clone() }.recorded()
    }

    /// The faults, ascending in time.
    pub fn faults(&self) -> &[(Time, Fault)] {
        &self.faults
    }

    /// The time when everything is repaired.
    pub fn repair(&self) -> Time {
        self.repair
    }

    /// The time when nodes are asked to stop.
    pub fn stop(&self) -> Time {
        self.stop
    }

    /// Its profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The properties of its nodes: the bug injected into every one, and what they clip.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// The release that recorded it.
    pub fn made_by(&self) -> &str {
        &self.made_by
    }

    /// The recorded hash of all events.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The recorded failure.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn recorded(mut self) -> (Self, SeedOutcome) {
        let outcome = self.replay();
        self.ended = outcome.ended;
        self.events = outcome.events;
        self.digest = outcome.digest;
        self.failure = outcome.failure.as_ref().map(ToString::to_string);
        (self, outcome)
    }

    fn scenario(&self) -> Scenario {
        let scenario = self.variant.scenario(self.profile, self.seed);
        Scenario { faults: self.faults.clone(), repair: self.repair, end: self.stop, ..scenario }
    }

    /// Returns an error if it could not have been recorded.
    fn check(&self) -> Result<(), JournalError> {
        InjectedBug::check_built_in(self.variant.injected_bug)?;
        if self.faults.len() > MOST_FAULTS {
            return Err(JournalError::TooManyFaults { faults: self.faults.len() });
        }
        let nodes = Scenario::new(self.profile, self.seed).config.schedule.nodes() as u32;
        if self.nodes != nodes {
            let profile = self.profile;
            let seed = self.seed;
            let recorded = self.nodes;
            return Err(JournalError::OtherSwarm { profile, seed, nodes, recorded });
        }
        let latest = Time::default() + LONGEST_RUN;
        if self.repair > self.stop || self.stop > latest {
            return Err(JournalError::ImpossibleEnd { repair: self.repair, stop: self.stop });
        }
        let mut before = Time::default();
        for (index, &(at, fault)) in self.faults.iter().enumerate() {
            if at < before || at > self.repair {
                return Err(JournalError::FaultOutOfOrder { index, at });
            }
            before = at;
            if let Some(node) = fault.nodes().find(|node| node.0 >= nodes) {
                return Err(JournalError::NoSuchNode { index, node, nodes });
            }
            let is_absurd = match fault {
                Fault::Pause(_, span) => span > LONGEST_RUN,
                Fault::SlowDisk(_, times) => times > SLOWEST_DISK,
                _ => false,
            };
            if is_absurd {
                return Err(JournalError::AbsurdFault { index, fault });
            }
        }
        Ok(())
    }
}

/// A reason why a journal cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum JournalError {
    /// Another format.
    #[error("this is \"{found}\", and this release reads \"{JOURNAL_SCHEMA}\"")]
    Schema { found: String },
    /// More faults than any run has.
    #[error("{faults} faults are more than the {MOST_FAULTS} that a journal may hold")]
    TooManyFaults { faults: usize },
    /// The seed makes another swarm in this release.
    #[error(
        "seed {seed} of {profile} makes {nodes} nodes here, and {recorded} in the journal: another release made it"
    )]
    OtherSwarm { profile: Profile, seed: u64, nodes: u32, recorded: u32 },
    /// The run ends before it is repaired, or never.
    #[error("a repair at {repair} and a stop at {stop} are not in this order within a week")]
    ImpossibleEnd {
        /// The time when everything is repaired.
        repair: Time,
        /// The time when nodes are asked to stop.
        stop: Time,
    },
    /// Times that run backwards, or past the repair.
    #[error("fault {index} at {at} comes before the one above it, or after the repair")]
    FaultOutOfOrder {
        /// The index of the fault, from 0.
        index: usize,
        /// The time.
        at: Time,
    },
    /// A node that the swarm does not have.
    #[error("fault {index} is about node {node}, and the swarm has nodes 0 to {last}", last = nodes.saturating_sub(1))]
    NoSuchNode {
        /// The index of the fault, from 0.
        index: usize,
        /// The node.
        node: NodeId,
        /// Nodes in the swarm.
        nodes: u32,
    },
    /// A pause or a slowness beyond reason.
    #[error(
        "fault {index}, \"{fault}\", is beyond the week of pause or the slowness of {SLOWEST_DISK} that is possible"
    )]
    AbsurdFault {
        /// The index of the fault, from 0.
        index: usize,
        /// The fault.
        fault: Fault,
    },
    /// A run with a bug that this program does not have.
    #[error(transparent)]
    Injection(#[from] InjectionError),
    /// A digest that is not 64 hexadecimal digits.
    #[error("the digest \"{0}\" is not 64 hexadecimal digits")]
    Digest(String),
}

/// A journal as it is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenJournal {
    schema: String,
    made_by: String,
    profile: Profile,
    seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    injected_bug: Option<InjectedBug>,
    #[serde(default, skip_serializing_if = "is_default")]
    robust: Robust,
    #[serde(default, skip_serializing_if = "is_default")]
    overlap: TrainingOverlap,
    nodes: u32,
    ended_us: Time,
    events: u64,
    digest: String,
    failure: Option<String>,
    repair_us: Time,
    stop_us: Time,
    faults: Vec<TimedFault>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct TimedFault {
    at_us: Time,
    #[serde(flatten)]
    fault: Fault,
}

impl From<Journal> for WrittenJournal {
    fn from(journal: Journal) -> Self {
        let timed = |(at_us, fault)| TimedFault { at_us, fault };
        Self {
            schema: JOURNAL_SCHEMA.to_owned(),
            made_by: journal.made_by,
            profile: journal.profile,
            seed: journal.seed,
            injected_bug: journal.variant.injected_bug,
            robust: journal.variant.robust,
            overlap: journal.variant.overlap,
            nodes: journal.nodes,
            ended_us: journal.ended,
            events: journal.events,
            digest: journal.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            failure: journal.failure,
            repair_us: journal.repair,
            stop_us: journal.stop,
            faults: journal.faults.into_iter().map(timed).collect(),
        }
    }
}

impl TryFrom<WrittenJournal> for Journal {
    type Error = JournalError;

    fn try_from(written: WrittenJournal) -> Result<Self, JournalError> {
        if written.schema != JOURNAL_SCHEMA {
            return Err(JournalError::Schema { found: written.schema });
        }
        let journal = Self {
            profile: written.profile,
            seed: written.seed,
            variant: Variant { injected_bug: written.injected_bug, robust: written.robust, overlap: written.overlap },
            nodes: written.nodes,
            faults: written.faults.into_iter().map(|TimedFault { at_us, fault }| (at_us, fault)).collect(),
            repair: written.repair_us,
            stop: written.stop_us,
            made_by: written.made_by,
            ended: written.ended_us,
            events: written.events,
            digest: digest(&written.digest).ok_or(JournalError::Digest(written.digest))?,
            failure: written.failure,
        };
        journal.check()?;
        Ok(journal)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}
