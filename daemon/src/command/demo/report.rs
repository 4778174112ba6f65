//! What came of the demo: the table, the books, the files, the plot.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mingle_models::{Checkpoint, ObjectiveKind, SampleShape, Task};
use mingle_net::traffic::Encoding;
use mingle_peer::audit::{Report as DiskReport, weight_or_unknown};
use mingle_peer::error::Context;
use mingle_peer::results::Summary;
use mingle_peer::training::PrivacySpending;
use mingle_peer::units::{self, exact_weight as weight};
use mingle_peer::{Error, ErrorKind, Home, Result};
use mingle_plot::{Horizontal, Mark, Panel, Reference, Scale, Series, Weight};
use mingle_protocol::{AuditReport, NodeId};
use serde::Serialize;

use super::Demo;
use super::baselines::Baselines;
use super::joining::Joined;
use super::metric;
use super::output::Output;
use super::tally::Row;
use crate::command::audit;
use crate::out;

/// How one peer ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerResult {
    pub(crate) accuracy: f64,
    pub(crate) sent_bytes: u64,
    pub(crate) peak_resident_bytes: Option<u64>,
}

/// Everything there is to say in the end.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema: &'static str,
    peers: usize,
    killed: Vec<usize>,
    swarm: SwarmResult,
    /// What a token of the held-out text takes, where a text was learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    bits_per_token: Option<Bits>,
    without_swarm: Option<Baselines>,
    seconds: f64,
    /// How the peers came together.
    joined: Option<Joined>,
    sent_bytes: u64,
    /// How much privacy is spent, of the peer that spent most, where changes are private.
    #[serde(skip_serializing_if = "Option::is_none")]
    privacy: Option<PrivacySpending>,
    /// How models were encoded, and what that saved.
    encoding: Encoding,
    peak_resident_bytes_per_peer: Option<u64>,
    audit: AuditReport,
    /// The audit of the disks, of the dead and the living, where the peers kept records.
    #[serde(skip_serializing_if = "Option::is_none")]
    disks: Option<DiskReport>,
    /// The share of the time in which parcels moved that was spent training, where timelines were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) communication_hidden: Option<f64>,
    #[serde(skip)]
    rows: Vec<Row>,
    #[serde(skip)]
    kill_marks: Vec<(usize, u64)>,
    #[serde(skip)]
    output: PathBuf,
    #[serde(skip)]
    objective: ObjectiveKind,
}

/// What a token of a text takes, in bits, with the models of all survivors.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Bits {
    /// What a token is.
    token: &'static str,
    mean: f64,
    best: f64,
    worst: f64,
}

impl Bits {
    fn of(task: &Task, summaries: &[(usize, Summary)]) -> Option<Self> {
        let SampleShape::Text { tokens } = task.shape() else { return None };
        let bits: Vec<f64> = summaries.iter().filter_map(|(_, summary)| summary.metrics.get(tokens.metric())).collect();
        let best = bits.iter().copied().fold(f64::INFINITY, f64::min);
        let worst = bits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (!bits.is_empty()).then(|| Self { token: tokens.singular(), mean: mean(&bits), best, worst })
    }
}

/// The survivors' final models.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct SwarmResult {
    mean_accuracy: f64,
    best_accuracy: f64,
    worst_accuracy: f64,
    /// Root mean square distance of the final models from their mean, relative to its length.
    disagreement: f64,
}

