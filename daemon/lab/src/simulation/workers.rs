//! Threads of a simulation that last as long as it does; results do not depend on their number.

use std::sync::Mutex;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::SimulationError;

/// Workers that each do one piece of work at a time, and divide its operations over threads of their own alone.
///
/// Training is fastest so: nodes never wait for each other's threads, and an allocator keeps for a thread what that has
/// freed, here the tensors of the step before.
pub struct Workers {
    pools: Vec<ThreadPool>,
}

impl Workers {
    /// Workers with `threads` threads together, and at most as many workers as there are `pieces` of work.
    ///
    /// # Errors
    /// The system refuses the threads.
    pub fn start(threads: usize, pieces: usize) -> Result<Self, SimulationError> {
        let workers = threads.min(pieces).max(1);
        let threads_each = (threads / workers).max(1);
        let start = |worker| {
            let name = move |thread| format!("worker-{worker}-{thread}");
            ThreadPoolBuilder::new().num_threads(threads_each).thread_name(name).build()
        };
        let pools: Result<_, _> = (0..workers).map(start).collect();
        Ok(Self { pools: pools.map_err(|error| SimulationError::Workers { reason: error.to_string() })? })
    }

    /// Does the work items; the results come in the order of the items. A single item is left to the calling thread and
    /// the threads that all share.
    pub(super) fn map<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T) -> Result<R, SimulationError> + Sync,
    ) -> Result<Vec<R>, SimulationError> {
        if items.len() < 2 {
            return items.into_iter().map(work).collect();
        }
        let mut results: Vec<_> = items.iter().map(|_| None).collect();
        let waiting = Mutex::new(items.into_iter().zip(&mut results));
        let next = || waiting.lock().ok()?.next();
        on_each(&self.pools, &|| {
            while let Some((item, result)) = next() {
                *result = Some(work(item));
            }
        });
        results.into_iter().map(|result| result.unwrap_or(Err(SimulationError::Thread))).collect()
    }
}

/// Does `work` once on each pool, at the same time.
fn on_each(pools: &[ThreadPool], work: &(impl Fn() + Sync)) {
    let Some((pool, others)) = pools.split_first() else { return };
    pool.in_place_scope(|scope| {
        scope.spawn(|_| work());
        on_each(others, work);
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_come_in_order_from_any_number_of_threads() {
        for threads in 1..=7 {
            let workers = Workers::start(threads, 23).unwrap();
            let squares = workers.map((0..23).collect(), |x: u32| Ok(x * x)).unwrap();
            assert_eq!(squares, (0..23).map(|x| x * x).collect::<Vec<_>>(), "{threads} threads");
            let refuse = |x: u32| if x >= 11 { Err(SimulationError::StandsStill { round: x.into() }) } else { Ok(x) };
            let failed = workers.map((0..23).collect(), refuse);
            assert_eq!(failed, Err(SimulationError::StandsStill { round: 11 }));
        }
    }

    #[test]
    fn workers_work_at_the_same_time_and_share_no_threads() {
        let workers = Workers::start(6, 3).unwrap();
        let all = Barrier::new(3);
        let threads = |_| {
            all.wait();
            Ok((rayon::current_num_threads(), std::thread::current().name().map(str::to_owned)))
        };
        let mut seen = workers.map(vec![(); 3], threads).unwrap();
        seen.sort_unstable();
        let workers_seen: Vec<_> = seen.iter().map(|(_, name)| name.clone().unwrap()[..8].to_owned()).collect();
        assert_eq!(workers_seen, ["worker-0", "worker-1", "worker-2"]);
        assert!(seen.iter().all(|(threads, _)| *threads == 2), "{seen:?}");
    }
}
