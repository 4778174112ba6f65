//! `mingle plan make`: designs a plan for a topology, with its forecast.

use std::io::{IsTerminal, stderr};
use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::output_file::OutputFile;
use mingle_peer::{Error, ErrorKind, Result, plan};
use mingle_planner::{ExtraEdges, Method, Plan};

use super::design_request;
use super::plan_show::{describe, to_json};
use crate::cli::PlanMakeArgs;
use crate::out;

/// Designs the plan. It goes to the output file, or to stdout; with `--json`, stdout has the forecast instead.
pub(super) fn execute(arguments: &PlanMakeArgs, json: bool) -> Result {
    let output = arguments.output.as_deref().map(OutputFile::at).transpose()?;
    let (topology, mut options) = design_request::read(&arguments.design)?;
    options.extra_edges = parse_extra_edges(&arguments.extra_edges)?;
    options.augments = !arguments.no_augment;
    options.coded_share = design_request::coded_share(arguments.codec);
    let method = method(arguments, options.extra_edges)?;
    if method != Method::Auto && arguments.design.objective.is_some() {
        let message = format!("--objective is what auto chooses by, and the method is {method}");
        return Err(Error::new(ErrorKind::BadInput, message).hint("leave --objective away, or take --method auto"));
    }
    if method == Method::Auto && stderr().is_terminal() {
        remark!("comparing all designs for {} nodes", topology.node_count());
    }
    let mut made =
        mingle_planner::design(&topology, method, &options).context(ErrorKind::BadInput, "cannot design a plan")?;
    if let Some(former) = arguments.design.topology.as_deref().and_then(former_plan) {
        plan::bind_as_in(&former, &mut made)?;
    }
    let air = arguments.design.air.forecast(&made, arguments.codec)?;
    if let Some(output) = &output {
        output.write(made.to_json().as_bytes())?;
    }
    match (json, &arguments.output) {
        (true, _) => out::line(to_json(&made, air.as_ref())),
        (false, Some(path)) => {
            out::line(describe(&made, air.as_ref()));
            remark!("wrote      {}", path.display());
        }
        (false, None) => {
            out::line(made.to_json().trim_end());
            air.iter().for_each(|air| remark!("air        {}", air.words()));
        }
    }
    Ok(())
}

/// The plan that was given as the topology.
fn former_plan(topology: &str) -> Option<Plan> {
    Path::new(topology).exists().then(|| plan::read(Path::new(topology)).ok()).flatten()
}

/// The requested method; a number of extra edges without a method implies the one that has them.
fn method(arguments: &PlanMakeArgs, extra_edges: ExtraEdges) -> Result<Method> {
    match &arguments.method {
        Some(text) => text.parse().context(ErrorKind::BadInput, format!("--method {text}")),
        None if extra_edges == ExtraEdges::Auto => Ok(Method::Auto),
        None => Ok(Method::NguyenHe),
    }
}

pub(super) fn parse_extra_edges(text: &str) -> Result<ExtraEdges> {
    if text == "auto" {
        return Ok(ExtraEdges::Auto);
    }
    text.parse().map(ExtraEdges::Exactly).map_err(|_| {
        Error::new(
            ErrorKind::BadInput,
            format!("--extra-edges {text}: give a number, or auto to let the planner choose"),
        )
    })
}
