//! The runs of a suite, and what makes one of them what it is.

use std::num::NonZero;
use std::sync::{Arc, OnceLock};

use mingle_peer::{Error, ErrorKind, Result};
use mingle_planner::{DesignError, DesignOptions, Method, Plan, Topology};
use mingle_protocol::Codec;
use serde::Serialize;

use super::records::Record;
use super::suite::{DesignEntry, SplitEntry, Suite, Training};
use crate::cli::TrainingArgs;
use crate::simulation::{self, Conditions, Goal, Learners, Progress, Stop};
use crate::topology;

/// A result of another version of this is run again.
const VERSION: u32 = 2;

/// One simulation of a suite.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// The name of the topology.
    pub(crate) topology: String,
    graph: Arc<Topology>,
    /// Designed by whoever needs it first.
    plan: Arc<OnceLock<Result<Plan, DesignError>>>,
    pub(crate) split: SplitEntry,
    pub(crate) design: DesignEntry,
    pub(crate) seed: u64,
    training: Training,
    max_slots: u64,
    evaluate_every: u64,
}

/// All that decides about a result.
#[derive(Serialize)]
struct Identity<'a> {
    version: u32,
    program: &'static str,
    nodes: usize,
    edges: &'a [(usize, usize)],
    split: &'a str,
    target_accuracy: f64,
    design: &'a DesignEntry,
    seed: u64,
    training: &'a Training,
    max_slots: u64,
    evaluate_every: u64,
}

/// The runs of a suite: all seeds of a design before the next, so that a row of the report is complete early. Each plan is
/// designed once for all of them, that of `auto` once for each split.
///
/// # Errors
/// A topology that cannot be read.
pub(crate) fn all_runs(suite: &Suite) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for entry in &suite.topology {
        let graph = Arc::new(topology::read(&entry.source)?);
        let plans: Vec<Arc<OnceLock<_>>> = suite.design.iter().map(|_| Arc::default()).collect();
        for split in &suite.split {
            for (design, plan) in suite.design.iter().zip(&plans) {
                // What auto takes depends on the data.
                let plan = if design.method == Method::Auto.name() { &Arc::default() } else { plan };
                if !design.topologies.is_empty() && !design.topologies.contains(&entry.name) {
                    continue;
                }
                runs.extend(suite.seeds.iter().map(|&seed| Run {
                    topology: entry.name.clone(),
                    graph: Arc::clone(&graph),
                    plan: Arc::clone(plan),
                    split: split.clone(),
                    design: design.clone(),
                    seed,
                    training: suite.training.clone(),
                    max_slots: suite.max_slots,
                    evaluate_every: suite.evaluate_every,
                }));
            }
        }
    }
    Ok(runs)
}

impl Run {
    /// What tells this run from every other: BLAKE3, in hexadecimal.
    pub(crate) fn key(&self) -> String {
        let identity = Identity {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION"),
            nodes: self.graph.node_count(),
            edges: self.graph.edges(),
            split: &self.split.split,
            target_accuracy: self.split.target_accuracy,
            design: &self.design,
            seed: self.seed,
            training: &self.training,
            max_slots: self.max_slots,
            evaluate_every: self.evaluate_every,
        };
        let text = serde_json::json!(identity).to_string();
        blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
    }

    /// Which one it is, for people.
    pub(crate) fn name(&self) -> String {
        format!("{}, {}, {}, seed {}", self.topology, self.split.split, self.design.name, self.seed)
    }

    /// Simulates it, on one thread, and tells of every evaluation.
    ///
    /// # Errors
    /// The design is not possible on this topology, data cannot be read, the device fails.
    pub(crate) fn execute(&self, tell: impl FnMut(&Progress)) -> Result<Record> {
        let plan = self.plan()?;
        let test_samples = self.training.test_samples.map(NonZero::get);
        let mut learners = Learners::new(&self.training_arguments(), plan.node_count(), test_samples, 1)?;
        let initial = learners.initial();
        let DesignEntry { ledger, loss, .. } = self.design;
        let conditions = Conditions { ledger, policy: None, loss, codec: Codec::F32, seed: self.seed };
        let mut swarm = simulation::found(plan, &initial, conditions)?;
        let goal = Goal {
            target_accuracy: Some(self.split.target_accuracy),
            epochs: None,
            max_slots: Some(self.max_slots),
            rounds: u64::MAX,
            evaluate_every: self.evaluate_every,
        };
        let (curve, stop) = goal.pursue(&mut *swarm, &mut learners, self.training.batch_size, tell)?;
        Ok(Record::new(self, plan, curve, stop == Stop::Target))
    }

    /// The plan of its design for its topology.
    ///
    /// # Errors
    /// The design is not possible there.
    pub(crate) fn plan(&self) -> Result<&Plan> {
        let made = self.plan.get_or_init(|| {
            let design = &self.design;
            // Both were checked with the suite.
            let method = design.method.parse().unwrap_or(Method::Auto);
            let extra_edges = design.extra_edges().unwrap_or_default();
            let heterogeneity = self.split.split.parse().map_or(1.0, simulation::heterogeneity);
            let local_steps = design.local_steps;
            let options = DesignOptions { extra_edges, local_steps, heterogeneity, ..DesignOptions::default() };
            mingle_planner::design(&self.graph, method, &options)
        });
        let doing = || format!("{} for {}", self.design.name, self.topology);
        made.as_ref().map_err(|error| Error::new(ErrorKind::BadInput, format!("{}: {error}", doing())))
    }

    fn training_arguments(&self) -> TrainingArgs {
        let Training { data, model, batch_size, augment, learning_rate, momentum, weight_decay, device, .. } =
            self.training.clone();
        TrainingArgs {
            data,
            model,
            split: Some(self.split.split.clone()),
            rounds: 1,
            batch_size,
            augment: augment.to_string(),
            learning_rate,
            momentum,
            weight_decay,
            seed: self.seed,
            device,
            evaluate_every: self.evaluate_every,
        }
    }
}
