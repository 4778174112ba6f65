//! The end of a run between a host and its trainer: that of the run, which the trainer is notified of, and that of a trainer
//! which ends before.

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use mingle_peer::{Error, ErrorKind, Outcome, Result};

use crate::host::{LOOK, TrainerHost};
use crate::run_end::RunEnd;

impl TrainerHost {
    /// Announces the end of the run to the trainer, and waits within a timeout until it is sent or the trainer is gone.
    /// Then waits for the supervisor to end the trainer that it started.
    pub(crate) fn end(&self, outcome: &Result<Outcome>) -> BoxFuture<'static, ()> {
        match outcome {
            Ok(Outcome::Trained { summary, parameters, was_stopped }) => self.end_as(RunEnd::Model {
                vector: Arc::clone(parameters),
                rounds: summary.rounds,
                was_stopped: *was_stopped,
            }),
            Ok(Outcome::Averaged { parameters, rounds }) => self.end_with_model(Arc::clone(parameters), *rounds),
            Ok(_) => self.end_as(RunEnd::Failure {
                kind: ErrorKind::Refused,
                message: "the run in this home was over before".to_owned(),
                hint: Some(
                    "`mingle run --fresh` begins a new one; its last model is model.safetensors in the home".to_owned(),
                ),
            }),
            Err(error) => self.end_with_failure(error),
        }
    }

    /// Ends the run with a model, `[dimension]`, after so many rounds, as the end of a peer does.
    pub(crate) fn end_with_model(&self, vector: Arc<[f32]>, rounds: u64) -> BoxFuture<'static, ()> {
        self.end_as(RunEnd::Model { vector, rounds, was_stopped: false })
    }

    /// Ends the run with an error, as the failure of a peer does.
    pub(crate) fn end_with_failure(&self, error: &Error) -> BoxFuture<'static, ()> {
        self.end_as(RunEnd::Failure {
            kind: error.kind(),
            message: format!("the peer has failed: {error:#}"),
            hint: error.next_step().map(str::to_owned),
        })
    }

    fn end_as(&self, end: RunEnd) -> BoxFuture<'static, ()> {
        self.change(|state| {
            state.withdraw();
            state.end = Some(end);
        });
        let host = self.clone();
        let mut changes = self.changes();
        async move {
            let last_call = host.state().last_call();
            let told = async {
                while !host.state().is_told_of_the_end(Instant::now()) {
                    // The loop also checks whether the trainer is still there, which is no change.
                    let _ = tokio::time::timeout(LOOK, changes.changed()).await;
                }
            };
            let _ = tokio::time::timeout(last_call, told).await;
            if let Some(launched) = host.take_launched() {
                // A panic of the supervisor must not be one of the peer.
                let _ = launched.await;
            }
        }
        .boxed()
    }

    /// Resolves once the trainer has ended for good before the end of the run, or is not started again.
    pub(crate) fn deserted(&self) -> BoxFuture<'static, ()> {
        let host = self.clone();
        let mut changes = self.changes();
        async move {
            loop {
                if host.has_been_deserted() {
                    return;
                }
                // The sender lives in the host, which this future holds.
                let _ = changes.changed().await;
            }
        }
        .boxed()
    }

    /// Returns `true` if the trainer has ended for good before the end of the run, or is not started again.
    pub(crate) fn has_been_deserted(&self) -> bool {
        let state = self.state();
        state.end.is_none() && (state.is_deserted || state.given_up.is_some())
    }

    /// The error with which the trainer was given up after its crashes.
    pub(crate) fn given_up(&self) -> Option<Error> {
        self.state().given_up.clone()
    }
}
