//! Topologies from files and generators, and back into files.

use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, plan};
use mingle_planner::Topology;

/// Reads what an argument names: a generator expression, or a file.
pub(crate) fn read(text: &str) -> Result<Topology> {
    let path = Path::new(text);
    if !path.exists() && Topology::looks_like_generator(text) {
        return generate(text);
    }
    let content = plan::read_text(path, "topology").map_err(|failure| {
        failure.hint("name a file, or a generator such as rg:n=33,r=0.5,seed=0, ring:n=8, grid:rows=4,cols=4")
    })?;
    Topology::parse(&content).context(ErrorKind::BadInput, format!("the topology {text} cannot be used"))
}

/// Makes a topology from a generator expression.
pub(crate) fn generate(expression: &str) -> Result<Topology> {
    Topology::generate(expression).context(ErrorKind::BadInput, format!("cannot generate {expression}"))
}

/// A topology in the format of the file's extension.
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

/// What stands behind the last dot of a file's name.
pub(crate) fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// The failure that says which extensions there are.
pub(crate) fn unknown_extension(path: &Path, what: &str, possible: &str) -> Error {
    Error::new(
        ErrorKind::BadInput,
        format!("{}: the ending of the name chooses the format of the {what}: .{possible}", path.display()),
    )
}
