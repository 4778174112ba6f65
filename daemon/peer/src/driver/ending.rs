//! How a peer goes: it answers its neighbours until they are done too, evaluates its model, and closes its books.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_net::edge::EdgeHandle;

use super::{Driver, Finished, Sources, alive, next_written, sleep_until};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::records::{Ending, Written};
use crate::training::Evaluation;
use crate::training::model_file;
use crate::training::thread::{Answer, Haste};
use mingle_protocol::Input;

/// A peer that goes answers its neighbours for so long at most.
const LINGER: Duration = Duration::from_millis(1500);
/// A trainer that is still at work when the run is over gets so long at most.
const LAST_TRAINING: Duration = Duration::from_secs(10);
/// The round under which the final model is evaluated.
pub(super) const FINAL: u64 = u64::MAX;

impl Driver<'_> {
    /// Lets the neighbours that this peer does not fit hear its greeting before it goes: they would wait for it in vain,
    /// and never learn why.
    pub(super) async fn take_leave(&mut self, sources: &mut Sources) {
        let until = Instant::now() + LINGER;
        while self.parts.wiring.links.any_open() {
            tokio::select! {
                Some(event) = sources.edges.recv() => {
                    // The failure that it leaves with is known already.
                    let _ = self.on_edge(event);
                }
                _ = sources.stop.next() => break,
                () = tokio::time::sleep_until(until.into()) => break,
            }
        }
        // A neighbour that reads nothing must not hold this peer up.
        let _ = tokio::time::timeout(LINGER, finish_all(self.parts.wiring.links.take_all())).await;
    }

    /// Closes this peer's own streams and answers the others until they have closed theirs.
    pub(super) async fn linger(&mut self, sources: &mut Sources) -> Result {
        let until = Instant::now() + LINGER;
        let outgoing = finish_all(self.parts.wiring.links.take_outgoing());
        tokio::pin!(outgoing);
        let mut written = false;
        while !written || self.parts.wiring.links.any_incoming() {
            tokio::select! {
                () = &mut outgoing, if !written => written = true,
                Some(event) = sources.edges.recv() => self.on_edge(event)?,
                written = next_written(&mut sources.written) => self.on_written(written?)?,
                Some(request) = sources.requests.recv() => self.on_request(request)?,
                () = sleep_until(self.wake_at()) => self.feed(Input::Tick)?,
                _ = sources.stop.next() => break,
                () = tokio::time::sleep_until(until.into()) => break,
            }
        }
        // A neighbour that reads nothing any more must not hold this peer up.
        let _ = tokio::time::timeout_at(until.into(), finish_all(self.parts.wiring.links.take_all())).await;
        Ok(())
    }

    pub(super) async fn evaluate_final(&mut self, sources: &mut Sources) -> Result<Evaluation> {
        let model = self.node.ratio();
        if !self.trainer_answers(sources).await? {
            return Ok(self.without_evaluation());
        }
        // The queue has room once the evaluation under way, if any, is answered.
        while self.evaluating.is_some() {
            self.next_answer(sources).await?;
        }
        self.parts.training.evaluate(FINAL, model, Haste::Last)?;
        loop {
            if let Some(evaluation) = self.final_evaluation.take() {
                return Ok(evaluation);
            }
            self.next_answer(sources).await?;
        }
    }

    /// Waits for the training under way, if any, for a moment: nobody wants it any more.
    async fn trainer_answers(&mut self, sources: &mut Sources) -> Result<bool> {
        let until = tokio::time::Instant::now() + LAST_TRAINING;
        self.parts.training.interrupt(self.stopping || self.training.is_under_way());
        while self.training.is_under_way() {
            tokio::select! {
                answered = self.next_answer(sources) => answered?,
                () = tokio::time::sleep_until(until) => return Ok(false),
            }
        }
        self.parts.training.interrupt(self.stopping);
        Ok(true)
    }

    /// The trainer does not answer any more: the last that is known is what it measured before.
    fn without_evaluation(&mut self) -> Evaluation {
        self.warn("the trainer does not answer: the model is written without being evaluated".to_owned());
        self.last_evaluation.take().map(|(_, evaluation)| evaluation).unwrap_or_default()
    }

    /// There was no time to judge the last model on all samples: what is known of it, or of the one before.
    pub(super) fn best_known(&mut self, partial: Evaluation) -> Evaluation {
        let Some((rounds, evaluation)) = self.last_evaluation.take() else {
            self.warn(format!("the model was judged on {} samples only, for this peer was to stop", partial.samples));
            return partial;
        };
        self.warn(format!(
            "what was measured is the model after round {rounds}: there was no time to judge the last model"
        ));
        evaluation
    }

    async fn next_answer(&mut self, sources: &mut Sources) -> Result {
        tokio::select! {
            answer = sources.answers.recv() => self.on_answer(alive(answer)?),
            () = self.watchdog.turn() => Ok(()),
            Some(request) = sources.requests.recv() => self.on_request(request),
            reason = sources.stop.next() => {
                Err(before_the_model(&reason))
            }
        }
    }

    /// The process ends in good order. Without records the next one in this home begins anew, unless its neighbours
    /// remember better. With records it goes on from them, or has nothing left to do.
    pub(super) fn close_books(&mut self, sources: &mut Sources) -> Result<Option<Ending>> {
        // When the writer is dropped, the last records are on the disk, or it has said why not.
        let keeps_records = self.parts.records.take().is_some();
        while let Some(written) = sources.written.as_mut().and_then(|written| written.try_recv().ok()) {
            if let Written::Failed(failure) = written {
                return Err(failure);
            }
        }
        self.parts.home.forget_incarnations(&self.parts.wiring.place.hash)?;
        let ledger = self.node.ledger();
        let never_held = ledger.initial.units() == 0 && ledger.incoming.values().all(|link| link.applied_in_all() == 0);
        if never_held {
            return Err(Error::new(
                ErrorKind::Training,
                "this peer was restarted without weight, and no neighbour sent it any: nothing was trained",
            )
            .hint("if all peers were restarted, start them again with --fresh: they begin anew"));
        }
        // A peer that caught up with the others at the end has not been in every round.
        let is_done = !self.gave_up && self.node.round() >= self.parts.config.rounds;
        let is_over = keeps_records && (is_done || self.node.has_left());
        Ok(is_over.then(|| Ending::new(self.last_record, self.rounds, self.node.has_left())))
    }
}

