//! The task of a trainer as a file in the home, so that a peer continues from its records before its trainer is back.

use std::collections::BTreeSet;

use mingle_peer::error::Context;
use mingle_peer::home::write_file;
use mingle_peer::records::counting_file;
use mingle_peer::training::Layout;
use mingle_peer::{Error, ErrorKind, Home, Result};
use mingle_protocol::record::{MAX_HOST_BYTES, most_training_bytes};
use serde::{Deserialize, Serialize};

use crate::error::{Reason, Refusal};
use crate::pace::RECORDED_PACE_BYTES;
use crate::wire::Attach;

/// The version of the file, and of the bytes that records keep beside the trainer's own state.
const SCHEMA: &str = "mingle.trainer/2";
/// Bytes of the file at most.
const MAX_BYTES: u64 = 4 << 20;
/// Numbers in a vector at most, 16 GiB of `f32`: more would be a mistake in the layout.
const MAX_DIMENSION: usize = 1 << 32;

/// A trainer's task: the name and layout of its model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrainedTask {
    schema: String,
    /// The name of the task, the same on all peers.
    pub(crate) name: String,
    /// The tensors that are exchanged.
    pub(crate) layout: Layout,
    /// Most bytes of the trainer's own state that a record has room for.
    pub(crate) state_bytes: usize,
    /// Training samples of the trainer that defined the task; 0 where unknown.
    pub(crate) samples: usize,
    /// Rounds of the run; none in a file of an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rounds: Option<u64>,
    /// BLAKE3 of the model file that this peer began its run with, in hexadecimal, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begun_with: Option<String>,
}

impl TrainedTask {
    /// The task of a trainer that attaches.
    ///
    /// # Errors
    /// Two tensors share a name, there are too many numbers, or records have no room for the trainer's state.
    pub(crate) fn of(attach: &Attach) -> Result<Self, Refusal> {
        let layout = attach.layout();
        let mut names = BTreeSet::new();
        if let Some(tensor) = layout.tensors().iter().find(|tensor| !names.insert(tensor.name.as_str())) {
            return Err(Refusal::bad(format!("two tensors of the layout are called `{}`", tensor.name)));
        }
        let dimension = layout.dimension();
        if dimension > MAX_DIMENSION {
            return Err(Refusal::bad(format!(
                "the layout has {dimension} numbers, and a peer holds {MAX_DIMENSION} at most"
            )));
        }
        let most = most_training_bytes(dimension) - RECORDED_PACE_BYTES;
        if attach.state_bytes > most {
            let message = format!("the trainer would keep {} bytes, and a record holds {most}", attach.state_bytes);
            return Err(Refusal::bad(message).hint("keep what is larger beside the peer, in a file of the trainer"));
        }
        let state_bytes = attach.state_bytes.max(MAX_HOST_BYTES - RECORDED_PACE_BYTES);
        Ok(Self {
            schema: SCHEMA.to_owned(),
            name: attach.name.clone(),
            layout,
            state_bytes,
            samples: attach.samples,
            rounds: None,
            begun_with: None,
        })
    }

    /// Refuses a trainer of another task, with the first difference.
    pub(crate) fn check(&self, there: &Self) -> Result<(), Refusal> {
        let difference = if self.name == there.name {
            self.layout.difference(&there.layout)
        } else {
            Some(format!("the task is `{}` here and `{}` there", self.name, there.name))
        };
        match difference {
            None => Ok(()),
            Some(difference) => Err(Refusal::conflict(Reason::Task, format!("the peer trains another model: {difference} (here: the peer, there: the trainer)"))
                .hint("change the trainer's model back, or give it a peer in another home; `mingle run --fresh` gives up what this one holds")),
        }
    }

    /// Reads the task from the home; none where the file is missing.
    ///
    /// # Errors
    /// The file cannot be read, is too large or damaged, or is of another release.
    pub(crate) fn recall(home: &Home) -> Result<Option<Self>> {
        let path = counting_file(home, &home.trainer());
        let length = match std::fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(ErrorKind::BadInput, format!("cannot read {}", path.display())),
        };
        let damaged = |what: String| {
            Error::new(ErrorKind::Integrity, format!("{} is damaged: {what}", path.display())).hint(
                "put back the file of a backup, or that of another peer of this run; or give the work of this home up with --fresh",
            )
        };
        if length > MAX_BYTES {
            return Err(damaged(format!("it has {length} bytes")));
        }
        let text = std::fs::read(&path).context(ErrorKind::BadInput, format!("cannot read {}", path.display()))?;
        let task: Self = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if task.schema != SCHEMA {
            return Err(damaged(format!("it is `{}`, and this release reads `{SCHEMA}`", task.schema)));
        }
        Ok(Some(task))
    }

    /// Writes the task to the home.
    pub(crate) fn remember(&self, home: &Home) -> Result {
        let text = serde_json::to_vec(self).context(ErrorKind::Unexpected, "cannot write down what is trained")?;
        write_file(&home.trainer(), &text)
    }
}
