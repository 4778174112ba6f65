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
use crate::error::{LONGEST_HEADER, PatchError};
use crate::model_bytes::ModelBytes;
use crate::streams::{self, PatchReader};

const MAGIC: [u8; 8] = *b"mingpat1";

/// The patch from one model file to another.
///
/// # Errors
/// The files have different tensors, or the header is too long.
pub fn encode(before: &ModelBytes, after: &ModelBytes) -> Result<Vec<u8>, PatchError> {
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
    let mut old = before.data();
    let mut new = after.data();
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
pub fn apply(before: &ModelBytes, patch: &[u8]) -> Result<ModelBytes, PatchError> {
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
    let after = ModelBytes::parse(file).map_err(PatchError::Result)?;
    let found = blake3::Hash::from_bytes(after.digest());
    if found != wanted {
        return Err(PatchError::OtherResult { wanted, found });
    }
    if !after.has_layout_of(before) {
        return Err(PatchError::OtherLayout);
    }
    Ok(after)
}
