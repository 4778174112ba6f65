//! Local training beside the event loop: one thread that takes jobs in order and answers each.
//!
//! Here the model meets the protocol: a round's local work goes in as flat parameters, and comes back as the change
//! that the node adds to its numerator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::timeline::{SpanKind, Timeline};

use crate::priority::{self, Priority};
use crate::{
    Budget, CorrelatedNoise, Evaluation, LocalTraining, MomentumStep, NoiseOfRound, Patience, PrivacySpending, Trained,
    TrainingError,
};

/// Largest number of jobs that wait for the thread; a round's training and an evaluation is the most that occurs.
const JOB_QUEUE: usize = 4;

/// The local steps of a round: initial parameters, number, and time limit.
#[derive(Clone, Debug)]
pub struct TrainingOrder {
    /// The round, from 0 in each plan of the swarm's operator.
    pub round: u64,
    /// Rounds of the earlier plans.
    pub rounds_before: u64,
    /// `[dimension]`.
    pub from: Arc<[f32]>,
    /// Local steps of a round in the plan.
    pub local_steps: u32,
    /// Rounds that train from this one on, this one included.
    pub rounds_left: u64,
    /// Time limit: no step begins later.
    pub time_box: Option<Duration>,
    /// Factor by which the previous change was multiplied.
    pub last_factor: f64,
    /// Momentum across rounds.
    pub momentum: MomentumStep,
    /// Noise that members share.
    pub noise: Option<Arc<CorrelatedNoise>>,
}

/// Orders for the thread, one at a time. A plan that changes while a round is trained makes that work void, and the
/// next order waits for its end.
#[derive(Debug, Default)]
pub struct TrainingOrders {
    under_way: bool,
    is_void: bool,
    next: Option<TrainingOrder>,
}

impl TrainingOrders {
    /// Orders a round's local steps.
    pub fn order(&mut self, order: TrainingOrder, thread: &TrainingThread) -> Result {
        if self.under_way {
            self.next = Some(order);
            return Ok(());
        }
        self.under_way = true;
        thread.order(Job::Train(order))
    }

    /// Returns `true` while the thread has not answered.
    pub fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// Makes the order under way void: its result is no longer needed.
    pub fn forget(&mut self) {
        self.is_void = self.under_way;
        self.next = None;
    }

    /// Ends an order, and starts the next. Returns `true` if its result counts.
    pub fn end(&mut self, thread: &TrainingThread) -> Result<bool> {
        let counts = !self.is_void;
        self.under_way = false;
        self.is_void = false;
        self.next.take().map_or(Ok(()), |next| self.order(next, thread))?;
        Ok(counts)
    }
}

/// Work for the training thread.
enum Job {
    Train(TrainingOrder),
    Evaluate { round: u64, parameters: Arc<[f32]>, haste: Haste },
}

/// Time for an evaluation once the peer is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// The evaluation ends with the rows under way.
    GiveUp,
    /// The evaluation still has a moment, since this is the last model.
    Last,
}

impl Job {
    fn deed(&self) -> SpanKind {
        match self {
            Self::Train(_) => SpanKind::Train,
            Self::Evaluate { .. } => SpanKind::Evaluate,
        }
    }
}

/// The result of a job.
#[derive(Debug)]
pub enum JobResult {
    /// A round's local steps are done.
    Trained {
        /// The round.
        round: u64,
        /// Their result.
        trained: Trained,
        /// Their duration.
        took: Duration,
        /// The state from which a restarted peer goes on.
        state: Vec<u8>,
        /// Privacy spent so far, where changes are private.
        privacy: Option<PrivacySpending>,
    },
    /// No trainer was attached in this round.
    Untrained {
        /// The round.
        round: u64,
    },
    /// A model was evaluated.
    Evaluated {
        /// The round after which it was taken.
        round: u64,
        /// The result; if the peer was requested to stop, perhaps of some of the samples only.
        evaluation: Evaluation,
    },
    /// The thread cannot go on.
    Failed(Error),
}

/// Longest time of the last evaluation of a peer that was requested to stop.
const LAST_EVALUATION: Duration = Duration::from_millis(500);

/// A handle on the training thread; the thread ends when the handle is dropped and its last job is done.
pub struct TrainingThread {
    jobs: SyncSender<Job>,
    is_interrupted: Arc<AtomicBool>,
}

impl TrainingThread {
    /// Starts the thread. The state of the training is requested only if `keeps_state`.
    pub fn start(
        training: Box<dyn LocalTraining>,
        keeps_state: bool,
        priority: Priority,
        timeline: Timeline,
    ) -> Result<(Self, mpsc::Receiver<JobResult>)> {
        let (jobs, job_receiver) = sync_channel::<Job>(JOB_QUEUE);
        let (answer_sender, answers) = mpsc::channel(JOB_QUEUE);
        let is_interrupted = Arc::<AtomicBool>::default();
        let interrupted = Arc::clone(&is_interrupted);
        std::thread::Builder::new()
            .name("training".to_owned())
            .spawn(move || {
                priority::lower(priority);
                let mut worker = Worker { training, keeps_state, is_interrupted: interrupted };
                while let Ok(job) = job_receiver.recv() {
                    let deed = job.deed();
                    let began = Instant::now();
                    let answer = worker.run(job);
                    timeline.note(deed, began);
                    if answer_sender.blocking_send(answer).is_err() {
                        return;
                    }
                }
            })
            .context(ErrorKind::Unexpected, "cannot start the training thread")?;
        Ok((Self { jobs, is_interrupted }, answers))
    }

