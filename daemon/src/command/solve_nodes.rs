//! `mingle solve` of a problem of kind node-classification: all clients in this process, over the collectives of real peers.

use std::sync::Arc;
use std::time::Instant;

use mingle_lab::solving::{Conditions, learn_here};
use mingle_peer::solving::Explain;
use mingle_peer::{Result, plan, units};
use mingle_planner::Plan;
use mingle_solving::{Problem, RoundRecord};

use crate::cli::SolveArgs;
use crate::nodes::{METRICS, NodesTask, print_learned, write_learned};
use crate::{lab, out};

/// Learns with all clients in this process.
pub(super) fn learn(arguments: &SolveArgs, task: NodesTask, plan: &Plan, conditions: Conditions, json: bool) -> Result {
    let began = Instant::now();
    let names: Arc<Vec<String>> = Arc::new(plan.nodes().map(|(name, _)| name.to_owned()).collect());
    let problem = Problem::of_rounds(Arc::new(task), Arc::clone(&names));
    let communication =
        Arc::new(problem.communication(plan, Arc::new(plan::schedule(plan)?)).map_err(Explain::explain)?);
    if !json {
        out::line(format!("plan     {}, {} nodes, blake3:{}", plan.method(), plan.node_count(), plan.hash().short()));
        out::line(format!("problem  {}, blake3:{}", problem.describe(), hex::encode(&problem.hash[..6])));
        out::line("");
    }
    let solved =
        learn_here(&problem, &communication, conditions, |record| tell(record, json)).map_err(lab::swarm_error)?;
    if let Some(folder) = &arguments.output {
        write_learned(folder, &names, &solved.learned)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.learned-together/1",
            "learned": solved.learned,
            "messages": solved.messages,
            "lost": solved.lost,
            "bytes": solved.bytes,
            "virtual_s": solved.virtual_s,
            "seconds": seconds,
        }));
    } else {
        out::line("");
        print_learned(&names, &solved.learned);
        let megabytes = units::megabytes(solved.bytes);
        out::line(format!("{} messages, {megabytes:.1} MB; {seconds:.1} s", solved.messages));
    }
    Ok(())
}

fn tell(record: &RoundRecord, json: bool) {
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.learn-progress/1", "round": record.round, "mean": record.mean,
        }));
        return;
    }
    if record.round.is_multiple_of(10) || record.round == 1 {
        let cell = |(name, value): (&&str, &Option<f64>)| Some(format!("  {name} {:.4}", (*value)?));
        let cells: Vec<String> = METRICS.iter().zip(&record.mean).filter_map(cell).collect();
        out::line(format!("round {:>4}{}", record.round, cells.concat()));
    }
}
