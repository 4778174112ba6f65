//! `mingle solve`: all nodes of a plan solve a problem or learn in rounds in this process, each with its own part, on
//! virtual time.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::time::Instant;

use mingle_builtin::errors;
use mingle_lab::comparison::{self, Comparison};
use mingle_lab::solving::{Conditions, Solved, solve_here};
use mingle_peer::solving::Explain;
use mingle_peer::{Error, ErrorKind, Result, output_file, plan};
use mingle_solving::{Problem, Solution};

use super::{solve_rounds, solve_trainers};
use crate::cli::SolveArgs;
use crate::solving_report::{comparison as comparison_report, conclude, print_solutions, write_files};
use crate::{out, rounds};

/// Solves the problem.
pub(super) fn execute(arguments: &SolveArgs, json: bool) -> Result {
    let conditions = Conditions { loss: arguments.loss, seed: arguments.seed, sums: arguments.sums.into() };
    if !(0.0..=0.9).contains(&conditions.loss) {
        return Err(Error::new(ErrorKind::BadInput, format!("--loss {}: give a share from 0 to 0.9", conditions.loss)));
    }
    if let Some(folder) = &arguments.output {
        output_file::make_folder(folder)?;
    }
    if let Some(command) = &arguments.trainer {
        return solve_trainers::learn(arguments, command, conditions, json);
    }
    let began = Instant::now();
    let plan = plan::read(&arguments.plan)?;
    if let Some(task) = rounds::read(&arguments.problem, None)? {
        return solve_rounds::learn(arguments, task, &plan, conditions, json);
    }
    let problem = Problem::read(&arguments.problem, &plan).map_err(Explain::explain)?;
    let communication =
        Arc::new(problem.communication(&plan, Arc::new(plan::schedule(&plan)?)).map_err(Explain::explain)?);
    problem.check_links(&communication).map_err(Explain::explain)?;
    if !json {
        out::line(format!("plan     {}, {} nodes, blake3:{}", plan.method(), plan.node_count(), plan.hash().short()));
        out::line(format!("problem  {}, blake3:{}", problem.describe(), hex::encode(&problem.hash[..6])));
        out::line(format!("way      {}", problem.way(&communication)));
        let sums = conditions.sums.describe(plan.node_count()).map_err(|few| errors::swarm_error(few.into()))?;
        out::line(format!("sums     {sums}"));
        if let Some(defaults) = defaults(&problem) {
            out::line(format!("defaults {defaults}"));
        }
        out::line("");
    }
    let solved = solve_here(&problem, &communication, conditions, |iteration, worst| tell(iteration, worst, json))
        .map_err(errors::swarm_error)?;
    if stderr().is_terminal() && !json {
        remark!();
    }
    let comparison = compare(arguments, &problem, &solved)?;
    if let Some(folder) = &arguments.output {
        write_files(folder, &problem.title(), &solved.solutions, &solved.residuals)?;
    }
    if let (Some(folder), Some(comparison)) = (&arguments.output, &comparison) {
        comparison_report::write(folder, &problem.title(), comparison)?;
    }
    if json {
        out::line(summary(&solved, comparison.as_ref()));
    } else {
        print_solutions(&problem, &solved.solutions);
        comparison.iter().for_each(comparison_report::print);
        conclude(&solved, began.elapsed().as_secs_f64());
    }
    solved.solutions.iter().find_map(Solution::not_solved).map_or(Ok(()), |failure| Err(failure.explain()))
}

fn compare(arguments: &SolveArgs, problem: &Problem, solved: &Solved) -> Result<Option<Comparison>> {
    let (Some(test), Some(solution)) = (&arguments.compare, solved.solutions.first()) else { return Ok(None) };
    comparison::compare(problem, solution, test, arguments.seed).map(Some).map_err(errors::comparison_error)
}

/// Most names listed.
const MOST_NAMES: usize = 8;

/// Names of nodes that have no `[[node]]` entry and take the defaults. A file with the wishes of one peer only lacks
/// most nodes.
fn defaults(problem: &Problem) -> Option<String> {
    let names = problem.defaulted();
    let more = names.len().saturating_sub(MOST_NAMES);
    let listed = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    let others = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("no [[node]] for {listed}{others}: wish 0, weight 1, price 0, at least 0"))
}

fn tell(iteration: u64, worst: f64, json: bool) {
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.solve-progress/1", "iteration": iteration, "residual": worst,
        }));
    } else if stderr().is_terminal() {
        out::progress(format_args!("iteration {iteration:>6}   residual {worst:.1e} "));
    }
}

fn summary(solved: &Solved, comparison: Option<&Comparison>) -> serde_json::Value {
    let mut summary = serde_json::json!({
        "schema": "mingle.solved/1",
        "solutions": solved.solutions,
        "messages": solved.messages,
        "lost": solved.lost,
        "bytes": solved.bytes,
        "virtual_s": solved.virtual_s,
    });
    if let Some(comparison) = comparison {
        summary["comparison"] = serde_json::json!(comparison);
    }
    summary
}
