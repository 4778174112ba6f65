//! Frames with the mark of the process that sends them.
//!
//! A process that lost its home, or found an older copy of it, begins an attempt of a number that its neighbours know already.
//! Its frames there would be taken for those of the process before it. So each process draws a mark, which stands before each
//! of its frames: four bytes, little-endian.

use mingle_protocol::collective::{Frame, MessageEncoding, MessageError, SequenceMessage, SizeLimits};

/// The length of a mark.
const MARK: usize = 4;

/// A frame and the process that it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkedFrame {
    /// The mark of the process.
    pub process: u32,
    /// The frame.
    pub frame: Frame<SequenceMessage>,
}

impl MarkedFrame {
    /// The bytes in an envelope.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.process.to_le_bytes().to_vec();
        self.frame.encode_into(&mut bytes);
        bytes
    }

    /// The frame of such bytes.
    ///
    /// # Errors
    /// They have no mark, or no frame of these sizes.
    pub fn decode(bytes: &[u8], sizes: &SizeLimits) -> Result<Self, MessageError> {
        let process = Self::process_of(bytes).ok_or(MessageError::Head)?;
        Ok(Self { process, frame: Frame::decode(&bytes[MARK..], sizes)? })
    }

    /// The mark before the frame; `None` where the bytes are too few for one.
    pub(crate) fn process_of(bytes: &[u8]) -> Option<u32> {
        bytes.first_chunk().map(|mark: &[u8; MARK]| u32::from_le_bytes(*mark))
    }
}
