//! What a plan is made for, from the words of the command line.

use std::path::Path;

use mingle_planner::{DesignOptions, Medium, Topology, link_measurements::LinkMeasurements};

use crate::cli::DesignArgs;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::{plan, topology};

/// The topology, and all options but those of one method.
pub(super) fn read(arguments: &DesignArgs) -> Outcome<(Topology, DesignOptions)> {
    let measurements = arguments.links.as_deref().map(read_links).transpose()?;
    let topology = match (&arguments.topology, &measurements) {
        (Some(text), _) => topology::read(text)?,
        (None, Some((path, measurements))) => measurements.topology().or_fail(Kind::BadInput, path)?,
        // clap asks for one of the two.
        (None, None) => return Err(Failure::new(Kind::BadInput, "give --topology, or --links to derive it from")),
    };
    let topology = match &arguments.interference {
        Some(path) => with_interference(&topology, path)?,
        None => topology,
    };
    let network = measurements
        .map(|(path, measurements)| {
            measurements.network(&topology, arguments.payload_bytes).or_fail(Kind::BadInput, path)
        })
        .transpose()?;
    let options = DesignOptions {
        seed: arguments.seed,
        local_steps: arguments.local_steps,
        heterogeneity: arguments.heterogeneity,
        effort: arguments.effort,
        budget_slots: arguments.budget_slots,
        max_out_degree: arguments.max_out_degree,
        medium: parse_medium(&arguments.medium)?,
        network,
        max_upload_bytes: arguments.max_upload,
        objective: arguments.objective.parse().or_fail(Kind::BadInput, "--objective")?,
        fault_tolerance: arguments.survive.parse().or_fail(Kind::BadInput, "--survive")?,
        ..DesignOptions::default()
    };
    Ok((topology, options))
}

fn read_links(path: &Path) -> Outcome<(String, LinkMeasurements)> {
    let text = plan::read_text(path, "link measurements")?;
    let what = format!("the link measurements {}", path.display());
    let measurements = LinkMeasurements::parse(&text).or_fail(Kind::BadInput, &what)?;
    Ok((what, measurements))
}

/// The interference graph is a topology of its own, whose nodes are found by name.
fn with_interference(topology: &Topology, path: &Path) -> Outcome<Topology> {
    let what = format!("the interference graph {}", path.display());
    let text = plan::read_text(path, "interference graph")?;
    let wider = Topology::parse(&text).or_fail(Kind::BadInput, &what)?;
    let number = |node: usize| {
        let name = &wider.names()[node];
        let found = topology.names().iter().position(|known| known == name);
        found.ok_or_else(|| Failure::new(Kind::BadInput, format!("{what}: the topology has no node {name}")))
    };
    let edges = wider.edges().iter().map(|&(u, v)| Ok((number(u)?, number(v)?))).collect::<Outcome<Vec<_>>>()?;
    topology.clone().with_interference(&edges).or_fail(Kind::BadInput, what)
}

fn parse_medium(text: &str) -> Outcome<Medium> {
    match text {
        "broadcast" => Ok(Medium::Broadcast),
        "point-to-point" => Ok(Medium::PointToPoint),
        _ => Err(Failure::new(Kind::BadInput, format!("--medium {text}: use broadcast or point-to-point"))),
    }
}
