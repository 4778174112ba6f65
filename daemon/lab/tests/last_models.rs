//! The end of a run of somebody else's training: the mean of the models after the last four rounds that train.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use mingle_lab::simulation::{self, Conditions, NodeTraining, NodeWork, SimulationError};
use mingle_planner::{DesignOptions, Method, Topology};
use mingle_protocol::{Codec, Robust, TrainingOverlap, WaitPolicy};

const NODES: usize = 4;
const ROUNDS: u64 = 40;

/// Training that swings: nodes pull apart all the time, and their mean jumps up and down from round to round. Remembers
/// the rounds that it trains.
#[derive(Default)]
struct Swinging {
    /// Number of rounds that train.
    trained: u64,
}

/// The change of the mean model in a round.
fn swing(round: u64) -> f32 {
    let up = [4.0, -3.0, 1.0, -1.5, 2.0];
    up[usize::try_from(round).unwrap() % up.len()]
}

impl NodeTraining for Swinging {
    fn train(&mut self, jobs: &[NodeWork]) -> Result<Vec<Vec<f32>>, SimulationError> {
        self.trained = jobs.iter().map(|job| job.round + 1).max().unwrap_or_default().max(self.trained);
        let apart = |node: usize| node as f32 - (NODES as f32 - 1.0) / 2.0;
        Ok(jobs.iter().map(|job| vec![swing(job.round) + apart(job.node), -swing(job.round)]).collect())
    }
}

/// The models at the end of a run, and the number of rounds that trained.
fn finals(method: Method, rounds: u64, ends_with_mean: bool) -> (Vec<Arc<[f32]>>, u64) {
    let options = DesignOptions { local_steps: 5, ..DesignOptions::default() };
    let plan = mingle_planner::design(&Topology::generate("complete:n=4").unwrap(), method, &options).unwrap();
    let conditions = Conditions {
        ledger: true,
        policy: Some(WaitPolicy::Sync),
        loss: 0.0,
        codec: Codec::F32.into(),
        robust: Robust::Off,
        overlap: TrainingOverlap::Off,
        momentum: 0.0,
        attack: None,
        seed: 0,
        rounds: Some(rounds),
        ends_with_mean,
    };
    let mut swarm = simulation::found(&plan, &[0.0; 2], conditions).unwrap();
    let mut training = Swinging::default();
    swarm.advance(rounds, &mut training).unwrap();
    (swarm.models(), training.trained)
}

#[test]
fn a_run_ends_with_the_mean_of_its_last_four_models_and_in_agreement() {
    for method in [Method::ExactAverage, Method::SgpUniform, Method::OnePeerExponential] {
        let (models, trained) = finals(method, ROUNDS, true);
        let after = |rounds: u64| (0..rounds).map(swing).sum::<f32>();
        let wanted = (0..4).map(|before| after(trained - before)).sum::<f32>() / 4.0;
        assert!((wanted - after(trained)).abs() > 0.5, "the last model is no mean");
        for model in models {
            let apart = [model[0] - wanted, model[1] + wanted].map(f32::abs);
            assert!(apart.iter().all(|apart| *apart < 0.05), "{method}: {model:?}, wanted {wanted} and its negative");
        }
    }
}

#[test]
fn a_short_run_and_one_that_is_not_to_end_with_a_mean_end_with_the_last_model() {
    for (rounds, ends_with_mean) in [(ROUNDS, false), (10, true)] {
        let (models, trained) = finals(Method::ExactAverage, rounds, ends_with_mean);
        let wanted = (0..trained).map(swing).sum::<f32>();
        assert!(models.iter().all(|model| (model[1] + wanted).abs() < 0.05), "{models:?}, wanted {wanted}");
    }
}
