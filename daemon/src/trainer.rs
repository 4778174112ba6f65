//! Local training beside the event loop: one thread that takes jobs in order and answers each.
//!
//! This is where the model meets the protocol: a round's local work goes in as flat parameters, and comes back as the
//! change that the node adds to its numerator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use mingle_models::{Evaluation, Evaluator, Samples, Trainer};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::cli::Priority;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::priority;
use crate::timeline::{Deed, Timeline};

/// Jobs that wait for the thread: a round's training and an evaluation, never more.
const JOB_QUEUE: usize = 4;

/// Where a peer's training stands: what its records keep for it, beside the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrainingPosition {
    /// Local steps taken, each with the batch that its number says. Momentum is not kept: it starts from rest.
    pub(crate) local_steps: u64,
}

impl TrainingPosition {
    /// As bytes for a record.
    pub(crate) fn encode(self) -> Vec<u8> {
        // A number always has an encoding.
        postcard::to_stdvec(&self).unwrap_or_default()
    }

    /// From the bytes of a record. Those of a peer that has not trained yet are empty; any that cannot be read say
    /// nothing about the model or the mass, so the batches begin anew.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        postcard::from_bytes(bytes).unwrap_or_default()
    }
}

/// The local steps of a round: from which parameters, how many, and for how long at most.
#[derive(Clone, Debug)]
pub(crate) struct TrainingOrder {
    /// The round.
    pub(crate) round: u64,
    /// `[dimension]`.
    pub(crate) from: Arc<[f32]>,
    /// Those that the plan wants.
    pub(crate) local_steps: u32,
    /// No step begins later.
    pub(crate) time_box: Option<Duration>,
}

/// One order at a time: a plan that changes while a round is trained makes that work void, and the next order waits for
/// its end.
#[derive(Debug, Default)]
pub(crate) struct TrainingOrders {
    under_way: bool,
    is_void: bool,
    next: Option<TrainingOrder>,
}

impl TrainingOrders {
    /// Orders a round's local steps.
    pub(crate) fn order(&mut self, order: TrainingOrder, thread: &TrainingThread) -> Outcome {
        if self.under_way {
            self.next = Some(order);
            return Ok(());
        }
        self.under_way = true;
        thread.order(Job::Train(order))
    }

    /// Nobody wants the result of what is under way any more.
    pub(crate) fn forget(&mut self) {
        (self.is_void, self.next) = (self.under_way, None);
    }

    /// An order is done; returns whether its result counts.
    pub(crate) fn end(&mut self, thread: &TrainingThread) -> Outcome<bool> {
        let counts = !self.is_void;
        (self.under_way, self.is_void) = (false, false);
        self.next.take().map_or(Ok(()), |next| self.order(next, thread))?;
        Ok(counts)
    }
}

/// Work for the training thread.
enum Job {
    Train(TrainingOrder),
    Evaluate { round: u64, parameters: Arc<[f32]>, haste: Haste },
}

/// How long an evaluation may take once the peer is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// It ends with the rows under way.
    GiveUp,
    /// It still has a moment: this model is the last.
    Last,
}

impl Job {
    fn deed(&self) -> Deed {
        match self {
            Self::Train(_) => Deed::Train,
            Self::Evaluate { .. } => Deed::Evaluate,
        }
    }
}

/// What came of a job.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A round's local steps are done.
    Trained {
        /// The round.
        round: u64,
        /// How the parameters changed.
        delta: Vec<f32>,
        /// How many steps there was time for.
        steps: u32,
        /// Mean loss over the steps, in nats.
        loss: f64,
        /// Where the training stands now.
        position: TrainingPosition,
    },
    /// A model was evaluated.
    Evaluated {
        /// The round after which it was taken.
        round: u64,
        /// How well it does on the held-out samples.
        evaluation: Evaluation,
        /// On all of them; where the peer was asked to stop it may be some.
        is_whole: bool,
    },
    /// The thread cannot go on.
    Failed(Failure),
}

/// How long the last evaluation of a peer that was asked to stop may take.
const LAST_EVALUATION: Duration = Duration::from_millis(500);

/// A handle on the training thread; the thread ends when the handle is dropped and its last job is done.
pub(crate) struct TrainingThread {
    jobs: SyncSender<Job>,
    is_interrupted: Arc<AtomicBool>,
}

