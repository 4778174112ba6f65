//! Comparison of a robust model with its competitors, over splits of one table.

use mingle_builtin::errors;
use mingle_lab::comparison::{SplitProblem, SplitScores, SplitSuite, SplitSummary};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result, output_file};
use mingle_planner::{DesignOptions, Method, Topology};

use super::{parallel, threads};
use crate::cli::EvaluateArgs;
use crate::out;

/// Makes all splits of a suite, and writes its report.
pub(super) fn execute(arguments: &EvaluateArgs, suite: &SplitSuite, json: bool) -> Result {
    let names: Vec<String> = suite.seeds.iter().map(|seed| format!("split of seed {seed}")).collect();
    if arguments.list {
        names.iter().for_each(|name| out::line(name));
        return Ok(());
    }
    let folder = &arguments.output;
    output_file::make_folder(folder)?;
    let doing = || format!("sites = {}", suite.sites);
    let topology = Topology::generate(&format!("complete:n={}", suite.sites)).context(ErrorKind::BadInput, doing())?;
    let plan = mingle_planner::design(&topology, Method::ExactAverage, &DesignOptions::default())
        .context(ErrorKind::BadInput, doing())?;
    let problem = SplitProblem::read(&suite.robust, &plan).map_err(errors::comparison_error)?;
    let split = |at: usize, _: &mut dyn FnMut(String)| {
        let scores = problem.split(suite, suite.seeds[at]).map_err(errors::comparison_error)?;
        let first: Vec<String> =
            scores.models.iter().map(|(name, scores)| format!("{name} {:.4}", scores[0])).collect();
        Ok((scores, first.join(", ")))
    };
    let mut splits: Vec<Option<SplitScores>> = vec![None; suite.seeds.len()];
    parallel::run_all(&names, threads(arguments), split, |at, scores| {
        splits[at] = Some(scores);
        Ok(())
    })?;
    let summary = SplitSummary::new(suite, problem.measure(), splits.into_iter().flatten().collect());
    let encoded = serde_json::to_string_pretty(&summary).context(ErrorKind::Unexpected, "cannot encode the report")?;
    output_file::write(&folder.join("report.json"), format!("{encoded}\n").as_bytes())?;
    let report = folder.join("report.md");
    output_file::write(&report, summary.markdown().as_bytes())?;
    if json {
        out::line(serde_json::json!(summary));
    } else {
        out::line(format!("\n{}", summary.markdown().trim_end()));
        remark!("wrote {}, report.json beside it", report.display());
    }
    Ok(())
}
