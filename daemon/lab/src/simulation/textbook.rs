//! Textbook push-sum SGD: matrices, no messages, no ledger. Lost mass is gone.
//!
//! Nedic and Olshevsky, IEEE TAC 2016; Assran et al., ICML 2019, Algorithm 1. The baseline of the production state
//! machine: without losses both come to the same models up to rounding, with losses only the production nodes keep the
//! average.

use std::sync::Arc;

use mingle_planner::{MixingStep, Plan};
use mingle_protocol::{MomentumState, MomentumStep, TrainedRound};

use super::courier::Courier;
use super::learners::NodeWork;
use super::{Conditions, NodeTraining, Received, RoundLengths, Rounds, SimulationError, Tally};

/// A swarm as two sequences of vectors: numerators x and weights w.
pub(crate) struct Textbook {
    steps: Vec<MixingStep>,
    round_length: usize,
    local_steps: u32,
    lengths: RoundLengths,
    numerators: Vec<Vec<f32>>,
    weights: Vec<f64>,
    /// The momentum across rounds, and its state on each node.
    momentum: f64,
    movements: Vec<MomentumState>,
    rounds: u64,
    /// Rounds that train; later ones only mix.
    training_rounds: u64,
    slots: u64,
    courier: Courier,
}

impl Textbook {
    /// A swarm whose nodes all begin with `initial`. No node waits: what arrives in a step is mixed in it.
    ///
    /// # Errors
    /// The plan cannot be run.
    pub(crate) fn new(plan: &Plan, initial: &[f32], conditions: Conditions) -> Result<Self, SimulationError> {
        let nodes = plan.node_count();
        let schedule = mingle_solving::schedule(plan).map_err(SimulationError::Schedule)?;
        let training_rounds = |rounds| conditions.policy().training_rounds(&schedule, rounds);
        Ok(Self {
            steps: plan.steps().to_vec(),
            round_length: plan.round_length(),
            local_steps: plan.local_steps(),
            lengths: RoundLengths::of(plan),
            numerators: vec![initial.to_vec(); nodes],
            weights: vec![1.0; nodes],
            momentum: conditions.momentum,
            movements: vec![MomentumState::default(); nodes],
            rounds: 0,
            training_rounds: conditions.rounds.map_or(u64::MAX, training_rounds),
            slots: 0,
            courier: Courier::new(conditions.loss, conditions.seed),
        })
    }

    fn ratio(&self, node: usize) -> Arc<[f32]> {
        let weight = self.weights[node] as f32;
        self.numerators[node].iter().map(|x| x / weight).collect()
    }

    fn round(&mut self, training: &mut dyn NodeTraining) -> Result<(), SimulationError> {
        if self.rounds < self.training_rounds {
            self.train(training)?;
        }
        let first = self.rounds as usize * self.round_length % self.steps.len();
        for step in first..first + self.round_length {
            self.mix(step);
        }
        self.slots += self.lengths.of_round(self.rounds);
        self.rounds += 1;
        Ok(())
    }

    /// The local steps of all nodes that hold weight: x <- x + change.
    fn train(&mut self, training: &mut dyn NodeTraining) -> Result<(), SimulationError> {
        let holds = |node: &usize| self.weights[*node] > 0.0;
        let job = |node| NodeWork {
            node,
            round: self.rounds,
            from: self.ratio(node),
            steps: self.local_steps,
            rounds_left: u64::MAX,
            last_factor: 1.0,
        };
        let jobs: Vec<NodeWork> = (0..self.weights.len()).filter(holds).map(job).collect();
        for (job, mut delta) in jobs.iter().zip(training.train(&jobs)?) {
            let trained = TrainedRound { number: self.rounds, pace: 1.0 };
            let step = MomentumStep { momentum: self.momentum, weight: self.weights[job.node], restarts: false };
            self.movements[job.node].add_to(&mut delta, &job.from, trained, step);
            self.numerators[job.node].iter_mut().zip(&delta).for_each(|(x, delta)| *x += delta);
        }
        Ok(())
    }

    /// One mixing step: x <- W x and w <- W w, less the lost parcels.
    fn mix(&mut self, step: usize) {
        let step = &self.steps[step];
        let keep = step.keep();
        let mut numerators: Vec<Vec<f32>> =
            self.numerators.iter().zip(&keep).map(|(x, &keep)| scaled(x, keep as f32)).collect();
        let mut weights: Vec<f64> = self.weights.iter().zip(&keep).map(|(w, keep)| w * keep).collect();
        for link in step.links() {
            let sent = &self.numerators[link.from];
            if !self.courier.carries_parcel(Some(4 * sent.len() as u64)) {
                continue;
            }
            let share = link.weight as f32;
            numerators[link.to].iter_mut().zip(sent).for_each(|(x, sent)| *x += share * sent);
            weights[link.to] += link.weight * self.weights[link.from];
        }
        self.numerators = numerators;
        self.weights = weights;
    }
}

impl Rounds for Textbook {
    fn advance(&mut self, rounds: u64, training: &mut dyn NodeTraining) -> Result<(), SimulationError> {
        while self.rounds < rounds {
            self.round(training)?;
        }
        Ok(())
    }

    fn models(&mut self) -> Vec<Arc<[f32]>> {
        (0..self.weights.len()).map(|node| self.ratio(node)).collect()
    }

    fn tally(&self) -> Tally {
        Tally {
            slots: self.slots,
            link_bytes: self.courier.link_bytes,
            parcels: self.courier.parcels,
            lost_parcels: self.courier.lost_parcels,
            weight: self.weights.iter().sum(),
            received: Received::default(),
        }
    }
}

fn scaled(x: &[f32], by: f32) -> Vec<f32> {
    x.iter().map(|x| x * by).collect()
}
