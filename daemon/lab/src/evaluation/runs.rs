//! The runs of a suite, and their identity.

use std::sync::{Arc, OnceLock};

use mingle_models::AskedWeight;
use mingle_planner::{DesignError, DesignOptions, Method, Plan, Topology};
use mingle_protocol::{Codec, Robust, TrainingOverlap};
use serde::Serialize;

use super::records::{RunRecord, SCHEMA};
use super::suite::{DesignEntry, SplitEntry, Suite, Training};
use crate::simulation::{self, Conditions, Goal, Learners, MetricTarget, SimulationError, Stop, SwarmProgress};

/// The version of results: those of another version are run again.
const VERSION: u32 = 2;

/// One simulation of a suite.
#[derive(Clone, Debug)]
pub struct Run {
    /// The name of the topology.
    pub topology: String,
    graph: Arc<Topology>,
    /// Designed for the first run that needs it.
    plan: Arc<OnceLock<Result<Plan, DesignError>>>,
    /// The split of the data.
    pub split: SplitEntry,
    /// The design of the plan.
    pub design: DesignEntry,
    /// The seed of the split, the minibatches and the losses.
    pub seed: u64,
    /// The training.
    pub training: Training,
    max_slots: u64,
    /// Rounds between two evaluations.
    pub evaluate_every: u64,
}

/// Everything that determines a result.
#[derive(Serialize)]
struct RunIdentity<'a> {
    version: u32,
    program: &'static str,
    nodes: usize,
    edges: &'a [(usize, usize)],
    split: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<MetricTarget>,
    design: &'a DesignEntry,
    seed: u64,
    training: &'a Training,
    max_slots: u64,
    evaluate_every: u64,
}

/// The runs of a suite: all seeds of a design before the next, so that a row of the report is complete early. Each plan
/// is designed once for all of them, that of `auto` once for each split. `read` returns the topology of a source: a
/// file, or a generator.
///
/// # Errors
/// An error of `read`.
pub fn all_runs<E>(suite: &Suite, read: impl Fn(&str) -> Result<Topology, E>) -> Result<Vec<Run>, E> {
    let mut runs = Vec::new();
    for entry in &suite.topology {
        let graph = Arc::new(read(&entry.source)?);
        let plans: Vec<Arc<OnceLock<_>>> = suite.design.iter().map(|_| Arc::default()).collect();
        for split in &suite.split {
            for (design, plan) in suite.design.iter().zip(&plans) {
                // The choice of `auto` depends on the data.
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
    /// The identity of this run: BLAKE3, in hexadecimal.
    pub fn key(&self) -> String {
        let identity = RunIdentity {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION"),
            nodes: self.graph.node_count(),
            edges: self.graph.edges(),
            split: &self.split.split,
            target_accuracy: self.split.target_accuracy,
            target: self.split.target,
            design: &self.design,
            seed: self.seed,
            training: &self.training,
            max_slots: self.max_slots,
            evaluate_every: self.evaluate_every,
        };
        let text = serde_json::json!(identity).to_string();
        blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
    }

    /// The weight of a site's changes.
    pub fn weight(&self) -> AskedWeight {
        self.design.weight.unwrap_or(self.training.weight)
    }

    /// The name of this run, for people.
    pub fn name(&self) -> String {
        format!("{}, {}, {}, seed {}", self.topology, self.split.split, self.design.name, self.seed)
    }

    /// Simulates the run, and passes every evaluation to `tell`. `learners` have to be those that its
    /// [training](Self::training) asks for, one for each node of its [plan](Self::plan).
    ///
    /// # Errors
    /// The design is not possible on this topology, the target is not measured, or the device failed.
    pub fn execute(
        &self,
        mut learners: Learners,
        tell: impl FnMut(&SwarmProgress),
    ) -> Result<RunRecord, SimulationError> {
        let plan = self.plan()?;
        let unreachable = |why| SimulationError::Target { split: self.split.split.clone(), why };
        let target = self.split.target().map_err(unreachable)?;
        let target = target.check(learners.task()).map_err(|error| unreachable(error.to_string()))?;
        let initial = learners.initial();
        let DesignEntry { ledger, loss, .. } = self.design;
        let conditions = Conditions {
            ledger,
            policy: None,
            loss,
            codec: Codec::F32.into(),
            robust: Robust::Off,
            overlap: TrainingOverlap::Off,
            momentum: 0.0,
            attack: None,
            seed: self.seed,
            rounds: None,
            ends_with_mean: false,
        };
        let mut swarm = simulation::found(plan, &initial, conditions)?;
        let goal = Goal {
            target: Some(target),
            epochs: None,
            max_slots: Some(self.max_slots),
            rounds: u64::MAX,
            evaluate_every: self.evaluate_every,
        };
        let (curve, stop) = goal.pursue(&mut *swarm, &mut learners, tell)?;
        Ok(self.record(plan, curve, stop == Stop::Target))
    }

    /// The record of this run when it has finished.
    fn record(&self, plan: &Plan, curve: Vec<SwarmProgress>, reached: bool) -> RunRecord {
        RunRecord {
            schema: SCHEMA.to_owned(),
            key: self.key(),
            topology: self.topology.clone(),
            split: self.split.split.clone(),
            design: self.design.name.clone(),
            seed: self.seed,
            plan: plan.hash().to_string(),
            method: plan.method().to_owned(),
            slots_per_period: plan.forecast().slots_per_period,
            rounds_per_period: plan.steps().len() / plan.round_length(),
            reached,
            curve,
        }
    }

    /// The plan of its design for its topology.
    ///
    /// # Errors
    /// The design is not possible there.
    pub fn plan(&self) -> Result<&Plan, SimulationError> {
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
        made.as_ref().map_err(|source| SimulationError::Design {
            design: self.design.name.clone(),
            topology: self.topology.clone(),
            source: Box::new(source.clone()),
        })
    }
}
