//! Topologies from files and generators, and into files.

use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, plan};
use mingle_planner::Topology;
use mingle_planner::topology::{TopologyFormat, TopologyReading};

/// Reads the topology that an argument names, a generator expression or a file, and remarks on unused parts of the
/// file.
pub(crate) fn read(text: &str) -> Result<Topology> {
    read_with_format(text).map(|(topology, _)| topology)
}

/// Reads a topology, with the format of its file; `None` for a generator.
pub(crate) fn read_with_format(text: &str) -> Result<(Topology, Option<TopologyFormat>)> {
    let path = Path::new(text);
    if !path.exists() && Topology::looks_like_generator(text) {
        return Ok((generate(text)?, None));
    }
    let content = plan::read_text(path, "topology").map_err(|failure| {
        if path.exists() {
            return failure;
        }
        failure.hint("name a file, or a generator such as rg:n=33,r=0.5,seed=0, ring:n=8, grid:rows=4,cols=4")
    })?;
    let reading =
        Topology::read(&content).context(ErrorKind::BadInput, format!("the topology {text} cannot be used"))?;
    remark_what_is_left_out(&reading);
    Ok((reading.topology, Some(reading.format)))
}

/// Remarks on attributes, labels and positions that did not become part of the topology, or not for all nodes.
fn remark_what_is_left_out(reading: &TopologyReading) {
    let nodes = reading.topology.node_count();
    let attributes = &reading.edge_attributes;
    if attributes.edges() > 0 {
        let edges = attributes.edges();
        let word = if edges == 1 { "edge" } else { "edges" };
        remark!(
            "not used   {attributes} ({edges} {word}): a topology says who reaches whom; latencies and rates go into --links"
        );
    }
    match reading.repeated {
        0 => {}
        1 => remark!("repeated   1 edge is there before, between the same nodes, and counts once"),
        edges => remark!("repeated   {edges} edges are there before, between the same nodes, and count once"),
    }
    if (1..nodes).contains(&reading.named_by_label) {
        let named = reading.named_by_label;
        remark!("names      {named} of {nodes} nodes have a label of their own, the others keep their ids");
    }
    if (1..nodes).contains(&reading.placed) {
        let others = if reading.topology.positions().is_some() {
            "drawn between their neighbours"
        } else {
            "without, so none is used"
        };
        remark!("positions  {} of {nodes} nodes have one, the others are {others}", reading.placed);
    }
}

/// Makes a topology from a generator expression.
pub(crate) fn generate(expression: &str) -> Result<Topology> {
    Topology::generate(expression).context(ErrorKind::BadInput, format!("cannot generate {expression}"))
}

/// Encodes a topology in the format of the file's extension.
pub(crate) fn encode(topology: &Topology, path: &Path) -> Result<String> {
    Ok(match extension(path) {
        "json" => topology.to_json(),
        "graphml" => topology.to_graphml(),
        "edges" => topology
            .to_edge_list()
            .context(ErrorKind::BadInput, format!("cannot write the topology {}", path.display()))?,
        "dot" | "gv" => topology.to_dot(),
        _ => return Err(unknown_extension(path, "topology", "json, .graphml, .edges or .dot")),
    })
}

/// The extension of a file's name; empty if there is none.
pub(crate) fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// The error of an unknown extension, which lists the possible ones.
pub(crate) fn unknown_extension(path: &Path, what: &str, possible: &str) -> Error {
    Error::new(
        ErrorKind::BadInput,
        format!("{}: the ending of the name chooses the format of the {what}: .{possible}", path.display()),
    )
}
