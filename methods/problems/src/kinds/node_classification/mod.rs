//! Personal node classification as a task of learning in rounds: its problem file, and one peer's part in it.

mod file;
mod learner;
mod picture;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_graphs::{NodeData, ReadError, deal_out, two_characters};
use mingle_models::Device;
use mingle_solving::{LearningError, RoundLearning, RoundRules, RoundTask};

use crate::ProblemFileError;
use crate::dealt::{Dealt, own_data};
use crate::file::{RoundFile, open_device, shared_hash};
pub(crate) use file::NodesFile;
use learner::{METRICS, NodeLearner};

/// The name of the embedded graph.
const EMBEDDED: &str = "two-characters";
/// The seed of the embedded graph: it is the same everywhere.
const EMBEDDED_SEED: u64 = 1;

impl RoundFile for NodesFile {
    const KIND: &str = "node-classification";
    const USUAL_METHODS: &[(&str, &str)] = &[
        ("local", "sharing = \"local\""),
        ("average", "sharing = \"average\""),
        ("paper", "sharing = \"paper\""),
        ("angle", "sharing = \"angle\""),
        ("robust", "sharing = \"robust\""),
    ];
    #[cfg(test)]
    const EXAMPLE: &str = "kind='node-classification'\ndata='two-characters'\nsharing='robust'\nmetric='auc'\nrounds=60\n[model]\n\
                           orders=4\ntau=0.5\nhidden=32\ndropout=0.1\n[collaboration]\nmost_weights=10\nalpha=0.5\n";

    fn task(self, folder: PathBuf, _: Option<PathBuf>) -> Result<Arc<dyn RoundTask>, ProblemFileError> {
        Ok(Arc::new(NodesTask::new(self, folder)?))
    }
}

/// Node classification: the task of all peers, and the source of this one's graph.
#[derive(Debug)]
struct NodesTask {
    file: NodesFile,
    rules: RoundRules,
    hash: [u8; 32],
    folder: PathBuf,
    device: Device,
    dealt: Dealt<NodeData>,
}

/// Reads the graph that a text names: the embedded one, or files below a folder.
///
/// # Errors
/// The files cannot be read.
pub fn read_graph(text: &str, folder: &Path) -> Result<NodeData, ReadError> {
    match text {
        EMBEDDED => Ok(two_characters(EMBEDDED_SEED)),
        text => mingle_graphs::read_graph(&folder.join(text)),
    }
}

impl NodesTask {
    /// The task of a file in this folder.
    ///
    /// # Errors
    /// The file has an invalid value.
    fn new(file: NodesFile, folder: PathBuf) -> Result<Self, ProblemFileError> {
        file.options().check().map_err(|error| ProblemFileError::Options(error.into()))?;
        let metrics = METRICS.iter().map(|name| (*name).to_owned()).collect();
        let rules = RoundRules::new(file.rounds, metrics)?;
        let hash = shared_hash(&file.shared())?;
        let device = open_device(&file.device)?;
        Ok(Self { hash, file, rules, folder, device, dealt: Dealt::default() })
    }

    /// The subgraph of one client: its own file, or its part of the graph that is dealt out.
    fn data(&self, node: usize, names: &[String]) -> Result<NodeData, LearningError> {
        let read = |text: &str| read_graph(text, &self.folder).map_err(LearningError::of);
        match own_data(&self.file.data, &names[node])? {
            Some(own) => read(&own),
            None => self.dealt.part(node, names.len(), || {
                let all = read(&self.file.data)?;
                let parts = deal_out(all.graph(), names.len(), self.file.overlap(), self.file.seed);
                let parts = parts.map_err(LearningError::of)?;
                Ok(parts.iter().map(|nodes| all.induced(nodes)).collect())
            }),
        }
    }
}

impl RoundTask for NodesTask {
    fn hash(&self) -> [u8; 32] {
        self.hash
    }

    fn shared(&self) -> serde_json::Value {
        serde_json::to_value(self.file.shared()).unwrap_or_default()
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

    fn open(&self, node: usize, names: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        let data = self.data(node, names)?;
        Ok(Box::new(NodeLearner::new(self.file.clone(), data, node, names.to_vec(), self.device.clone())))
    }
}
