//! Settings of the system's allocator for peers of large models.
//!
//! glibc keeps freed blocks of up to 32 MiB for later, in an arena for each thread, and an arena gives back only its end.
//! The tensors of a large model are such blocks: gradients of one round stay resident while the next one exchanges
//! models, as much again as the model itself. Blocks that are mapped one by one go back to the system when they are
//! freed, and the next one costs the clearing of its pages, which is little beside the work that is done with them.

/// The least bytes of a model that counts as large: of a smaller one, all copies together matter less than the time that
/// pages take to clear.
pub const LARGE_MODEL_BYTES: usize = 16 << 20;
/// Blocks that are mapped one by one are at least this part of a model,
const PART_OF_MODEL: usize = 64;
/// and between these sizes. glibc allows no more.
const SMALLEST_MAPPED: usize = 1 << 20;
const LARGEST_MAPPED: usize = 32 << 20;
/// Most bytes at the end of an arena that are kept for later.
const KEPT_AT_THE_END: usize = 2 << 20;

/// Makes the allocator return what is freed of a model of so many bytes, from now on, if that is a large one. Otherwise,
/// and on systems without glibc, nothing changes.
///
/// ```
/// assert!(!mingle_allocator::return_freed(4 * 4_810), "a small model");
/// # #[cfg(all(target_os = "linux", target_env = "gnu"))]
/// assert!(mingle_allocator::return_freed(4 * 50_000_000));
/// ```
pub fn return_freed(model_bytes: usize) -> bool {
    if model_bytes <= LARGE_MODEL_BYTES {
        return false;
    }
    let mapped = (model_bytes / PART_OF_MODEL).clamp(SMALLEST_MAPPED, LARGEST_MAPPED);
    set(mapped, KEPT_AT_THE_END)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn set(mapped: usize, kept: usize) -> bool {
    let set = |parameter, bytes| i32::try_from(bytes).is_ok_and(|bytes| glibc::set(parameter, bytes));
    set(glibc::MMAP_THRESHOLD, mapped) && set(glibc::TRIM_THRESHOLD, kept)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn set(_mapped: usize, _kept: usize) -> bool {
    false
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ffi::c_int;

    /// `M_TRIM_THRESHOLD` and `M_MMAP_THRESHOLD` of `malloc.h`.
    pub(super) const TRIM_THRESHOLD: c_int = -1;
    pub(super) const MMAP_THRESHOLD: c_int = -3;

    /// Sets a parameter of the allocator; returns `false` if the value is out of its bounds.
    pub(super) fn set(parameter: c_int, value: c_int) -> bool {
        #[allow(
            unsafe_code,
            reason = "no safe interface of the allocator has its settings; measured in docs/durability.md"
        )]
        mod declared {
            // Two numbers, no pointers. glibc takes the lock of its main arena, and writes one integer, as its `free` does
            // in every thread whenever it adapts that setting by itself.
            unsafe extern "C" {
                pub(super) safe fn mallopt(parameter: super::c_int, value: super::c_int) -> super::c_int;
            }
        }
        declared::mallopt(parameter, value) == 1
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::hint::black_box;

    use super::*;

    /// Bytes of this process that are in memory.
    fn resident() -> usize {
        let statm = fs::read_to_string("/proc/self/statm").unwrap();
        4096 * statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
    }

    #[test]
    fn freed_tensors_of_a_large_model_are_resident_no_more() {
        const TENSOR: usize = 4 << 20;
        const COUNT: usize = 16;
        assert!(return_freed(COUNT * TENSOR));
        let before = resident();
        // A small block behind each: the end of the arena stays in use.
        let (tensors, behind): (Vec<_>, Vec<_>) =
            (0..COUNT).map(|_| (black_box(vec![1_u8; TENSOR]), black_box(vec![1_u8; 100]))).unzip();
        assert!(resident() > before + COUNT * TENSOR / 2);
        drop(tensors);
        let after = resident();
        assert!(after < before + COUNT * TENSOR / 4, "{before} before, {after} after");
        drop(behind);
    }
}
