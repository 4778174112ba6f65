//! The scripts of a swarm in this process: one unchanged program for each node, with a temporary home in which the trainer
//! protocol is served as by a peer.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join_all, select_all, try_join_all};
use mingle_peer::error::Context;
use mingle_peer::events::{Event, EventSink};
use mingle_peer::status::StatusBoard;
use mingle_peer::training::LocalTraining;
use mingle_peer::{Error, ErrorKind, Result};

use crate::simulated_node::{Desertion, SimulatedNode, attached_trainings};

/// The wait for a script after which it is named, and again after twice that.
pub const LONG_WAIT: Duration = Duration::from_secs(10);

/// A way of showing a line to the user, beside the results.
pub type Remark = fn(fmt::Arguments<'_>);

/// The scripts of all nodes.
pub struct ScriptNodes {
    nodes: Vec<SimulatedNode>,
    rounds: u64,
    remark: Remark,
    /// Removed once the scripts have ended.
    _homes: tempfile::TempDir,
}

impl ScriptNodes {
    /// Starts `command` once for each of `count` nodes, for a run of so many rounds.
    ///
    /// # Errors
    /// There is no command, or no home for a node.
    pub async fn start(command: &str, count: usize, rounds: u64, remark: Remark) -> Result<Self> {
        if command.trim().is_empty() {
            return Err(Error::new(ErrorKind::BadInput, "--trainer has no command")
                .hint("--trainer 'python train.py' starts one for each node"));
        }
        let homes = tempfile::Builder::new().prefix("mingle-").tempdir();
        let homes = homes.context(ErrorKind::BadInput, "cannot create homes for the nodes")?;
        let opened = (0..count).map(|node| SimulatedNode::open(homes.path(), node, rounds, printing(node, remark)));
        let nodes = try_join_all(opened).await?;
        nodes.iter().for_each(|node| node.launch(command, count));
        Ok(Self { nodes, rounds, remark, _homes: homes })
    }

    /// The trainings of all nodes, once all scripts have attached. `stop` resolves to the reason when the user stops.
    ///
    /// # Errors
    /// A script has ended, trains another model than that of node 0, or the user stops.
    pub async fn attach(&self, stop: impl Future<Output = impl fmt::Display>) -> Result<Vec<Box<dyn LocalTraining>>> {
        tokio::select! {
            attached = attached_trainings(&self.nodes) => attached,
            reason = stop => Err(stopped(reason)),
            never = self.remark_who_is_late() => match never {},
        }
    }

    /// Resolves to the reason once a script has ended before its run, or the user stops.
    pub async fn broken_off(&self, stop: impl Future<Output = impl fmt::Display>) -> Error {
        let deserted = select_all(self.nodes.iter().map(SimulatedNode::deserted));
        tokio::select! {
            biased;
            (gone, ..) = deserted => gone,
            reason = stop => stopped(reason),
        }
    }

    /// The boards of the status that the scripts read, by node.
    pub fn boards(&self) -> Vec<StatusBoard> {
        self.nodes.iter().map(SimulatedNode::board).collect()
    }

    /// Functions that return `true` once the script of a node has ended before its run, by node.
    pub fn desertions(&self) -> Vec<Desertion> {
        self.nodes.iter().map(SimulatedNode::desertion).collect()
    }

    /// Ends the run of every script: with its final model, or with the error. An interrupt ends the scripts at once.
    ///
    /// # Errors
    /// The error.
    pub async fn end<R>(self, trained: Result<Vec<Arc<[f32]>>>, stop: impl Future<Output = R>) -> Result {
        let ends: Vec<_> = match &trained {
            Ok(models) => self.nodes.iter().zip(models).map(|(node, model)| node.end(model, self.rounds)).collect(),
            Err(error) => self.nodes.iter().map(|node| node.break_off(error)).collect(),
        };
        let mut ended = join_all(ends);
        tokio::select! {
            _ = &mut ended => {}
            _ = stop => {
                self.nodes.iter().for_each(SimulatedNode::hurry);
                ended.await;
            }
        }
        join_all(self.nodes.into_iter().map(SimulatedNode::close)).await;
        trained.map(drop)
    }

    /// Names the scripts that have not attached, for as long as it is polled.
    async fn remark_who_is_late(&self) -> Infallible {
        let mut patience = LONG_WAIT;
        loop {
            tokio::time::sleep(patience).await;
            let late = self.nodes.iter().enumerate().filter(|(_, node)| !node.has_attached());
            let late = late.map(|(number, _)| number).collect();
            (self.remark)(format_args!("waiting for {} to attach", scripts_of(&late)));
            patience *= 2;
        }
    }
}

/// Words such as `the scripts of nodes 1, 3`.
pub fn scripts_of(nodes: &BTreeSet<usize>) -> String {
    let numbers: Vec<String> = nodes.iter().map(usize::to_string).collect();
    match &numbers[..] {
        [number] => format!("the script of node {number}"),
        _ => format!("the scripts of nodes {}", numbers.join(", ")),
    }
}

fn stopped(reason: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Forced, format!("the simulation was stopped: {reason}"))
}

/// A sink that prints the lines of a node's program, and warnings about it.
fn printing(node: usize, remark: Remark) -> EventSink {
    Box::new(move |event, _| match event {
        Event::TrainerSaid { line } => remark(format_args!("node {node}: {line}")),
        Event::Warning { message } => remark(format_args!("node {node}: warning: {message}")),
        _ => {}
    })
}
