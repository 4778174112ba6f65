//! Checkpoints: a model in one file that PyTorch users can load as it is.
//!
//! The format is [safetensors](https://github.com/huggingface/safetensors) with PyTorch's names and
//! shapes: burn keeps the weight of a linear layer as `[inputs, outputs]`, the file as
//! `[outputs, inputs]`. `torch.nn` modules with fields of the same names (`fc1`, `conv1`, `linear`)
//! accept it as a state dictionary.
//!
//! A file is complete or absent: it is written beside its final name, flushed to disk and renamed.
//! Equal parameters and metadata give equal bytes, so checkpoints can be compared by their hash.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use burn_store::{BurnToPyTorchAdapter, ModuleSnapshot, PyTorchToBurnAdapter, SafetensorsStore};
use safetensors::SafeTensors;
use serde_json::{Map, Value};

use crate::checkpoint_error::{CheckpointError, HEADER_MAX, TensorDifference};
use crate::flatten::{flatten, unflatten};
use crate::half_precision::widened;
use crate::model_file::ModelFile;
use crate::regular_file;
use crate::task::Task;

/// The length of a word. The header starts after its length, a little-endian 64-bit number, and tensors start at
/// multiples of it.
const WORD: usize = 8;

/// The parameters of a model and its metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The flat parameters.
    pub parameters: Vec<f32>,
    /// Free text by key: the round, hashes of the plan and the task, metrics.
    pub metadata: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Writes the checkpoint of a `task` to `path`, replacing what is there in one step.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Task`] when the parameters have the wrong length,
    /// [`CheckpointError::Write`] when the file cannot be written; what was at `path` is then
    /// untouched.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use mingle_models::{Checkpoint, ModelKind, SampleShape, Task};
    ///
    /// let task = Task::new(ModelKind::Softmax, SampleShape::Flat { features: 4 }, 3)?;
    /// let checkpoint = Checkpoint {
    ///     parameters: task.initial_parameters(1),
    ///     metadata: BTreeMap::from([("round".into(), "12".into())]),
    /// };
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("model.safetensors");
    /// checkpoint.save(&path, &task)?;
    /// assert_eq!(Checkpoint::load(&path, &task)?.parameters, checkpoint.parameters);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: &Path, task: &Task) -> Result<(), CheckpointError> {
        let bytes = self.to_bytes(task)?;
        write_atomically(path, &bytes).map_err(|error| CheckpointError::Write { path: path.into(), error })
    }

    /// Reads the checkpoint of a `task` from `path`.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Read`] when the file cannot be read, [`CheckpointError::Size`] when it is
    /// too large for the task, [`CheckpointError::Format`] when it is not a safetensors file, and
    /// [`CheckpointError::Tensor`] when it has not exactly the task's tensors, as 32-bit numbers or in half precision.
    pub fn load(path: &Path, task: &Task) -> Result<Self, CheckpointError> {
        let limit = HEADER_MAX + (task.parameter_count() * size_of::<f32>()) as u64;
        let mut bytes = Vec::new();
        regular_file::open(path)
            .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
            .map_err(|error| CheckpointError::Read { path: path.into(), error })?;
        if bytes.len() as u64 > limit {
            return Err(CheckpointError::Size { path: path.into(), limit });
        }
        let format = |reason| CheckpointError::Format { path: path.into(), reason };
        if let Some(difference) = ModelFile::of(&bytes).map_err(format)?.difference(task) {
            return Err(CheckpointError::Tensor { path: path.into(), difference });
        }
        widened(bytes).and_then(|bytes| Self::decode(bytes, task)).map_err(format)
    }

    /// The checkpoint of a `task` as the bytes of a file, for callers that write it themselves.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Task`] when the parameters have the wrong length,
    /// [`CheckpointError::Encode`] when the format cannot hold them.
    pub fn to_bytes(&self, task: &Task) -> Result<Vec<u8>, CheckpointError> {
        Self::encoded(&self.parameters, &self.metadata, task)
    }

    /// The checkpoint of these parameters and metadata as the bytes of a file, without a copy of the parameters.
    ///
    /// # Errors
    ///
    /// Those of [`to_bytes`](Self::to_bytes).
    pub fn encoded(
        parameters: &[f32],
        metadata: &BTreeMap<String, String>,
        task: &Task,
    ) -> Result<Vec<u8>, CheckpointError> {
        task.check(parameters)?;
        encode(parameters, metadata, task).map_err(|reason| CheckpointError::Encode { reason })
    }

    fn decode(bytes: Vec<u8>, task: &Task) -> Result<Self, String> {
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|error| error.to_string())?;
        let metadata = header.metadata().iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut network = task.blank();
        let mut store =
            SafetensorsStore::from_bytes(Some(bytes)).skip_enum_variants(true).with_from_adapter(PyTorchToBurnAdapter);
        let result = network.load_from(&mut store).map_err(|error| error.to_string())?;
        if let Some(unused) = result.unused.first() {
            return Err(format!("it has a tensor {unused} that the model has not"));
        }
        let mut parameters = Vec::with_capacity(task.parameter_count());
        flatten(network, &mut parameters)?;
        Ok(Self { parameters, metadata })
    }
}

