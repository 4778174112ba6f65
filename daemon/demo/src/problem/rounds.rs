//! The common part of demos of learning in rounds: peers that learn on this machine, and all methods in this process.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use mingle_builtin::errors;
use mingle_lab::solving::{Conditions, learn_here};
use mingle_peer::error::Context;
use mingle_peer::solving::Explain;
use mingle_peer::stop::StopRequests;
use mingle_peer::{Error, ErrorKind, Home, Result, plan, units};
use mingle_planner::Plan;
use mingle_plot::{Horizontal, LineWeight, Panel, Scale, Series, line_chart};
use mingle_solving::{Learned, Problem, RoundRecord, RoundTask};
use serde::Serialize;

use super::{FinishedPeers, ProblemEvent, ProgressReport, Swarm, Tell};
use crate::options::PeerProgram;
use crate::output::Output;
use crate::plan::bind_to_new_homes;

/// The most rounds of the peers that are reported.
const MOST_TOLD: u64 = 12;

/// A method of learning.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Its name, as a method of the report.
    pub name: &'static str,
    /// The lines of the problem file that choose it.
    pub lines: &'static str,
}

/// The yardstick for the results of the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Each peer's results with those of the same method in one process.
    OneProcess,
    /// This file of each peer with that of the first: noise is drawn anew in each run, and is the same for all.
    AmongPeers(&'static str),
}

/// The task of a demo of learning in rounds.
pub(super) struct RoundDemo {
    pub(super) schema: &'static str,
    /// The comment in the first line of the problem file.
    pub(super) question: &'static str,
    /// The files of data that the problem file names, by their names in the demo's folder.
    pub(super) files: Vec<(String, String)>,
    pub(super) lines: String,
    pub(super) rounds: u64,
    /// The methods. The last one is that of the peers. All are run in this process as well; that of the peers is not where
    /// noise is drawn anew.
    pub(super) ways: &'static [Way],
    /// The yardstick for the results of the peers.
    pub(super) comparison: Comparison,
    /// The metrics of a round to report; the last one is drawn.
    pub(super) metrics: &'static [&'static str],
}

/// The common part of all reports of learning in rounds.
#[derive(Debug, Serialize)]
pub struct RoundsReport {
    schema: &'static str,
    /// Peer processes.
    pub peers: usize,
    /// Seconds from the start of the first process to the end of the last.
    pub seconds: f64,
    /// The largest resident memory of any peer, where the system reports it.
    pub peak_resident_bytes: Option<u64>,
    /// For each method, the mean of each metric over all peers.
    pub methods: BTreeMap<String, BTreeMap<String, f64>>,
    /// Peers whose results differ from those in one process, or where noise is drawn from those of the first peer.
    pub different: Vec<String>,
    /// The yardstick, in words.
    pub compared_with: &'static str,
    /// The result of each peer.
    pub learned: Vec<Learned>,
    /// The results of each method: in one process, or those of the peers where noise is drawn anew.
    #[serde(skip)]
    pub(super) in_one_process: Vec<Vec<Learned>>,
}

impl RoundDemo {
    fn problem(&self, way: &Way) -> String {
        format!("# {}\n{}rounds = {}\n{}", self.question, way.lines, self.rounds, self.lines)
    }

    /// The task of the problem file with a method, in the demo's folder.
    fn task(&self, way: &Way, output: &Output) -> Result<Arc<dyn RoundTask>> {
        let task = mingle_problems::task(&self.problem(way), &output.problem(), None)
            .map_err(|error| Error::of(ErrorKind::BadInput, error))?;
        task.ok_or_else(|| Error::new(ErrorKind::Unexpected, "the problem of the demo is learned in no rounds"))
    }

    /// Makes the folder with the problem file, the data and the homes, runs the peers, and compares them with one
    /// process.
    ///
    /// # Errors
    /// Any error of a peer.
    pub(super) async fn learn(
        &self,
        mut plan: Plan,
        output: &Output,
        program: PeerProgram,
        tell: Tell<'_>,
        stop: &mut StopRequests,
    ) -> Result<(Vec<Home>, RoundsReport)> {
        let Some(own) = self.ways.last() else {
            return Err(Error::new(ErrorKind::Unexpected, "a demo without a way to learn"));
        };
        // An invalid number of rounds is reported once here, and not by every peer.
        let title = format!("{}, {} peers", self.task(own, output)?.title(), plan.node_count());
        output.make()?;
        for (name, text) in &self.files {
            output.write_below(name, text.as_bytes())?;
        }
        output.write("problem.toml", self.problem(own).as_bytes())?;
        let homes = bind_to_new_homes(&mut plan, output)?;
        plan::write(&plan, &output.plan())?;
        let progress = ProgressReport { tell, metrics: self.metrics, each: self.rounds.div_ceil(MOST_TOLD) };
        let ended = Swarm::run(output, progress, &homes, program, stop).await?;
        tell(&ProblemEvent::Comparing { methods: self.ways.len() });
        let report = self.report(&plan, &homes, output, &ended)?;
        output.write("curves.svg", self.curves(&title, &report.in_one_process).as_bytes())?;
        Ok((homes, report))
    }

