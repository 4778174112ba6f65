//! `mingle demo --problem node-classification`: the results of all clients, for people.

use mingle_demo::{ClientScores, JUDGED, NodesDemo, NodesReport, ProblemEvent, ProblemOptions, WEIGHTS, Way};
use mingle_peer::Result;

use super::tell;
use crate::command::demo::this_program;
use crate::{event_loop, out, signals};

/// Runs the clients, and prints the report.
pub(super) fn execute(options: &ProblemOptions, json: bool) -> Result {
    let demo = NodesDemo::prepare(options)?;
    if !json {
        out::line(demo.introduction());
    }
    let tell = |event: &ProblemEvent<'_>| tell(event, json);
    let report = event_loop::run(async { demo.run(this_program()?, &tell, &mut signals::forward()?).await })?;
    if json {
        out::line(serde_json::json!(report));
    } else {
        print(&report, &demo);
    }
    report.report.check()
}

fn print(report: &NodesReport, demo: &NodesDemo) {
    let ways = demo.ways();
    let means: Vec<Option<f64>> = ways.iter().map(|way| report.report.mean(way.name, JUDGED)).collect();
    let names: Vec<String> = ways.iter().map(|way| format!("{:>9}", way.name)).collect();
    out::line("\nAccuracy on test nodes, of the model that each client's own validation nodes choose");
    out::line(format!("{:<12}{:>7}{:>11}{}", "client", "nodes", "homophily", names.concat()));
    for ClientScores { client, nodes, homophily, accuracy } in &report.clients {
        out::line(format!("{client:<12}{nodes:>7}{:>11}{}", number(*homophily), cells(accuracy)));
    }
    out::line(format!("{:<12}{:>7}{:>11}{}", "mean", "", "", cells(&means)));
    out::line(format!("\n{}", verdict(ways, &means)));
    out::line(format!("\n{}", report.report.end()));
    let folder = demo.output().root().display();
    out::line(format!(
        "wrote {folder}/report.json, curves.svg and {WEIGHTS}, who takes how much of whom; over seeds:\n  \
         mingle evaluate examples/evaluation/nodes-planted.toml"
    ));
}

/// A sentence on whether sharing helped; the first way is that of learning alone.
fn verdict(ways: &[Way], means: &[Option<f64>]) -> String {
    let shared = ways.iter().zip(means).skip(1).filter_map(|(way, mean)| Some((way.name, (*mean)?)));
    let best = shared.reduce(|best, next| if next.1 > best.1 { next } else { best });
    match (means.first().copied().flatten(), best) {
        (Some(alone), Some((name, best))) if best > alone => {
            format!("{name} is {:.4} above learning alone; with one seed that may be chance.", best - alone)
        }
        (Some(alone), Some((name, best))) => {
            format!("Nothing beats learning alone here: the next best, {name}, is {:.4} below it.", alone - best)
        }
        _ => "Some way could not be judged: no client has test nodes.".to_owned(),
    }
}

fn cells(values: &[Option<f64>]) -> String {
    values.iter().map(|value| format!("{:>9}", number(*value))).collect()
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_sharing_is_what_was_measured() {
        let ways = ["alone", "FedAvg", "angle"].map(|name| Way { name, lines: "" });
        let verdict = |means: [Option<f64>; 3]| verdict(&ways, &means);
        assert!(verdict([Some(0.5), Some(0.25), Some(0.375)]).contains("angle, is 0.1250 below"));
        assert!(verdict([Some(0.5), Some(0.5), Some(0.25)]).contains("FedAvg, is 0.0000 below"));
        assert!(verdict([Some(0.5), Some(0.75), Some(0.25)]).contains("FedAvg is 0.2500 above"));
        assert!(verdict([None, Some(0.5), None]).contains("could not be judged"));
    }
}
