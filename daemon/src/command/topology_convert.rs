//! `mingle topology convert` and `generate`: write a topology to a file.

use std::path::Path;

use mingle_peer::Result;
use mingle_peer::output_file::OutputFile;
use mingle_planner::Topology;

use crate::cli::{TopologyConvertArgs, TopologyGenerateArgs};
use crate::{out, topology};

/// Reads a topology and writes it in the format of the output's extension.
pub(super) fn convert(arguments: &TopologyConvertArgs, json: bool) -> Result {
    let output = OutputFile::at(&arguments.output)?;
    let read = topology::read(&arguments.topology)?;
    output.write(topology::encode(&read, &arguments.output)?.as_bytes())?;
    tell(&read, &arguments.output, json);
    Ok(())
}

/// Generates a topology; without an output file it goes to stdout as JSON.
pub(super) fn generate(arguments: &TopologyGenerateArgs, json: bool) -> Result {
    let output = arguments.output.as_deref().map(OutputFile::at).transpose()?;
    let made = topology::generate(&arguments.generator)?;
    match (&arguments.output, output) {
        (Some(path), Some(output)) => {
            output.write(topology::encode(&made, path)?.as_bytes())?;
            tell(&made, path, json);
        }
        _ => out::line(made.to_json().trim_end()),
    }
    Ok(())
}

fn tell(written: &Topology, path: &Path, json: bool) {
    let (nodes, edges, positions) = (written.node_count(), written.edges().len(), written.positions().is_some());
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.topology-file/1",
            "output": path,
            "nodes": nodes,
            "edges": edges,
            "positions": positions,
        }));
        return;
    }
    out::line(format!("topology   {nodes} nodes, {edges} edges{}", if positions { ", positions" } else { "" }));
    let format = topology::extension(path);
    if written.interference_edges().is_some() && format != "json" {
        remark!("left out   the interference graph, which only .json holds");
    }
    if positions && format == "edges" {
        remark!("left out   the positions, which .json, .graphml and .dot hold");
    }
    remark!("wrote      {}", path.display());
}
