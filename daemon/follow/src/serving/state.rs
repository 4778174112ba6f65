//! The shared state of all followers of one member: who waits for what, and the versions that there are.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::line::{Line, Load, Version};
use crate::messages::{Ask, Precision, Update};
use std::sync::Arc;

/// A newcomer takes a version that is no older than this, and waits for the next one otherwise.
const RECENT: Duration = Duration::from_secs(10);

/// The versions that this member has for followers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The peer has not begun: nothing is known yet.
    Begins,
    /// The peer solves a problem.
    NoModel,
    /// The peer trains this task.
    Trains(String),
    /// The peer ends before training is done.
    Leaves,
}

/// The state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) lines: BTreeMap<Precision, Line>,
    followers: BTreeMap<u64, Follower>,
    next_number: u64,
    /// Rounds over at the last end of a round.
    round: u64,
    /// Set while a version is made.
    pub(super) is_busy: bool,
    /// No version is made before.
    pub(super) rests_until: Option<Instant>,
}

/// A connected follower.
#[derive(Clone, Copy, Debug)]
struct Follower {
    precision: Precision,
    /// Rounds over at the model that it waits for; `None` while it takes in another one.
    due: Option<u64>,
}

/// The next answer to a follower.
#[derive(Debug)]
pub(super) enum Next {
    Update(Update, Vec<Load>),
    Leaving,
    /// There is nothing for it yet.
    Wait,
}

impl State {
    pub(super) fn new(phase: Phase) -> Self {
        Self {
            phase,
            lines: BTreeMap::new(),
            followers: BTreeMap::new(),
            next_number: 0,
            round: 0,
            is_busy: false,
            rests_until: None,
        }
    }

    /// Adds a follower; `None` if there are so many already.
    pub(super) fn seat(&mut self, precision: Precision, most: usize) -> Option<u64> {
        if self.followers.len() >= most {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.followers.insert(number, Follower { precision, due: None });
        Some(number)
    }

    /// Removes a follower, and the versions that no other one follows.
    pub(super) fn leave(&mut self, number: u64) {
        self.followers.remove(&number);
        let followers = &self.followers;
        self.lines.retain(|precision, _| followers.values().any(|follower| follower.precision == *precision));
    }

    pub(super) fn count(&self) -> usize {
        self.followers.len()
    }

    /// The precisions in which a version is wanted.
    pub(super) fn followed(&self) -> Vec<Precision> {
        let is_followed =
            |precision: &Precision| self.followers.values().any(|follower| follower.precision == *precision);
        Precision::ALL.into_iter().filter(is_followed).collect()
    }

    /// Notes the end of a round. Returns `true` if a follower waits for its model, and one may be made.
    pub(super) fn wants(&mut self, round: u64, now: Instant) -> bool {
        self.round = round;
        let is_due = |follower: &Follower| follower.due.is_some_and(|due| round >= due);
        !self.is_busy
            && self.rests_until.is_none_or(|until| now >= until)
            && self.followers.values().any(is_due)
            && self.lines.values().all(Line::has_room)
    }

    /// The answer to a request at this time. Until there is one, the follower counts as waiting.
    pub(super) fn next(&mut self, number: u64, ask: &Ask, now: Instant) -> Next {
        let newest = self.lines.get(&ask.precision).and_then(Line::newest).cloned();
        let next = match newest.filter(|version| self.fits(version, ask, now)) {
            Some(version) => self.update(&version, ask),
            None if self.phase == Phase::Leaves => Next::Leaving,
            None => Next::Wait,
        };
        let due = matches!(next, Next::Wait).then(|| ask.due());
        if let Some(follower) = self.followers.get_mut(&number) {
            follower.due = due;
        }
        next
    }

    fn fits(&self, version: &Version, ask: &Ask, now: Instant) -> bool {
        if version.is_final {
            return true;
        }
        let is_news = ask.have != Some(version.file.digest());
        let is_recent = || self.round == version.round || now.saturating_duration_since(version.made_at) < RECENT;
        is_news && version.round >= ask.due() && (ask.after.is_some() || is_recent())
    }

    fn update(&self, version: &Arc<Version>, ask: &Ask) -> Next {
        let loads = self.lines.get(&ask.precision).map(|line| line.way(version, ask.have)).unwrap_or_default();
        let Version { round, last_round, is_final, ref file, .. } = **version;
        let parts = loads.iter().map(Load::part).collect();
        Next::Update(Update { round, last_round, digest: file.digest(), is_final, parts }, loads)
    }
}
