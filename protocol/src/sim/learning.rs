//! The auditor of learning: what nodes have learnt is in numerators, in parcels, or held back, each change once.
//!
//! It adds up the changes that nodes were handed and took. A process that is killed starts again from a record: what it
//! learnt after that is undone here too. As with weights, nothing is promised where a disk lost a record.

use std::collections::{BTreeMap, VecDeque};

use crate::effect::{Effect, Event, Fault, SkippedDelta};
use crate::schedule::NodeId;

/// What each node has learnt.
#[derive(Debug, Default)]
pub(super) struct Learning {
    nodes: BTreeMap<NodeId, Learnt>,
}

/// The changes of one node.
#[derive(Debug, Default)]
struct Learnt {
    /// Their sum, `[dimension]`; empty before the first one.
    sum: Vec<f64>,
    /// The sums that records have which the node may start again from, by the numbers of these.
    records: VecDeque<(u64, Vec<f64>)>,
}

impl Learning {
    /// A node was handed a change, and these are the effects.
    pub(super) fn handed_in(&mut self, id: NodeId, delta: &[f32], effects: &[Effect]) {
        if effects.iter().any(is_refusal) {
            return;
        }
        let sum = &mut self.nodes.entry(id).or_default().sum;
        sum.resize(delta.len(), 0.0);
        sum.iter_mut().zip(delta).for_each(|(sum, change)| *sum += f64::from(*change));
    }

    /// A node handed in a record of its present state.
    pub(super) fn recorded(&mut self, id: NodeId, number: u64) {
        let learnt = self.nodes.entry(id).or_default();
        learnt.records.push_back((number, learnt.sum.clone()));
    }

    /// A record is on the disk of a node, which never starts from an earlier one again.
    pub(super) fn written(&mut self, id: NodeId, number: u64) {
        self.nodes.entry(id).or_default().records.retain(|(known, _)| *known >= number);
    }

    /// A node starts again from a record, or from nothing.
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

/// Returns `true` if a change was not taken, whenever it was ordered.
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
