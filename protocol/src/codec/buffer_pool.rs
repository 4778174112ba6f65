//! A pool of shared buffers for reuse.

use std::sync::Arc;

/// The most bytes of a buffer that is kept while nothing is in it. Of a large model, each idle buffer would be another
/// copy in memory, and mapping fresh pages costs little beside what is done with them.
pub(crate) const MOST_IDLE_BYTES: usize = 16 << 20;

/// A few shared buffers, handed out again once the pool holds the only reference.
///
/// A parcel's bytes are shared by every outbox and every frame under way. The pool keeps one more reference. When it is
/// the last one, the next parcel is written in place: in steady state nothing is allocated, and no page of a fresh
/// buffer has to be mapped. Vectors that are handed out are kept the same way, those above [`MOST_IDLE_BYTES`] excepted.
#[derive(Debug)]
pub(crate) struct BufferPool<T> {
    /// Oldest first.
    buffers: Vec<Arc<[T]>>,
    capacity: usize,
}

impl<T: Copy + Default> BufferPool<T> {
    /// A pool that remembers `capacity` buffers, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { buffers: Vec::new(), capacity: capacity.max(1) }
    }

    /// Takes out a buffer of `length` items, of any content, to which the pool has the only reference, if there is one.
    pub(crate) fn reuse(&mut self, length: usize) -> Option<Arc<[T]>> {
        let is_free = |buffer: &mut Arc<[T]>| buffer.len() == length && Arc::get_mut(buffer).is_some();
        let free = self.buffers.iter_mut().position(is_free)?;
        Some(self.buffers.remove(free))
    }

    /// Returns a buffer of `length` items, of any content: a free one of the pool, or a new one.
    pub(crate) fn take(&mut self, length: usize) -> Arc<[T]> {
        self.reuse(length).unwrap_or_else(|| blank(length))
    }

    /// Remembers a buffer for later, unless it is large, and forgets the oldest if there are too many.
    pub(crate) fn put(&mut self, buffer: Arc<[T]>) {
        if size_of_val(&*buffer) > MOST_IDLE_BYTES {
            return;
        }
        if self.buffers.len() >= self.capacity {
            self.buffers.remove(0);
        }
        self.buffers.push(buffer);
    }
}

/// A clone starts empty: a buffer shared by two pools would never be free in either.
impl<T: Copy + Default> Clone for BufferPool<T> {
    fn clone(&self) -> Self {
        Self::new(self.capacity)
    }
}

/// A new buffer.
fn blank<T: Copy + Default>(length: usize) -> Arc<[T]> {
    std::iter::repeat_n(T::default(), length).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_buffer_comes_back_once_its_last_reader_is_gone() {
        let mut pool: BufferPool<u8> = BufferPool::new(2);
        let buffer = pool.take(100);
        let address = buffer.as_ptr();
        pool.put(Arc::clone(&buffer));
        assert_eq!(pool.reuse(100), None, "it is being read");
        drop(buffer);
        assert_eq!(pool.reuse(99), None, "it has another length");
        assert_eq!(pool.reuse(100).unwrap().as_ptr(), address);
        assert_eq!(pool.reuse(100), None, "it is out again");
    }

    #[test]
    fn a_large_buffer_is_not_kept() {
        let mut pool: BufferPool<u8> = BufferPool::new(2);
        for (bytes, is_kept) in [(MOST_IDLE_BYTES, true), (MOST_IDLE_BYTES + 1, false)] {
            let buffer = pool.take(bytes);
            pool.put(Arc::clone(&buffer));
            assert_eq!(Arc::strong_count(&buffer) == 2, is_kept, "{bytes} bytes");
        }
    }

    #[test]
    fn no_more_buffers_are_kept_than_were_asked_for() {
        let mut pool = BufferPool::new(2);
        let buffers: Vec<_> = (0..5).map(|_| blank::<f32>(8)).collect();
        buffers.iter().cloned().for_each(|buffer| pool.put(buffer));
        let kept: Vec<bool> = buffers.iter().map(|buffer| Arc::strong_count(buffer) == 2).collect();
        assert_eq!(kept, [false, false, false, true, true]);
    }
}
