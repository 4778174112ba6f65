//! Pieces of a patch: each a string of bytes whose length the reader knows, deflated where that is shorter.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use crate::error::PatchError;

/// Effort of deflate. Less makes patches up to a tenth longer, more gains nothing.
const EFFORT: u32 = 6;

const PLAIN: u8 = 0;
const DEFLATED: u8 = 1;
const ONE_BYTE: u8 = 2;

/// Writes a piece.
pub(crate) fn put(patch: &mut Vec<u8>, piece: &[u8]) {
    match piece {
        [first, rest @ ..] if rest.iter().all(|byte| byte == first) => put_as(patch, ONE_BYTE, &[*first]),
        _ => match deflated(piece) {
            Some(shorter) => put_as(patch, DEFLATED, &shorter),
            None => put_as(patch, PLAIN, piece),
        },
    }
}

fn put_as(patch: &mut Vec<u8>, form: u8, content: &[u8]) {
    patch.push(form);
    patch.extend((content.len() as u32).to_le_bytes());
    patch.extend_from_slice(content);
}

/// The piece deflated; `None` if that is no shorter.
fn deflated(piece: &[u8]) -> Option<Vec<u8>> {
    if is_noise(piece) {
        return None;
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(EFFORT));
    // Writing to a vector does not fail.
    encoder.write_all(piece).ok()?;
    encoder.finish().ok().filter(|shorter| shorter.len() < piece.len())
}

/// Returns `true` if codes of single bytes gain less than a fiftieth, as for the low bytes of numbers after a step. Deflate
/// would take long to find that out.
fn is_noise(piece: &[u8]) -> bool {
    let mut counts = [0_u32; 256];
    piece.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let length = piece.len() as f64;
    let bits: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|&count| f64::from(count) * (length / f64::from(count)).log2())
        .sum();
    bits > 0.98 * 8.0 * length
}

/// A reader of the bytes of a patch.
pub(crate) struct PatchReader<'a> {
    rest: &'a [u8],
}

impl<'a> PatchReader<'a> {
    pub(crate) fn new(patch: &'a [u8]) -> Self {
        Self { rest: patch }
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], PatchError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(PatchError::CutOff)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], PatchError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(PatchError::CutOff)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn length(&mut self) -> Result<usize, PatchError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    /// The next piece, which has this length. Nothing longer is allocated, whatever the piece says.
    pub(crate) fn piece(&mut self, length: usize) -> Result<Vec<u8>, PatchError> {
        let [form] = self.array()?;
        let content = self.length()?;
        let content = self.take(content)?;
        match (form, content) {
            (PLAIN, _) if content.len() == length => Ok(content.to_vec()),
            (ONE_BYTE, &[byte]) => Ok(vec![byte; length]),
            (DEFLATED, _) => inflated(content, length),
            _ => Err(PatchError::Piece),
        }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
}

/// The content inflated to exactly `length` bytes.
fn inflated(content: &[u8], length: usize) -> Result<Vec<u8>, PatchError> {
    let mut bytes = Vec::new();
    // One byte more shows a piece that is too long. The vector grows with what arrives.
    let most = (length as u64).saturating_add(1);
    DeflateDecoder::new(content).take(most).read_to_end(&mut bytes).map_err(|_| PatchError::Piece)?;
    if bytes.len() == length { Ok(bytes) } else { Err(PatchError::Piece) }
}
