//! `mingle plan draw`: a plan as a picture, or as input for a graph program.

use mingle_peer::error::Context;
use mingle_peer::output_file::OutputFile;
use mingle_peer::{Error, ErrorKind, Result, plan};
use mingle_planner::draw::{self, NodePlacement};
use mingle_planner::{Plan, Topology};

use crate::cli::{LayoutName, PlanDrawArgs};
use crate::{out, topology};

/// Draws the plan into the output file, whole or not at all.
pub(super) fn execute(arguments: &PlanDrawArgs, json: bool) -> Result {
    let path = &arguments.output;
    let format = topology::extension(path);
    if !["svg", "dot", "gv", "graphml"].contains(&format) {
        return Err(topology::unknown_extension(path, "picture", "svg, .dot or .graphml"));
    }
    let output = OutputFile::at(path)?;
    let plan = plan::read(&arguments.plan)?;
    let places = places(arguments, &plan)?;
    let layout = places.as_deref().map_or(NodePlacement::Circle, NodePlacement::Positions);
    let text = match format {
        "dot" | "gv" => draw::dot(&plan, &layout),
        "graphml" => draw::graphml(&plan, &layout),
        _ => draw::svg(&plan, &layout)
            .context(ErrorKind::BadInput, format!("cannot draw {}", arguments.plan.display()))?,
    };
    output.write(text.as_bytes())?;
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.plan-draw/1",
            "hash": plan.hash().to_string(),
            "output": path,
            "format": format,
            "bytes": text.len(),
        }));
    } else {
        let forecast = plan.forecast();
        out::line(format!("picture    {} nodes, {} links", plan.node_count(), forecast.links));
        remark!("wrote      {}", path.display());
    }
    Ok(())
}

/// The positions of the plan's nodes, if the picture is to use them.
fn places(arguments: &PlanDrawArgs, plan: &Plan) -> Result<Option<Vec<[f64; 2]>>> {
    match (arguments.layout, &arguments.positions) {
        (Some(LayoutName::Circle), _) | (None, None) => Ok(None),
        (Some(LayoutName::Positions), None) => Err(Error::new(
            ErrorKind::BadInput,
            "--layout positions: a plan holds no places, name a topology that does with --positions TOPOLOGY",
        )),
        (_, Some(text)) => by_name(plan, &topology::read(text)?, text).map(Some),
    }
}

/// The position of each node of the plan in a topology with the same names.
fn by_name(plan: &Plan, topology: &Topology, text: &str) -> Result<Vec<[f64; 2]>> {
    let Some(places) = topology.positions() else {
        return Err(Error::new(ErrorKind::BadInput, format!("--positions {text}: this topology has no positions"))
            .hint("JSON topologies may have \"positions\", and rg:... generates them"));
    };
    let number: std::collections::BTreeMap<&str, usize> =
        topology.names().iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
    let place = |(name, _): (&str, Option<&str>)| {
        let number = number.get(name).ok_or_else(|| {
            Error::new(
                ErrorKind::BadInput,
                format!("--positions {text}: this topology has no node {name:?} as the plan does"),
            )
        })?;
        Ok(places[*number])
    };
    plan.nodes().map(place).collect()
}
