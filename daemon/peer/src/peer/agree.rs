//! Agreement with the swarm on the task, before anything is mixed.
//!
//! The task is that of the first of these that exists:
//!
//! ```text
//!   this peer, where its task is settled before it starts
//!   a member of the swarm, or the peer that gave the plan
//!   this peer: the operator of a swarm, or one that nobody told where others are
//! ```
//!
//! In a swarm without an operator, peers that know each other's addresses and have no task wait for node 0 of the plan,
//! which makes the task.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use libp2p::PeerId;

use super::find_place::PlanReceivers;
use super::long_wait::LongWait;
use super::{Peer, Purpose};
use crate::error::{Error, ErrorKind, Result};
use crate::events::Event;
use crate::membership::{self, MembershipService, PlanVerdict, TaskAnswer, Wanted};
use crate::place::Place;
use crate::status::PeerState;
use crate::task::{Assignment, Work};
use crate::training::{Adoption, TrainingTask};

/// Pause between two requests for the task.
const FETCH_PAUSE: Duration = Duration::from_millis(200);

impl Peer {
    /// Asks members of the swarm, or of the plan, for their task, if this peer's is still open.
    pub(super) async fn agree_with_others(
        &mut self,
        receivers: &mut PlanReceivers<'_>,
        service: &MembershipService,
        place: &Place,
    ) -> Result {
        let local = self.identity.peer_id();
        let Some(may_wait) = self.open_task().map(|task| task.needs_others()) else { return Ok(()) };
        let others: Vec<PeerId> = if may_wait {
            place.peers.values().copied().filter(|peer| *peer != local).collect()
        } else {
            // A task that this peer could make itself is worth asking only of peers that are known to be reachable.
            self.plan_giver.into_iter().collect()
        };
        let patience = self.options.bootstrap_timeout;
        let makes_it = place.node.index() == 0 || !may_wait;
        let mut wait = LongWait::begin();
        let mut asking = pin!(ask_for_task(receivers, &others, patience, makes_it));
        let found = loop {
            tokio::select! {
                found = &mut asking => break found?,
                () = wait.is_long() => self.warn(format!(
                    "no peer has said yet what the columns and classes are: is node 0 of the plan running? All are asked until {} s are over",
                    patience.as_secs()
                )),
            }
        };
        match found {
            Some((peer, card)) => self.agree_with(peer, &card)?,
            None if makes_it => {
                let told = self.open_task().map(|task| task.propose()).transpose()?;
                self.tell_all(told.unwrap_or_default());
            }
            None => {
                let seconds = patience.as_secs();
                return Err(Error::new(ErrorKind::Unreachable, format!("no peer said within {seconds} s what the columns and classes are"))
                    .hint("start node 0 of the plan too: it says so; or give all peers one card: mingle data card -o card.json, then --card card.json"));
            }
        }
        self.announce_work(service);
        Ok(())
    }

    /// Waits for the program that trains for this peer, if one is to come.
    pub(super) async fn wait_for_trainer(
        &mut self,
        receivers: &mut PlanReceivers<'_>,
        service: &MembershipService,
    ) -> Result {
        let (Purpose::Train(task) | Purpose::TrainFederated(task, _)) = &self.purpose else { return Ok(()) };
        let Some(mut ready) = task.ready() else { return Ok(()) };
        let local = self.identity.peer_id();
        self.board.update(|status| status.state = PeerState::WaitingForTrainer);
        self.log.tell(Event::WaitingForTrainer { socket: self.home.present_socket().display().to_string() });
        loop {
            tokio::select! {
                () = &mut ready => break,
                Some(wanted) = receivers.wanted.recv() => self.decline_plan(wanted, local, service, "its trainer"),
            }
        }
        self.board.update(|status| status.state = PeerState::Starting);
        let told = match &mut self.purpose {
            Purpose::Train(task) | Purpose::TrainFederated(task, _) => task.begin()?,
            Purpose::Solve(_) | Purpose::Learn(_) => Vec::new(),
        };
        self.tell_all(told);
        Ok(())
    }

