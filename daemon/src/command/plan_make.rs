//! `mingle plan make`: a topology in, a plan and its forecast out.

use std::path::Path;

use mingle_planner::{DesignOptions, ExtraEdges, Method, Topology};

use super::plan_show::describe;
use crate::cli::PlanMakeArgs;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::{out, plan};

/// Designs the plan. It goes to the output file, or to stdout; with `--json`, stdout has the forecast instead.
pub(super) fn execute(arguments: &PlanMakeArgs, json: bool) -> Outcome {
    let topology = read_topology(&arguments.topology)?;
    let method: Method = arguments.method.parse().or_fail(Kind::BadInput, format!("--method {}", arguments.method))?;
    let options = DesignOptions {
        extra_edges: parse_extra_edges(&arguments.extra_edges)?,
        seed: arguments.seed,
        local_steps: arguments.local_steps,
        ..DesignOptions::default()
    };
    let made = mingle_planner::design(&topology, method, &options)
        .or_fail(Kind::BadInput, format!("cannot design a plan for {}", arguments.topology))?;
    if let Some(path) = &arguments.output {
        plan::write(&made, path)?;
    }
    match (json, &arguments.output) {
        (true, _) => out::line(made.forecast().to_json()),
        (false, Some(path)) => {
            out::line(describe(&made));
            eprintln!("wrote      {}", path.display());
        }
        (false, None) => out::line(made.to_json().trim_end()),
    }
    Ok(())
}

/// A generator expression, or a file.
fn read_topology(text: &str) -> Outcome<Topology> {
    let path = Path::new(text);
    if !path.exists() && Topology::looks_like_generator(text) {
        return Topology::generate(text).or_fail(Kind::BadInput, format!("--topology {text}"));
    }
    let content = plan::read_text(path, "topology").map_err(|failure| {
        failure
            .hint("--topology takes a file, or a generator such as rg:n=33,r=0.5,seed=0, ring:n=8, grid:rows=4,cols=4")
    })?;
    Topology::parse(&content).or_fail(Kind::BadInput, format!("the topology {text} cannot be used"))
}

fn parse_extra_edges(text: &str) -> Outcome<ExtraEdges> {
    if text == "auto" {
        return Ok(ExtraEdges::Auto);
    }
    text.parse().map(ExtraEdges::Exactly).map_err(|_| {
        Failure::new(Kind::BadInput, format!("--extra-edges {text}: give a number, or auto to let the planner choose"))
    })
}
