//! The topology and the options of a design, from the command line.

use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, medium, plan};
use mingle_planner::{DesignOptions, Medium, Topology, link_measurements::LinkMeasurements, load::FOUR_BITS};
use mingle_protocol::{Codec, CodecChoice};

use crate::cli::DesignArgs;
use crate::topology;

/// The number of parameters by which codecs are compared: some whole blocks of each.
const SHARE_OF: usize = 1 << 12;

/// The topology, and all options except those of one method.
pub(super) fn read(arguments: &DesignArgs) -> Result<(Topology, DesignOptions)> {
    let measurements = arguments.links.as_deref().map(read_links).transpose()?;
    let topology = match (&arguments.topology, &measurements) {
        (Some(text), _) => topology::read(text)?,
        (None, Some((path, measurements))) => measurements.topology().context(ErrorKind::BadInput, path)?,
        // clap requires one of the two.
        (None, None) => return Err(Error::new(ErrorKind::BadInput, "give --topology, or --links to derive it from")),
    };
    let topology = match &arguments.interference {
        Some(path) => with_interference(&topology, path)?,
        None => topology,
    };
    let topology = without(topology, &arguments.without)?;
    let network = measurements
        .map(|(path, measurements)| {
            measurements.network(&topology, arguments.air.payload_bytes).context(ErrorKind::BadInput, path)
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
        objective: arguments
            .objective
            .as_deref()
            .unwrap_or("training")
            .parse()
            .context(ErrorKind::BadInput, "--objective")?,
        fault_tolerance: arguments.fault_tolerance.parse().context(ErrorKind::BadInput, "--fault-tolerance")?,
        ..DesignOptions::default()
    };
    arguments.air.air_rate.map_or(Ok(()), |_| medium::check_shared(options.medium))?;
    Ok((topology, options))
}

fn read_links(path: &Path) -> Result<(String, LinkMeasurements)> {
    let text = plan::read_text(path, "link measurements")?;
    let what = format!("the link measurements {}", path.display());
    let measurements = LinkMeasurements::parse(&text).context(ErrorKind::BadInput, &what)?;
    Ok((what, measurements))
}

/// Adds an interference graph, a topology of its own whose nodes are found by name.
fn with_interference(topology: &Topology, path: &Path) -> Result<Topology> {
    let what = format!("the interference graph {}", path.display());
    let text = plan::read_text(path, "interference graph")?;
    let wider = Topology::parse(&text).context(ErrorKind::BadInput, &what)?;
    let number = |node: usize| {
        let name = &wider.names()[node];
        let found = topology.names().iter().position(|known| known == name);
        found.ok_or_else(|| Error::new(ErrorKind::BadInput, format!("{what}: the topology has no node {name}")))
    };
    let edges = wider.edges().iter().map(|&(u, v)| Ok((number(u)?, number(v)?))).collect::<Result<Vec<_>>>()?;
    topology.clone().with_interference(&edges).context(ErrorKind::BadInput, what)
}

/// Leaves out nodes, by name or else by number.
fn without(topology: Topology, names: &[String]) -> Result<Topology> {
    if names.is_empty() {
        return Ok(topology);
    }
    let number = |name: &String| {
        let named = topology.names().iter().position(|known| known == name);
        let found = named.or_else(|| name.parse().ok().filter(|node| *node < topology.node_count()));
        let unknown = || Error::new(ErrorKind::BadInput, format!("--without {name}: the topology has no such node"));
        found.ok_or_else(unknown)
    };
    let left_out = names.iter().map(number).collect::<Result<Vec<_>>>()?;
    topology.without(&left_out).context(ErrorKind::BadInput, format!("--without {}", names.join(",")))
}

/// The bytes of a payload of an exact average as a share of those that other plans send.
pub(super) fn coded_share(codec: CodecChoice) -> f64 {
    let bytes = |codec: Codec| codec.encoded_len(SHARE_OF) as f64 / Codec::F32.encoded_len(SHARE_OF) as f64;
    match codec {
        CodecChoice::Auto => FOUR_BITS,
        // Other plans would send whole models in eight bits, which leaves those of peers apart: they count as f32.
        CodecChoice::Fixed(codec) if codec.sends_differences() => bytes(codec),
        // A node that keeps nothing sends in f32.
        CodecChoice::Fixed(codec) => 1.0 / bytes(codec),
    }
}

/// Reads the kind of medium.
pub(super) fn parse_medium(text: &str) -> Result<Medium> {
    match text {
        "broadcast" => Ok(Medium::Broadcast),
        "point-to-point" => Ok(Medium::PointToPoint),
        _ => Err(Error::new(ErrorKind::BadInput, format!("--medium {text}: use broadcast or point-to-point"))),
    }
}
