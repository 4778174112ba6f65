//! Personal node classification as what a swarm learns in rounds: the file that says so, and one peer's part in it.

mod file;
mod learner;
mod picture;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mingle_graphs::{NodeData, deal_out, read_graph, two_characters};
use mingle_models::Device;
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};
use mingle_solving::{LearningError, RoundLearning, RoundRules, RoundTask};

pub(crate) use file::NodesFile;
pub(crate) use learner::METRICS;
use learner::NodeLearner;
pub(crate) use report::{print_learned, write_learned};

/// What a file of node classification calls itself.
const KIND: &str = "node-classification";
/// Stands for the name of the node in the name of its graph.
const NODE: &str = "{node}";
/// The embedded graph.
const EMBEDDED: &str = "two-characters";
/// The seed of the embedded graph: it is the same everywhere.
const EMBEDDED_SEED: u64 = 1;
/// No such file is longer.
const MOST_BYTES: u64 = 1 << 20;

/// What all peers learn, and where this one's graph is.
#[derive(Debug)]
pub(crate) struct NodesTask {
    file: NodesFile,
    rules: RoundRules,
    hash: [u8; 32],
    folder: PathBuf,
    device: Device,
    /// The parts of a graph that is dealt out, once they are computed.
    dealt: Mutex<Option<Arc<Vec<NodeData>>>>,
}

/// The node classification that a problem file speaks of, if it does.
///
/// # Errors
/// The file cannot be read, or says what cannot be.
pub(crate) fn read(path: &Path) -> Result<Option<NodesTask>> {
    let Some(file) = parse(path)? else { return Ok(None) };
    let path = std::path::absolute(path).context(ErrorKind::BadInput, format!("the problem {}", path.display()))?;
    NodesTask::new(file, path.parent().map(Path::to_owned).unwrap_or_default()).map(Some)
}

/// What a problem file of node classification says.
///
/// # Errors
/// It cannot be read, or is of another kind.
pub(crate) fn read_file(path: &Path) -> Result<NodesFile> {
    let file = parse(path)?;
    file.ok_or_else(|| {
        Error::new(ErrorKind::BadInput, format!("{} is no problem of kind = \"{KIND}\"", path.display()))
    })
}

fn parse(path: &Path) -> Result<Option<NodesFile>> {
    let doing = || format!("cannot read the problem {}", path.display());
    if fs::metadata(path).context(ErrorKind::BadInput, doing())?.len() > MOST_BYTES {
        return Ok(None);
    }
    let text = fs::read_to_string(path).context(ErrorKind::BadInput, doing())?;
    let is_nodes = toml::from_str::<toml::Table>(&text)
        .is_ok_and(|table| table.get("kind").and_then(toml::Value::as_str) == Some(KIND));
    if !is_nodes {
        return Ok(None);
    }
    toml::from_str(&text)
        .map(Some)
        .context(ErrorKind::BadInput, format!("the problem {} does not hold", path.display()))
}

/// The graph that a text names: the embedded one, or files below a folder.
///
/// # Errors
/// They cannot be read.
pub(crate) fn graph(text: &str, folder: &Path) -> std::result::Result<NodeData, mingle_graphs::ReadError> {
    if text == EMBEDDED { Ok(two_characters(EMBEDDED_SEED)) } else { read_graph(&folder.join(text)) }
}

impl NodesTask {
    /// What a file in this folder says.
    ///
    /// # Errors
    /// It says what cannot be.
    pub(crate) fn new(file: NodesFile, folder: PathBuf) -> Result<Self> {
        let doing = "the node classification does not hold";
        file.options().check().context(ErrorKind::BadInput, doing)?;
        let metrics = METRICS.iter().map(|name| (*name).to_owned()).collect();
        let rules = RoundRules::new(file.rounds, metrics).context(ErrorKind::BadInput, doing)?;
        let shared = serde_json::to_vec(&file.shared()).context(ErrorKind::Unexpected, doing)?;
        let device = crate::task::open_device(&file.device)?;
        Ok(Self { hash: *blake3::hash(&shared).as_bytes(), file, rules, folder, device, dealt: Mutex::new(None) })
    }

    /// The subgraph of one client.
    fn data(&self, node: usize, names: &[String]) -> std::result::Result<NodeData, LearningError> {
        let told = |error: mingle_graphs::ReadError| LearningError(error.to_string());
        if self.file.data.contains(NODE) {
            return graph(&self.file.data.replace(NODE, &names[node]), &self.folder).map_err(told);
        }
        let mut dealt = self.dealt.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = match &*dealt {
            Some(parts) => Arc::clone(parts),
            None => {
                let all = graph(&self.file.data, &self.folder).map_err(told)?;
                let parts = deal_out(all.graph(), names.len(), self.file.overlap(), self.file.seed)
                    .map_err(|error| LearningError(error.to_string()))?;
                let parts = Arc::new(parts.iter().map(|nodes| all.induced(nodes)).collect::<Vec<_>>());
                *dealt = Some(Arc::clone(&parts));
                parts
            }
        };
        Ok(parts[node].clone())
    }
}

impl RoundTask for NodesTask {
    fn hash(&self) -> [u8; 32] {
        self.hash
    }

    fn describe(&self) -> String {
        self.file.describe()
    }

    fn title(&self) -> String {
        "Node classification".to_owned()
    }

    fn rules(&self) -> &RoundRules {
        &self.rules
    }

    fn open(&self, node: usize, names: &[String]) -> std::result::Result<Box<dyn RoundLearning>, LearningError> {
        let name = &names[node];
        if self.file.data.contains(NODE) && Path::new(name).components().count() != 1 {
            return Err(LearningError(format!("node {name} cannot be in the name of a file: give it another name")));
        }
        let data = self.data(node, names)?;
        Ok(Box::new(NodeLearner::new(self.file.clone(), data, node, names.to_vec(), self.device.clone())))
    }
}
