//! The division of an object into symbols and blocks, which follows from its length alone.

use std::ops::Range;

/// Largest number of source symbols in a block: a block of full packets has 1.2 MB.
pub const MAX_BLOCK_SYMBOLS: u32 = 1024;

/// The symbols and blocks of one object.
///
/// Symbols are numbered: `0..sources` are the object, in order; `sources..2 * sources` are repair symbols, in the order
/// of their blocks. Blocks have equal sizes, but for one symbol.
///
/// ```
/// use mingle_multicast::Geometry;
/// let geometry = Geometry::new(3_000_000, 1166).unwrap();
/// assert_eq!((geometry.sources(), geometry.blocks()), (2573, 3));
/// assert_eq!([0, 1, 2].map(|block| geometry.block_len(block)), [858, 858, 857]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    object_bytes: u32,
    symbol_bytes: u16,
}

/// The place of a symbol: its block, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolPlace {
    /// The block.
    pub block: u32,
    /// Number among the source symbols of the block, or among its repair symbols.
    pub index: u32,
    /// `true` for a repair symbol.
    pub is_repair: bool,
}

impl Geometry {
    /// The division of `object_bytes` into symbols of `symbol_bytes`, an even number. `None` for an object without
    /// bytes or of 2^31 bytes and more, and for symbols that the code cannot have.
    pub fn new(object_bytes: usize, symbol_bytes: u16) -> Option<Self> {
        let object_bytes = u32::try_from(object_bytes).ok().filter(|bytes| (1..1 << 31).contains(bytes))?;
        let is_sound = symbol_bytes >= 2 && symbol_bytes.is_multiple_of(2);
        is_sound.then_some(Self { object_bytes, symbol_bytes })
    }

    /// Bytes of the object.
    pub fn object_bytes(&self) -> usize {
        self.object_bytes as usize
    }

    /// Bytes of a symbol; the last source symbol may have fewer.
    pub fn symbol_bytes(&self) -> usize {
        usize::from(self.symbol_bytes)
    }

    /// Number of source symbols.
    pub fn sources(&self) -> u32 {
        self.object_bytes.div_ceil(u32::from(self.symbol_bytes))
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u32 {
        self.sources().div_ceil(MAX_BLOCK_SYMBOLS)
    }

    /// Number of source symbols in a block, and of its repair symbols.
    pub fn block_len(&self, block: u32) -> u32 {
        let range = self.block(block);
        range.end - range.start
    }

    /// The source symbols of a block.
    pub fn block(&self, block: u32) -> Range<u32> {
        let (least, longer) = self.block_sizes();
        let start = |block: u32| block * least + block.min(longer);
        start(block)..start(block + 1)
    }

    /// The place of a symbol. `None` if there is none with this number.
    pub fn place(&self, symbol: u32) -> Option<SymbolPlace> {
        let is_repair = symbol >= self.sources();
        let source = if is_repair { symbol - self.sources() } else { symbol };
        if source >= self.sources() {
            return None;
        }
        let (least, longer) = self.block_sizes();
        let of_longer = longer * (least + 1);
        let block = if source < of_longer { source / (least + 1) } else { longer + (source - of_longer) / least };
        Some(SymbolPlace { block, index: source - self.block(block).start, is_repair })
    }

    /// The number of a repair symbol of a block.
    pub fn repair(&self, block: u32, index: u32) -> u32 {
        self.sources() + self.block(block).start + index
    }

    /// The bytes of a source symbol in the object.
    pub fn bytes_of(&self, source: u32) -> Range<usize> {
        let start = source as usize * self.symbol_bytes();
        start..(start + self.symbol_bytes()).min(self.object_bytes())
    }

    /// The length of a symbol as it travels.
    pub fn len_of(&self, symbol: u32) -> usize {
        if symbol < self.sources() { self.bytes_of(symbol).len() } else { self.symbol_bytes() }
    }

    /// For each block, its number of source symbols: what a receiver lacks that has none.
    pub fn all_missing(&self) -> Vec<u16> {
        (0..self.blocks()).map(|block| self.block_len(block) as u16).collect()
    }

    /// The size of the smaller blocks, and the number of blocks with one symbol more.
    fn block_sizes(&self) -> (u32, u32) {
        (self.sources() / self.blocks(), self.sources() % self.blocks())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_symbol_has_one_place_and_the_blocks_are_the_object() {
        for bytes in [1, 1165, 1166, 1167, 1_194_000, 1_195_000, 10_000_000] {
            let geometry = Geometry::new(bytes, 1166).unwrap();
            let mut next = 0;
            for block in 0..geometry.blocks() {
                let range = geometry.block(block);
                assert_eq!(range.start, next);
                assert!((1..=MAX_BLOCK_SYMBOLS).contains(&geometry.block_len(block)));
                for source in range.clone() {
                    let index = source - range.start;
                    assert_eq!(geometry.place(source), Some(SymbolPlace { block, index, is_repair: false }));
                    let repair = geometry.repair(block, index);
                    assert_eq!(geometry.place(repair), Some(SymbolPlace { block, index, is_repair: true }));
                }
                next = range.end;
            }
            assert_eq!(next, geometry.sources());
            assert_eq!(geometry.place(2 * next), None);
            assert_eq!((0..next).map(|source| geometry.len_of(source)).sum::<usize>(), bytes);
        }
    }

    #[test]
    fn objects_and_symbols_out_of_bounds_have_no_division() {
        assert!(Geometry::new(0, 1166).is_none() && Geometry::new(1 << 31, 1166).is_none());
        assert!(Geometry::new(1, 0).is_none() && Geometry::new(1, 1165).is_none());
    }
}