impl Report {
    /// Gathers what the peers left in their homes.
    pub(crate) fn new(
        demo: &Demo<'_>,
        task: &Task,
        homes: &[Home],
        without_swarm: Option<Baselines>,
        seconds: f64,
    ) -> Result<Self> {
        let survivors: Vec<usize> = (0..homes.len()).filter(|&node| !demo.processes.was_killed(node)).collect();
        let results: Vec<PeerResult> = survivors.iter().filter_map(|&node| demo.results[node]).collect();
        let summaries = survivors.iter().map(|&node| Ok((node, Summary::read(&homes[node].summary())?)));
        let summaries = summaries.collect::<Result<Vec<(usize, Summary)>>>()?;
        let bits_per_token = Bits::of(task, &summaries);
        let mut encoding = Encoding::of(demo.arguments.codec);
        summaries.iter().for_each(|(_, summary)| encoding.add(&summary.encoding));
        let spendings = summaries.iter().filter_map(|(_, summary)| summary.privacy);
        let privacy = spendings.max_by(|one, other| one.epsilon.total_cmp(&other.epsilon));
        let books: Vec<_> = summaries.into_iter().map(|(node, summary)| (node_id(node), summary.ledger)).collect();
        let models = survivors.iter().map(|&node| read_model(&homes[node], task)).collect::<Result<Vec<_>>>()?;
        let keeps_records = super::keeps_records(demo.arguments);
        let disks = keeps_records.then(|| audit::examine(&[demo.output.root().join("peers")], None)).transpose()?;
        let accuracies: Vec<f64> = results.iter().map(|result| result.accuracy).collect();
        Ok(Self {
            schema: "mingle.demo/1",
            peers: homes.len(),
            killed: demo.killed_at.iter().map(|(node, _)| *node).collect::<BTreeSet<_>>().into_iter().collect(),
            swarm: SwarmResult {
                mean_accuracy: mean(&accuracies),
                best_accuracy: accuracies.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                worst_accuracy: accuracies.iter().copied().fold(f64::INFINITY, f64::min),
                disagreement: spread(&models),
            },
            bits_per_token,
            without_swarm,
            seconds,
            joined: demo.joining.summary(),
            sent_bytes: results.iter().map(|result| result.sent_bytes).sum(),
            privacy,
            encoding,
            peak_resident_bytes_per_peer: results.iter().filter_map(|result| result.peak_resident_bytes).max(),
            audit: mingle_protocol::audit(&books, homes.len()),
            disks,
            communication_hidden: None,
            rows: demo.tally.rows().to_vec(),
            kill_marks: demo.killed_at.clone(),
            output: demo.output.root().to_path_buf(),
            objective: demo.arguments.task,
        })
    }

    /// Writes the plot and the summary into the demo's folder.
    pub(crate) fn write(&self, output: &Output) -> Result {
        output.write("curves.svg", self.plot().as_bytes())?;
        let text = metric::to_pretty_json(self, self.objective)?;
        output.write("summary.json", format!("{text}\n").as_bytes())
    }

    /// Prints the table, or one object.
    pub(crate) fn print(&self, json: bool) {
        if json {
            if let Ok(text) = metric::to_json(self, self.objective) {
                out::line(text);
            }
            return;
        }
        out::line(self.table());
        out::line(self.disks.as_ref().map_or_else(|| self.weights(), audit::sum));
        let mut files = vec!["plan.json", "curves.svg", "events.jsonl", "summary.json", "peers/*/model.safetensors"];
        if let Some(hidden) = self.communication_hidden {
            out::line(format!("while parcels moved, peers trained for {:.0} % of the time", 100.0 * hidden));
            files.insert(2, "timeline.svg");
        }
        let root = self.output.display();
        out::line(format!("\nwrote {root}/: {}", files.join(", ")));
        let audit = if self.disks.is_some() { format!("mingle audit {root}   ") } else { String::new() };
        out::line(format!("next  {audit}mingle plan show {root}/plan.json   or three machines: mingle run --help"));
    }

    /// Fails if the books do not balance: then something is wrong with this program, and it must not look well.
    pub(crate) fn check(&self) -> Result {
        if let Some(failure) = self.disks.as_ref().and_then(DiskReport::failure) {
            return Err(failure);
        }
        if self.audit.is_exact() {
            return Ok(());
        }
        let disputes: Vec<String> = self.audit.disputes.iter().map(ToString::to_string).collect();
        Err(Error::new(ErrorKind::Integrity, format!("the mass ledger does not balance: {}", disputes.join("; ")))
            .hint("please report this with the demo's folder"))
    }

    fn table(&self) -> String {
        let Self { swarm, without_swarm, .. } = self;
        let memory = self.peak_resident_bytes_per_peer.map_or_else(String::new, |bytes| {
            format!(", {:.0} MB of memory per peer at most", units::megabytes(bytes))
        });
        let mut lines = vec![format!("\n{:<24}{:>8}{:>8}{:>8}", self.measured(), "mean", "best", "worst")];
        if let Some(alone) = without_swarm {
            lines.push(row("each peer alone", alone.mean_alone(), alone.best_alone(), alone.worst_alone()));
        }
        lines.push(row("this swarm", swarm.mean_accuracy, swarm.best_accuracy, swarm.worst_accuracy));
        if let Some(Bits { token, mean, best, worst }) = &self.bits_per_token {
            lines.push(row(&format!("  in bits per {token}"), *mean, *best, *worst));
        }
        if let Some(together) = without_swarm {
            lines.push(format!("{:<24}{:>8.3}", "all data in one place", together.central));
        }
        let encoding = self.encoding.words(self.sent_bytes).map(|words| format!(" ({words})")).unwrap_or_default();
        lines.push(format!(
            "\n{:.1} s, {:.1} MB moved{encoding}{memory}; the final models differ by {:.1e}",
            self.seconds,
            units::megabytes(self.sent_bytes),
            swarm.disagreement
        ));
        if let Some(PrivacySpending { settings, changes, epsilon, .. }) = &self.privacy {
            let (most, delta) = (settings.epsilon_max(), settings.delta());
            lines.push(format!("privacy: each peer spent epsilon {epsilon:.3} of {most} at delta {delta:e} at most, for {changes} changes"));
        }
        lines.join("\n")
    }