    /// Answers requests to a peer that waits for something before it can follow a plan.
    pub(super) fn decline_plan(&mut self, wanted: Wanted, local: PeerId, service: &MembershipService, awaited: &str) {
        if let Wanted::Plan(_, answer) = wanted {
            // The receiver of the answer may be gone.
            let _ = answer.send(PlanVerdict::Refused(format!("this peer waits for {awaited}")));
        } else {
            drop(self.on_wanted(wanted, local, service));
        }
    }

    /// This peer's training task, while it is not settled.
    fn open_task(&mut self) -> Option<&mut Box<dyn TrainingTask>> {
        match &mut self.purpose {
            Purpose::Train(task) if task.card().is_none() => Some(task),
            _ => None,
        }
    }

    /// Adopts the task of `peer`.
    ///
    /// # Errors
    /// A setting of this peer contradicts it, or its data do not fit.
    pub(super) fn agree_with(&mut self, peer: PeerId, card: &[u8]) -> Result {
        let adoption = Adoption { from: peer, is_of_a_swarm: self.membership.is_some() };
        let Some(told) = self.open_task().map(|task| task.adopt(card, adoption)).transpose()? else { return Ok(()) };
        self.log.tell(Event::TaskOf { peer: peer.to_string() });
        self.tell_all(told);
        Ok(())
    }

    fn tell_all(&mut self, events: Vec<Event>) {
        events.into_iter().for_each(|event| self.log.tell(event));
    }

    /// Publishes this peer's work, if it is settled, for other peers that ask; the home remembers it for the next
    /// start.
    pub(super) fn announce_work(&self, service: &MembershipService) {
        if let Some(work) = self.work() {
            service.take_on(work);
        }
    }

    /// [`remember_work`](Self::remember_work), unless the home has records that may refuse this start.
    pub(super) fn remember_new_work(&mut self) -> Result {
        let trains = matches!(self.work(), Some(Work::Train(_)));
        if trains && self.home.records().is_dir() {
            return Ok(());
        }
        self.remember_work()
    }

    /// Writes the task to the home, for the next start.
    pub(super) fn remember_work(&mut self) -> Result {
        match self.work() {
            Some(work) if !self.options.leaves => (self.remember)(&work.assignment()),
            _ => Ok(()),
        }
    }
}

/// Asks all of `others` at once, repeatedly, until one has a task. Returns `None` if none had one in time, or, with
/// `at_once`, if all that answer have none.
async fn ask_for_task(
    receivers: &mut PlanReceivers<'_>,
    others: &[PeerId],
    patience: Duration,
    at_once: bool,
) -> Result<Option<(PeerId, Vec<u8>)>> {
    let give_up = tokio::time::Instant::now() + patience;
    let mut refusals: BTreeMap<PeerId, Error> = BTreeMap::new();
    loop {
        let streams = &receivers.network.streams;
        let mut asked: FuturesUnordered<_> = others
            .iter()
            .map(|&peer| {
                let mut streams = streams.clone();
                async move { (peer, membership::fetch_task(&mut streams, peer, None).await) }
            })
            .collect();
        while let Some((peer, answer)) = asked.next().await {
            match answer {
                Ok(TaskAnswer::Task(Assignment::Train(card))) => return Ok(Some((peer, card))),
                Ok(TaskAnswer::Task(Assignment::Solve(_))) => {
                    return Err(Error::new(
                        ErrorKind::Refused,
                        format!("peer {peer} solves a problem, and this peer trains a model"),
                    )
                    .hint("start all peers of a swarm with the same --problem, or all without"));
                }
                Ok(TaskAnswer::NotYet | TaskAnswer::Away) => {}
                Err(refusal) => drop(refusals.insert(peer, refusal)),
            }
        }
        if at_once {
            return Ok(None);
        }
        if tokio::time::Instant::now() >= give_up {
            return refusals.pop_first().map_or(Ok(None), |(_, refusal)| Err(refusal));
        }
        tokio::select! {
            Some(_) = receivers.events.recv() => {}
            () = tokio::time::sleep(FETCH_PAUSE) => {}
        }
    }
}
