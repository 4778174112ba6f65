//! What becomes of freed memory.

use std::hint::black_box;
use std::sync::Once;

/// A little less than the largest block that glibc learns from.
const LEARNT_FROM: usize = (32 << 20) - (64 << 10);

/// Lets the allocator keep what a training step frees for the next one, which needs as much.
///
/// glibc hands large blocks back to the system when they are freed, and the system clears them
/// before it gives them out again: nearly half of a step of a small network. How large that is, it
/// learns from the blocks it sees freed. This frees one that was never touched. Other allocators
/// take no notice.
pub(crate) fn keep_what_is_freed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut block = Vec::<u8>::new();
        // Where there is not so much room, nothing is learnt and nothing lost.
        let _ = block.try_reserve_exact(LEARNT_FROM);
        drop(black_box(block));
    });
}