    /// The ledger, in a sentence a person can check.
    fn weights(&self) -> String {
        let audit = &self.audit;
        let mut parts = vec![format!("{} held by the living", weight(audit.held))];
        if audit.in_flight > 0 {
            parts.push(format!("{} in flight between them", weight(audit.in_flight)));
        }
        if audit.in_doubt > 0 {
            parts.push(format!("{} on its way to the dead", weight(audit.in_doubt)));
        }
        for peer in &audit.absent {
            parts.push(format!("{} gone with peer {}", weight_or_unknown(peer.held, self.peers), peer.id));
        }
        if audit.written_off > 0 {
            parts.push(format!("{} written off", weight(audit.written_off)));
        }
        let verdict = if audit.is_exact() { "exactly" } else { "NOT" };
        format!("sum of weights: {verdict} {} = {}", self.peers, parts.join(" + "))
    }

    /// Such as `test accuracy`.
    fn measured(&self) -> String {
        format!("test {}", metric::name(self.objective))
    }

    fn plot(&self) -> String {
        let points = |value: &dyn Fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
            self.rows.iter().filter_map(|row| Some((round(row.round), value(row)?))).collect()
        };
        let series = |name: &str, weight, points| Series { name: name.to_owned(), points, weight };
        let accuracy = Panel {
            y_label: self.measured(),
            scale: Scale::Linear,
            bands: Vec::new(),
            series: vec![
                series("mean over the peers", Weight::Bold, points(&|row| Some(row.mean_accuracy))),
                series("worst peer", Weight::Thin, points(&|row| Some(row.worst_accuracy))),
            ],
            references: self.without_swarm.iter().flat_map(references).collect(),
        };
        let disagreement = Panel {
            y_label: "disagreement".to_owned(),
            scale: Scale::Log,
            bands: Vec::new(),
            series: vec![series("mean over the peers", Weight::Bold, points(&|row| row.disagreement))],
            references: Vec::new(),
        };
        let marks: Vec<Mark> = self
            .kill_marks
            .iter()
            .map(|(node, at)| Mark { x: round(*at), label: format!("peer {node} killed") })
            .collect();
        let title = format!("{} peers, one model, no server", self.peers);
        let x = Horizontal { label: "round", scale: Scale::Linear };
        mingle_plot::line_chart(&title, x, &[accuracy, disagreement], &marks)
    }
}

/// What the swarm's accuracy is to be seen against.
fn references(without_swarm: &Baselines) -> [Reference; 2] {
    [
        Reference { value: without_swarm.central, label: "all data in one place".to_owned() },
        Reference { value: without_swarm.best_alone(), label: "best peer alone".to_owned() },
    ]
}

fn read_model(home: &Home, task: &Task) -> Result<Vec<f32>> {
    Checkpoint::load(&home.model(), task)
        .map(|checkpoint| checkpoint.parameters)
        .context(ErrorKind::Integrity, "a peer's model cannot be read back")
}

fn row(name: &str, mean: f64, best: f64, worst: f64) -> String {
    format!("{name:<24}{mean:>8.3}{best:>8.3}{worst:>8.3}")
}

fn node_id(node: usize) -> NodeId {
    NodeId(u32::try_from(node).unwrap_or(u32::MAX))
}

#[allow(clippy::cast_precision_loss)] // rounds are counted in thousands
fn round(round: u64) -> f64 {
    round as f64
}

#[allow(clippy::cast_precision_loss)] // a handful of peers
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Root mean square distance of vectors from their mean, relative to the length of the mean.
#[allow(clippy::cast_precision_loss)] // a handful of peers
fn spread(models: &[Vec<f32>]) -> f64 {
    let count = models.len() as f64;
    let dimension = models.first().map_or(0, Vec::len);
    let (mut distance, mut length) = (0.0, 0.0);
    for index in 0..dimension {
        let values = || models.iter().map(|model| f64::from(model[index]));
        let mean = values().sum::<f64>() / count;
        distance += values().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        length += mean * mean;
    }
    (distance / length).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_models_do_not_differ_and_others_do() {
        assert!(spread(&[vec![1.0, 2.0], vec![1.0, 2.0]]).abs() < 1e-12);
        let apart = spread(&[vec![1.0, 0.0], vec![3.0, 0.0]]);
        assert!((apart - 0.5).abs() < 1e-12, "{apart}");
    }
}
