//! `mingle simulate --train-elsewhere`: the nodes of a simulated swarm train in the program that started this one.
//!
//! ```text
//!   standard output                                      standard input
//!                                                        the initial model, [parameters]
//!   {"schema":"mingle.simulation-order/1", ...}
//!   the model of a node, [parameters]                    its change by some steps, [parameters]
//!   {"schema":"mingle.simulation-models/1", ...}
//!   the models of all nodes, [nodes][parameters]
//!   {"schema":"mingle.simulation-end/1", ...}
//! ```
//!
//! Headers are lines of JSON; vectors are `f32`, little endian, behind their header. Orders come one at a time, and each
//! is answered before the next one.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Instant;

use mingle_builtin::errors;
use mingle_lab::simulation::{
    self, BETWEEN_EVALUATIONS, Conditions, NodeTraining, NodeWork, Rounds, SimulationError, disagreement,
};
use mingle_peer::{Result, plan};

use crate::cli::SimulateArgs;

/// Bytes of a number of a vector.
const WIDTH: usize = size_of::<f32>();

/// Simulates a swarm of models with so many parameters.
pub(super) fn execute(arguments: &SimulateArgs, parameters: u64) -> Result {
    let began = Instant::now();
    let parameters = usize::try_from(parameters).unwrap_or(usize::MAX);
    let rounds = super::rounds(arguments)?;
    let plan = super::plan_of(arguments)?;
    let momentum = plan::momentum(arguments.communication.momentum_across_rounds, &plan)?;
    let conditions =
        Conditions { momentum, rounds: Some(rounds), ends_with_mean: true, ..super::conditions(arguments)? };
    let mut elsewhere = TrainingElsewhere { input: io::stdin().lock(), output: io::stdout().lock(), parameters };
    let initial = elsewhere.read("the initial model").map_err(errors::simulation_error)?;
    let mut swarm = simulation::found(&plan, &initial, conditions).map_err(errors::simulation_error)?;
    let mut round = 0;
    while round < rounds {
        round = (round + arguments.evaluate_every.unwrap_or(BETWEEN_EVALUATIONS)).min(rounds);
        swarm.advance(round, &mut elsewhere).map_err(errors::simulation_error)?;
        elsewhere.show(&mut *swarm, round).map_err(errors::simulation_error)?;
    }
    let chosen = super::codec(&plan, conditions, parameters)?;
    let tally = swarm.tally();
    let end = serde_json::json!({
        "schema": "mingle.simulation-end/1",
        "plan": plan.hash().to_string(),
        "method": plan.method(),
        "nodes": plan.node_count(),
        "parameters": parameters,
        "codec": chosen.codec,
        "codec_reason": chosen.reason(),
        "momentum_across_rounds": momentum,
        "round": round,
        "slots": tally.slots,
        "link_bytes": tally.link_bytes,
        "parcels": tally.parcels,
        "lost_parcels": tally.lost_parcels,
        "weight": tally.weight,
        "seconds": began.elapsed().as_secs_f64(),
    });
    elsewhere.write(&end, &[]).map_err(errors::simulation_error)
}

/// The training of all nodes by the program at the other end of two streams.
struct TrainingElsewhere<R, W> {
    input: R,
    output: W,
    parameters: usize,
}

impl<R: Read, W: Write> TrainingElsewhere<R, W> {
    /// Sends the models of all nodes.
    fn show(&mut self, swarm: &mut dyn Rounds, round: u64) -> Result<(), SimulationError> {
        let models = swarm.models();
        let tally = swarm.tally();
        let header = serde_json::json!({
            "schema": "mingle.simulation-models/1",
            "nodes": models.len(),
            "round": round,
            "slots": tally.slots,
            "link_bytes": tally.link_bytes,
            "disagreement": Some(disagreement(&models)).filter(|apart| apart.is_finite()),
        });
        self.write(&header, &models)
    }

    fn write(&mut self, header: &serde_json::Value, vectors: &[Arc<[f32]>]) -> Result<(), SimulationError> {
        let mut bytes = format!("{header}\n").into_bytes();
        for vector in vectors {
            bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        }
        let written = self.output.write_all(&bytes).and_then(|()| self.output.flush());
        written.map_err(|error| elsewhere(format!("it does not read what it is sent: {error}")))
    }

    /// Reads a vector, `[parameters]`, of finite numbers.
    fn read(&mut self, what: &str) -> Result<Vec<f32>, SimulationError> {
        let mut bytes = vec![0; self.parameters * WIDTH];
        self.input.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => elsewhere(format!("it ended before it had sent {what}")),
            _ => elsewhere(format!("{what} cannot be read: {error}")),
        })?;
        let (numbers, _) = bytes.as_chunks::<WIDTH>();
        let vector: Vec<f32> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
        match vector.iter().position(|number| !number.is_finite()) {
            Some(place) => Err(elsewhere(format!("{what} has {} at place {place}", vector[place]))),
            None => Ok(vector),
        }
    }
}

impl<R: Read, W: Write> NodeTraining for TrainingElsewhere<R, W> {
    fn train(&mut self, jobs: &[NodeWork]) -> Result<Vec<Vec<f32>>, SimulationError> {
        let mut changes = Vec::with_capacity(jobs.len());
        for NodeWork { node, round, from, steps, .. } in jobs {
            let header = serde_json::json!({
                "schema": "mingle.simulation-order/1",
                "node": node,
                "round": round,
                "steps": steps,
            });
            self.write(&header, std::slice::from_ref(from))?;
            changes.push(self.read(&format!("the change of node {node} in round {round}"))?);
        }
        Ok(changes)
    }
}

fn elsewhere(reason: String) -> SimulationError {
    SimulationError::Elsewhere { reason }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn job(from: &[f32]) -> NodeWork {
        NodeWork { node: 3, round: 7, from: from.into(), steps: 2, rounds_left: 9, last_factor: 1.0 }
    }

    fn bytes(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn an_order_is_a_line_of_json_and_a_model_and_its_answer_a_change() {
        let mut output = Vec::new();
        let input = bytes(&[0.25, -1.0]);
        let mut elsewhere = TrainingElsewhere { input: &input[..], output: &mut output, parameters: 2 };
        assert_eq!(elsewhere.train(&[job(&[1.5, 2.5])]).unwrap(), [[0.25, -1.0]]);
        let line = output.iter().position(|byte| *byte == b'\n').unwrap();
        let header: serde_json::Value = serde_json::from_slice(&output[..line]).unwrap();
        let wanted = serde_json::json!({"schema": "mingle.simulation-order/1", "node": 3, "round": 7, "steps": 2});
        assert_eq!(header, wanted);
        assert_eq!(output[line + 1..], bytes(&[1.5, 2.5]));
    }

    #[test]
    fn changes_that_are_missing_or_not_finite_are_named_by_node_and_round() {
        let answers =
            [(&[1.0][..], "ended before"), (&[0.0, f32::NAN], "NaN at place 1"), (&[f32::INFINITY, 0.0], "inf")];
        for (answer, words) in answers {
            let input = bytes(answer);
            let mut elsewhere = TrainingElsewhere { input: &input[..], output: Vec::new(), parameters: 2 };
            let message = elsewhere.train(&[job(&[1.0, 2.0])]).unwrap_err().to_string();
            assert!(message.contains(words) && message.contains("the change of node 3 in round 7"), "{message}");
        }
    }
}
