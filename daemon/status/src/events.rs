//! Events of a peer: each is recorded once, as a line of JSON in the home, for the host's sink and for readers of the bus.

mod audience;
mod bus;
mod choices;
mod file;
mod first_model;
mod line;
mod log;
mod sentence;
mod service_manager;
mod solved_problem;

use crate::results::MetricsOf;
use mingle_privacy::PrivacySpending;
use mingle_training::{Best, Metrics};
use serde::{Deserialize, Serialize};

pub use bus::{EventFeed, EventReader, Read};
pub use choices::{AskedToEnd, CodecInUse, EarlyEnd, LocalStepsInUse, OwnCard};
pub use first_model::{ModelOf, StateOf};
pub use line::{EventLine, SCHEMA};
pub use log::{EventLog, EventSink};
pub use mingle_membership::NoiseInUse;
pub use service_manager::Watchdog;
pub use solved_problem::SolvedProblem;

/// An event of a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A process goes on with the event file: times count from here. This event is in the file only.
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
    /// A member admits this peer as a pending peer, which waits for a plan that names it.
    Admitted {
        /// The member.
        peer: String,
    },
    /// This peer takes over the task of another peer.
    TaskOf {
        /// The peer.
        peer: String,
    },
    /// Columns, classes and scaling are those of this peer's own data, and the other peers adopt them.
    OwnCard(OwnCard),
    /// A peer with an invitation is pending here until a plan names it.
    JoinRequested {
        /// The peer.
        peer: String,
    },
    /// The addresses at which this peer can be watched and controlled.
    Interface {
        /// The Unix socket; none where its path is too long for the system.
        socket: Option<String>,
        /// The page for a browser, where it was asked for.
        page: Option<String>,
        /// The address for trainers over TCP, which have to show the token, where that was asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        trainer: Option<String>,
    },
    /// The plan is known and checked.
    Plan {
        /// BLAKE3 of its canonical bytes.
        hash: String,
        /// The method that made it.
        method: String,
        /// The number of its peers.
        nodes: usize,
        /// The node of this peer in it.
        node: usize,
        /// The source that it came from.
        origin: String,
    },
    /// The codec of this peer's parcels under the plan that it follows.
    Codec(CodecInUse),
    /// The noise that this private peer shares with other members under the plan that it follows.
    Noise(NoiseInUse),
    /// This peer's user asks for the end of the training before its last round, or no longer does.
    AskedToEnd(AskedToEnd),
    /// The members have agreed to end the training before its last round.
    EarlyEnd(EarlyEnd),
    /// This peer plans its swarm with another number of local steps in a round.
    LocalSteps(LocalStepsInUse),
    /// The operator's new plan is followed from here on: the ledger begins anew.
    NewPlan {
        /// Its number in the swarm.
        counter: u64,
        /// BLAKE3 of its canonical bytes.
        hash: String,
        /// The number of its peers.
        nodes: usize,
        /// The node of this peer in it.
        node: usize,
        /// Rounds that were over when it was made.
        first_round: u64,
    },
    /// The operator's new plan does not name this peer any more.
    PlannedOut {
        /// Its number in the swarm.
        counter: u64,
    },
    /// This peer needs a model to begin with, and asks the other members for theirs.
    WaitingForModel {
        /// The number of other members of its plan.
        members: usize,
    },
    /// This peer begins with the present model of other members.
    Borrowed(ModelOf),
    /// The training of this peer begins with the state of another member's, such as the moments of its optimizer.
    StateOf(StateOf),
    /// This peer hands over all its weight and leaves for good.
    Leaving {
        /// Its push-sum weight, in units of 2^-40.
        weight_units: u64,
    },
    /// This peer has handed over its weight and is no member any more.
    Left,
    /// The data are read and the model is built.
    Task {
        /// A description of the model and its training.
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
    /// Changes are private: the privacy spent at the start.
    Privacy {
        /// The clipping and noise of changes, and the privacy spent before.
        #[serde(flatten)]
        spending: PrivacySpending,
    },
    /// No further change may be released: this peer takes no more local steps, and goes on mixing.
    PrivacySpent {
        /// The privacy that was spent.
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
        /// A description of the program.
        trainer: String,
    },
    /// No program trains for this peer any more: it goes on mixing.
    TrainerGone {
        /// The reason.
        reason: String,
    },
    /// The program that trains for this peer was started.
    TrainerStarted {
        /// Its command.
        command: String,
        /// Its process identifier.
        process: u32,
    },
    /// The trainer wrote a line.
    TrainerSaid {
        /// The line, perhaps shortened.
        line: String,
    },
    /// Still waiting for neighbours to come up.
    Waiting {
        /// The nodes that are missing.
        missing: Vec<usize>,
        /// Seconds since this peer was started.
        #[serde(default)]
        waited_s: u64,
    },
    /// Training starts: all neighbours are up, or the wait for the missing ones is over.
    Joined {
        /// The number of neighbours that are up.
        neighbours: usize,
        /// Nodes that are still missing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<usize>,
        /// The cost of finding the neighbours.
        #[serde(default)]
        network: mingle_net::transport::NetworkCounts,
    },
    /// A round is over. For programs only, and not kept in the file: there are too many.
    Round {
        /// The number of rounds that are over.
        round: u64,
        /// Push-sum weight after it, in units of 2^-40.
        weight_units: u64,
        /// The clipping of the models received in it, where models are clipped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clipped: Option<mingle_protocol::Clipped>,
    },
    /// This peer had fallen so far behind that it went on at the round of its neighbours: it never trained these.
    Skipped {
        /// The number of skipped rounds.
        rounds: u64,
        /// The first of them, from 0.
        from: u64,
        /// The round it goes on with.
        to: u64,
        /// Rounds that this peer has skipped in its run.
        total: u64,
    },
    /// An evaluation on the held-out test set.
    Evaluated {
        /// The round after which it was made.
        round: u64,
        /// The metrics, each the mean over the held-out samples.
        metrics: Metrics,
        /// Mean loss over the last local steps.
        train_loss: Option<f64>,
        /// Push-sum weight after that round, in units of 2^-40.
        weight_units: u64,
        /// Relative RMS distance to the models received in that round; none where none was received.
        disagreement: Option<f64>,
        /// Payload and control bytes written so far.
        sent_bytes: u64,
    },
    /// The best model so far, by the chosen metric, was written to disk.
    Best {
        /// Its metric, value and round.
        best: Best,
    },
    /// A neighbour is suspended: it is no longer waited for.
    Suspended {
        /// The neighbour.
        node: usize,
        /// The reason.
        reason: String,
    },
    /// A suspended neighbour takes part again.
    Resumed {
        /// The neighbour.
        node: usize,
    },
    /// A restarted peer without records begins with no mass of its own.
    Rejoining {
        /// The incarnation that begins.
        incarnation: u64,
    },
    /// A peer that was killed or stopped continues from its last record.
    Recovered {
        /// The round it is in.
        round: u64,
        /// Its push-sum weight, in units of 2^-40.
        weight_units: u64,
        /// The number of the record.
        record: u64,
    },
    /// Neighbours have seen a later state of this peer than its records: it has given up the weight that these held.
    SetBack {
        /// The incarnation that goes on, without weight.
        incarnation: u64,
        /// The weight that was given up, in units of 2^-40.
        discarded_units: u64,
    },
    /// The run was over, and there are more rounds now: it goes on.
    Prolonged {
        /// Rounds of the run that was over.
        round: u64,
        /// Rounds of the swarm.
        rounds: u64,
    },
    /// The run is over, and was before this process started.
    Finished {
        /// Rounds done.
        round: u64,
        /// `true` if it left for good.
        left: bool,
    },
    /// A warning for a person.
    Warning {
        /// One sentence.
        message: String,
    },
    /// This peer does no more rounds, and hands over the parcels in flight.
    Stopping {
        /// The round that was reached.
        round: u64,
        /// The reason.
        reason: String,
    },
    /// A problem is solved, or learned in rounds, instead of training a model.
    Problem {
        /// A description of the problem.
        description: String,
        /// A description of the method.
        way: String,
    },
    /// All neighbours are up: solving starts.
    Met {
        /// The number of neighbours, all of which are up.
        neighbours: usize,
    },
    /// All peers have checked the residual of an iteration.
    Iterated {
        /// Iterations done.
        iteration: u64,
        /// The residual: how far the last iteration moved the peer that moved most.
        residual: f64,
        /// Of a robust model, the duality gap: no model within reach is better by more.
        gap: Option<f64>,
    },
    /// The problem is solved, or given up, and the files are written.
    Solved(SolvedProblem),
    /// A round of learning in rounds is over at all peers.
    Measured {
        /// Rounds done.
        round: u64,
        /// The metrics, as means over the peers that could measure them.
        metrics: Metrics,
        /// The metrics of this peer's own model.
        own: Metrics,
    },
    /// Learning in rounds is over, and the files are written.
    Learned {
        /// Rounds done.
        rounds: u64,
        /// Rounds after which the model is kept.
        best_round: u64,
        /// The metrics of the kept model, as means over the peers that could measure them.
        metrics: Metrics,
        /// The metrics of this peer's own model.
        own: Metrics,
        /// Seconds since the process started.
        seconds: f64,
        /// Payload and control bytes written to all links.
        sent_bytes: u64,
        /// The largest resident memory of the process, where the system reports it.
        peak_resident_bytes: Option<u64>,
    },
    /// The peer is done and its files are written.
    Done {
        /// The round that was reached.
        round: u64,
        /// Rounds of these that this peer skipped.
        #[serde(default)]
        skipped: u64,
        /// The metrics of the final model, unless `metrics_of` names another.
        metrics: Metrics,
        /// Subject of the metrics, where it was not the final model on all samples.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metrics_of: Option<MetricsOf>,
        /// Push-sum weight, in units of 2^-40.
        weight_units: u64,
        /// Seconds since the process started.
        seconds: f64,
        /// Bytes written to all links.
        sent_bytes: u64,
        /// The largest resident memory of this process, where the system reports it.
        peak_resident_bytes: Option<u64>,
    },
    /// The peer ends with an error. The host reports it in its own form, as an error object, and skips this event.
    Failed {
        /// The exit code.
        code: u8,
        /// The kind of failure, in a word.
        kind: String,
        /// The error message.
        message: String,
    },
    /// A reader of the event bus was too slow. Only that reader receives this.
    Lost {
        /// The number of events that it lost.
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
