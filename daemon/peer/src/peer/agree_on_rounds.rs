//! Agreement with the swarm on the number of rounds, before another program begins to train.
//!
//! A program plans by that number: the learning rate of a step depends on how many there are. So a peer whose user chose
//! none asks the members before its program attaches, where all else of the task is compared after it has.

use libp2p::PeerId;

use super::find_place::{FETCH_PAUSE, PlanReceivers};
use super::long_wait::LongWait;
use super::plan_search::PlanSearch;
use super::{Peer, Purpose};
use crate::error::{Error, ErrorKind, Result};
use crate::events::Event;
use crate::membership::{self, Claim, MembershipService, TaskAnswer};
use crate::records::Ending;
use crate::task::Assignment;
use crate::training::Adoption;

impl Peer {
    /// Takes the number of rounds from the task of a member, if this peer's task awaits it, or its run is over and a
    /// longer one may have begun.
    ///
    /// # Errors
    /// No member can be reached in time, all refuse this peer, or they train nothing that a program trains. Where the run
    /// is over, it stays over instead.
    pub(super) async fn agree_on_rounds(
        &mut self,
        receivers: &mut PlanReceivers<'_>,
        service: &MembershipService,
    ) -> Result {
        let Some(membership) = self.membership.clone() else { return Ok(()) };
        let awaits = matches!(&self.purpose, Purpose::Train(task) if task.awaits_rounds());
        let over = self.options.longer_than.clone();
        if !awaits && over.is_none() {
            return Ok(());
        }
        // Another run has the swarm's number whatever the one before had.
        let over = over.filter(|_| !self.options.continues);
        let local = self.identity.peer_id();
        let claim = membership.invite.as_ref().map(|invite| invite.claim(&membership.swarm, &local)).transpose()?;
        let mut search = PlanSearch::default();
        let operator = membership.swarm.operator()?;
        let patience_with_answers = self.options.join_timeout;
        let asked = self.ask_members_for_rounds(receivers, service, (operator, claim.as_ref()), &mut search);
        let said = match &over {
            None => asked.await.map(Some),
            Some(_) => Ok(tokio::time::timeout(patience_with_answers, asked).await.ok().and_then(Result::ok)),
        }?;
        receivers.search = search;
        self.take_rounds(said, over.as_ref())?;
        self.show_rounds();
        Ok(())
    }

    /// Takes the number in the card of a member; of a run that is over, only a larger one.
    fn take_rounds(&mut self, said: Option<(PeerId, Vec<u8>)>, over: Option<&Ending>) -> Result {
        let Purpose::Train(task) = &mut self.purpose else { return Ok(()) };
        let said = said.map(|(from, card)| task.rounds_in(&card, Adoption { from, is_of_a_swarm: true })).transpose();
        let rounds = match over {
            None => said?,
            Some(over) => {
                let longer = said.ok().flatten().filter(|rounds| over.goes_on_to(*rounds));
                if let Some(rounds) = longer {
                    self.log.tell(Event::Prolonged { round: over.rounds, rounds });
                }
                longer.or(Some(over.rounds_of_task()))
            }
        };
        rounds.into_iter().for_each(|rounds| task.set_rounds(rounds));
        Ok(())
    }

    /// Shows how many rounds this peer trains, as far as is known.
    pub(super) fn show_rounds(&self) {
        let rounds = self.rounds();
        self.board.update(|status| status.rounds = rounds);
    }

    /// Asks the members that answer, the operator first, repeatedly, until one says what the swarm trains.
    async fn ask_members_for_rounds(
        &mut self,
        receivers: &mut PlanReceivers<'_>,
        service: &MembershipService,
        (operator, claim): (PeerId, Option<&Claim>),
        search: &mut PlanSearch,
    ) -> Result<(PeerId, Vec<u8>)> {
        let local = self.identity.peer_id();
        let patience = self.options.bootstrap_timeout;
        let give_up = tokio::time::Instant::now() + patience;
        let mut streams = receivers.network.streams.clone();
        let mut wait = LongWait::begin();
        loop {
            let mut asked: Vec<PeerId> = search.answered.keys().copied().collect();
            asked.sort_by_key(|peer| *peer != operator);
            for peer in asked {
                match membership::fetch_task(&mut streams, peer, claim).await {
                    Ok(TaskAnswer::Task(Assignment::Train(card))) => return Ok((peer, card)),
                    Ok(TaskAnswer::Task(Assignment::Solve(_))) => return Err(solves_a_problem(peer)),
                    Ok(TaskAnswer::NotYet | TaskAnswer::Away) => drop(search.refusals.remove(&peer)),
                    Err(refusal) => search.refused(peer, refusal).map_or(Ok(()), Err)?,
                }
            }
            let nobody_answers = search.answered.is_empty();
            tokio::select! {
                Some(event) = receivers.events.recv() => self.note(event, search),
                Some(wanted) = receivers.wanted.recv() => {
                    self.decline_plan(wanted, local, service, "the number of rounds");
                }
                () = wait.is_long() => self.warn(if nobody_answers {
                    search.remark(patience, "")
                } else {
                    "no member of the swarm has said yet how many rounds it trains: has the trainer of its operator attached? All are \
                     asked again; --rounds N, the same number as there, waits for nobody"
                        .to_owned()
                }),
                () = tokio::time::sleep_until(give_up), if nobody_answers => return Err(search.failure(patience)),
                () = tokio::time::sleep(FETCH_PAUSE), if !nobody_answers => {}
            }
        }
    }
}

fn solves_a_problem(peer: PeerId) -> Error {
    Error::new(ErrorKind::Refused, format!("peer {peer} solves a problem, and this peer trains a model"))
        .hint("name its problem file with --problem FILE")
}
