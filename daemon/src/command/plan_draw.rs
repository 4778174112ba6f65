//! `mingle plan draw`: a plan as a picture, or for another program to draw.

use std::ffi::OsStr;

use mingle_planner::{
    Plan,
    draw::{self, Layout},
};

use super::design_request::read_topology;
use crate::cli::PlanDrawArgs;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::{home, plan};

/// Draws the plan in the format that the ending of the output names.
pub(super) fn execute(arguments: &PlanDrawArgs) -> Outcome {
    let path = &arguments.output;
    let format = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    if !matches!(format, "svg" | "dot" | "gv" | "graphml") {
        return Err(Failure::new(
            Kind::BadInput,
            format!("{}: the ending says what to draw: use .svg, .dot or .graphml", path.display()),
        ));
    }
    let plan = plan::read(&arguments.plan)?;
    let places = arguments.positions.as_deref().map(|text| positions(&plan, text)).transpose()?;
    let layout = places.as_deref().map_or(Layout::Circle, Layout::Positions);
    let text = match format {
        "svg" => draw::svg(&plan, &layout).or_fail(Kind::BadInput, "cannot draw the plan")?,
        "graphml" => draw::graphml(&plan, &layout),
        _ => draw::dot(&plan, &layout),
    };
    home::write_atomically(path, text.as_bytes())
        .or_fail(Kind::BadInput, format!("cannot write {}", path.display()))?;
    eprintln!("wrote      {}", path.display());
    Ok(())
}

/// A place for each node of the plan, found by its name in a topology.
fn positions(plan: &Plan, text: &str) -> Outcome<Vec<[f64; 2]>> {
    let topology = read_topology(text)?;
    let Some(places) = topology.positions() else {
        return Err(Failure::new(Kind::BadInput, format!("--positions {text}: this topology says no places")));
    };
    let place = |(name, _): (&str, Option<&str>)| {
        let found = topology.names().iter().position(|known| known == name);
        found.map(|node| places[node]).ok_or_else(|| {
            Failure::new(Kind::BadInput, format!("--positions {text}: it has no node {name}, which the plan has"))
        })
    };
    plan.nodes().map(place).collect()
}
