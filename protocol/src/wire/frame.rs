//! Frames: a length, a kind, a body.

use super::WireError;

/// Bytes in front of every body: its length and its kind.
pub const FRAME_HEAD_BYTES: usize = 5;
/// Longest control body.
pub const MAX_CONTROL_BYTES: usize = 64 * 1024;
/// Longest leave certificate: that of a node with 40,000 links to it.
pub const MAX_CERTIFICATE_BYTES: usize = 1 << 20;
/// Longest message of a collective: a vector of 131,000 numbers.
pub const MAX_COLLECTIVE_BYTES: usize = 1 << 20;
/// Longest chunk body.
pub const MAX_CHUNK_BYTES: usize = 256 * 1024;

/// The kind of a frame's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Hello = 1,
    Ack = 2,
    Parcel = 3,
    Chunk = 4,
    // 5 and 6 were plans, which travel outside of these streams.
    Left = 7,
    Collective = 8,
    Process = 9,
    Elsewhere = 10,
    Aside = 11,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        const ALL: [Kind; 9] = [
            Kind::Hello,
            Kind::Ack,
            Kind::Parcel,
            Kind::Chunk,
            Kind::Left,
            Kind::Collective,
            Kind::Process,
            Kind::Elsewhere,
            Kind::Aside,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Returns `true` for the kinds of streams whose payloads may travel elsewhere.
    pub(super) fn is_about_payloads_elsewhere(self) -> bool {
        matches!(self, Self::Elsewhere | Self::Aside)
    }

    fn limit(self) -> usize {
        match self {
            Self::Chunk => MAX_CHUNK_BYTES,
            Self::Left => MAX_CERTIFICATE_BYTES,
            Self::Collective => MAX_COLLECTIVE_BYTES,
            _ => MAX_CONTROL_BYTES,
        }
    }
}

/// The head of a frame, checked against the limit of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) bytes: usize,
}

impl Head {
    pub(super) fn decode(head: [u8; FRAME_HEAD_BYTES]) -> Result<Self, WireError> {
        let [a, b, c, d, kind_byte] = head;
        let bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        let kind = Kind::from_byte(kind_byte).ok_or(WireError::UnknownKind { kind: kind_byte })?;
        if bytes > kind.limit() {
            return Err(WireError::FrameTooLong { kind: kind_byte, bytes, limit: kind.limit() });
        }
        Ok(Self { kind, bytes })
    }

    pub(super) fn encode(self) -> [u8; FRAME_HEAD_BYTES] {
        let [a, b, c, d] = (self.bytes as u32).to_le_bytes();
        [a, b, c, d, self.kind as u8]
    }
}
