//! `mingle demo --problem recommendation`: the results of all shops, for people.

use mingle_demo::{ProblemDemo, ProblemOptions, RecommendationDemo, RoundsReport};
use mingle_peer::Result;
use mingle_recommend::METRICS;

use super::run;
use crate::out;

/// Runs the shops, and prints the report.
pub(super) fn execute(options: &ProblemOptions, json: bool) -> Result {
    let demo = RecommendationDemo::prepare(options)?;
    run(&demo, json, |report| print(report, &demo))?.check()
}

fn print(report: &RoundsReport, demo: &RecommendationDemo) -> Result {
    let ways = demo.ways();
    out::line(format!("\n{}\n\n{}", report.means_table(ways, &METRICS[1..6]), report.verdict(ways, "ndcg@20")));
    out::line("Each shop's model is that of its best round on interactions held out for that.");
    out::line(report.end());
    let recommender = demo.recommender()?;
    let folder = demo.output().root().display();
    out::line(format!(
        "wrote {folder}/report.json, {folder}/curves.svg; what a customer of the first shop might want next:"
    ));
    let user = recommender.users().first().map_or("", String::as_str);
    out::line(format!("  mingle recommend --home {} --user {user}", demo.output().home(0).display()));
    Ok(())
}
