//! Memory of one training step that the next one uses again.
//!
//! glibc returns blocks above 32 MiB to the system when they are freed, which clears them page by page before it gives
//! them out again. The values that a residual network keeps for its backward pass are such blocks.

use std::sync::{Mutex, PoisonError};

/// The most numbers kept that no operation uses: 2 GiB of them.
const FREE_MAX: usize = 1 << 29;

/// Blocks that no operation uses, the oldest first.
static FREE: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());

/// Numbers whose memory is used again after they are dropped.
#[derive(Debug)]
pub(super) struct Recycled(Vec<f32>);

impl Recycled {
    /// Some `count` numbers, to be overwritten.
    pub(super) fn any(count: usize) -> Self {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.iter().position(|block| block.len() == count);
        let block = found.map(|index| free.remove(index));
        drop(free);
        Self(block.unwrap_or_else(|| vec![0.0; count]))
    }

    pub(super) fn numbers(&self) -> &[f32] {
        &self.0
    }

    pub(super) fn numbers_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

impl Drop for Recycled {
    fn drop(&mut self) {
        let block = std::mem::take(&mut self.0);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(block);
        while free.iter().map(Vec::len).sum::<usize>() > FREE_MAX {
            free.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_by_as_many_numbers_only() {
        /// A length that no other test has.
        const COUNT: usize = 1_234_567;
        let first = Recycled::any(COUNT).numbers().as_ptr();
        let other = Recycled::any(COUNT + 1);
        let again = Recycled::any(COUNT);
        assert_eq!(again.numbers().as_ptr(), first);
        assert_eq!((other.numbers().len(), again.numbers().len()), (COUNT + 1, COUNT));
    }
}
