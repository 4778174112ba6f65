//! Work on several threads that leaves no trace of them in its results.

use mingle_peer::{Error, ErrorKind, Result};

/// Does work items on some threads; the results come in the order of the items, whatever the number of threads.
pub(super) fn in_parallel<T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if threads == 1 || items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    let each = items.len().div_ceil(threads);
    let mut rest = items;
    let mut shares = Vec::new();
    while !rest.is_empty() {
        let tail = rest.split_off(each.min(rest.len()));
        shares.push(std::mem::replace(&mut rest, tail));
    }
    let work = &work;
    std::thread::scope(|scope| {
        let spawn = |share: Vec<T>| scope.spawn(move || share.into_iter().map(work).collect::<Result<Vec<R>>>());
        let running: Vec<_> = shares.into_iter().map(spawn).collect();
        let mut results = Vec::new();
        for thread in running {
            let done =
                thread.join().map_err(|_| Error::new(ErrorKind::Unexpected, "a thread of the simulation stopped"))?;
            results.extend(done?);
        }
        Ok(results)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn results_come_in_order_from_any_number_of_threads() {
        for threads in 1..=7 {
            let squares = in_parallel(threads, (0..23).collect(), |x: u32| Ok(x * x)).unwrap();
            assert_eq!(squares, (0..23).map(|x| x * x).collect::<Vec<_>>(), "{threads} threads");
        }
        let failed =
            in_parallel(
                3,
                (0..23).collect(),
                |x: u32| {
                    if x == 11 { Err(Error::new(ErrorKind::Training, "no")) } else { Ok(x) }
                },
            );
        assert!(failed.is_err());
    }
}
