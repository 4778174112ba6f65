//! Batches made in advance, while others are trained on.

use std::sync::mpsc::sync_channel;

/// The number of batches made in advance.
const AHEAD: usize = 2;

/// An endless stream of batches, made on a separate thread two batches ahead.
///
/// `epoch` is called repeatedly. It passes each batch of an epoch to its argument, and returns once that returns
/// `false`: the stream was dropped. A loader of burn, whose iterator borrows the loader, becomes a stream as follows:
///
/// ```ignore
/// let batches = prefetch(move |take| loader.iter().map_while(Result::ok).all(|batch| take(batch)));
/// ```
///
/// The stream ends where an epoch has no batch at all, or panics.
pub fn prefetch<B: Send + 'static>(
    mut epoch: impl FnMut(&mut dyn FnMut(B) -> bool) -> bool + Send + 'static,
) -> impl Iterator<Item = B> + Send {
    let (sender, batches) = sync_channel(AHEAD);
    std::thread::spawn(move || {
        loop {
            let mut count = 0_u64;
            let mut take = |batch| {
                count += 1;
                sender.send(batch).is_ok()
            };
            if !epoch(&mut take) || count == 0 {
                return;
            }
        }
    });
    batches.into_iter()
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn epochs_follow_each_other_for_as_long_as_somebody_wants_batches() {
        let mut epoch = 0;
        let batches = prefetch(move |take| {
            epoch += 1;
            (0..3).all(|index| take((epoch, index)))
        });
        let some: Vec<(i32, i32)> = batches.take(7).collect();
        assert_eq!(some, [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (3, 0)]);
    }

    #[test]
    fn a_loader_without_batches_ends_the_stream() {
        assert_eq!(prefetch::<u8>(|_take| true).next(), None);
    }
}
