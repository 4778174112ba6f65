//! The auditor of learning: every change that nodes learnt is in a numerator, in a parcel, or held back, and counts
//! once.
//!
//! It adds up the changes that nodes were given and accepted. A process that is killed starts again from a record: the
//! changes after that record are subtracted here too. As with weights, there is no guarantee where a disk lost a
//! record.

use std::collections::{BTreeMap, VecDeque};

use crate::effect::{Effect, Event, Fault, SkippedDelta};
use crate::schedule::NodeId;

/// Sums of changes of all nodes.
#[derive(Debug, Default)]
pub(super) struct Learning {
    nodes: BTreeMap<NodeId, Learnt>,
}

/// The changes of one node.
#[derive(Debug, Default)]
struct Learnt {
    /// The sum of the changes, `[dimension]`; empty before the first one.
    sum: Vec<f64>,
    /// Sums at the records from which the node may start again, by record number.
    records: VecDeque<(u64, Vec<f64>)>,
}

impl Learning {
    /// Adds a change that a node was given, unless the effects show that it was refused.
    pub(super) fn handed_in(&mut self, id: NodeId, delta: &[f32], effects: &[Effect]) {
        if effects.iter().any(is_refusal) {
            return;
        }
        let sum = &mut self.nodes.entry(id).or_default().sum;
        sum.resize(delta.len(), 0.0);
        sum.iter_mut().zip(delta).for_each(|(sum, change)| *sum += f64::from(*change));
    }

    /// Keeps the present sum for a record that a node handed to its host.
    pub(super) fn recorded(&mut self, id: NodeId, number: u64) {
        let learnt = self.nodes.entry(id).or_default();
        learnt.records.push_back((number, learnt.sum.clone()));
    }

    /// Notes that a record is on the disk of a node, which will never start again from an earlier one.
    pub(super) fn written(&mut self, id: NodeId, number: u64) {
        self.nodes.entry(id).or_default().records.retain(|(known, _)| *known >= number);
    }

    /// Resets a node's sum to that of the record from which it starts again, or to nothing.
    pub(super) fn resumed(&mut self, id: NodeId, number: Option<u64>) {
        let learnt = self.nodes.entry(id).or_default();
        learnt.records.retain(|(known, _)| Some(*known) <= number);
        learnt.sum = learnt.records.back().map(|(_, sum)| sum.clone()).unwrap_or_default();
    }

    /// The sum over all nodes, `[dimension]`.
    pub(super) fn total(&self, dimension: usize) -> Vec<f64> {
        let mut total = vec![0.0; dimension];
        for learnt in self.nodes.values() {
            total.iter_mut().zip(&learnt.sum).for_each(|(total, sum)| *total += sum);
        }
        total
    }
}

/// Returns `true` if this effect reports that a change was refused, whenever it was ordered.
fn is_refusal(effect: &Effect) -> bool {
    let Effect::Report(event) = effect else {
        return false;
    };
    match event {
        Event::Ignored { fault, .. } => *fault == Fault::UnexpectedTraining,
        // Without weight the next training is not ordered; the one before counts.
        Event::DeltaSkipped { reason, .. } => *reason != SkippedDelta::NoMass,
        _ => false,
    }
}
