//! The end of a peer: it answers its neighbours until they are done too, evaluates its model, and closes its records.

use std::time::{Duration, Instant};

use mingle_net::edge::EdgeHandle;

use super::Driver;
use super::waking::sleep_until;
use crate::error::{Error, ErrorKind, Result};
use crate::event_loop::{EventReceivers, LoopEvent};
use crate::records::{Ending, Written};
use crate::results::MetricsOf;
use crate::training::Evaluation;
use crate::training::thread::Haste;
use mingle_protocol::Input;

/// Longest time that an ending peer answers its neighbours.
const LINGER: Duration = Duration::from_millis(1500);
/// Longest time for a trainer that is still at work when the run is over, or when its peer is to stop.
const LAST_ANSWER: Duration = Duration::from_secs(10);
/// The round number of the final model's evaluation.
pub(super) const FINAL: u64 = u64::MAX;

/// The evaluation at the end of a run, with its subject where that is not the final model on all samples.
pub(super) type FinalEvaluation = (Evaluation, Option<MetricsOf>);

impl Driver<'_> {
    /// Lets the neighbours that this peer does not fit receive its greeting before it ends: otherwise they would wait
    /// for it in vain, without a reason.
    pub(super) async fn take_leave(&mut self, receivers: &mut EventReceivers) {
        let until = Some(Instant::now() + LINGER);
        while self.member.connections.links.any_open() {
            tokio::select! {
                event = receivers.next() => match event {
                    Ok(LoopEvent::Stop(_)) | Err(_) => break,
                    // The failure with which it ends is known already.
                    Ok(LoopEvent::Edge(event)) => drop(self.on_edge(event)),
                    Ok(_) => {}
                },
                () = sleep_until(until) => break,
            }
        }
        // A neighbour that reads nothing must not delay this peer.
        let _ = tokio::time::timeout(LINGER, finish_all(self.member.connections.links.take_all())).await;
    }

    /// Closes this peer's own streams and answers the others until they have closed theirs.
    pub(super) async fn linger(&mut self, receivers: &mut EventReceivers) -> Result {
        let until = Instant::now() + LINGER;
        let outgoing = finish_all(self.member.connections.links.take_outgoing());
        tokio::pin!(outgoing);
        let mut written = false;
        while !written || self.member.connections.links.any_incoming() {
            tokio::select! {
                () = &mut outgoing, if !written => written = true,
                event = receivers.next() => match event? {
                    LoopEvent::Stop(reason) => {
                        if !self.stopping {
                            self.on_stop(&reason)?;
                        }
                        break;
                    }
                    event => self.on_event(event, receivers).await?,
                },
                () = sleep_until(self.wake_at()) => self.feed(Input::Tick)?,
                () = sleep_until(Some(until)) => break,
            }
        }
        // A neighbour that reads nothing any more must not delay this peer.
        let _ = tokio::time::timeout_at(until.into(), finish_all(self.member.connections.links.take_all())).await;
        Ok(())
    }

    /// Evaluates the final model. If a trainer does not answer in time, the evaluation is lost, not the model.
    pub(super) async fn evaluate_final(&mut self, receivers: &mut EventReceivers) -> Result<FinalEvaluation> {
        let mut model = Some(self.node.ratio());
        if !self.trainer_answers(receivers).await? {
            return Ok(self.without_evaluation());
        }
        let mut until = None;
        loop {
            if let Some(evaluation) = self.final_evaluation.take() {
                return Ok(evaluation);
            }
            // The queue has room once the evaluation under way, if any, is answered.
            if let Some(model) = model.take_if(|_| self.evaluating.is_none()) {
                self.parts.training.evaluate(FINAL, model, Haste::Last)?;
            }
            if self.stopping && until.is_none() {
                until = Instant::now().checked_add(LAST_ANSWER);
            }
            tokio::select! {
                answered = self.next_answer(receivers) => answered?,
                () = sleep_until(until) => return Ok(self.without_evaluation()),
            }
        }
    }

    /// Waits for the training under way, if any, for at most `LAST_ANSWER`; its result is no longer needed. Returns
    /// `false` on a timeout.
    async fn trainer_answers(&mut self, receivers: &mut EventReceivers) -> Result<bool> {
        let until = tokio::time::Instant::now() + LAST_ANSWER;
        self.parts.training.interrupt(self.stopping || self.training.is_under_way());
        while self.training.is_under_way() {
            tokio::select! {
                answered = self.next_answer(receivers) => answered?,
                () = tokio::time::sleep_until(until) => return Ok(false),
            }
        }
        self.parts.training.interrupt(self.stopping);
        Ok(true)
    }

    /// The last evaluation before the trainer stopped answering, or an empty one.
    fn without_evaluation(&mut self) -> FinalEvaluation {
        self.member.warn("the trainer does not answer: the model is written without being evaluated".to_owned());
        self.last_evaluation.take().map_or((Evaluation::default(), Some(MetricsOf::Nothing)), of_earlier_model)
    }

    /// The evaluation to report where the final model was not evaluated on all samples: that of an earlier model if there
    /// is one, else the partial one.
    pub(super) fn best_known(&mut self, partial: Evaluation) -> FinalEvaluation {
        if let Some(earlier) = self.last_evaluation.take() {
            let rounds = earlier.0;
            self.member.warn(format!("the final model was not evaluated: the metrics are those after round {rounds}"));
            return of_earlier_model(earlier);
        }
        let metrics_of = match partial.samples {
            0 if partial.metrics.is_empty() => MetricsOf::Nothing,
            0 => MetricsOf::Training,
            samples => MetricsOf::Samples(samples),
        };
        self.member.warn(format!("the metrics of the end are not whole{metrics_of}"));
        (partial, Some(metrics_of))
    }

    async fn next_answer(&mut self, receivers: &mut EventReceivers) -> Result {
        match receivers.next_local().await? {
            LoopEvent::Answer(answer) => self.on_answer(answer),
            LoopEvent::Request(request) => self.on_request(request),
            LoopEvent::Stop(reason) => self.on_stop(&reason),
            // Requests of neighbours wait, or are over.
            _ => Ok(()),
        }
    }

    /// Ends the process in good order. Without records the next process in this home begins anew, unless its neighbours
    /// remember a later state. With records it goes on from them, or has nothing left to do.
    pub(super) fn close_books(&mut self, receivers: &mut EventReceivers) -> Result<Option<Ending>> {
        // When the writer is dropped, the last records are on the disk, or it has reported why not.
        let keeps_records = self.parts.records.take().is_some();
        while let Some(written) = receivers.written.as_mut().and_then(|written| written.try_recv().ok()) {
            if let Written::Failed(failure) = written {
                return Err(failure);
            }
        }
        self.member.home.forget_incarnations(&self.member.connections.place.hash)?;
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
        let is_early = self.member.connections.place.plan.ends_early(self.parts.rounds);
        let ending = Ending::new(self.last_record, self.rounds, self.node.has_left());
        Ok(is_over.then(|| ending.of_task(self.parts.rounds).early(is_early)))
    }
}

pub(crate) fn before_the_model(reason: &str) -> Error {
    Error::new(ErrorKind::Forced, format!("{reason} before the final model was written"))
}

fn of_earlier_model((rounds, evaluation): (u64, Evaluation)) -> FinalEvaluation {
    (evaluation, Some(MetricsOf::Round(rounds)))
}

async fn finish_all(handles: Vec<EdgeHandle>) {
    futures::future::join_all(handles.into_iter().map(EdgeHandle::finish)).await;
}