    fn report(&self, plan: &Plan, homes: &[Home], output: &Output, ended: &FinishedPeers) -> Result<RoundsReport> {
        let learned = homes.iter().map(read).collect::<Result<Vec<Learned>>>()?;
        let of_peers = self.ways.len().saturating_sub(1);
        let results = |(at, way): (usize, &Way)| match self.comparison {
            Comparison::AmongPeers(_) if at == of_peers => Ok(learned.clone()),
            _ => self.in_one_process(plan, way, output),
        };
        let in_one_process = self.ways.iter().enumerate().map(results).collect::<Result<Vec<Vec<Learned>>>>()?;
        let different = match (self.comparison, in_one_process.last()) {
            (Comparison::AmongPeers(file), _) => unlike_the_first(plan, homes, file)?,
            (Comparison::OneProcess, Some(expected)) => unlike_expected(plan, homes, &learned, expected)?,
            (Comparison::OneProcess, None) => Vec::new(),
        };
        let means = |(way, learned): (&Way, &Vec<Learned>)| {
            (way.name.to_owned(), learned.first().map(means).unwrap_or_default())
        };
        Ok(RoundsReport {
            schema: self.schema,
            peers: homes.len(),
            seconds: ended.took.as_secs_f64(),
            peak_resident_bytes: ended.peak_bytes,
            methods: self.ways.iter().zip(&in_one_process).map(means).collect(),
            different,
            compared_with: match self.comparison {
                Comparison::OneProcess => "the bits of one process",
                Comparison::AmongPeers(_) => "the bits of one model",
            },
            learned,
            in_one_process,
        })
    }

    /// Learns with a method, all peers in this process.
    fn in_one_process(&self, plan: &Plan, way: &Way, output: &Output) -> Result<Vec<Learned>> {
        let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
        let problem = Problem::of_rounds(self.task(way, output)?, Arc::new(names));
        let schedule = Arc::new(plan::schedule(plan)?);
        let communication = Arc::new(problem.communication(plan, schedule).map_err(Explain::explain)?);
        let found = learn_here(&problem, &communication, Conditions::default(), |_| {});
        Ok(found.map_err(errors::swarm_error)?.learned)
    }

    /// A line chart of the mean over peers after each round, a line for each method.
    fn curves(&self, title: &str, by_way: &[Vec<Learned>]) -> String {
        let metric = self.metrics.last().copied().unwrap_or_default();
        let points = |learned: &Learned| -> Vec<(f64, f64)> {
            let point = |record: &RoundRecord| Some((record.round as f64, learned.metric(&record.mean, metric)?));
            learned.history.iter().filter_map(point).collect()
        };
        let series = |(way, learned): (&Way, &Vec<Learned>)| Series {
            name: way.name.to_owned(),
            points: learned.first().map(points).unwrap_or_default(),
            weight: LineWeight::Bold,
        };
        let panel = Panel {
            y_label: format!("{}, mean over peers", metric.replace('_', " ")),
            scale: Scale::Linear,
            bands: Vec::new(),
            series: self.ways.iter().zip(by_way).map(series).collect(),
            references: Vec::new(),
        };
        line_chart(title, Horizontal { label: "round", scale: Scale::Linear }, &[panel], &[])
    }
}

impl RoundsReport {
    /// The mean of a metric with a method.
    pub fn mean(&self, way: &str, metric: &str) -> Option<f64> {
        self.methods.get(way)?.get(metric).copied()
    }

    /// A table of the means of these metrics over all peers, a row for each method.
    pub fn means_table(&self, ways: &[Way], metrics: &[&str]) -> String {
        let row = |name: &str, cells: Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>18}")).collect();
            format!("{name:<14}{}", cells.concat())
        };
        let cell = |way: &Way, metric: &str| {
            self.mean(way.name, metric).map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
        };
        let head = row("mean", metrics.iter().map(|name| name.replace('_', " ")).collect());
        let of_way = |way: &Way| row(way.name, metrics.iter().map(|metric| cell(way, metric)).collect());
        [head].into_iter().chain(ways.iter().map(of_way)).collect::<Vec<String>>().join("\n")
    }

    /// The sentence on sharing: what it gained or lost in this metric; the first method is learning alone.
    pub fn verdict(&self, ways: &[Way], metric: &str) -> String {
        let means: Vec<Option<f64>> = ways.iter().map(|way| self.mean(way.name, metric)).collect();
        let shared = ways.iter().zip(&means).skip(1).filter_map(|(way, mean)| Some((way.name, (*mean)?)));
        let best = shared.reduce(|best, next| if next.1 > best.1 { next } else { best });
        match (means.first().copied().flatten(), best) {
            (Some(alone), Some((name, best))) if best > alone => {
                format!("{name} is {:.4} above learning alone; with one seed that may be chance.", best - alone)
            }
            (Some(alone), Some((name, best))) => {
                format!("Nothing beats learning alone here: the next best, {name}, is {:.4} below it.", alone - best)
            }
            _ => format!("Some way could not be judged: it has no {metric}."),
        }
    }

    /// The time, and whether the results are those that they are compared with, in a line.
    pub fn end(&self) -> String {
        let memory = |bytes| format!(", up to {:.0} MB of memory each", units::megabytes(bytes));
        let memory = self.peak_resident_bytes.map(memory).unwrap_or_default();
        let word = if self.different.is_empty() { "all" } else { "NOT" };
        format!("{} peers, {:.1} s{memory}; {word} with {}", self.peers, self.seconds, self.compared_with)
    }

    /// Checks that peers learned the same as one process.
    ///
    /// # Errors
    /// Some results differ.
    pub fn check(&self) -> Result {
        if self.different.is_empty() {
            return Ok(());
        }
        let message = format!("{}: not with {}", self.different.join(", "), self.compared_with);
        Err(Error::new(ErrorKind::Integrity, message).hint("please report this with the demo's folder"))
    }
}

