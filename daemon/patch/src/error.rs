//! Errors of patches.

use crate::model_bytes::ModelBytesError;

/// Longest header in a patch. Model files of Mingle have at most a few kilobytes for each tensor and a task card.
pub(crate) const LONGEST_HEADER: usize = 16 << 20;

/// A patch that cannot be made or applied.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum PatchError {
    /// The two files have other tensors.
    #[error("the two model files do not have the same tensors")]
    OtherLayout,
    /// The header is longer than a patch may carry.
    #[error("the header of the model file has {bytes} bytes, and a patch carries {LONGEST_HEADER} at most")]
    LongHeader { bytes: usize },
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
    Result(#[source] ModelBytesError),
    /// The result is another file than the patch promises.
    #[error("the patch leads to the model blake3:{found}, and promises blake3:{wanted}")]
    OtherResult {
        /// BLAKE3 of the file that the patch promises.
        wanted: blake3::Hash,
        /// BLAKE3 of the result.
        found: blake3::Hash,
    },
}