impl Finished {
    /// The bytes of a file that holds a model, `[dimension]`.
    ///
    /// # Errors
    /// It cannot be encoded, or the user insists on stopping at once.
    pub(crate) async fn save(
        &self,
        parameters: &Arc<[f32]>,
        metadata: BTreeMap<String, String>,
        sources: &mut Sources,
    ) -> Result<Vec<u8>> {
        let Some(training) = &self.training else {
            let file = model_file::encode(&self.layout, parameters, &metadata);
            return file.context(ErrorKind::Unexpected, "cannot encode the model");
        };
        training.save(Arc::clone(parameters), metadata)?;
        loop {
            tokio::select! {
                answer = sources.answers.recv() => match alive(answer)? {
                    Answer::Saved(file) => return Ok(file),
                    Answer::Failed(failure) => return Err(failure),
                    Answer::Trained { .. } | Answer::Evaluated { .. } => {}
                },
                reason = sources.stop.next() => return Err(before_the_model(&reason)),
            }
        }
    }
}

fn before_the_model(reason: &str) -> Error {
    Error::new(ErrorKind::Forced, format!("{reason} before the final model was written"))
}

async fn finish_all(handles: Vec<EdgeHandle>) {
    futures::future::join_all(handles.into_iter().map(EdgeHandle::finish)).await;
}