/// Writes `report.json`.
pub(super) fn write(report: &impl Serialize, output: &Output) -> Result {
    let text = serde_json::to_string_pretty(report).context(ErrorKind::Unexpected, "cannot encode the report")?;
    output.write("report.json", format!("{text}\n").as_bytes())
}

fn read(home: &Home) -> Result<Learned> {
    let path = home.root().join("learned.json");
    let doing = || format!("cannot read {}", path.display());
    let text = fs::read_to_string(&path).context(ErrorKind::Unexpected, doing())?;
    serde_json::from_str(&text).context(ErrorKind::Unexpected, doing())
}

/// The names of peers that learned something else than in one process.
fn unlike_expected(plan: &Plan, homes: &[Home], learned: &[Learned], expected: &[Learned]) -> Result<Vec<String>> {
    let mut different = Vec::new();
    for (((name, _), home), (own, expected)) in plan.nodes().zip(homes).zip(learned.iter().zip(expected)) {
        if !is_same(own, home, expected)? {
            different.push(name.to_owned());
        }
    }
    Ok(different)
}

/// The names of peers whose file is another than that of the first.
fn unlike_the_first(plan: &Plan, homes: &[Home], file: &str) -> Result<Vec<String>> {
    let read = |home: &Home| {
        let path = home.root().join(file);
        fs::read(&path).context(ErrorKind::Unexpected, format!("cannot read {}", path.display()))
    };
    let mut different = Vec::new();
    let first = homes.first().map(read).transpose()?;
    for ((name, _), home) in plan.nodes().zip(homes) {
        if Some(read(home)?) != first {
            different.push(name.to_owned());
        }
    }
    Ok(different)
}

/// Returns `true` if a peer measured in every round, and wrote, the same as it would have in one process.
fn is_same(own: &Learned, home: &Home, expected: &Learned) -> Result<bool> {
    // The expected result is written and read again, as the peer's was.
    let text = serde_json::to_string(expected).context(ErrorKind::Unexpected, "cannot encode what was learned")?;
    let again: Learned = serde_json::from_str(&text).context(ErrorKind::Unexpected, "cannot read what was learned")?;
    let is_written =
        |(name, bytes): &(String, Vec<u8>)| fs::read(home.root().join(name)).is_ok_and(|found| found == *bytes);
    Ok(*own == again && expected.files.iter().all(is_written))
}

fn means(learned: &Learned) -> BTreeMap<String, f64> {
    let values = learned.best().map(|best| best.mean.clone()).unwrap_or_default();
    learned.metrics.iter().zip(values).filter_map(|(name, value)| Some((name.clone(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_sharing_is_what_was_measured() {
        let ways = ["alone", "FedAvg", "angle"].map(|name| Way { name, lines: "" });
        let verdict = |means: [Option<f64>; 3]| {
            let method = |(way, mean): (&Way, Option<f64>)| {
                (way.name.to_owned(), mean.map(|mean| ("ndcg".to_owned(), mean)).into_iter().collect())
            };
            let report = RoundsReport {
                schema: "test",
                peers: 1,
                seconds: 0.0,
                peak_resident_bytes: None,
                methods: ways.iter().zip(means).map(method).collect(),
                different: Vec::new(),
                compared_with: "",
                learned: Vec::new(),
                in_one_process: Vec::new(),
            };
            report.verdict(&ways, "ndcg")
        };
        assert!(verdict([Some(0.5), Some(0.25), Some(0.375)]).contains("angle, is 0.1250 below"));
        assert!(verdict([Some(0.5), Some(0.5), Some(0.25)]).contains("FedAvg, is 0.0000 below"));
        assert!(verdict([Some(0.5), Some(0.75), Some(0.25)]).contains("FedAvg is 0.2500 above"));
        assert!(verdict([None, Some(0.5), None]).contains("could not be judged"));
    }
}