    /// Sets whether to hurry: then no further step of the round under way begins, and no evaluation goes on for long.
    /// Each is answered with the partial result.
    pub fn interrupt(&self, is_interrupted: bool) {
        self.is_interrupted.store(is_interrupted, Ordering::Relaxed);
    }

    /// Orders an evaluation on the held-out samples; it is made before any training that is ordered later.
    pub fn evaluate(&self, round: u64, parameters: Arc<[f32]>, haste: Haste) -> Result {
        self.order(Job::Evaluate { round, parameters, haste })
    }

    fn order(&self, job: Job) -> Result {
        // Never blocks: the node has one training under way at a time, and one evaluation.
        self.jobs.try_send(job).context(ErrorKind::Training, "the training thread has stopped")
    }
}

struct Worker {
    training: Box<dyn LocalTraining>,
    keeps_state: bool,
    is_interrupted: Arc<AtomicBool>,
}

impl Worker {
    fn run(&mut self, job: Job) -> JobResult {
        let result = match job {
            Job::Train(order) => self.train(&order),
            Job::Evaluate { round, parameters, haste } => self.evaluate(round, &parameters, haste),
        };
        result.unwrap_or_else(JobResult::Failed)
    }

    fn train(&mut self, order: &TrainingOrder) -> Result<JobResult> {
        let TrainingOrder { round, rounds_before, local_steps, rounds_left, time_box, last_factor, momentum, .. } =
            *order;
        let noise = order.noise.clone().map(|noise| NoiseOfRound { round, noise });
        let began = Instant::now();
        let until = time_box.and_then(|time_box| Instant::now().checked_add(time_box));
        let patience = self.patience().until(until);
        let round_of_run = rounds_before.saturating_add(round);
        let budget = Budget { round: round_of_run, local_steps, rounds_left, last_factor, momentum, noise, patience };
        let doing = format!("training in round {round} failed");
        let trained = self.training.train_shared(&order.from, &budget).map_err(|failure| with_hint(failure, &doing))?;
        if trained.steps == 0 && self.training.is_absent() {
            return Ok(JobResult::Untrained { round });
        }
        check_length(trained.change.len(), order.from.len()).context(ErrorKind::Training, &doing)?;
        let state = if self.keeps_state { self.training.state() } else { Vec::new() };
        check_state(&state, self.training.largest_state()).context(ErrorKind::Training, doing)?;
        let took = began.elapsed();
        let privacy = self.training.privacy();
        Ok(JobResult::Trained { round, trained, took, state, privacy })
    }

    fn evaluate(&mut self, round: u64, parameters: &Arc<[f32]>, haste: Haste) -> Result<JobResult> {
        let last = Instant::now().checked_add(LAST_EVALUATION).filter(|_| haste == Haste::Last);
        let patience = self.patience().at_least_until(last);
        let evaluation = self.training.evaluate_shared(parameters, &patience);
        let evaluation = evaluation.context(ErrorKind::Training, format!("evaluation after round {round} failed"))?;
        Ok(JobResult::Evaluated { round, evaluation })
    }

    fn patience(&self) -> Patience {
        Patience::unless(Arc::clone(&self.is_interrupted))
    }
}

/// The failure of a training, with the hint that it gives if it is an error of a peer.
fn with_hint(failure: TrainingError, doing: &str) -> Error {
    let known = failure.downcast_ref::<Error>();
    let hint = known.and_then(Error::next_step).map(str::to_owned);
    let error = Error::new(known.map_or(ErrorKind::Training, Error::kind), doing).caused_by(failure);
    hint.into_iter().fold(error, Error::hint)
}

/// Checks the size of a state, since a record has no room for more.
fn check_state(state: &[u8], most: usize) -> Result<(), String> {
    if state.len() <= most {
        return Ok(());
    }
    Err(format!("a state of {} bytes, and it was said to be no longer than {most}", state.len()))
}

/// Checks the length of a change, which must be that of the model.
fn check_length(found: usize, wanted: usize) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("a change of {found} numbers for a model of {wanted}")) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Layout;

    /// Changes the model by the number of the round.
    struct Counting(Layout);

    impl LocalTraining for Counting {
        fn layout(&self) -> &Layout {
            &self.0
        }

        fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
            Ok(vec![0.0])
        }

        fn train(&mut self, _from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
            Ok(Trained { change: vec![budget.round as f32], steps: 1, loss: None })
        }

        fn evaluate(&mut self, _parameters: &[f32], _patience: &Patience) -> Result<Evaluation, TrainingError> {
            Ok(Evaluation::default())
        }
    }

    #[test]
    fn a_training_is_told_the_round_of_the_whole_run_and_the_node_the_round_of_its_plan() {
        let training = Box::new(Counting(Layout::flat(1)));
        let mut worker = Worker { training, keeps_state: false, is_interrupted: Arc::default() };
        let from: Arc<[f32]> = Arc::from([0.0]);
        let order = TrainingOrder {
            round: 3,
            rounds_before: 40,
            from,
            local_steps: 1,
            rounds_left: 7,
            time_box: None,
            last_factor: 1.0,
            momentum: MomentumStep::default(),
            noise: None,
        };
        let JobResult::Trained { round, trained, .. } = worker.run(Job::Train(order)) else { panic!("it failed") };
        assert_eq!((round, trained.change), (3, vec![43.0]));
    }
}
