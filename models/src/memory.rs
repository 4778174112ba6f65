//! Reuse of freed memory by the allocator.

use std::hint::black_box;
use std::sync::Once;

/// The size of the block freed: a little less than the largest from which glibc adapts its threshold.
const LEARNT_FROM: usize = (32 << 20) - (64 << 10);

/// Lets the allocator keep the memory that a training step frees for the next one, which needs as much.
///
/// glibc returns large blocks to the system when they are freed, and the system clears them before it gives them out
/// again. That takes nearly half of a step of a small network. glibc adapts its threshold for a large block to the
/// blocks it sees freed; this frees one that was never touched. Other allocators ignore it.
pub(crate) fn keep_what_is_freed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut block = Vec::<u8>::new();
        // If the reservation fails, the threshold stays as it is.
        let _ = block.try_reserve_exact(LEARNT_FROM);
        drop(black_box(block));
    });
}