/// A checkpoint as the bytes of a file; the caller has checked the number of parameters.
fn encode(parameters: &[f32], metadata: &BTreeMap<String, String>, task: &Task) -> Result<Vec<u8>, String> {
    let network = unflatten(task.blank(), parameters, &burn::tensor::Device::flex());
    let mut store = SafetensorsStore::from_bytes(None)
        .clear_metadata()
        .skip_enum_variants(true)
        .with_to_adapter(BurnToPyTorchAdapter);
    network.save_into(&mut store).map_err(|error| error.to_string())?;
    // Of a large model, each copy counts.
    drop(network);
    let mut bytes = store.get_bytes().map_err(|error| error.to_string())?;
    drop(store);
    put_metadata(&mut bytes, metadata).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Puts `metadata` into the header of a safetensors file, in the order of its keys. The store would write it in a
/// random order.
fn put_metadata(file: &mut Vec<u8>, metadata: &BTreeMap<String, String>) -> serde_json::Result<()> {
    let (length, rest) = file.split_at(WORD);
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let header = &rest[..length];
    let mut entries: BTreeMap<String, Value> = serde_json::from_slice(header)?;
    let metadata = metadata.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
    entries.insert("__metadata__".into(), Value::Object(metadata.collect::<Map<_, _>>()));
    let mut header = serde_json::to_vec(&entries)?;
    header.resize(header.len().next_multiple_of(WORD), b' ');

    let front = (header.len() as u64).to_le_bytes().into_iter().chain(header);
    file.splice(..WORD + length, front.collect::<Vec<u8>>());
    Ok(())
}

/// Writes a new file beside `path` and renames it once it is on disk.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Permissions as of any new file, by the user's umask; those of temporary files are narrower.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.prefix(".checkpoint-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|refused| refused.error)?;
    // The new name is durable once its folder is on disk too. The file is whole either way, so the save succeeds on a
    // system that cannot flush a folder.
    #[cfg(unix)]
    if let Ok(folder) = std::fs::File::open(folder) {
        folder.sync_all().ok();
    }
    Ok(())
}

impl ModelFile {
    /// The first tensor that differs from those of the `task`; `None` if the file is a model of the task.
    pub fn difference(&self, task: &Task) -> Option<TensorDifference> {
        let wanted = tensors(task);
        for (name, shape) in &wanted {
            let Some(found) = self.tensor(name) else {
                return Some(TensorDifference::Missing { name: name.clone() });
            };
            if found.shape != *shape {
                return Some(TensorDifference::Shape {
                    name: name.clone(),
                    found: found.shape.clone(),
                    wanted: shape.clone(),
                });
            }
            if !["F32", "F16", "BF16"].contains(&found.dtype.as_str()) {
                return Some(TensorDifference::Type { name: name.clone(), found: found.dtype.clone() });
            }
        }
        let unknown = self.tensors.iter().find(|tensor| !wanted.contains_key(&tensor.name));
        unknown.map(|tensor| TensorDifference::Unknown { name: tensor.name.clone() })
    }
}

/// The tensors of a model file by name, with their shapes there.
///
/// They are read from the encoded file of a blank, so they are those that are written, whatever the model.
fn tensors(task: &Task) -> BTreeMap<String, Vec<usize>> {
    let blank = vec![0.0; task.parameter_count()];
    let file = encode(&blank, &BTreeMap::new(), task).and_then(|bytes| ModelFile::of(&bytes));
    file.map(|file| file.tensors.into_iter().map(|tensor| (tensor.name, tensor.shape)).collect()).unwrap_or_default()
}
