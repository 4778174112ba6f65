//! One process per key: detects a copied home of which both copies run, whichever neighbours each of them has.
//!
//! ```text
//!   every process says that it is there               statement 1 of nonce a                  passed on by all
//!   one that hears of another with its own key        statement k+1 of nonce b: "there was a"  passed on by all
//!   a, if it is alive, finds itself named             both are alive: the younger one ends
//!                                                     statement k+2 of nonce a: "b ends"      passed on by all
//! ```
//!
//! No process can be named before it has started, and only the owner of the key can sign. So a process need not trust
//! its neighbours, and an old statement that is replayed has no effect on a process that it does not name. The previous
//! process, which is gone, is named too, and does not answer.
//!
//! The newest statement of each node is kept. Neighbours repeat a digest of theirs in every message, and where the
//! digests differ, statements are sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Node;
use crate::effect::{Effect, InputFault, NodeEvent};
use crate::message::Message;
use crate::schedule::NodeId;
use crate::statement::{Fate, OtherProcess, ProcessStatement, Signature};
use crate::time::Time;

/// The largest number of a life. Lives begin one after the other, each with a process of its own: no node reaches this
/// number, so a message that names a later life is false. Beyond it there is always room for another.
pub(super) const MOST_LIVES: u64 = 1 << 32;
/// Statements sent to a neighbour per heartbeat: a queue to a slow link takes them beside everything else.
const MOST_IN_A_HEARTBEAT: u32 = 16;
/// Statements of one node that are accepted at once, and the heartbeats that make room for another one.
const MOST_AT_ONCE: u32 = 16;
const HEARTBEATS_A_STATEMENT: u32 = 8;
/// Statements about other processes that a process makes in a generation.
const MOST_ANSWERS: u32 = 32;

/// Statements about processes sent to a neighbour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ToldProcesses {
    /// The start of the present count, and the number of statements in it.
    count: (Time, u32),
    /// The time of the last transfer because of differing digests, and the node to begin with next time.
    again: (Option<Time>, NodeId),
}

impl ToldProcesses {
    /// Counts a statement. Returns `false` if there were enough for this heartbeat.
    fn may_hear(&mut self, now: Time, heartbeat: Duration) -> bool {
        let (since, count) = self.count;
        self.count = if count > 0 && now < since + heartbeat { (since, count + 1) } else { (now, 1) };
        self.count.1 <= MOST_IN_A_HEARTBEAT
    }
}

/// The newest statements of all nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Processes {
    newest: BTreeMap<NodeId, KnownProcess>,
    digest: u64,
    started_at: Time,
    /// Nonces of other processes with this node's key that it has named.
    named: BTreeSet<u64>,
    answers: u32,
}

#[derive(Clone, Debug)]
struct KnownProcess {
    statement: ProcessStatement,
    /// Number of accepted statements, less those for which time has made room since.
    taken: u32,
    since: Time,
}

impl Processes {
    /// A digest of all newest statements, eight bytes.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    fn is_news(&self, statement: &ProcessStatement) -> bool {
        self.newest.get(&statement.node).is_none_or(|known| rank(statement) > rank(&known.statement))
    }

    fn number(&self, node: NodeId) -> u64 {
        self.newest.get(&node).map_or(0, |known| known.statement.number)
    }

    /// Replaces a node's statement. Returns `false` if there were too many.
    fn take(&mut self, statement: ProcessStatement, now: Time, room_after: Duration) -> bool {
        let known = self.newest.get(&statement.node);
        let (mut taken, mut since) = known.map_or((0, now), |known| (known.taken, known.since));
        while taken > 0 && since + room_after <= now {
            taken -= 1;
            since = since + room_after;
        }
        if taken >= MOST_AT_ONCE {
            return false;
        }
        since = if taken == 0 { now } else { since };
        self.digest ^= known.map_or(0, |known| digest_of(&known.statement)) ^ digest_of(&statement);
        self.newest.insert(statement.node, KnownProcess { statement, taken: taken + 1, since });
        true
    }

    /// Up to `MOST_IN_A_HEARTBEAT` statements in the order of nodes, from `first` on and around, and the node to begin
    /// with next.
    fn some_from(&self, first: NodeId) -> (Vec<ProcessStatement>, NodeId) {
        let all = self.newest.range(first..).chain(self.newest.range(..first));
        let some: Vec<_> = all.take(MOST_IN_A_HEARTBEAT as usize).map(|(_, known)| known.statement).collect();
        let next = some.last().map_or(first, |last| NodeId(last.node.0.wrapping_add(1)));
        (some, next)
    }
}

fn rank(statement: &ProcessStatement) -> (u64, u64) {
    (statement.number, statement.boot_nonce)
}

