//! A cache of spectra and parts on disk, since a large graph takes minutes.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use mingle_spectra::WeightedGraph;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::LowPass;
use crate::error::RecommendError;
use crate::interactions::Interactions;
use crate::partition::{DealOptions, GraphParts, co_cluster_labels, parts_of};

/// The most bytes of a file that is read.
const MOST_BYTES: u64 = 64 << 30;
/// The version of the computation; it changes when the results change.
const VERSION: &[u8] = b"mingle.low-pass/1";
const PARTS_VERSION: &[u8] = b"mingle.parts/1";

/// A folder of spectra and parts, each in a file named by the hash of its inputs.
#[derive(Clone, Debug)]
pub struct SpectrumCache {
    folder: PathBuf,
}

impl SpectrumCache {
    /// A cache in a folder, which is created with the first file.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The low frequencies of a graph, from disk, else computed and written there. A damaged file is computed anew.
    ///
    /// # Errors
    /// As [`LowPass::of`], and a file that cannot be written.
    pub fn low_pass(&self, graph: &WeightedGraph, frequencies: usize) -> Result<LowPass, RecommendError> {
        let key = key(graph, frequencies);
        let path = self.folder.join(format!("{}.spectrum", hex::encode(&key[..16])));
        if let Some(kept) = read::<LowPass>(&path).filter(|kept| {
            kept.nodes == graph.node_count()
                && kept.frequencies() == frequencies
                && kept.vectors.len() == kept.nodes * frequencies
        }) {
            return Ok(kept);
        }
        let computed = LowPass::of(graph, frequencies)?;
        self.write(&path, &computed).map_err(|source| RecommendError::Io { path, source })?;
        Ok(computed)
    }

    /// The parts that interactions are dealt to, from disk, else computed and written there.
    ///
    /// # Errors
    /// As [`co_cluster`](crate::co_cluster), and a file that cannot be written.
    pub fn co_cluster(
        &self,
        interactions: &Interactions,
        clients: usize,
        options: DealOptions,
    ) -> Result<GraphParts, RecommendError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(PARTS_VERSION).update(&interactions.hash()).update(&(clients as u64).to_le_bytes());
        hasher.update(&[u8::from(options.balanced)]).update(&options.seed.to_le_bytes());
        let path = self.folder.join(format!("{}.parts", hex::encode(&hasher.finalize().as_bytes()[..16])));
        let nodes = interactions.users().len() + interactions.items().len();
        let kept = read::<Vec<u32>>(&path)
            .filter(|labels| labels.len() == nodes && labels.iter().all(|label| (*label as usize) < clients));
        if let Some(labels) = kept {
            return parts_of(interactions, clients, &labels);
        }
        let labels = co_cluster_labels(interactions, clients, options)?;
        self.write(&path, &labels).map_err(|source| RecommendError::Io { path, source })?;
        parts_of(interactions, clients, &labels)
    }

    fn write(&self, path: &Path, computed: &impl Serialize) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let body = postcard::to_stdvec(computed).map_err(io::Error::other)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(blake3::hash(&body).as_bytes())?;
        file.write_all(&body)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() > MOST_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let (hash, body) = bytes.split_first_chunk::<32>()?;
    if blake3::hash(body).as_bytes() != hash {
        return None;
    }
    postcard::from_bytes(body).ok()
}

fn key(graph: &WeightedGraph, frequencies: usize) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(VERSION);
    hasher.update(&(frequencies as u64).to_le_bytes());
    for node in 0..graph.node_count() {
        hasher.update(&u64::MAX.to_le_bytes());
        for (other, weight) in graph.neighbours(node) {
            hasher.update(&u64::from(other).to_le_bytes());
            hasher.update(&weight.to_bits().to_le_bytes());
        }
    }
    *hasher.finalize().as_bytes()
}
