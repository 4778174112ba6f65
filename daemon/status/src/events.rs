//! What happens on a peer, told once and shown three ways: a JSON line in the home, the sink of whoever started the
//! peer, and, for any number of readers, the bus.

mod audience;
mod bus;
mod file;
mod line;
mod log;
mod sentence;
mod service_manager;

use mingle_net::transport::NetworkCounts;
use mingle_privacy::PrivacySpending;
use mingle_protocol::Clipped;
use mingle_training::{Best, Metrics};
use serde::{Deserialize, Serialize};

pub use bus::{EventFeed, EventReader, Read};
pub use line::{EventLine, SCHEMA};
pub use log::{EventLog, EventSink};
pub use service_manager::Watchdog;

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A process goes on with the event file: times count from here. It stands in the file alone.
    Started {
        /// Seconds since 1970.
        unix_s: u64,
        /// The version of Mingle.
        version: String,
    },
    /// The peer is up, and can be reached at these addresses.
    Listening {
        /// This peer.
        peer: String,
        /// Its addresses, each ending in its PeerId.
        addresses: Vec<String>,
    },
    /// A bootstrap or neighbour could not be dialled.
    DialFailed {
        /// The peer, where it was known.
        peer: Option<String>,
        /// Each address tried, with the reason.
        attempts: Vec<String>,
    },
    /// There is no plan yet that names this peer.
    WaitingForPlan {
        /// The swarm that it belongs to.
        swarm: String,
    },
    /// A member lets this peer wait for a plan that names it.
    Admitted {
        /// The member.
        peer: String,
    },
    /// The task is that of another peer.
    TaskOf {
        /// The peer.
        peer: String,
    },
    /// Columns, classes and scaling are those of this peer's own data, and the others take them over.
    OwnCard {
        /// Columns of a table; 0 for images.
        columns: usize,
        /// Classes.
        classes: usize,
    },
    /// A peer with an invitation waits here for a plan that names it.
    JoinRequested {
        /// The peer.
        peer: String,
    },
    /// Where this peer can be watched and steered.
    Interface {
        /// The Unix socket, where the system has room for its name.
        socket: Option<String>,
        /// The page for a browser, where it was asked for.
        page: Option<String>,
        /// Where a trainer that shows the token is served over TCP, where that was asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        trainer: Option<String>,
    },
    /// The plan is known and checked.
    Plan {
        /// BLAKE3 of its canonical bytes.
        hash: String,
        /// How it was made.
        method: String,
        /// How many peers it has.
        nodes: usize,
        /// Which of them this peer is.
        node: usize,
        /// Where it came from.
        origin: String,
    },
    /// This peer plans its swarm with another number of local steps in a round.
    LocalSteps {
        /// The number.
        steps: u32,
        /// Seconds that one takes, in the median of the members.
        local_step_s: f64,
        /// Seconds that an exchange takes, on the slowest of their links.
        exchange_s: f64,
    },
    /// The operator's new plan is followed from here on: the ledger begins anew.
    NewPlan {
        /// Its number in the swarm.
        counter: u64,
        /// BLAKE3 of its canonical bytes.
        hash: String,
        /// How many peers it has.
        nodes: usize,
        /// Which of them this peer is.
        node: usize,
        /// Rounds that were over when it was made.
        first_round: u64,
    },
    /// The operator's new plan does not name this peer any more.
    PlannedOut {
        /// Its number in the swarm.
        counter: u64,
    },
    /// This peer needs a model of the others to begin with, and asks for theirs.
    WaitingForModel {
        /// How many other members its plan has.
        members: usize,
    },
    /// This peer begins with the model that members have by now.
    Borrowed {
        /// The members who gave it: of three, the median of theirs was taken.
        peers: Vec<String>,
    },
    /// This peer hands over all it holds, and goes for good.
    Leaving {
        /// Its push-sum weight, in units of 2^-40.
        weight_units: u64,
    },
    /// This peer has handed over its weight and is no member any more.
    Left,
    /// The data are read and the model is built.
    Task {
        /// What is trained.
        description: String,
        /// Parameters of the model.
        parameters: usize,
        /// Samples that this peer trains on.
        train_samples: usize,
        /// Samples held out.
        test_samples: usize,
        /// The device, as it names itself.
        device: String,
    },
    /// Changes are private: how much of that is spent at the start.
    Privacy {
        /// How changes are clipped and noised, and what was released before.
        #[serde(flatten)]
        spending: PrivacySpending,
    },
    /// No further change may be released: this peer takes no local steps any more, and goes on mixing.
    PrivacySpent {
        /// What was released.
        #[serde(flatten)]
        spending: PrivacySpending,
    },
    /// This peer waits for the program that trains for it.
    WaitingForTrainer {
        /// The socket that it attaches to.
        socket: String,
    },
    /// A program trains for this peer from here on.
    TrainerAttached {
        /// What it is, in words.
        trainer: String,
    },
    /// Nobody trains for this peer any more: it goes on mixing.
    TrainerGone {
        /// Why.
        reason: String,
    },
    /// The program that trains for this peer was started.
    TrainerStarted {
        /// Its command.
        command: String,
        /// Its process.
        process: u32,
    },
    /// A line that it wrote.
    TrainerSaid {
        /// The line, perhaps cut.
        line: String,
    },
    /// Still waiting for neighbours to come up.
    Waiting {
        /// The nodes that are missing.
        missing: Vec<usize>,
        /// Seconds since this peer has begun.
        #[serde(default)]
        waited_s: u64,
    },
    /// Training starts: all neighbours are up, or those that are not were waited for.
    Joined {
        /// Neighbours that this peer sends to or hears from.
        neighbours: usize,
        /// Nodes that have not come.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<usize>,
        /// What it took to find them.
        #[serde(default)]
        network: NetworkCounts,
    },
    /// A round is over. Told to programs on stdout only: too many to keep.
    Round {
        /// How many rounds are over.
        round: u64,
        /// Push-sum weight after it, in units of 2^-40.
        weight_units: u64,
        /// What was clipped of the models heard in it, where they are not taken as they are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clipped: Option<Clipped>,
    },
    /// This peer had fallen so far behind that it went on where its neighbours are: it never trained these rounds.
    Skipped {
        /// How many they are.
        rounds: u64,
        /// The first of them, from 0.
        from: u64,
        /// The round it goes on with.
        to: u64,
        /// How many this process has skipped in all.
        total: u64,
    },
    /// An evaluation on the held-out test set.
    Evaluated {
        /// The round after which it was made.
        round: u64,
        /// What was measured, each the mean over the held-out samples.
        metrics: Metrics,
        /// Mean loss over the last local steps.
        train_loss: Option<f64>,
        /// Push-sum weight after that round, in units of 2^-40.
        weight_units: u64,
        /// Relative RMS distance to the models heard in that round; nothing heard: none.
        disagreement: Option<f64>,
        /// Payload and control bytes written so far.
        sent_bytes: u64,
    },
    /// The best model so far, by the metric that was asked for, is on the disk.
    Best {
        /// Which one it is.
        best: Best,
    },
    /// A neighbour is no longer waited for.
    Suspended {
        /// The neighbour.
        node: usize,
        /// Why.
        reason: String,
    },
    /// A suspended neighbour is heard again.
    Resumed {
        /// The neighbour.
        node: usize,
    },
    /// A restarted peer without records begins with no mass of its own.
    Rejoining {
        /// Which life of the peer this is.
        incarnation: u64,
    },
    /// A peer that was killed or stopped goes on where its records say it was.
    Recovered {
        /// The round it is in.
        round: u64,
        /// Its push-sum weight, in units of 2^-40.
        weight_units: u64,
        /// The number of the record.
        record: u64,
    },
    /// Neighbours remember a later state of this peer than its records: it has given up what it held.
    SetBack {
        /// Which life of the peer goes on, without weight.
        incarnation: u64,
        /// The weight that is gone, in units of 2^-40.
        discarded_units: u64,
    },
    /// The run is over, and was before this process started.
    Finished {
        /// Rounds done.
        round: u64,
        /// Whether it left for good.
        left: bool,
    },
    /// Something a person should look at.
    Warning {
        /// One sentence.
        message: String,
    },
    /// No more rounds; handing over what is in flight.
    Stopping {
        /// The round that was reached.
        round: u64,
        /// Why.
        reason: String,
    },
    /// A problem is solved instead of training a model.
    Problem {
        /// Which.
        description: String,
        /// How.
        way: String,
    },
    /// All neighbours are up: solving starts.
    Met {
        /// Neighbours that this peer sends to or hears from.
        neighbours: usize,
    },
    /// All peers have looked how far the solution moves.
    Iterated {
        /// Iterations done.
        iteration: u64,
        /// How far the last one moved the peer that moved most.
        residual: f64,
    },
    /// The problem is solved, or given up, and the files are written.
    Solved {
        /// Iterations that it took.
        iterations: u64,
        /// Whether no peer moved by more than the tolerance in the end.
        converged: bool,
        /// The objective of all.
        objective: f64,
        /// By how much the optimality conditions are violated.
        kkt: f64,
        /// By how much a constraint is violated, or two peers differ.
        violation: f64,
        /// Seconds since the process started.
        seconds: f64,
        /// Payload and control bytes written to all links.
        sent_bytes: u64,
        /// The largest resident memory of the process, where the system tells.
        peak_resident_bytes: Option<u64>,
    },
    /// A round of learning together is over at all peers.
    Measured {
        /// Rounds done.
        round: u64,
        /// What was measured: the mean over all peers that could.
        metrics: Metrics,
        /// This peer's own.
        own: Metrics,
    },
    /// Learning together is over, and the files are written.
    Learned {
        /// Rounds done.
        rounds: u64,
        /// Rounds after which the model was that is kept.
        best_round: u64,
        /// What was measured of it: the mean over all peers that could.
        metrics: Metrics,
        /// This peer's own.
        own: Metrics,
        /// Seconds since the process started.
        seconds: f64,
        /// Payload and control bytes written to all links.
        sent_bytes: u64,
        /// The largest resident memory of the process, where the system tells.
        peak_resident_bytes: Option<u64>,
    },
    /// The peer is done and its files are written.
    Done {
        /// The round that was reached.
        round: u64,
        /// What was measured of the final model.
        metrics: Metrics,
        /// Push-sum weight, in units of 2^-40.
        weight_units: u64,
        /// Seconds since the process started.
        seconds: f64,
        /// Bytes written to all links.
        sent_bytes: u64,
        /// The largest resident memory of this process, where the system tells.
        peak_resident_bytes: Option<u64>,
    },
    /// The peer ends with an error. Those who started it hear of that in its own words, as an error object.
    Failed {
        /// The exit code.
        code: u8,
        /// The kind of failure, in a word.
        kind: String,
        /// What went wrong.
        message: String,
    },
    /// A reader of the event bus was too slow. Only that reader is told.
    Lost {
        /// So many events are gone.
        count: u64,
    },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_event_line_is_one_flat_object_and_reads_back() {
        let line = EventLine {
            schema: SCHEMA.to_owned(),
            at_ms: 12,
            event: Event::Suspended { node: 3, reason: "its link is down".to_owned() },
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"schema":"mingle.event/1","at_ms":12,"event":"suspended","node":3,"reason":"its link is down"}"#
        );
        let back: EventLine = serde_json::from_str(&text).unwrap();
        assert_eq!(back.event, line.event);
    }
}
