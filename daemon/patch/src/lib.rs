//! Lossless differences between two model files of one layout.
//!
//! A [`ModelBytes`] is a safetensors file as bytes. [`encode`] makes a patch from one file to another with the same
//! tensors, and [`apply`] makes the other file from the first one, checked by BLAKE3 over all its bytes.
//!
//! ```text
//!   numbers before  - (as integers, by their bits) -  numbers after
//!                            |
//!          blocks of 2^20 numbers, in classes by exponent
//!                            |
//!     none changed        nothing
//!     few changed         gaps between them, and their differences by byte planes
//!     many changed        differences of all, by byte planes
//!                            |
//!                  deflate, plane by plane, where that is shorter
//! ```
//!
//! Differences are those of the bit patterns: a number that moves by one unit in the last place has difference 1 or -1,
//! folded into 1 or 2. After a small step most numbers of a `bf16` model are unchanged, and few bytes of a patch remain;
//! the low bytes of `f32` numbers are as good as random after any step, and no lossless patch is much shorter than
//! those.
//!
//! This crate knows no network and no clock. Patches come from peers: [`apply`] takes no more memory than the file that
//! it has, the bytes of the patch, and a few blocks.

mod blocks;
mod classes;
mod error;
mod model_bytes;
mod patch;
mod streams;

pub use error::PatchError;
pub use model_bytes::{ModelBytes, ModelBytesError};
pub use patch::{apply, encode};
