//! What demos of learning in rounds share: peers that learn on this machine, and the same in this process, in other ways too.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use mingle_builtin::errors;
use mingle_lab::solving::{Conditions, learn_here};
use mingle_peer::error::Context;
use mingle_peer::solving::Explain;
use mingle_peer::stop::StopRequests;
use mingle_peer::{Error, ErrorKind, Home, Result, plan};
use mingle_planner::Plan;
use mingle_plot::{Horizontal, Panel, Scale, Series, Weight, line_chart};
use mingle_solving::{Learned, Problem, RoundRecord, RoundTask};
use serde::Serialize;

use super::{Ended, ProblemEvent, ProgressReport, Swarm};
use crate::options::PeerProgram;
use crate::output::Output;
use crate::plan::bind_to_new_homes;

/// Rounds of the peers that are told of at most.
const MOST_TOLD: u64 = 12;

/// One way to learn.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Its name, as a method of the report.
    pub name: &'static str,
    /// The lines of the problem file that choose it.
    pub lines: &'static str,
}

/// What is learned.
pub(super) struct RoundDemo {
    pub(super) schema: &'static str,
    /// The first line of the problem file, and all others but those of a way.
    pub(super) question: &'static str,
    pub(super) lines: String,
    pub(super) rounds: u64,
    /// The last one is that of the peers; all are learned in this process as well.
    pub(super) ways: &'static [Way],
    /// What is told of a round; the last one is drawn.
    pub(super) metrics: &'static [&'static str],
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct RoundsReport {
    schema: &'static str,
    /// Peer processes.
    pub peers: usize,
    /// From the start of the first process to the end of the last.
    pub seconds: f64,
    /// The largest resident memory of any peer, where the system tells.
    pub peak_resident_bytes: Option<u64>,
    /// By way: the mean of each metric over all peers.
    pub methods: BTreeMap<String, BTreeMap<String, f64>>,
    /// Peers that ended with other bits than in one process.
    pub different: Vec<String>,
    /// What each peer learned.
    pub learned: Vec<Learned>,
    /// By way, as it went in one process.
    #[serde(skip)]
    pub(super) in_one_process: Vec<Vec<Learned>>,
}

impl RoundDemo {
    fn problem(&self, way: &Way) -> String {
        format!("# {}\n{}rounds = {}\n{}", self.question, way.lines, self.rounds, self.lines)
    }

    /// What the problem file says with a way, in the demo's folder.
    fn task(&self, way: &Way, output: &Output) -> Result<Arc<dyn RoundTask>> {
        let task = mingle_problems::task(&self.problem(way), &output.problem(), None)
            .map_err(|error| Error::of(ErrorKind::BadInput, error))?;
        task.ok_or_else(|| Error::new(ErrorKind::Unexpected, "the problem of the demo is learned in no rounds"))
    }

    /// Writes the problem file, has the peers learn, and compares with one process.
    ///
    /// # Errors
    /// What any of the peers runs into.
    pub(super) async fn learn(
        &self,
        mut plan: Plan,
        output: &Output,
        program: PeerProgram,
        tell: &dyn Fn(&ProblemEvent<'_>),
        stop: &mut StopRequests,
    ) -> Result<(Vec<Home>, RoundsReport)> {
        let Some(own) = self.ways.last() else {
            return Err(Error::new(ErrorKind::Unexpected, "a demo without a way to learn"));
        };
        // What the rounds cannot be is said once, and not by every peer.
        let title = format!("{}, {} peers", self.task(own, output)?.title(), plan.node_count());
        output.write("problem.toml", self.problem(own).as_bytes())?;
        let homes = bind_to_new_homes(&mut plan, output)?;
        plan::write(&plan, &output.plan())?;
        let progress = ProgressReport { tell, metrics: self.metrics, each: self.rounds.div_ceil(MOST_TOLD) };
        let ended = Swarm::run(output, progress, &homes, program, stop).await?;
        let report = self.report(&plan, &homes, output, &ended)?;
        output.write("curves.svg", self.curves(&title, &report.in_one_process).as_bytes())?;
        Ok((homes, report))
    }

    fn report(&self, plan: &Plan, homes: &[Home], output: &Output, ended: &Ended) -> Result<RoundsReport> {
        let learned = homes.iter().map(read).collect::<Result<Vec<Learned>>>()?;
        let in_one_process = self.ways.iter().map(|way| self.in_one_process(plan, way, output));
        let in_one_process = in_one_process.collect::<Result<Vec<Vec<Learned>>>>()?;
        let mut different = Vec::new();
        if let Some(expected) = in_one_process.last() {
            for (((name, _), home), (own, expected)) in plan.nodes().zip(homes).zip(learned.iter().zip(expected)) {
                if !is_same(own, home, expected)? {
                    different.push(name.to_owned());
                }
            }
        }
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
            learned,
            in_one_process,
        })
    }

    /// The same with a way, all peers in this process.
    fn in_one_process(&self, plan: &Plan, way: &Way, output: &Output) -> Result<Vec<Learned>> {
        let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
        let problem = Problem::of_rounds(self.task(way, output)?, Arc::new(names));
        let schedule = Arc::new(plan::schedule(plan)?);
        let communication = Arc::new(problem.communication(plan, schedule).map_err(Explain::explain)?);
        let found = learn_here(&problem, &communication, Conditions { loss: 0.0, seed: 0 }, |_| {});
        Ok(found.map_err(errors::swarm_error)?.learned)
    }

    /// The mean over peers after each round, a line for each way.
    fn curves(&self, title: &str, by_way: &[Vec<Learned>]) -> String {
        let metric = self.metrics.last().copied().unwrap_or_default();
        let points = |learned: &Learned| -> Vec<(f64, f64)> {
            let point = |record: &RoundRecord| Some((record.round as f64, learned.metric(&record.mean, metric)?));
            learned.history.iter().filter_map(point).collect()
        };
        let series = |(way, learned): (&Way, &Vec<Learned>)| Series {
            name: way.name.to_owned(),
            points: learned.first().map(points).unwrap_or_default(),
            weight: Weight::Bold,
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
    /// The mean of a metric with a way.
    pub fn mean(&self, way: &str, metric: &str) -> Option<f64> {
        self.methods.get(way)?.get(metric).copied()
    }

    /// Whether peers learned what one process learns.
    ///
    /// # Errors
    /// Some ended with something else.
    pub fn check(&self) -> Result {
        if self.different.is_empty() {
            return Ok(());
        }
        let message = format!("{} learned something else than in one process", self.different.join(", "));
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

/// Whether a peer has measured in every round, and written, what it would have in one process.
fn is_same(own: &Learned, home: &Home, expected: &Learned) -> Result<bool> {
    // What was written and read again, on both sides.
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
