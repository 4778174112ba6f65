//! One object under way: its symbols are put into place as they come, in any order.

use std::collections::BTreeMap;

use crate::code;
use crate::geometry::{Geometry, SymbolPlace};

/// The effect of a symbol on an assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It was missing.
    New,
    /// It, or its whole block, was there before.
    Surplus,
    /// It is no symbol of this object.
    Bad,
}

/// An object of which symbols are still missing.
///
/// It allocates the object at once, and the repair symbols of a block while it is incomplete: at most twice the object.
#[derive(Debug)]
pub struct Assembly {
    geometry: Geometry,
    /// The source symbols, each at full length.
    bytes: Vec<u8>,
    is_there: Vec<bool>,
    /// Repair symbols of incomplete blocks, by block and number.
    repairs: BTreeMap<(u32, u32), Box<[u8]>>,
    /// Symbols that each block still needs, of either kind.
    missing: Vec<u16>,
    /// Blocks that need symbols.
    incomplete: u32,
    /// Symbols that were new.
    taken: u64,
}

impl Assembly {
    /// An assembly without symbols.
    pub fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            bytes: vec![0; geometry.sources() as usize * geometry.symbol_bytes()],
            is_there: vec![false; geometry.sources() as usize],
            repairs: BTreeMap::new(),
            missing: geometry.all_missing(),
            incomplete: geometry.blocks(),
            taken: 0,
        }
    }

    /// Puts a symbol into its place.
    pub fn put(&mut self, symbol: u32, bytes: &[u8]) -> Placed {
        let Some(place) = self.geometry.place(symbol) else { return Placed::Bad };
        if bytes.len() != self.geometry.len_of(symbol) {
            return Placed::Bad;
        }
        if self.missing[place.block as usize] == 0 {
            return Placed::Surplus;
        }
        let is_new = if place.is_repair { self.put_repair(place, bytes) } else { self.put_source(symbol, bytes) };
        if !is_new {
            return Placed::Surplus;
        }
        self.taken += 1;
        self.missing[place.block as usize] -= 1;
        if self.missing[place.block as usize] == 0 {
            self.incomplete -= 1;
            self.complete(place.block);
        }
        Placed::New
    }

    /// Symbols that each block still needs.
    pub fn missing(&self) -> &[u16] {
        &self.missing
    }

    /// Returns `true` if all blocks are complete.
    pub fn is_complete(&self) -> bool {
        self.incomplete == 0
    }

    /// Symbols that were new so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The division of the object.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The largest memory of an assembly of this object.
    pub fn most_bytes(geometry: Geometry) -> usize {
        2 * geometry.sources() as usize * (geometry.symbol_bytes() + 1)
    }

    /// The object, once it is complete.
    pub fn into_object(mut self) -> Option<Vec<u8>> {
        self.bytes.truncate(self.geometry.object_bytes());
        self.is_complete().then_some(self.bytes)
    }

    fn put_source(&mut self, symbol: u32, bytes: &[u8]) -> bool {
        let symbol = symbol as usize;
        if std::mem::replace(&mut self.is_there[symbol], true) {
            return false;
        }
        let start = symbol * self.geometry.symbol_bytes();
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        true
    }

    fn put_repair(&mut self, place: SymbolPlace, bytes: &[u8]) -> bool {
        self.repairs.insert((place.block, place.index), bytes.into()).is_none()
    }

    /// Restores the source symbols of a block that has as many symbols as it needs.
    fn complete(&mut self, block: u32) {
        let later = self.repairs.split_off(&(block + 1, 0));
        let mut repairs = std::mem::replace(&mut self.repairs, later);
        let ours = repairs.split_off(&(block, 0));
        self.repairs.append(&mut repairs);
        if ours.is_empty() {
            return;
        }
        let sources = self.geometry.block(block);
        let symbol_bytes = self.geometry.symbol_bytes();
        let from = sources.start as usize;
        let to = sources.end as usize;
        let is_there = &self.is_there[from..to];
        let symbols = &mut self.bytes[from * symbol_bytes..to * symbol_bytes];
        let given = ours.iter().map(|((_, index), bytes)| (*index, &**bytes));
        // It cannot fail with as many symbols as the block has. If it did, the object would not have its hash.
        let _ = code::restore(symbols, symbol_bytes, |index| is_there[index], given);
    }
}
