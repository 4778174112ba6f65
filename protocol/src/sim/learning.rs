//! The auditor of learning: every change that nodes learnt is in a numerator, in a parcel, held back, or ready for the next
//! round, and counts once.
//!
//! For each node it adds up the model with which the node began its generation, what it held back then, and the changes
//! that it was given and accepted since. A process that is killed starts again from a record: the changes after that
//! record are subtracted here too. A node that leaves stays in the sum, since it hands over all that it has learnt. As
//! with weights, there is no guarantee where a disk lost a record.

use std::collections::{BTreeMap, VecDeque};

use crate::effect::{Effect, InputFault, NodeEvent, SkippedDelta};
use crate::message::Generation;
use crate::node::Node;
use crate::schedule::NodeId;

/// Sums of changes of all nodes.
#[derive(Debug, Default)]
pub(super) struct Learning {
    nodes: BTreeMap<NodeId, Account>,
}

/// The books of one node.
#[derive(Debug, Default)]
struct Account {
    present: Learnt,
    /// The state at the records from which the node may start again, by record number.
    records: VecDeque<(u64, Learnt)>,
}

/// All that a node has put into a generation.
#[derive(Clone, Debug, Default)]
struct Learnt {
    /// `None` before the node has begun.
    generation: Option<Generation>,
    /// The numerator that it began with, what it held back then, and the changes since, `[dimension]`.
    sum: Vec<f64>,
}

impl Learning {
    /// Notes that a node begins a generation with these vectors: its numerator, and changes that wait from before.
    pub(super) fn began(&mut self, id: NodeId, generation: Generation, numerator: &[f32], waiting: Option<&[f32]>) {
        let mut sum: Vec<f64> = numerator.iter().copied().map(f64::from).collect();
        add(&mut sum, waiting.unwrap_or_default(), 1.0);
        self.nodes.entry(id).or_default().present = Learnt { generation: Some(generation), sum };
    }

    /// Notes the effects of an input on a node: of a change that it was given, and of changes that waited before.
    pub(super) fn watch(&mut self, node: &Node, change: Option<&[f32]>, waiting: Option<&[f32]>, effects: &[Effect]) {
        let id = node.id();
        let reports = |wanted: fn(&NodeEvent) -> bool| {
            effects.iter().any(|effect| matches!(effect, Effect::Report(event) if wanted(event)))
        };
        if reports(|event| matches!(event, NodeEvent::Entered { .. })) {
            // A node without neighbours begins its first round at once, and takes up a part of what it held back.
            let has_started = reports(|event| matches!(event, NodeEvent::Started { .. }));
            let waiting = if has_started { node.held_back() } else { waiting };
            self.began(id, node.config().generation, node.numerator(), waiting);
        }
        change.into_iter().for_each(|delta| self.handed_in(id, delta, effects));
        self.left(id, waiting, effects);
    }

    /// Adds a change that a node was given, unless the effects show that it was refused.
    fn handed_in(&mut self, id: NodeId, delta: &[f32], effects: &[Effect]) {
        if !effects.iter().any(is_refusal) {
            add(&mut self.nodes.entry(id).or_default().present.sum, delta, 1.0);
        }
    }

    /// Subtracts what waited at a node when it left without weight, if the effects show that it reported that.
    fn left(&mut self, id: NodeId, waiting: Option<&[f32]>, effects: &[Effect]) {
        if effects.iter().any(|effect| skipped(effect) == Some(SkippedDelta::LeftWithoutWeight)) {
            add(&mut self.nodes.entry(id).or_default().present.sum, waiting.unwrap_or_default(), -1.0);
        }
    }

    /// Forgets the books of a node that the newest plan leaves out, and that took part in it nevertheless: a process that
    /// started with that plan before it was dismissed.
    pub(super) fn left_out(&mut self, id: NodeId) {
        self.nodes.remove(&id);
    }

    /// Keeps the present sum for a record that a node handed to its host, less a change that is ready: no record has it.
    pub(super) fn recorded(&mut self, id: NodeId, number: u64, ready: Option<&[f32]>) {
        let account = self.nodes.entry(id).or_default();
        let mut learnt = account.present.clone();
        add(&mut learnt.sum, ready.unwrap_or_default(), -1.0);
        account.records.push_back((number, learnt));
    }

    /// Notes that a record is on the disk of a node, which will never start again from an earlier one.
    pub(super) fn written(&mut self, id: NodeId, number: u64) {
        self.nodes.entry(id).or_default().records.retain(|(known, _)| *known >= number);
    }

    /// Resets a node's sum to that of the record from which it starts again, or to nothing.
    pub(super) fn resumed(&mut self, id: NodeId, number: Option<u64>) {
        let account = self.nodes.entry(id).or_default();
        account.records.retain(|(known, _)| Some(*known) <= number);
        account.present = account.records.back().map(|(_, learnt)| learnt.clone()).unwrap_or_default();
    }

    /// The sum over all nodes that have begun this generation, `[dimension]`.
    pub(super) fn total(&self, generation: Option<Generation>, dimension: usize) -> Vec<f64> {
        let mut total = vec![0.0; dimension];
        let accounts = self.nodes.values().map(|account| &account.present);
        for learnt in accounts.filter(|learnt| learnt.generation == generation) {
            total.iter_mut().zip(&learnt.sum).for_each(|(total, sum)| *total += sum);
        }
        total
    }
}

/// The changes of a node that are not in its numerator yet, `[dimension]`; `None` if there is none.
pub(super) fn waiting_changes(node: &Node) -> Option<Vec<f32>> {
    let mut waiting = node.held_back().map(<[f32]>::to_vec);
    if let Some(ready) = node.ready_change() {
        let sum = waiting.get_or_insert_with(|| vec![0.0; ready.len()]);
        sum.iter_mut().zip(ready).for_each(|(sum, value)| *sum += value);
    }
    waiting
}

/// Adds `sign` times a vector.
fn add(sum: &mut [f64], vector: &[f32], sign: f64) {
    sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += sign * f64::from(*value));
}

/// Returns `true` if this effect reports that a change was refused, whenever it was ordered.
fn is_refusal(effect: &Effect) -> bool {
    // Without weight the next training is not ordered; the one before counts.
    let is_refused = |reason| !matches!(reason, SkippedDelta::NoMass | SkippedDelta::LeftWithoutWeight);
    let Effect::Report(NodeEvent::Ignored { fault, .. }) = effect else {
        return skipped(effect).is_some_and(is_refused);
    };
    *fault == InputFault::UnexpectedTraining
}

/// The reason of a change that was not taken.
fn skipped(effect: &Effect) -> Option<SkippedDelta> {
    match effect {
        Effect::Report(NodeEvent::DeltaSkipped { reason, .. }) => Some(*reason),
        _ => None,
    }
}
