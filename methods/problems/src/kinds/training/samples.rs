//! The samples of each peer: its own, or its part of one source that is dealt out.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mingle_models::{DataCard, DataSet, DataSource, ObjectiveKind, Split};
use serde_json::Value;

use super::TrainingFile;
use crate::ProblemFileError;
use crate::dealt::{Dealt, own_data};
use mingle_plaintext::InputFile;
use mingle_solving::LearningError;

/// The longest file of a card.
const MOST_BYTES: u64 = 64 << 20;

/// The source of all peers' samples.
#[derive(Debug)]
pub(super) struct SampleSource {
    data: String,
    folder: PathBuf,
    card: Option<DataCard>,
    split: Split,
    objective: ObjectiveKind,
    seed: u64,
    dealt: Dealt<FoundSamples>,
    /// The name of the node whose data the source is, where it is not dealt out, once a node has read it.
    owner: OnceLock<String>,
}

/// The samples of a node.
#[derive(Clone, Debug)]
pub(super) struct FoundSamples {
    pub(super) data: DataSet,
    /// Remarks on how they were read, such as which column is the label.
    pub(super) remarks: Vec<String>,
}

impl SampleSource {
    /// The source that a problem file in `folder` names.
    ///
    /// # Errors
    /// Its card cannot be read.
    pub(super) fn new(file: &TrainingFile, folder: PathBuf) -> Result<Self, ProblemFileError> {
        let card = file.card.as_ref().map(|name| read_card(&folder.join(name))).transpose()?;
        Ok(Self {
            data: file.data.clone(),
            folder,
            card,
            split: file.split,
            objective: file.task,
            seed: file.seed,
            dealt: Dealt::default(),
            owner: OnceLock::new(),
        })
    }

    /// The card that the problem file names.
    pub(super) fn card(&self) -> Option<&DataCard> {
        self.card.as_ref()
    }

    /// The samples of one node.
    ///
    /// # Errors
    /// They cannot be read or dealt out, or lack a card.
    pub(super) fn of_node(&self, node: usize, names: &[String]) -> Result<FoundSamples, LearningError> {
        match own_data(&self.data, &names[node])? {
            Some(own) => self.load(&own, true),
            // A card says what the columns of several sites mean: this is the table of one of them.
            None if self.card.is_some() => self.load_of_one(&names[node]),
            None => self.dealt.part(node, names.len(), || self.deal(names.len())),
        }
    }

    /// The whole source, which is that of this node alone.
    fn load_of_one(&self, name: &str) -> Result<FoundSamples, LearningError> {
        if self.owner.get_or_init(|| name.to_owned()) != name {
            return Err(LearningError(format!(
                "data = {:?} with a card is the data of one node, and several read it here: write a name with {{node}} in it, \
                 or leave the card out to deal one source out",
                self.data
            )));
        }
        self.load(&self.data, true)
    }

    fn deal(&self, nodes: usize) -> Result<Vec<FoundSamples>, LearningError> {
        let FoundSamples { data: whole, remarks } = self.load(&self.data, false)?;
        let parts = self.split.share_out(&whole.train, nodes, self.seed).map_err(LearningError::of)?;
        let part = |of: &Vec<usize>| FoundSamples {
            data: DataSet { train: whole.train.select(of), ..whole.clone() },
            remarks: remarks.clone(),
        };
        Ok(parts.iter().map(part).collect())
    }

    fn load(&self, text: &str, is_own: bool) -> Result<FoundSamples, LearningError> {
        let source: DataSource = below(&self.folder, text).parse().map_err(LearningError::of)?;
        let raw = source.read().map_err(LearningError::of)?;
        let card = match &self.card {
            Some(card) => card.clone(),
            None if is_own && !raw.means_the_same_everywhere() => {
                return Err(LearningError(format!(
                    "{text}: columns, classes and scaling of several sites have to be the same: name a card, card = \"card.json\", \
                     which `mingle data card` makes of the files or sums of all"
                )));
            }
            None => raw.card_for(self.objective, self.seed).map_err(LearningError::of)?,
        };
        let remarks = raw.remarks();
        let data = raw.data_set(&card, self.seed).map_err(LearningError::of)?;
        Ok(FoundSamples { data, remarks })
    }
}

/// A source of which a file or folder is relative to this folder.
fn below(folder: &Path, text: &str) -> String {
    match text.split_once(':') {
        Some((kind, path)) => format!("{kind}:{}", folder.join(path).display()),
        None => text.to_owned(),
    }
}

fn read_card(path: &Path) -> Result<DataCard, ProblemFileError> {
    let unreadable = |source| ProblemFileError::Unreadable { path: path.to_owned(), source };
    let wrong = |reason: &dyn std::fmt::Display| ProblemFileError::Value(format!("card {}: {reason}", path.display()));
    let mut text = String::new();
    let file = InputFile::open(path).map_err(unreadable)?;
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    let mut document: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let schema = document.as_object_mut().and_then(|fields| fields.remove("schema"));
    if schema != Some(Value::from(DataCard::SCHEMA)) {
        return Err(wrong(&"this is no card of data: `mingle data card --data DATA -o FILE` writes one"));
    }
    serde_json::from_value(document).map_err(|error| wrong(&error))
}
