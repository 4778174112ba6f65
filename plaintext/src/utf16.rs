//! A reader that decodes UTF-16 to UTF-8.

use std::io::{self, Read};

/// The byte order of a unit.
#[derive(Clone, Copy)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

/// A decoder in which invalid units become U+FFFD.
pub(crate) struct Utf16<R> {
    units: R,
    order: ByteOrder,
    /// The first byte of a unit whose second has not arrived yet.
    half: Option<u8>,
    /// The first unit of a pair whose second has not arrived yet.
    high: Option<u16>,
    /// Decoded UTF-8, of which the bytes before `taken` have been read.
    ready: Vec<u8>,
    taken: usize,
}

impl<R: Read> Utf16<R> {
    pub(crate) fn new(units: R, order: ByteOrder) -> Self {
        Self { units, order, half: None, high: None, ready: Vec::new(), taken: 0 }
    }

    /// Reads until there are decoded bytes, or the input ends.
    fn refill(&mut self) -> io::Result<()> {
        self.ready.clear();
        self.taken = 0;
        let mut bytes = [0; 8192];
        while self.ready.is_empty() {
            let length = self.units.read(&mut bytes)?;
            if length == 0 {
                let is_cut = self.half.take().is_some() | self.high.take().is_some();
                if is_cut {
                    self.push(char::REPLACEMENT_CHARACTER);
                }
                return Ok(());
            }
            for &byte in &bytes[..length] {
                match (self.half.take(), self.order) {
                    (None, _) => self.half = Some(byte),
                    (Some(first), ByteOrder::Little) => self.unit(u16::from_le_bytes([first, byte])),
                    (Some(first), ByteOrder::Big) => self.unit(u16::from_be_bytes([first, byte])),
                }
            }
        }
        Ok(())
    }

    fn unit(&mut self, unit: u16) {
        let pending = self.high.take();
        if pending.is_none() && (0xd800..0xdc00).contains(&unit) {
            self.high = Some(unit);
            return;
        }
        let decoded = char::decode_utf16(pending.into_iter().chain([unit]));
        for character in decoded.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)) {
            self.push(character);
        }
    }

    fn push(&mut self, character: char) {
        self.ready.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ready.len() {
            self.refill()?;
        }
        let length = buffer.len().min(self.ready.len() - self.taken);
        buffer[..length].copy_from_slice(&self.ready[self.taken..self.taken + length]);
        self.taken += length;
        Ok(length)
    }
}
