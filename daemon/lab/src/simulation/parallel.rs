//! Work on several threads, with results that do not depend on their number.

use super::SimulationError;

/// Does the work items on so many threads; the results come in the order of the items, whatever the number of threads.
pub(super) fn in_parallel<T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<R, SimulationError> + Sync,
) -> Result<Vec<R>, SimulationError> {
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
        let spawn = |share: Vec<T>| scope.spawn(move || share.into_iter().map(work).collect::<Result<Vec<R>, _>>());
        let running: Vec<_> = shares.into_iter().map(spawn).collect();
        let mut results = Vec::new();
        for thread in running {
            results.extend(thread.join().map_err(|_| SimulationError::Thread)??);
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
        let refuse = |x: u32| if x == 11 { Err(SimulationError::StandsStill { round: 11 }) } else { Ok(x) };
        let failed = in_parallel(3, (0..23).collect(), refuse);
        assert_eq!(failed, Err(SimulationError::StandsStill { round: 11 }));
    }
}
