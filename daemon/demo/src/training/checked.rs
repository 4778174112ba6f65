//! The options, the data and the plan of a demo that trains, before anything is written.

use mingle_builtin::limits;
use mingle_builtin::options::parse_policy;
use mingle_builtin::task::{self, TaskSamples};
use mingle_peer::{Error, ErrorKind, Result, overlap};
use mingle_planner::{DesignOptions, Plan};

use super::TrainingDemo;
use crate::kill::Kills;
use crate::options::{DemoOptions, check_peers};
use crate::output::Output;
use crate::plan::{bind_to_new_homes, design, method_of, topology};

/// A training demo whose options hold, with its data and its plan. Its folder is as it was.
pub struct CheckedTraining {
    options: DemoOptions,
    parts: TaskSamples,
    plan: Plan,
    output: Output,
    kills: Kills,
}

impl CheckedTraining {
    /// Checks the options, reads the data, and makes the plan.
    ///
    /// # Errors
    /// The options are invalid, the data cannot be read, or the folder holds something else.
    pub fn new(mut options: DemoOptions) -> Result<Self> {
        check_peers(options.peers)?;
        mingle_peer::medium::check(&options.medium, options.air_rate, options.slots)?;
        if options.restart && !options.keeps_records() {
            return Err(Error::new(
                ErrorKind::BadInput,
                "--restart: without records a killed peer comes back without weight",
            )
            .hint("leave --durability off away"));
        }
        limits::check("local-steps", options.local_steps.into(), 1..=limits::MOST_LOCAL_STEPS)?;
        let kills = Kills::parse(&options.kills, options.peers, options.training.rounds)?;
        let parts = read_data(&mut options)?;
        let training = &options.training;
        task::check_options(training)?;
        training.optimizer.settings(training.learning_rate)?;
        training.optimizer.rates(training.learning_rate, training.rounds)?;
        training.privacy.settings()?;
        parse_policy(&options.wait)?;
        let plan = make_plan(&options)?;
        mingle_peer::plan::momentum(options.momentum_across_rounds, &plan)?;
        if let Some(objection) = overlap::objection(&mingle_peer::plan::schedule(&plan)?, options.overlap) {
            return Err(Error::new(ErrorKind::BadInput, objection).hint("add --method exact-average"));
        }
        let output = Output::at(&options.output)?;
        Ok(Self { options, parts, plan, output, kills })
    }

    /// Makes the folder, with a home for each peer. Files of an earlier demo are put back if this one fails, or is asked
    /// to stop, before its peers have made progress: have requests to stop forwarded from here on.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn make_folder(self) -> Result<TrainingDemo> {
        let Self { options, parts, mut plan, output, kills } = self;
        output.make()?;
        let homes = bind_to_new_homes(&mut plan, &output)?;
        mingle_peer::plan::write(&plan, &output.plan())?;
        Ok(TrainingDemo { options, parts, plan, homes, output, kills })
    }
}

/// Reads the data before anything is started, so that an error is reported once, not by every peer.
fn read_data(options: &mut DemoOptions) -> Result<TaskSamples> {
    let training = &mut options.training;
    let mut parts = TaskSamples::load(&training.data, training.task, training.seed)?;
    if let Some(split) = &training.split {
        parts.deal(split, options.peers, training.seed)?;
    }
    parts.task(&training.model)?;
    task::open_device(&training.device)?;
    training.weight = parts.weight(training.weight, options.peers)?;
    Ok(parts)
}

/// A random geometric base topology, and the requested design on it.
fn make_plan(options: &DemoOptions) -> Result<Plan> {
    method_of(&options.method)?;
    let seed = options.training.seed;
    let design_options = DesignOptions { seed, local_steps: options.local_steps, ..DesignOptions::default() };
    design(&options.method, &topology(options.peers, seed)?, &design_options)
}
