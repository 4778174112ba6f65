//! The end of a solver: its solution is written to files, and its neighbours get all they need.

use std::time::{Duration, Instant};

use futures::future::join_all;
use mingle_federated::EPSILON;
use mingle_net::edge::EdgeHandle;
use mingle_solving::{Finding, Learned, Solution, solution_files};
use mingle_training::Metrics;

use super::{Host, PATIENCE, ROOM_PAUSE};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::event_loop::{EventReceivers, LoopEvent};
use crate::events::{Event, SolvedProblem};
use crate::home::write_file;
use crate::results;
use crate::status::PeerState;

/// Longest time that a peer with its solution waits for neighbours that have not received all its messages.
const DRAIN: Duration = Duration::from_secs(10);
/// Longest time that it answers them once it has closed its own streams.
const LINGER: Duration = Duration::from_millis(1500);

impl Host<'_, '_> {
    /// Stays until the neighbours have all messages of this peer, then closes its streams and answers until they have
    /// closed theirs. A peer that has failed waits for no answers: its messages show the neighbours why.
    /// Returns `false` if a new attempt begins instead.
    ///
    /// # Errors
    /// The first failure that a neighbour caused meanwhile, after the others have what they need.
    pub(super) async fn linger(&mut self, receivers: &mut EventReceivers) -> Result<bool> {
        let has_outcome = self.peer.outcome().is_some();
        let mut failure = None;
        let until = Instant::now() + DRAIN;
        let mut patience = tokio::time::interval(PATIENCE);
        self.send();
        while ((has_outcome && self.peer.is_owed()) || !self.backlog.is_empty())
            && self.member.connections.links.any_open()
        {
            tokio::select! {
                event = receivers.next() => match event? {
                    LoopEvent::Stop(_) => break,
                    event => failure = failure.or(self.on_event(event).err()),
                },
                () = tokio::time::sleep(ROOM_PAUSE), if !self.backlog.is_empty() => {}
                _ = patience.tick() => self.be_patient(),
                () = tokio::time::sleep_until(until.into()) => break,
            }
            if has_outcome && self.peer.outcome().is_none() {
                return Ok(false);
            }
            self.send();
        }
        let closed = self.close(receivers, has_outcome, &mut failure).await?;
        failure.map_or(Ok(closed), Err)
    }

    /// Closes this peer's streams, and answers until the neighbours have closed theirs.
    async fn close(
        &mut self,
        receivers: &mut EventReceivers,
        has_outcome: bool,
        failure: &mut Option<Error>,
    ) -> Result<bool> {
        let until = Instant::now() + LINGER;
        let closing = join_all(self.member.connections.links.take_outgoing().into_iter().map(EdgeHandle::finish));
        tokio::pin!(closing);
        let mut closed = false;
        while !closed || self.member.connections.links.any_incoming() {
            tokio::select! {
                _ = &mut closing, if !closed => closed = true,
                event = receivers.next() => match event? {
                    LoopEvent::Stop(_) => break,
                    event => *failure = failure.take().or(self.on_event(event).err()),
                },
                () = tokio::time::sleep_until(until.into()) => break,
            }
            self.send();
            if has_outcome && self.peer.outcome().is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the finding into the home.
    pub(super) fn write(&self, finding: &Finding) -> Result {
        let write = |name: &str, bytes: &[u8]| write_file(&self.member.home.root().join(name), bytes);
        match finding {
            Finding::Solution(solution) => {
                let residuals = self.peer.journal().read().residuals.clone();
                let title = self.problem.title();
                let files = solution_files(&title, std::slice::from_ref(&**solution), &residuals)
                    .context(ErrorKind::Unexpected, "cannot encode the solution")?;
                files.iter().try_for_each(|(name, text)| write(name, text.as_bytes()))
            }
            Finding::Learned(learned) => {
                let text = serde_json::to_string_pretty(learned)
                    .context(ErrorKind::Unexpected, "cannot encode what was learned")?;
                learned.files.iter().try_for_each(|(name, bytes)| write(name, bytes))?;
                write("learned.json", format!("{text}\n").as_bytes())
            }
        }
    }

    /// Writes the finding once that is possible. The others are gone by now and cannot compute it again with this peer:
    /// it is kept in memory until it can be written, or until the user gives it up.
    pub(super) async fn write_when_possible(
        &mut self,
        finding: &Finding,
        failure: Error,
        receivers: &mut EventReceivers,
    ) -> Result {
        let message = format!("{failure:#}; the problem is solved: this is tried again until it can be written");
        self.member.log.tell(Event::Warning { message });
        while let Err(failure) = self.write(finding) {
            tokio::select! {
                () = tokio::time::sleep(PATIENCE) => {}
                event = receivers.next_local() => {
                    if self.on_event(event?)?.is_some() {
                        return Err(failure);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn tell_end(&mut self, finding: &Finding) {
        let converged = match finding {
            Finding::Solution(solution) => {
                self.tell_solution(solution);
                solution.converged
            }
            Finding::Learned(learned) => {
                self.tell_learned(learned);
                true
            }
        };
        let traffic = self.member.traffic();
        self.member.board.update(|status| {
            status.state = if converged { PeerState::Done } else { PeerState::Stopped };
            status.sent_bytes = traffic.sent_bytes;
            status.received_bytes = traffic.received_bytes;
        });
    }

    fn tell_solution(&mut self, solution: &Solution) {
        self.member.log.tell(Event::Solved(SolvedProblem {
            iterations: solution.iterations,
            converged: solution.converged,
            objective: solution.objective,
            gap: solution.certificate.gap,
            kkt: solution.certificate.kkt,
            violation: solution.certificate.violation,
            seconds: self.member.started.elapsed().as_secs_f64(),
            sent_bytes: self.member.traffic().sent_bytes,
            peak_resident_bytes: results::peak_resident_bytes(),
        }));
    }

    fn tell_learned(&mut self, learned: &Learned) {
        let named = |values: &[Option<f64>]| named(&learned.metrics, values);
        let (mean, own) = learned.best().map(|best| (named(&best.mean), named(&best.own))).unwrap_or_default();
        let metrics = with_own_epsilon(&mean, &own);
        self.member.log.tell(Event::Learned {
            rounds: learned.rounds,
            best_round: learned.best_round,
            metrics,
            own,
            seconds: self.member.started.elapsed().as_secs_f64(),
            sent_bytes: self.member.traffic().sent_bytes,
            peak_resident_bytes: results::peak_resident_bytes(),
        });
    }
}

/// The means over all members, but for epsilon: a guarantee is each member's own.
pub(super) fn with_own_epsilon(means: &Metrics, own: &Metrics) -> Metrics {
    let shown = |(name, mean)| (name, own.get(name).filter(|_| name == EPSILON).unwrap_or(mean));
    means.iter().map(shown).collect()
}

/// Measured values by name.
pub(super) fn named(names: &[String], values: &[Option<f64>]) -> Metrics {
    names.iter().zip(values).filter_map(|(name, value)| Some((name.as_str(), (*value)?))).collect()
}
