//! `mingle plan bind`: assigns peers to nodes.

use libp2p::PeerId;
use mingle_peer::error::Context;
use mingle_peer::output_file::OutputFile;
use mingle_peer::{Error, ErrorKind, Result, plan};
use mingle_planner::Plan;

use crate::cli::PlanBindArgs;
use crate::out;

/// Binds the named nodes and writes the plan back; nothing is written unless all bindings are valid.
pub(super) fn execute(arguments: &PlanBindArgs, json: bool) -> Result {
    let path = arguments.output.as_ref().unwrap_or(&arguments.plan);
    let output = OutputFile::at(path)?;
    let mut bound = plan::read(&arguments.plan)?;
    for binding in &arguments.peers {
        bind(&mut bound, binding)?;
    }
    output.write(bound.to_json().as_bytes())?;
    let free: Vec<&str> = bound.nodes().filter(|(_, peer)| peer.is_none()).map(|(name, _)| name).collect();
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.plan-bind/1",
            "hash": bound.hash().to_string(),
            "unbound": free,
        }));
        return Ok(());
    }
    out::line(format!("plan       blake3:{}", bound.hash()));
    if !free.is_empty() {
        remark!("still to be bound: {}", free.join(", "));
    }
    remark!("wrote      {}", path.display());
    Ok(())
}

/// Binds `NODE=PEERID`.
fn bind(plan: &mut Plan, binding: &str) -> Result {
    let (node, peer) = binding.split_once('=').ok_or_else(|| {
        Error::new(ErrorKind::BadInput, format!("--peer {binding}: write NODE=PEERID, such as node-0=12D3KooW..."))
    })?;
    let peer: PeerId = peer
        .parse()
        .context(ErrorKind::BadInput, format!("--peer {binding}: this is not a PeerId"))
        .map_err(|failure| failure.hint("`mingle id` prints the PeerId on the peer's machine"))?;
    let index = find(plan, node)
        .ok_or_else(|| Error::new(ErrorKind::BadInput, format!("--peer {binding}: the plan has no node `{node}`")))?;
    plan.bind(index, &peer.to_string()).context(ErrorKind::BadInput, format!("--peer {binding}"))
}

/// A node by its name, else by its index.
fn find(plan: &Plan, node: &str) -> Option<usize> {
    plan.node_named(node).or_else(|| node.parse().ok().filter(|&index: &usize| index < plan.node_count()))
}
