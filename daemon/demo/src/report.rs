//! The report of a demo: the models, the books, the files, the plot.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mingle_models::{Checkpoint, ObjectiveKind, SampleShape, Task};
use mingle_net::traffic::{MulticastTraffic, ParameterEncoding};
use mingle_peer::audit::AuditOutcome;
use mingle_peer::error::Context;
use mingle_peer::results::Summary;
use mingle_peer::training::PrivacySpending;
use mingle_peer::{Error, ErrorKind, Home, Result, plan};
use mingle_plot::{Horizontal, LineWeight, Mark, Panel, ReferenceLine, Scale, Series};
use mingle_protocol::{AuditReport, NodeId};
use serde::Serialize;

use crate::baselines::Baselines;
use crate::joining::Joined;
use crate::metric;
use crate::options::DemoOptions;
use crate::output::Output;
use crate::tally::SwarmRow;

/// The result of one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerResult {
    pub(crate) accuracy: f64,
    pub(crate) sent_bytes: u64,
    pub(crate) peak_resident_bytes: Option<u64>,
}

/// The course of a demo, and its folder.
pub(crate) struct Course<'a> {
    pub(crate) options: &'a DemoOptions,
    pub(crate) output: &'a Output,
    /// Peers that were not killed, or were started again.
    pub(crate) survivors: Vec<usize>,
    pub(crate) results: Vec<PeerResult>,
    /// The kills that were made, with the round.
    pub(crate) killed_at: Vec<(usize, u64)>,
    /// Peers that skipped most of the rounds.
    pub(crate) late: BTreeSet<usize>,
    pub(crate) joined: Option<Joined>,
    pub(crate) rows: Vec<SwarmRow>,
    pub(crate) seconds: f64,
}

/// The whole report of a demo.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    /// The version of the JSON.
    pub schema: &'static str,
    /// Peer processes.
    pub peers: usize,
    /// Peers that were killed.
    pub killed: Vec<usize>,
    /// Peers that skipped most of the rounds: their data have little part in the models.
    pub late: BTreeSet<usize>,
    /// The survivors' models.
    pub swarm: SwarmResult,
    /// Bits for a token of the held-out text, where a text was learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_token: Option<BitsPerToken>,
    /// The baselines.
    pub without_swarm: Option<Baselines>,
    /// Seconds from the start of the first process to the end of the last.
    pub seconds: f64,
    /// The joining of the peers.
    pub joined: Option<Joined>,
    /// Bytes that all peers sent.
    pub sent_bytes: u64,
    /// The privacy spent by the peer that spent most, where changes are private.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<PrivacySpending>,
    /// The encoding of models, and the bytes that it saved.
    pub encoding: ParameterEncoding,
    /// Payloads by multicast of all peers, where that is the medium.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multicast: Option<MulticastTraffic>,
    /// The largest resident memory of any peer, where the system reports it.
    pub peak_resident_bytes_per_peer: Option<u64>,
    /// The mass ledger of the survivors.
    pub audit: AuditReport,
    /// The audit of the disks of all peers, killed ones included, where the peers kept records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks: Option<AuditOutcome>,
    /// The share of the time in which parcels moved that was spent training, where timelines were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication_hidden: Option<f64>,
    #[serde(skip)]
    rows: Vec<SwarmRow>,
    #[serde(skip)]
    kill_marks: Vec<(usize, u64)>,
    /// The folder of the demo.
    #[serde(skip)]
    pub output: PathBuf,
    #[serde(skip)]
    objective: ObjectiveKind,
}

/// Bits for a token of a text, with the models of all survivors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BitsPerToken {
    /// The unit of a token.
    pub token: &'static str,
    /// Mean over the survivors.
    pub mean: f64,
    /// The fewest of any survivor.
    pub best: f64,
    /// The most of any survivor.
    pub worst: f64,
}

