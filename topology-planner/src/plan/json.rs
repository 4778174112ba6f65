//! The plan file.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Deserialize;

use super::{FORMAT, Medium, Parameter, Plan, PlanDraft, PlanError, check};
use crate::{
    digraph::Link,
    forecast::Forecast,
    network::{MeasuredLink, NetworkCapacity},
    step,
    topology::{MAX_EDGES, MAX_NODES, Topology, TopologyError},
};

/// Width at which compact arrays are broken into lines.
const LINE_WIDTH: usize = 110;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// The format, read and compared before, see [`FormatOnly`]; named here so that it is required and known.
    #[serde(rename = "format")]
    _format: String,
    method: String,
    parameters: BTreeMap<String, ParameterDocument>,
    nodes: Vec<NodeDocument>,
    base: BaseDocument,
    medium: Medium,
    #[serde(default)]
    network: Option<NetworkDocument>,
    steps: Vec<StepDocument>,
    local_steps: u32,
    /// Mixing steps from one training to the next; the whole period when left out.
    #[serde(default)]
    round_length: Option<usize>,
    forecast: Forecast,
}

/// The format alone, read before anything else, so that a plan of another version is not refused for its keys.
#[derive(Deserialize)]
struct FormatOnly {
    format: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a parameter is true, false, a number or a string")]
enum ParameterDocument {
    Flag(bool),
    Whole(u64),
    Real(f64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeDocument {
    name: String,
    #[serde(default)]
    peer: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BaseDocument {
    edges: Vec<(usize, usize)>,
    #[serde(default)]
    interference: Option<Vec<(usize, usize)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepDocument {
    /// The share that every node keeps; a large plan has `kept` instead.
    #[serde(default)]
    keep: Option<Vec<f64>>,
    /// In a large plan, the shares of some nodes; the others keep all.
    #[serde(default)]
    kept: Option<Vec<(usize, f64)>>,
    links: Vec<(usize, usize, f64)>,
    slots: Vec<Vec<(usize, usize)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkDocument {
    payload_bytes: u64,
    /// From, to, round-trip time in ms, Mbit/s, loss.
    links: Vec<(u32, u32, f64, f64, f64)>,
    upload_mbit_s: Vec<Option<f64>>,
    download_mbit_s: Vec<Option<f64>>,
}

impl From<NetworkDocument> for NetworkCapacity {
    fn from(document: NetworkDocument) -> Self {
        let link = |(from, to, rtt_ms, mbit_s, loss)| MeasuredLink { from, to, rtt_ms, mbit_s, loss };
        Self {
            payload_bytes: document.payload_bytes,
            links: document.links.into_iter().map(link).collect(),
            upload_mbit_s: document.upload_mbit_s,
            download_mbit_s: document.download_mbit_s,
        }
    }
}

/// Reads and checks a plan file.
pub(super) fn read(text: &str) -> Result<Plan, PlanError> {
    let version: FormatOnly = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    if let Some(found) = version.format.filter(|found| found != FORMAT) {
        return Err(PlanError::Format { found: found.chars().take(80).collect() });
    }
    let document: Document = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    let (names, peers): (Vec<_>, Vec<_>) = document.nodes.into_iter().map(|node| (node.name, node.peer)).unzip();
    let node_count = names.len();
    let steps = document.steps.into_iter().enumerate().map(|(number, step)| step.into_step(number, node_count));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    let draft = PlanDraft {
        base: read_base(names, &document.base.edges, document.base.interference.as_deref())?,
        method: document.method,
        parameters: document.parameters.into_iter().map(|(name, value)| (name, value.into())).collect(),
        medium: document.medium,
        network: document.network.map(NetworkCapacity::from),
        steps: Vec::new(),
        local_steps: document.local_steps,
        round_length: document.round_length,
    };
    let plan = Plan::checked(draft, steps, Some(document.forecast))?;
    bind_all(plan, peers)
}

/// The base graph of a plan. Unlike a topology from another file, it lists no edge twice.
pub(super) fn read_base(
    names: Vec<String>,
    edges: &[(usize, usize)],
    interference: Option<&[(usize, usize)]>,
) -> Result<Topology, PlanError> {
    if names.len() > MAX_NODES {
        return Err(TopologyError::TooManyNodes { nodes: names.len() }.into());
    }
    refuse_duplicates("base.edges", edges)?;
    let topology = Topology::new(names, edges)?;
    let Some(interference) = interference else {
        return Ok(topology);
    };
    refuse_duplicates("base.interference", interference)?;
    Ok(topology.with_interference(interference)?)
}

/// Binds the peers that a document names.
pub(super) fn bind_all(mut plan: Plan, peers: Vec<Option<String>>) -> Result<Plan, PlanError> {
    let mut node_of: BTreeMap<&str, usize> = BTreeMap::new();
    for (node, peer) in peers.iter().enumerate() {
        let Some(peer) = peer else { continue };
        check::check_peer(node, peer)?;
        if let Some(first) = node_of.insert(peer, node) {
            return Err(PlanError::PeerTwice { peer: peer.clone(), first, second: node });
        }
    }
    plan.peers = peers;
    Ok(plan)
}

fn refuse_duplicates(graph: &'static str, edges: &[(usize, usize)]) -> Result<(), PlanError> {
    if edges.len() > MAX_EDGES {
        return Err(TopologyError::TooManyEdges { edges: edges.len() }.into());
    }
    let mut sorted: Vec<(usize, usize)> = edges.iter().map(|&(u, v)| (u.min(v), u.max(v))).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(PlanError::DuplicateEdge { graph, u: pair[0].0, v: pair[0].1 }),
        None => Ok(()),
    }
}

impl StepDocument {
    fn into_step(self, number: usize, node_count: usize) -> Result<step::MixingStep, PlanError> {
        let link = |(from, to)| Link::new(from, to);
        let links = self.links.into_iter().map(|(from, to, weight)| step::WeightedLink { from, to, weight }).collect();
        let slots = self.slots.into_iter().map(|slot| slot.into_iter().map(link).collect()).collect();
        match (self.keep, self.kept) {
            (None, Some(mut kept)) => {
                kept.sort_unstable_by_key(|&(node, _)| node);
                let twice = kept.windows(2).find(|pair| pair[0].0 == pair[1].0);
                let unknown = kept.last().filter(|&&(node, _)| node >= node_count);
                if let Some(&(node, _)) = twice.map(|pair| &pair[0]).or(unknown) {
                    return Err(PlanError::KeptNode { step: number, node });
                }
                kept.retain(|&(_, share)| share != 1.0);
                Ok(step::MixingStep::sparse(node_count, kept, links, slots))
            }
            (keep, None) => {
                Ok(step::MixingStep::sorted(step::StepDraft { keep: keep.unwrap_or_default(), links, slots }))
            }
            (Some(_), Some(_)) => Err(PlanError::KeepAndKept { step: number }),
        }
    }
}

impl From<ParameterDocument> for Parameter {
    fn from(document: ParameterDocument) -> Self {
        match document {
            ParameterDocument::Flag(flag) => Self::Flag(flag),
            ParameterDocument::Whole(whole) => Self::Whole(whole),
            ParameterDocument::Real(real) => Self::Real(real + 0.0),
            ParameterDocument::Text(text) => Self::Text(text),
        }
    }
}

fn json_error(error: &serde_json::Error) -> PlanError {
    let line = error.line();
    let column = error.column();
    let message = error.to_string();
    // serde_json ends its messages with the position, which we report first.
    let message = message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message).to_owned();
    PlanError::Json { line, column, message }
}

/// Writes a plan file: short values on one line, lists of links one per line, slots one per line.
pub(super) fn write(plan: &Plan) -> String {
    let parameters = plan.parameters.iter().map(|(name, value)| format!("{}: {}", quoted(name), parameter(value)));
    let nodes = plan.nodes().map(|(name, peer)| {
        format!("{{ \"name\": {}, \"peer\": {} }}", quoted(name), peer.map_or_else(|| "null".to_owned(), quoted))
    });
    let medium = match plan.medium {
        Medium::Broadcast => "broadcast",
        Medium::PointToPoint => "point-to-point",
    };
    let forecast = plan.forecast.fields().map(|(name, value)| format!("    \"{name}\": {}", value.json())).join(",\n");
    let interference =
        plan.base.interference_edges().map_or_else(|| "null".to_owned(), |edges| wrapped(edges.iter().map(pair), 4));
    let network = plan.network.as_ref().map_or_else(|| "null".to_owned(), network_text);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "{{\n  \"format\": \"{FORMAT}\",\n  \"method\": {},\n  \"parameters\": {{ {} }},\n  \"nodes\": {},\n  \
         \"base\": {{\n    \"edges\": {},\n    \"interference\": {interference}\n  }},\n  \"medium\": \"{medium}\",\n  \"network\": {network},\n  \
         \"steps\": [\n{}\n  ],\n  \"local_steps\": {},\n  \"round_length\": {},\n  \"forecast\": {{\n{forecast}\n  }}\n}}\n",
        quoted(&plan.method),
        parameters.collect::<Vec<_>>().join(", "),
        per_line(nodes, 2),
        wrapped(plan.base.edges().iter().map(pair), 4),
        plan.steps.iter().map(|step| step_text(step, plan.lists_all_shares())).collect::<Vec<_>>().join(",\n"),
        plan.local_steps,
        plan.round_length,
    );
    out
}

fn network_text(network: &NetworkCapacity) -> String {
    let link = |link: &MeasuredLink| {
        let numbers = [link.rtt_ms, link.mbit_s, link.loss].map(real).join(", ");
        format!("[{}, {}, {numbers}]", link.from, link.to)
    };
    let limits =
        |limits: &[Option<f64>]| wrapped(limits.iter().map(|limit| limit.map_or_else(|| "null".to_owned(), real)), 4);
    format!(
        "{{\n    \"payload_bytes\": {},\n    \"links\": {},\n    \"upload_mbit_s\": {},\n    \"download_mbit_s\": {}\n  }}",
        network.payload_bytes,
        per_line(network.links.iter().map(link), 4),
        limits(&network.upload_mbit_s),
        limits(&network.download_mbit_s),
    )
}

fn step_text(step: &step::MixingStep, lists_all: bool) -> String {
    let links = step.links().iter().map(|link| format!("[{}, {}, {}]", link.from, link.to, real(link.weight)));
    let slots = step.slots().iter().map(|slot| {
        let links = slot.iter().map(|link| pair(&(link.from, link.to)));
        format!("[{}]", links.collect::<Vec<_>>().join(", "))
    });
    let keep = if !lists_all {
        let kept = step.kept().iter().map(|&(node, share)| format!("[{node}, {}]", real(share)));
        format!("\"kept\": {}", wrapped(kept, 6))
    } else {
        format!("\"keep\": {}", wrapped(step.keep().into_iter().map(real), 6))
    };
    format!(
        "    {{\n      {keep},\n      \"links\": {},\n      \"slots\": {}\n    }}",
        per_line(links, 6),
        per_line(slots, 6),
    )
}

/// An array with one item per line, closed at the given indent.
fn per_line(items: impl Iterator<Item = String>, indent: usize) -> String {
    let items: Vec<String> = items.map(|item| format!("{:1$}  {item}", "", indent)).collect();
    if items.is_empty() {
        return "[]".to_owned();
    }
    format!("[\n{}\n{:indent$}]", items.join(",\n"), "")
}

/// An array with as many items on a line as fit.
fn wrapped(items: impl Iterator<Item = String>, indent: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if indent + line.len() + item.len() + 4 <= LINE_WIDTH => {
                let _ = write!(line, ", {item}");
            }
            _ => lines.push(item),
        }
    }
    per_line(lines.into_iter(), indent)
}

fn parameter(value: &Parameter) -> String {
    match value {
        Parameter::Flag(flag) => flag.to_string(),
        Parameter::Whole(whole) => whole.to_string(),
        Parameter::Real(number) => real(*number),
        Parameter::Text(text) => quoted(text),
    }
}

/// The shortest digits that read back as the same float.
fn real(number: f64) -> String {
    serde_json::Value::from(number).to_string()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn pair(&(u, v): &(usize, usize)) -> String {
    format!("[{u}, {v}]")
}
