//! `mingle solve` for a problem that is learned in rounds: all clients in this process, over the collectives of real
//! peers.

use std::sync::Arc;
use std::time::Instant;

use mingle_builtin::errors;
use mingle_lab::solving::{Conditions, learn_here};
use mingle_peer::solving::Explain;
use mingle_peer::{Result, plan};
use mingle_planner::Plan;
use mingle_problems::{learned_table, round_line};
use mingle_solving::{Problem, RoundRecord, RoundTask};

use crate::cli::SolveArgs;
use crate::solving_report::conclude;
use crate::{out, rounds};

/// Most rounds reported: the first, and then evenly spaced ones.
const TOLD: u64 = 40;

/// Learns with all clients in this process.
pub(super) fn learn(
    arguments: &SolveArgs,
    task: Arc<dyn RoundTask>,
    plan: &Plan,
    conditions: Conditions,
    json: bool,
) -> Result {
    let began = Instant::now();
    let names: Arc<Vec<String>> = Arc::new(plan.nodes().map(|(name, _)| name.to_owned()).collect());
    let rules = task.rules().clone();
    let problem = Problem::of_rounds(task, Arc::clone(&names));
    let communication =
        Arc::new(problem.communication(plan, Arc::new(plan::schedule(plan)?)).map_err(Explain::explain)?);
    if !json {
        out::line(format!("plan     {}, {} nodes, blake3:{}", plan.method(), plan.node_count(), plan.hash().short()));
        out::line(format!("problem  {}, blake3:{}", problem.describe(), hex::encode(&problem.hash[..6])));
        let sums = conditions.sums.describe(plan.node_count()).map_err(|few| errors::swarm_error(few.into()))?;
        out::line(format!("sums     {sums}"));
        out::line("");
    }
    let each = rules.rounds().div_ceil(TOLD);
    let tell = |record: &RoundRecord| {
        if json {
            out::line(serde_json::json!({
                "schema": "mingle.learn-progress/1", "round": record.round, "mean": record.mean,
            }));
        } else if record.round.is_multiple_of(each) || record.round == 1 {
            out::line(round_line(rules.metrics(), record));
        }
    };
    let solved = learn_here(&problem, &communication, conditions, tell).map_err(errors::swarm_error)?;
    if let Some(folder) = &arguments.output {
        rounds::write(folder, &names, &solved.learned)?;
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
        out::line(learned_table(&names, &solved.learned));
        conclude(&solved, seconds);
    }
    Ok(())
}
