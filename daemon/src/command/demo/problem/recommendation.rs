//! `mingle demo --problem recommendation`: the results of all shops, for people.

use mingle_demo::{ProblemEvent, ProblemOptions, RecommendationDemo, RoundsReport};
use mingle_peer::Result;
use mingle_recommend::METRICS;

use super::tell;
use crate::command::demo::this_program;
use crate::{event_loop, out, signals};

/// Runs the shops, and prints the report.
pub(super) fn execute(options: &ProblemOptions, json: bool) -> Result {
    let demo = RecommendationDemo::prepare(options)?;
    if !json {
        out::line(demo.introduction());
    }
    let tell = |event: &ProblemEvent<'_>| tell(event, json);
    let report = event_loop::run(async { demo.run(this_program()?, &tell, &mut signals::forward()?).await })?;
    if json {
        out::line(serde_json::json!(report));
    } else {
        print(&report, &demo)?;
    }
    report.check()
}

fn print(report: &RoundsReport, demo: &RecommendationDemo) -> Result {
    out::line(format!("\n{}\n\n{}", report.means_table(demo.ways(), &METRICS[1..]), report.end()));
    let recommender = demo.recommender()?;
    let folder = demo.output().root().display();
    out::line(format!(
        "wrote {folder}/report.json, {folder}/curves.svg; what a customer of the first shop might want next:"
    ));
    let user = recommender.users().first().map_or("", String::as_str);
    out::line(format!("  mingle recommend --home {} --user {user}", demo.output().home(0).display()));
    Ok(())
}
