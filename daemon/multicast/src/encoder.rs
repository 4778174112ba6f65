//! The bytes of each symbol of an object, at its sender.

use crate::code::{self, CodeError};
use crate::geometry::Geometry;

/// An object to be sent, and the repair symbols of the one block that is being repaired.
///
/// Besides the object it holds at most one block and its repair symbols, 2.4 MB.
#[derive(Debug)]
pub struct Encoder<T> {
    geometry: Geometry,
    object: T,
    repaired: Option<(u32, Vec<u8>)>,
}

impl<T: AsRef<[u8]>> Encoder<T> {
    /// An encoder of `object` in symbols of `symbol_bytes`. `None` if it cannot be divided so.
    pub fn new(object: T, symbol_bytes: u16) -> Option<Self> {
        let geometry = Geometry::new(object.as_ref().len(), symbol_bytes)?;
        Some(Self { geometry, object, repaired: None })
    }

    /// The division of the object.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The bytes of a symbol; empty for a number that no symbol has.
    ///
    /// # Errors
    /// The code cannot be applied to the block.
    pub fn symbol(&mut self, symbol: u32) -> Result<&[u8], CodeError> {
        let Some(place) = self.geometry.place(symbol) else { return Ok(&[]) };
        if !place.is_repair {
            return Ok(&self.object.as_ref()[self.geometry.bytes_of(symbol)]);
        }
        if self.repaired.as_ref().is_none_or(|(block, _)| *block != place.block) {
            self.repaired = Some((place.block, self.repairs(place.block)?));
        }
        let bytes = self.geometry.symbol_bytes();
        let start = place.index as usize * bytes;
        Ok(self.repaired.as_ref().and_then(|(_, repairs)| repairs.get(start..start + bytes)).unwrap_or_default())
    }

    fn repairs(&self, block: u32) -> Result<Vec<u8>, CodeError> {
        let sources = self.geometry.block(block);
        let from = self.geometry.bytes_of(sources.start).start;
        let to = self.geometry.bytes_of(sources.end - 1).end;
        let mut symbols = self.object.as_ref()[from..to].to_vec();
        symbols.resize(self.geometry.block_len(block) as usize * self.geometry.symbol_bytes(), 0);
        code::encode(&symbols, self.geometry.symbol_bytes())
    }
}
