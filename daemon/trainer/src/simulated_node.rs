//! A node of a simulated swarm whose training is another program: the trainer protocol on the socket of a home of its own,
//! and no peer.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use mingle_peer::api::{self, ApiState, Interface, Openings};
use mingle_peer::events::{EventLog, EventSink};
use mingle_peer::peer::Announcer;
use mingle_peer::status::{PeerState, Status, StatusBoard};
use mingle_peer::training::{LocalTraining, TrainingTask};
use mingle_peer::{Error, ErrorKind, Home, Result};

use crate::host::{HostOptions, TrainerHost};
use crate::launch::Launcher;
use crate::rounds::RoundsChoice;
use crate::task::TrainerTask;

/// Environment variables of a program: the number of its node, from 0, and the number of nodes.
const NODE: &str = "MINGLE_NODE";
const NODES: &str = "MINGLE_NODES";

/// Returns `true` once the program of a node has ended before the end of the simulation.
pub type Desertion = Box<dyn Fn() -> bool + Send + Sync>;

/// A node of a simulated swarm whose training is another program.
pub(crate) struct SimulatedNode {
    number: usize,
    host: TrainerHost,
    board: StatusBoard,
    interface: Interface,
}

impl SimulatedNode {
    /// Makes the home of a node in the folder `homes`, and serves the trainer protocol there. `sink` receives the events
    /// of the trainer.
    ///
    /// # Errors
    /// The home cannot be written, or has no socket.
    pub(crate) async fn open(homes: &Path, number: usize, rounds: u64, sink: EventSink) -> Result<Self> {
        let home = Home::create(Some(&homes.join(number.to_string())))?;
        let started = Instant::now();
        let log = EventLog::open(&home, sink, started)?;
        let name = format!("node {number} of a simulation");
        let board = StatusBoard::new(Status::starting(name.clone()), started);
        let host = TrainerHost::new(HostOptions {
            home: home.clone(),
            peer: name,
            rounds: RoundsChoice::Chosen(rounds),
            fresh: false,
            begins_again: false,
            begin_with: None,
            end_wish: None,
            tcp: None,
            needs_every_round: false,
        })?;
        // The requests of the interface to a peer have no receiver.
        let (requests, _) = api::requests();
        let openings = Openings { more: Some(host.extension()?.routes), ..Openings::default() };
        let state = ApiState { status: board.look(), events: log.feed(), registry: Default::default(), requests };
        let interface = Interface::open(&home, openings, state).await?;
        if let Some(trouble) = interface.troubles().into_iter().next() {
            return Err(Error::new(ErrorKind::BadInput, trouble));
        }
        host.connect_simulated(Announcer::new(log, board.clone()));
        board.update(|status| (status.node, status.rounds) = (Some(number), rounds));
        Ok(Self { number, host, board, interface })
    }

    /// The board of the status that the program reads.
    pub(crate) fn board(&self) -> StatusBoard {
        self.board.clone()
    }

    /// Starts the command of this node within the present tokio runtime. `{node}` and `{nodes}` in it, and the variables
    /// `MINGLE_NODE` and `MINGLE_NODES`, are the number of the node and the number of nodes.
    pub(crate) fn launch(&self, command: &str, nodes: usize) {
        let number = self.number;
        let command = command.replace("{node}", &number.to_string()).replace("{nodes}", &nodes.to_string());
        Launcher::new(&command, NonZeroU32::MIN)
            .with_variable(NODE, number.to_string())
            .with_variable(NODES, nodes.to_string())
            .start(&self.host);
    }

    /// Returns `true` once the program has attached, and has given what it has to give.
    pub(crate) fn has_attached(&self) -> bool {
        self.host.state().is_ready()
    }

    /// Waits for the program to attach, and for the model of the first node.
    ///
    /// # Errors
    /// It ended before.
    async fn attach(&self) -> Result<TrainerTask> {
        let mut task = TrainerTask::new(&self.host, None)?;
        if let Some(ready) = task.ready() {
            ready.await;
            task.begin().map_err(|error| explain(self.number, error))?;
        }
        Ok(task)
    }

    /// A function that returns `true` once the program has ended before the end of the simulation.
    pub(crate) fn desertion(&self) -> Desertion {
        let host = self.host.clone();
        Box::new(move || host.has_been_deserted())
    }

    /// Resolves to the reason once the program has ended before the end of the simulation.
    pub(crate) fn deserted(&self) -> BoxFuture<'static, Error> {
        let number = self.number;
        let host = self.host.clone();
        async move {
            host.deserted().await;
            host.given_up().map_or_else(
                || explain(number, "its trainer has ended before the last round"),
                |error| explain(number, error),
            )
        }
        .boxed()
    }

    /// Ends the run of the program with its final model.
    pub(crate) fn end(&self, model: &Arc<[f32]>, rounds: u64) -> BoxFuture<'static, ()> {
        self.board.update(|status| (status.state, status.round) = (PeerState::Done, rounds));
        self.host.end_with_model(Arc::clone(model), rounds)
    }

    /// Ends the run of the program with an error, and the program soon after.
    pub(crate) fn break_off(&self, error: &Error) -> BoxFuture<'static, ()> {
        self.hurry();
        self.host.end_with_failure(error)
    }

    /// Waits for the program no longer.
    pub(crate) fn hurry(&self) {
        self.host.hurry();
    }

    /// Removes the socket.
    pub(crate) async fn close(self) {
        self.interface.close().await;
    }
}

/// Waits until all programs have attached, and returns their trainings.
///
/// # Errors
/// One ended before, or trains another model than that of node 0.
pub(crate) async fn attached_trainings(nodes: &[SimulatedNode]) -> Result<Vec<Box<dyn LocalTraining>>> {
    let tasks = try_join_all(nodes.iter().map(SimulatedNode::attach)).await?;
    let cards: Vec<_> = tasks.iter().filter_map(TrainingTask::card).collect();
    for (number, card) in cards.iter().enumerate().skip(1) {
        if let Some(difference) = card.difference(&cards[0].encode(), &card.encode()) {
            let message = format!("node 0 and node {number} train different models: {difference}");
            return Err(Error::new(ErrorKind::Refused, message).hint(
                "all scripts need a model of the same name, whose tensors have the same names, order and shapes",
            ));
        }
    }
    let count = nodes.len();
    tasks.into_iter().enumerate().map(|(number, task)| Box::new(task).build(number, count)).collect()
}

/// The error of a node; the home to which hints of a peer point is gone with the simulation.
fn explain(number: usize, error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Training, format!("node {number}: {error:#}"))
        .hint("mend the script, and start the simulation again")
}
