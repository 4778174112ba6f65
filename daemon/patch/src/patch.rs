//! A patch: the header of the new file, and the differences of the numbers.
//!
//! ```text
//!   bytes           content
//!   8               "mingpat1"
//!   32, 32          BLAKE3 of the file before and of the file after
//!   4, piece        length of the header after, with its own length; the header
//!   blocks          the differences, block by block (blocks.rs)
//! ```

use crate::blocks::{self, BLOCK};
use crate::model_file::{ModelFile, ModelFileError};
use crate::streams::{self, PatchReader};

const MAGIC: [u8; 8] = *b"mingpat1";
/// Longest header in a patch. Model files of Mingle have at most a few kilobytes for each tensor and a task card.
const LONGEST_HEADER: usize = 16 << 20;

/// A patch that cannot be made or applied.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The two files have other tensors.
    #[error("the two model files do not have the same tensors")]
    OtherLayout,
    /// The header is longer than a patch may carry.
    #[error("the header of the model file has {bytes} bytes, and a patch carries {LONGEST_HEADER} at most")]
    LongHeader {
        /// Its length.
        bytes: usize,
    },
    /// The bytes begin otherwise than a patch.
    #[error("it is no patch of this release")]
    Magic,
    /// The patch is one from another file.
    #[error("the patch is from the model blake3:{wanted}, and this is blake3:{found}")]
    OtherModel {
        /// BLAKE3 of the file that it changes.
        wanted: blake3::Hash,
        /// BLAKE3 of the present file.
        found: blake3::Hash,
    },
    /// The patch ends early.
    #[error("the patch is cut off")]
    CutOff,
    /// A piece has another length than it should.
    #[error("a piece of the patch does not have its length")]
    Piece,
    /// A block contradicts its own numbers.
    #[error("a block of the patch contradicts itself")]
    Block,
    /// Bytes follow the last block.
    #[error("the patch goes on after its end")]
    Trailing,
    /// The result is no model file.
    #[error("the patch leads to no model file")]
    Result(#[source] ModelFileError),
    /// The result is another file than the patch promises.
    #[error("the patch leads to the model blake3:{found}, and promises blake3:{wanted}")]
    OtherResult {
        /// BLAKE3 of the file that the patch promises.
        wanted: blake3::Hash,
        /// BLAKE3 of the result.
        found: blake3::Hash,
    },
}

/// The patch from one model file to another.
///
/// # Errors
/// The files have different tensors, or the header is too long.
pub fn encode(before: &ModelFile, after: &ModelFile) -> Result<Vec<u8>, PatchError> {
    if !before.has_layout_of(after) {
        return Err(PatchError::OtherLayout);
    }
    let header = after.header();
    if header.len() > LONGEST_HEADER {
        return Err(PatchError::LongHeader { bytes: header.len() });
    }
    let mut patch = Vec::new();
    patch.extend(MAGIC);
    patch.extend(before.digest());
    patch.extend(after.digest());
    patch.extend((header.len() as u32).to_le_bytes());
    streams::put(&mut patch, header);
    let (mut old, mut new) = (before.data(), after.data());
    for run in before.runs() {
        let (old_run, new_run);
        (old_run, old) = old.split_at(run.length);
        (new_run, new) = new.split_at(run.length);
        let block = BLOCK * run.width;
        for (old, new) in old_run.chunks(block).zip(new_run.chunks(block)) {
            blocks::put(&mut patch, run.width, old, new);
        }
    }
    Ok(patch)
}

/// The file after a patch, equal to the one that the patch was made from, to the bit.
///
/// # Errors
/// The patch is not one from this file, or damaged. Nothing beyond the size of the file and of the patch is allocated
/// before that is found.
pub fn apply(before: &ModelFile, patch: &[u8]) -> Result<ModelFile, PatchError> {
    let mut patch = PatchReader::new(patch);
    if patch.array::<8>().map_err(|_| PatchError::Magic)? != MAGIC {
        return Err(PatchError::Magic);
    }
    let wanted_before = blake3::Hash::from_bytes(patch.array()?);
    let wanted = blake3::Hash::from_bytes(patch.array()?);
    let found = blake3::Hash::from_bytes(before.digest());
    if wanted_before != found {
        return Err(PatchError::OtherModel { wanted: wanted_before, found });
    }
    let header = patch.length()?;
    if header > LONGEST_HEADER {
        return Err(PatchError::LongHeader { bytes: header });
    }
    let mut file = patch.piece(header)?;
    let header = file.len();
    file.reserve_exact(before.data().len());
    file.extend_from_slice(before.data());
    let mut rest = &mut file[header..];
    for run in before.runs() {
        let (numbers, others) = rest.split_at_mut(run.length);
        rest = others;
        for block in numbers.chunks_mut(BLOCK * run.width) {
            blocks::change(&mut patch, run.width, block)?;
        }
    }
    if !patch.is_at_end() {
        return Err(PatchError::Trailing);
    }
    let after = ModelFile::parse(file).map_err(PatchError::Result)?;
    let found = blake3::Hash::from_bytes(after.digest());
    if found != wanted {
        return Err(PatchError::OtherResult { wanted, found });
    }
    if !after.has_layout_of(before) {
        return Err(PatchError::OtherLayout);
    }
    Ok(after)
}