impl TrainingThread {
    /// Starts the thread.
    pub(crate) fn start(
        trainer: Trainer,
        evaluator: Evaluator,
        test: Samples,
        priority: Priority,
        timeline: Timeline,
    ) -> Outcome<(Self, mpsc::Receiver<Answer>)> {
        let (jobs, job_receiver) = sync_channel::<Job>(JOB_QUEUE);
        let (answer_sender, answers) = mpsc::channel(JOB_QUEUE);
        let is_interrupted = Arc::<AtomicBool>::default();
        let interrupted = Arc::clone(&is_interrupted);
        std::thread::Builder::new()
            .name("training".to_owned())
            .spawn(move || {
                priority::lower(priority);
                let mut worker = Worker { trainer, evaluator, test, is_interrupted: interrupted };
                while let Ok(job) = job_receiver.recv() {
                    let (deed, began) = (job.deed(), Instant::now());
                    let answer = worker.run(job);
                    timeline.note(deed, began);
                    if answer_sender.blocking_send(answer).is_err() {
                        return;
                    }
                }
            })
            .or_fail(Kind::Unexpected, "cannot start the training thread")?;
        Ok((Self { jobs, is_interrupted }, answers))
    }

    /// The peer is to stop: no further step of the round under way begins, and no evaluation goes on for long. Each is
    /// answered with what there is.
    pub(crate) fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::Relaxed);
    }

    /// Orders an evaluation on the held-out samples; it is made before any training that is ordered later.
    pub(crate) fn evaluate(&self, round: u64, parameters: Arc<[f32]>, haste: Haste) -> Outcome {
        self.order(Job::Evaluate { round, parameters, haste })
    }

    fn order(&self, job: Job) -> Outcome {
        // Never blocks: the node trains one round at a time and evaluates between rounds.
        self.jobs.try_send(job).or_fail(Kind::Training, "the training thread has stopped")
    }
}

struct Worker {
    trainer: Trainer,
    evaluator: Evaluator,
    test: Samples,
    is_interrupted: Arc<AtomicBool>,
}

impl Worker {
    fn run(&mut self, job: Job) -> Answer {
        let result = match job {
            Job::Train(order) => self.train(&order),
            Job::Evaluate { round, parameters, haste } => self.evaluate(round, &parameters, haste),
        };
        result.unwrap_or_else(Answer::Failed)
    }

    fn train(&mut self, order: &TrainingOrder) -> Outcome<Answer> {
        let TrainingOrder { round, ref from, local_steps, time_box } = *order;
        let until = time_box.and_then(|time_box| Instant::now().checked_add(time_box));
        let outcome = self
            .trainer
            .train_while(from, local_steps, || {
                !self.is_interrupted.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until)
            })
            .or_fail(Kind::Training, format!("training in round {round} failed"))?;
        let position = TrainingPosition { local_steps: self.trainer.step() };
        Ok(Answer::Trained {
            round,
            delta: outcome.delta,
            steps: outcome.steps,
            loss: f64::from(outcome.mean_loss),
            position,
        })
    }

    fn evaluate(&mut self, round: u64, parameters: &[f32], haste: Haste) -> Outcome<Answer> {
        let began = Instant::now();
        let has_time = || haste == Haste::Last && began.elapsed() < LAST_EVALUATION;
        let evaluation = self
            .evaluator
            .evaluate_while(parameters, &self.test, || !self.is_interrupted.load(Ordering::Relaxed) || has_time())
            .or_fail(Kind::Training, format!("evaluation after round {round} failed"))?;
        let is_whole = evaluation.samples == self.test.len();
        Ok(Answer::Evaluated { round, evaluation, is_whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_a_record_and_one_that_cannot_be_read_is_the_beginning() {
        for local_steps in [0, 1, 300, u64::MAX] {
            let position = TrainingPosition { local_steps };
            assert_eq!(TrainingPosition::decode(&position.encode()), position);
        }
        assert_eq!(TrainingPosition::decode(&[]), TrainingPosition::default());
        assert_eq!(TrainingPosition::decode(&[0xff; 3]), TrainingPosition::default());
    }
}