impl BitsPerToken {
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
pub struct SwarmResult {
    /// Mean over the survivors.
    pub mean_accuracy: f64,
    /// The best survivor's.
    pub best_accuracy: f64,
    /// The worst survivor's.
    pub worst_accuracy: f64,
    /// Root mean square distance of the final models from their mean, relative to its length.
    pub disagreement: f64,
}

impl DemoReport {
    /// Gathers the results in the peers' homes.
    pub(crate) fn new(
        course: Course<'_>,
        task: &Task,
        homes: &[Home],
        without_swarm: Option<Baselines>,
    ) -> Result<Self> {
        let Course { options, output, survivors, results, killed_at, late, joined, rows, seconds } = course;
        let summaries = survivors.iter().map(|&node| Ok((node, Summary::read(&homes[node].summary())?)));
        let summaries = summaries.collect::<Result<Vec<(usize, Summary)>>>()?;
        let bits_per_token = BitsPerToken::of(task, &summaries);
        let used = summaries.first().map(|(_, summary)| &summary.encoding);
        let mut encoding = used.map_or_else(ParameterEncoding::default, ParameterEncoding::without_counts);
        summaries.iter().for_each(|(_, summary)| encoding.add(&summary.encoding));
        let multicast = summaries.iter().filter_map(|(_, summary)| summary.multicast).reduce(|mut all, one| {
            all += one;
            all
        });
        let spendings = summaries.iter().filter_map(|(_, summary)| summary.privacy);
        let privacy = spendings.max_by(|one, other| one.epsilon.total_cmp(&other.epsilon));
        let books: Vec<_> = summaries.into_iter().map(|(node, summary)| (node_id(node), summary.ledger)).collect();
        let models = survivors.iter().map(|&node| read_model(&homes[node], task)).collect::<Result<Vec<_>>>()?;
        let keeps_records = options.keeps_records();
        let disks = keeps_records.then(|| plan::audit_records(&[output.root().join("peers")], None)).transpose()?;
        let accuracies: Vec<f64> = results.iter().map(|result| result.accuracy).collect();
        Ok(Self {
            schema: "mingle.demo/1",
            peers: homes.len(),
            killed: killed_at.iter().map(|(node, _)| *node).collect::<BTreeSet<_>>().into_iter().collect(),
            late,
            swarm: SwarmResult {
                mean_accuracy: mean(&accuracies),
                best_accuracy: accuracies.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                worst_accuracy: accuracies.iter().copied().fold(f64::INFINITY, f64::min),
                disagreement: spread(&models),
            },
            bits_per_token,
            without_swarm,
            seconds,
            joined,
            sent_bytes: results.iter().map(|result| result.sent_bytes).sum(),
            privacy,
            encoding,
            multicast,
            peak_resident_bytes_per_peer: results.iter().filter_map(|result| result.peak_resident_bytes).max(),
            audit: mingle_protocol::audit(&books, homes.len()),
            disks,
            communication_hidden: None,
            rows,
            kill_marks: killed_at,
            output: output.root().to_path_buf(),
            objective: options.training.task,
        })
    }

    /// Writes the plot and the summary into the demo's folder.
    pub(crate) fn write(&self, output: &Output) -> Result {
        output.write("curves.svg", self.plot().as_bytes())?;
        let text = metric::to_pretty_json(self, self.objective)?;
        output.write("summary.json", format!("{text}\n").as_bytes())
    }

    /// The whole report as JSON, whose keys have the name of the metric.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn to_json(&self) -> Result<String> {
        metric::to_json(self, self.objective)
    }

    /// Checks that the books balance.
    ///
    /// # Errors
    /// They do not. That is a fault of this program, and must be visible.
    pub fn check(&self) -> Result {
        if let Some(failure) = self.disks.as_ref().and_then(AuditOutcome::failure) {
            return Err(failure);
        }
        if self.audit.is_exact() {
            return Ok(());
        }
        let disputes: Vec<String> = self.audit.disputes.iter().map(ToString::to_string).collect();
        Err(Error::new(ErrorKind::Integrity, format!("the mass ledger does not balance: {}", disputes.join("; ")))
            .hint("please report this with the demo's folder"))
    }

    /// The name of the measurement, such as `test accuracy`.
    pub fn measured(&self) -> String {
        format!("test {}", metric::name(self.objective))
    }

    fn plot(&self) -> String {
        let points = |value: &dyn Fn(&SwarmRow) -> Option<f64>| -> Vec<(f64, f64)> {
            self.rows.iter().filter_map(|row| Some((round(row.round), value(row)?))).collect()
        };
        let series = |name: &str, weight, points| Series { name: name.to_owned(), points, weight };
        let accuracy = Panel {
            y_label: self.measured(),
            scale: Scale::Linear,
            bands: Vec::new(),
            series: vec![
                series("mean over the peers", LineWeight::Bold, points(&|row| Some(row.mean_accuracy))),
                series("worst peer", LineWeight::Thin, points(&|row| Some(row.worst_accuracy))),
            ],
            references: self.without_swarm.iter().flat_map(references).collect(),
        };
        let disagreement = Panel {
            y_label: "disagreement".to_owned(),
            scale: Scale::Log,
            bands: Vec::new(),
            series: vec![series("mean over the peers", LineWeight::Bold, points(&|row| row.disagreement))],
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

/// The baselines that are drawn beside the swarm's accuracy.
fn references(without_swarm: &Baselines) -> [ReferenceLine; 2] {
    [
        ReferenceLine { value: without_swarm.central, label: "all data in one place".to_owned() },
        ReferenceLine { value: without_swarm.best_alone(), label: "best peer alone".to_owned() },
    ]
}

fn read_model(home: &Home, task: &Task) -> Result<Vec<f32>> {
    Checkpoint::load(&home.model(), task)
        .map(|checkpoint| checkpoint.parameters)
        .context(ErrorKind::Integrity, "a peer's model cannot be read back")
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
    let mut distance = 0.0;
    let mut length = 0.0;
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