fn digest_of(statement: &ProcessStatement) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 digest of a process statement");
    hasher.update(&statement.node.0.to_le_bytes());
    hasher.update(&statement.number.to_le_bytes());
    hasher.update(&statement.boot_nonce.to_le_bytes());
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl Node {
    /// Makes this process's first statement.
    pub(super) fn begin_process(&mut self) {
        self.processes.started_at = self.now;
        self.state_process(None);
    }

    /// Makes the first statement in a new generation, which knows of no process yet.
    pub(super) fn restate_process(&mut self) {
        self.processes = Processes { started_at: self.processes.started_at, ..Processes::default() };
        self.state_process(None);
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.now.since(self.processes.started_at).as_millis()).unwrap_or(u64::MAX)
    }

    /// Makes the node's next statement, and sends it to all neighbours.
    fn state_process(&mut self, other: Option<OtherProcess>) {
        let node = self.config.id;
        let generation = self.config.generation;
        let boot_nonce = self.config.identity.boot_nonce;
        let number = self.processes.number(node) + 1;
        let age_ms = self.age_ms();
        let statement =
            ProcessStatement { generation, node, boot_nonce, number, age_ms, other, signature: Signature::default() };
        let statement = statement.signed(&*self.config.keys);
        let room_after = self.config.heartbeat * HEARTBEATS_A_STATEMENT;
        if self.processes.take(statement, self.now, room_after) {
            self.pass_on(node, &statement);
        }
    }

    /// Sends a statement to all connected neighbours except the one that it came from.
    fn pass_on(&mut self, told_by: NodeId, statement: &ProcessStatement) {
        let listening = self.peers.values().filter(|peer| peer.link_up && peer.mutual && peer.id != told_by);
        let to: Vec<NodeId> = listening.map(|peer| peer.id).collect();
        to.into_iter().for_each(|to| self.tell_process(to, *statement));
    }

    /// Sends a statement to a neighbour, unless it has got enough for now: then its digest shows what it lacks. The
    /// statement does not count as a heartbeat, which carries the state of the links and is due in any case.
    fn tell_process(&mut self, to: NodeId, statement: ProcessStatement) {
        let now = self.now;
        let heartbeat = self.config.heartbeat;
        if self.peers.get_mut(&to).is_some_and(|peer| peer.told_processes.may_hear(now, heartbeat)) {
            self.effects.push(Effect::Send { to, message: Message::Process(statement) });
        }
    }

    /// Handles a statement, of whichever node, that a neighbour passed on.
    pub(super) fn on_process(&mut self, from: NodeId, statement: ProcessStatement) -> Result<(), InputFault> {
        let is_possible = statement.node.index() < self.config.schedule.nodes() && statement.number <= MOST_LIVES;
        if !is_possible {
            return Err(InputFault::ImpossibleProcess);
        }
        if !self.processes.is_news(&statement) {
            return Ok(());
        }
        if !statement.is_signed(&*self.config.keys) {
            return Err(InputFault::Unsigned);
        }
        let room_after = self.config.heartbeat * HEARTBEATS_A_STATEMENT;
        if !self.processes.take(statement, self.now, room_after) {
            // Not the fault of the neighbour that passes it on.
            self.note_refusal(InputFault::TooManyProcesses);
            return Ok(());
        }
        self.pass_on(from, &statement);
        if statement.node == self.config.id && statement.boot_nonce != self.config.identity.boot_nonce {
            self.on_another_process(&statement);
        }
        Ok(())
    }

    /// Handles a statement of another process, past or present, with this node's key.
    fn on_another_process(&mut self, theirs: &ProcessStatement) {
        let mine = self.config.identity.boot_nonce;
        self.processes.answers += 1;
        if self.processes.answers > MOST_ANSWERS {
            return;
        }
        let boot_nonce = theirs.boot_nonce;
        let was_named = !self.processes.named.insert(boot_nonce);
        let fate = theirs.other.filter(|other| other.boot_nonce == mine).map(|other| other.fate);
        match fate {
            Some(Fate::OtherEnds) => self.report(NodeEvent::AnotherProcess { boot_nonce, ends: true }),
            Some(Fate::ThisEnds) => self.report(NodeEvent::AnotherProcess { boot_nonce, ends: false }),
            // If two processes named each other at the same time, the other one decides.
            Some(Fate::Unknown) if was_named && mine > boot_nonce => {
                self.state_process(Some(OtherProcess { boot_nonce, fate: Fate::Unknown }));
            }
            Some(Fate::Unknown) => {
                let ends = (self.age_ms(), boot_nonce) < (theirs.age_ms, mine);
                let fate = if ends { Fate::ThisEnds } else { Fate::OtherEnds };
                self.state_process(Some(OtherProcess { boot_nonce, fate }));
                self.report(NodeEvent::AnotherProcess { boot_nonce, ends });
            }
            None => self.state_process(Some(OtherProcess { boot_nonce, fate: Fate::Unknown })),
        }
    }

    /// Compares a neighbour's digest of statements with this node's, and sends some statements in each heartbeat while
    /// they differ.
    pub(super) fn compare_processes(&mut self, with: NodeId, theirs: u64) {
        let now = self.now;
        let heartbeat = self.config.heartbeat;
        if theirs == self.processes.digest {
            return;
        }
        let Some(peer) = self.peers.get_mut(&with) else { return };
        let (told_at, first) = peer.told_processes.again;
        if told_at.is_some_and(|at| now < at + heartbeat) {
            return;
        }
        let (some, next) = self.processes.some_from(first);
        peer.told_processes.again = (Some(now), next);
        some.into_iter().for_each(|statement| self.tell_process(with, statement));
    }
}
