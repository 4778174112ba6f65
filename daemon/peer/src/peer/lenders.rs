//! The initial model of a peer that needs another member's, and the reason if no member has one for it.

use std::sync::Arc;
use std::time::Duration;

use libp2p::PeerId;
use mingle_protocol::NodeId;

use super::{Incoming, Peer, stopped};
use crate::api::Stopping;
use crate::error::{Error, ErrorKind, Result};
use crate::events::{Event, EventLog, ModelOf};
use crate::membership::{self, Borrowed, MembershipService, TaskAnswer};
use crate::place::Place;
use crate::status::PeerState;

/// Interval of checks of the founder's task.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Consecutive checks with one answer of the founder, after which the user is told.
const LOOKS_BEFORE_WORD: u32 = 5;
/// Time for which a peer with another task stays, so that the others can ask for the difference.
const STAYS: Duration = Duration::from_secs(8);

/// Members that can send an initial model.
pub(super) struct Lenders {
    pub(super) service: Arc<MembershipService>,
    pub(super) streams: libp2p_stream::Control,
    /// The member whose task is the swarm's.
    pub(super) founder: Option<PeerId>,
    /// The hint about another task.
    pub(super) advice: &'static str,
    pub(super) log: EventLog,
}

/// Bounds of the beginning that a peer without a state of its own takes from other members.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedLoan {
    pub(super) dimension: usize,
    /// The largest norm of a model.
    pub(super) max_norm: f64,
    /// Most bytes of the state of a training; `None` where none is wanted.
    pub(super) state_bytes: Option<usize>,
}

/// The beginning that other members gave.
pub(super) struct Loan {
    borrowed: Borrowed,
    /// The state of a member's training, and the member.
    pub(super) state: Option<(PeerId, Vec<u8>)>,
}

impl Lenders {
    /// Asks these members for what a peer begins with, until one has sent a model.
    ///
    /// # Errors
    /// The founder trains something else: no member has a model for this peer.
    pub(super) async fn ask(self, members: Vec<PeerId>, wanted: WantedLoan) -> Result<Loan> {
        let WantedLoan { dimension, max_norm, state_bytes } = wanted;
        let borrowing = async {
            let streams = self.streams.clone();
            let borrowed = membership::borrow_model(streams.clone(), members, dimension, max_norm).await;
            let state = match state_bytes {
                Some(most) => membership::borrow_state(streams, &borrowed.donors, most).await,
                None => None,
            };
            Loan { borrowed, state }
        };
        tokio::select! {
            loan = borrowing => Ok(loan),
            difference = self.watch_founder() => {
                let founder = self.founder.map(|founder| founder.to_string()).unwrap_or_default();
                let message = format!("{founder} trains something else: {difference}");
                let told = format!("{message}; this peer ends in {} s", STAYS.as_secs());
                self.log.tell(Event::Warning { message: told });
                tokio::time::sleep(STAYS).await;
                Err(Error::new(ErrorKind::Refused, message).hint(self.advice))
            }
        }
    }

    /// Waits until the founder's answer shows that it trains something else, and reports a founder that has no model to
    /// give. Returns the difference.
    async fn watch_founder(&self) -> String {
        let Some(founder) = self.founder else { return std::future::pending().await };
        let mut streams = self.streams.clone();
        let mut watch = FounderWatch::default();
        loop {
            let answer = membership::fetch_task(&mut streams, founder, None).await.unwrap_or(TaskAnswer::Away);
            if let Some(difference) = self.service.difference(&answer) {
                return difference;
            }
            if let Some(why) = watch.note(&answer) {
                let message = format!("no member has a model to begin with, and {founder}, the founder, {why}");
                self.log.tell(Event::Warning { message });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// The latest answers of a founder from which a model is expected.
#[derive(Default)]
struct FounderWatch {
    /// Consecutive checks that it did not answer.
    away: u32,
    /// Consecutive checks in which it had no task.
    without_script: u32,
}

impl FounderWatch {
    /// Notes an answer. Returns the reason why there is no model, the first time that it has held for a while.
    fn note(&mut self, answer: &TaskAnswer) -> Option<&'static str> {
        (self.away, self.without_script) = match answer {
            TaskAnswer::Away => (self.away.saturating_add(1), 0),
            TaskAnswer::NotYet => (0, self.without_script.saturating_add(1)),
            TaskAnswer::Task(_) => (0, 0),
        };
        if self.away == LOOKS_BEFORE_WORD {
            return Some("does not answer: start it again; if its run is over, this peer has come too late for it");
        }
        (self.without_script == LOOKS_BEFORE_WORD)
            .then_some("runs without its script, which has not attached; trainer.log in its home may say why")
    }
}

impl Peer {
    /// The model that other members send, and the state of a training where that is wanted, unless this peer is requested
    /// to stop before.
    pub(super) async fn wait_for_model(
        &mut self,
        asking: impl Future<Output = Result<Loan>>,
        members: usize,
        incoming: &mut Incoming,
        rounds: u64,
    ) -> Result<(Vec<f32>, Option<(PeerId, Vec<u8>)>)> {
        self.board.update(|status| status.state = PeerState::WaitingForModel);
        self.log.tell(Event::WaitingForModel { members });
        let stopping = Stopping { round: 0, rounds, weight_units: 0, durable: true };
        let Loan { borrowed, state } = tokio::select! {
            loan = asking => loan?,
            reason = stopped(&mut incoming.stop, &mut incoming.asked, stopping) => {
                return Err(Error::new(ErrorKind::Forced, format!("{reason} before a member gave its model")));
            }
        };
        borrowed.warning().into_iter().for_each(|message| self.log.tell(Event::Warning { message }));
        let Borrowed { donors, model, .. } = borrowed;
        self.log.tell(Event::Borrowed(ModelOf { peers: donors.iter().map(ToString::to_string).collect() }));
        Ok((model, state))
    }

    /// Returns `true` if the model that all begin with is this peer's.
    pub(super) fn is_founder(&self, place: &Place) -> Result<bool> {
        Ok(self.founder(place)? == Some(self.identity.peer_id()))
    }

    /// The member whose model all begin with: the founder of the swarm, or node 0 of the plan.
    pub(super) fn founder(&self, place: &Place) -> Result<Option<PeerId>> {
        let founder = self.membership.as_ref().map(|membership| membership.swarm.founder()).transpose()?;
        let founder = founder.filter(|founder| place.peers.values().any(|peer| peer == founder));
        Ok(founder.or_else(|| place.peers.get(&NodeId(0)).copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_founder_without_a_script_and_one_that_is_away_are_reported_once_each() {
        let mut watch = FounderWatch::default();
        let mut told =
            |answer: TaskAnswer, times: u32| -> Vec<&str> { (0..times).filter_map(|_| watch.note(&answer)).collect() };
        assert!(told(TaskAnswer::NotYet, LOOKS_BEFORE_WORD - 1).is_empty(), "its script may only be starting");
        assert!(told(TaskAnswer::Away, 1).is_empty(), "an answer may get lost");
        let without_script = told(TaskAnswer::NotYet, 3 * LOOKS_BEFORE_WORD);
        assert!(matches!(without_script[..], [only] if only.contains("its script")), "{without_script:?}");
        let away = told(TaskAnswer::Away, 3 * LOOKS_BEFORE_WORD);
        assert!(matches!(away[..], [only] if only.contains("does not answer")), "{away:?}");
    }
}
