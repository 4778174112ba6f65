//! A peer that trains a model with the others.

use std::sync::Arc;

use libp2p::PeerId;
use mingle_net::transport::Network;
use mingle_protocol::record::most_host_bytes;
use mingle_protocol::{Durability, Incarnation, MAX_DESCRIPTION, NodeConfig, RecordRoom, TaskDigest};

use super::finish::{ModelForm, RunWanted};
use super::lenders::{Lenders, WantedLoan};
use super::start::{FoundRecords, Start, norm};
use super::{Access, Incoming, Outcome, Peer, Streams, boot_nonce};
use crate::driver::{Driver, DriverParts};
use crate::error::{Error, ErrorKind, Result};
use crate::events::{Event, StateOf};
use crate::follow::serving::Followers;
use crate::membership::{MemberKeys, MembershipService};
use crate::place::Place;
use crate::plan;
use crate::records::{self, Found, Past, RecordWriter, Room};
use crate::status::PeerState;
use crate::task::{Assignment, TaskCard};
use crate::timeline::Timeline;
use crate::training::thread::TrainingThread;
use crate::training::{BestFile, BestModel, LentState, LocalTraining, MomentumOfPeer, TrainingError, TrainingTask};

impl Peer {
    pub(super) async fn train(
        &mut self,
        task: Box<dyn TrainingTask>,
        place: Place,
        network: &Network,
        access: Access<'_>,
        mut incoming: Incoming,
    ) -> Result<Outcome> {
        let rounds = task.rounds();
        let follows_founder = task.begins_with_the_founder();
        let card = agreed_card(&*task)?;
        let momentum = self.momentum(&place)?;
        let mut training = momentum.add_to(task.build(place.node.index(), place.peers.len())?);
        self.introduce_training(&*card, &*training, &access.followers);
        let mut config = self.configure(&place, rounds, &mut *training, &*card)?;
        let Some(mut start) = self.begin(&place, &mut config, &*card)? else {
            return Ok(Outcome::WasOver);
        };
        let lenders = Lenders {
            service: Arc::clone(&access.service),
            streams: network.streams.clone(),
            founder: self.founder(&place)?,
            log: self.log.clone(),
            advice: card.advice().same_task,
        };
        let from_swarm = self.settle_model(&place, &mut config, &start, &mut *training, lenders, &mut incoming).await?;
        let begins_with_a_model_of_the_swarm = follows_founder || from_swarm || !start.is_the_first();
        start.restore(&mut *training)?.into_iter().for_each(|message| self.log.tell(Event::Warning { message }));
        let largest_state = training.largest_state();
        self.open_records(&mut start, &place, &mut config, largest_state)?;
        self.remember_task(&*card)?;
        let best = self.best_model(&place, &*card, &*training, !start.is_the_first())?;
        let Start { records, written, recovered, state_taken_along, timeline, .. } = start;
        let (form, privacy) = (ModelForm::of(&*training), training.privacy());
        give(&access.service, training.lent_state());
        let (training, answers) =
            TrainingThread::start(training, records.is_some(), self.options.priority, timeline.clone())?;
        let streams = Streams { boot_nonce: config.identity.boot_nonce, dimension: config.initial.len(), timeline };
        let parts = DriverParts {
            config,
            keypair: self.identity.keypair().clone(),
            leaves: self.options.leaves,
            rounds,
            training,
            momentum,
            taken_along: state_taken_along.unwrap_or_default(),
            largest_state,
            records,
            evaluate_every: self.options.evaluate_every,
            privacy,
            begins_with_a_model_of_the_swarm,
            advice: card.advice(),
            best,
            end_wish: self.options.end_wish.clone(),
        };
        let (mut receivers, member) = self.join_plan(place, network, access, incoming, streams)?;
        (receivers.answers, receivers.written) = (Some(answers), written);
        let finished = Box::pin(Driver::new(member, parts, recovered)?.run(&mut receivers)).await?;
        self.finish(finished, RunWanted { rounds, card: &*card, form }, &mut receivers.stop).await
    }

    /// The momentum across rounds under the first plan.
    fn momentum(&self, place: &Place) -> Result<MomentumOfPeer> {
        let choice = self.options.momentum_across_rounds;
        Ok(MomentumOfPeer::new(choice, plan::momentum(choice, &place.plan.plan)?))
    }

    /// Records the task for later starts, unless this peer is to leave.
    fn remember_task(&mut self, card: &dyn TaskCard) -> Result {
        if self.options.leaves { Ok(()) } else { (self.remember)(&Assignment::Train(card.encode())) }
    }

    /// Obtains the initial model: the peer's own, or, where it needs one, another member's. Returns `true` for another
    /// member's.
    async fn settle_model(
        &mut self,
        place: &Place,
        config: &mut NodeConfig,
        start: &Start,
        training: &mut dyn LocalTraining,
        lenders: Lenders,
        incoming: &mut Incoming,
    ) -> Result<bool> {
        let follows_founder = training.begins_with_the_founder();
        let begins_anew = follows_founder && start.is_the_first();
        let needs_a_model = start.needs_a_model(place) || (begins_anew && !self.is_founder(place)?);
        if needs_a_model {
            let shared = training.lent_state().filter(|_| start.needs_a_model(place));
            let state_bytes = shared.as_ref().and_then(|shared| shared.wanted());
            let max_norm = self.bound_on_a_model_of_others(follows_founder, config);
            let wanted = WantedLoan { dimension: config.initial.len(), max_norm, state_bytes };
            let asking = lenders.ask(place.others(), wanted);
            let rounds = place.plan.first_round().saturating_add(config.rounds);
            let (model, state) = self.wait_for_model(asking, place.others().len(), incoming, rounds).await?;
            config.initial = model;
            if let Some(shared) = shared.filter(|_| state_bytes.is_some()) {
                self.take_state(&*shared, state);
            }
        } else if begins_anew {
            config.initial = initial(training)?;
        }
        if follows_founder {
            config.largest_norm = Some(self.options.max_norm.unwrap_or_else(|| usual_bound(start.norm(config))));
            // The learning rate of another program is unknown: it may well stay as it is to the end.
            config.ends_with_mean = true;
        }
        Ok(needs_a_model)
    }

    /// Gives a training the state of a member's, and reports whose it is, or that no member gave any.
    fn take_state(&self, shared: &dyn LentState, state: Option<(PeerId, Vec<u8>)>) {
        let event = match state {
            Some((member, bytes)) => {
                shared.take(bytes);
                Event::StateOf(StateOf { peer: member.to_string() })
            }
            None => {
                let message = "no member gave the state of its optimizer, or none that there is room for here: that of this peer begins anew".to_owned();
                Event::Warning { message }
            }
        };
        self.log.tell(event);
    }

    /// The largest norm of an initial model that this peer accepts from others.
    fn bound_on_a_model_of_others(&self, follows_founder: bool, config: &NodeConfig) -> f64 {
        // The initial vector of this peer's own training is no measure of the founder's model.
        let usual = if follows_founder { None } else { config.largest_norm };
        self.options.max_norm.or(usual).unwrap_or(f64::INFINITY)
    }

    /// The keeper of the best model of this run, if one is wanted.
    fn best_model(
        &self,
        place: &Place,
        card: &dyn TaskCard,
        training: &dyn LocalTraining,
        goes_on: bool,
    ) -> Result<Option<BestModel>> {
        let Some(criterion) = self.options.keep_best.clone().filter(|_| !self.options.leaves) else { return Ok(None) };
        let metadata = [("plan", place.hash.clone()), ("task", card.describe())];
        let file = BestFile {
            path: self.home.best_model(),
            encoder: training.model_encoder(),
            metadata: metadata.map(|(key, value)| (key.to_owned(), value)).into(),
        };
        let log = self.log.clone();
        let tell = move |written| match written {
            Ok(best) => log.tell(Event::Best { best }),
            Err(failure) => log.tell(Event::Warning { message: format!("the best model is not kept: {failure:#}") }),
        };
        BestModel::open(criterion, file, goes_on, tell).map(Some)
    }

    fn introduce_training(&mut self, card: &dyn TaskCard, training: &dyn LocalTraining, followers: &Followers) {
        followers.begin(card.describe(), training.shared_model_encoder());
        let description = card.describe();
        let facts = training.facts();
        self.log.tell(Event::Task {
            description: description.clone(),
            parameters: training.layout().dimension(),
            train_samples: facts.train_samples,
            test_samples: facts.test_samples,
            device: facts.device.clone(),
        });
        let privacy = training.privacy();
        if let Some(spending) = privacy {
            let event = if spending.is_spent { Event::PrivacySpent { spending } } else { Event::Privacy { spending } };
            self.log.tell(event);
        }
        self.board.update(|status| {
            status.task = Some(description);
            status.device = Some(facts.device);
            status.privacy = privacy;
        });
    }

    /// Determines the state that this peer goes on with. `None` if its run is over.
    fn begin(&mut self, place: &Place, config: &mut NodeConfig, card: &dyn TaskCard) -> Result<Option<Start>> {
        let Found { past, store, is_superseded, is_prolonged } = self.find_past(config, card)?;
        let mut state_taken_along = None;
        let recovered = match past {
            Past::Finished(ending) => {
                self.log.tell(Event::Finished { round: ending.rounds, left: ending.left });
                self.board.update(|status| (status.state, status.round) = (PeerState::Done, ending.rounds));
                return Ok(None);
            }
            Past::None => {
                let incarnation = config.identity.incarnation;
                if incarnation > 1 {
                    self.log.tell(Event::Rejoining { incarnation });
                }
                None
            }
            Past::Unfinished(recovered) => {
                let books = &recovered.record.books;
                let round = place.plan.first_round() + books.step / config.schedule.round_length();
                if is_prolonged && self.options.continues {
                    let rounds = place.plan.first_round().saturating_add(config.rounds);
                    self.log.tell(Event::Prolonged { round, rounds });
                }
                self.log.tell(Event::Recovered { round, weight_units: books.mass.units(), record: books.number });
                Some(*recovered)
            }
            Past::Replaced { belief, host } => {
                config.initial = belief;
                state_taken_along = Some(host);
                None
            }
        };
        // A run that is over keeps the timeline that it has.
        let timeline =
            if self.options.timeline { Timeline::create(&self.home, place.node.0)? } else { Timeline::default() };
        let store = Some(FoundRecords { store, is_superseded, is_prolonged });
        Ok(Some(Start { store, records: None, written: None, recovered, state_taken_along, timeline }))
    }

    /// State that the home has of this training; none counts with `--fresh`.
    fn find_past(&self, config: &NodeConfig, card: &dyn TaskCard) -> Result<Found> {
        if self.options.fresh {
            return Found::fresh(&self.home);
        }
        Past::find(&self.home, config, |rounds| card.hash_for(rounds), self.options.continues)
    }

    /// Prepares the records, once there is an initial model: a failed start leaves those of the run before, and the
    /// first record replaces them.
    fn open_records(&self, start: &mut Start, place: &Place, config: &mut NodeConfig, largest_state: usize) -> Result {
        let Some(found) = start.store.take() else { return Ok(()) };
        let begins_anew = start.is_the_first() || (found.is_superseded && self.options.continues);
        // Records of a run that is over, or was given up, stay until this one has begun.
        if config.durability == Durability::On {
            self.write_records(found, start, place, config, largest_state)?;
        }
        if begins_anew { self.home.forget_skipped_rounds() } else { Ok(()) }
    }

    /// Makes room for the records, and starts the thread that writes them.
    fn write_records(
        &self,
        found: FoundRecords,
        start: &mut Start,
        place: &Place,
        config: &mut NodeConfig,
        largest_state: usize,
    ) -> Result {
        let FoundRecords { mut store, is_superseded, is_prolonged } = found;
        let room = Room::new(config.initial.len(), RecordRoom::of(&place.schedule, place.node))?;
        let room = room.with_state(largest_state);
        if is_superseded {
            store = records::begin_anew(&self.home, room)?;
        } else if let Some(recovered) = start.recovered.as_mut().filter(|_| is_prolonged) {
            store = records::prolong(&self.home, room, &store, recovered)?;
        } else {
            store.make_room(room)?;
        }
        config.record_slots = Some(store.slots());
        let (records, written) = RecordWriter::start(store, start.timeline.clone())?;
        start.records = Some(records);
        start.written = Some(written);
        Ok(())
    }

    /// The node's configuration.
    fn configure(
        &mut self,
        place: &Place,
        rounds: u64,
        training: &mut dyn LocalTraining,
        card: &dyn TaskCard,
    ) -> Result<NodeConfig> {
        let boot_nonce = boot_nonce()?;
        // The number is stored when the node takes part.
        let incarnation = if self.options.fresh { 1 } else { self.home.next_incarnation(&place.hash)? };
        check_sizes(training)?;
        mingle_allocator::return_freed(size_of::<f32>() * training.layout().dimension());
        // The founder's model comes later, from the founder, or from this training if the founder is this peer.
        let initial = match training.begins_with_the_founder() {
            true => vec![0.0; training.layout().dimension()],
            false => initial(training)?,
        };
        let max_norm = self.options.max_norm.unwrap_or_else(|| usual_bound(norm(&initial)));
        let mut config = NodeConfig::new(place.node, Arc::clone(&place.schedule), initial, place.plan.rounds(rounds));
        config.generation = place.plan.generation();
        config.task = TaskDigest { hash: card.hash(), description: shortened(card.describe()) };
        config.identity = Incarnation { incarnation, boot_nonce };
        config.keys = Arc::new(MemberKeys::new(self.identity.keypair(), &place.peers));
        config.durability = self.options.durability;
        config.largest_norm = Some(max_norm);
        config.robust = self.options.robust;
        config.overlap = self.options.overlap;
        config.policy = self.options.wait;
        config.codec = self.options.codec;
        config.gather_for = Some(self.options.join_timeout);
        config.deadline_floor = self.options.deadline;
        config.time_box = self.options.time_box;
        config.keeps_up = true;
        config.training_deadline = Some(self.options.training_deadline);
        config.drain_deadline = self.options.shutdown_timeout;
        Ok(config)
    }
}

/// Lets members that join have the model of this peer, and the state of its training where it has one for them.
fn give(service: &MembershipService, shared: Option<Arc<dyn LentState>>) {
    service.give_models();
    if let Some(shared) = shared {
        service.give_states(Arc::new(move || shared.offered()));
    }
}

/// The card of the task that the members agreed on.
fn agreed_card(task: &dyn TrainingTask) -> Result<Arc<dyn TaskCard>> {
    task.card().ok_or_else(|| Error::new(ErrorKind::Unexpected, "training begins without an agreement on the task"))
}

/// A description that fits into the greeting of a node: names of tensors may be long.
fn shortened(mut description: String) -> String {
    const CUT: &str = "...";
    if description.len() > MAX_DESCRIPTION {
        description.truncate(description.floor_char_boundary(MAX_DESCRIPTION - CUT.len()));
        description.push_str(CUT);
    }
    description
}

/// Refuses a training whose tensors have ambiguous names, or whose state has no room in a record.
fn check_sizes(training: &dyn LocalTraining) -> Result {
    if let Some(name) = training.layout().first_repeated() {
        return Err(Error::new(ErrorKind::Training, format!("two tensors of the model are called `{name}`")));
    }
    let state = training.largest_state();
    let most = most_host_bytes(training.layout().dimension());
    if state > most {
        let message = format!("the training would keep {state} bytes in a record, which holds {most} at most");
        return Err(Error::new(ErrorKind::Training, message));
    }
    Ok(())
}

/// The vector that a training begins with, if it is finite and fits its layout.
fn initial(training: &mut dyn LocalTraining) -> Result<Vec<f32>> {
    let initial = training.initial().map_err(no_beginning)?;
    let (found, wanted) = (initial.len(), training.layout().dimension());
    if found != wanted {
        let message = format!("the model to begin with has {found} numbers, and its layout {wanted}");
        return Err(Error::new(ErrorKind::Training, message));
    }
    match initial.iter().position(|value| !value.is_finite()) {
        None => Ok(initial),
        Some(index) => {
            let message = format!("number {index} of the model to begin with is {}", initial[index]);
            Err(Error::new(ErrorKind::Training, message))
        }
    }
}

/// The error of a training without a first vector. A training that gives a kind and a hint keeps them.
fn no_beginning(error: TrainingError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => Error::new(ErrorKind::Training, "there is no model to begin with").caused_by(error),
    }
}

/// The largest norm of a sound model of a training whose first model has this norm.
fn usual_bound(norm: f64) -> f64 {
    1000.0 * norm.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_description_is_cut_between_two_characters() {
        assert_eq!(shortened("cnn".to_owned()), "cnn");
        let long = shortened("ü".repeat(MAX_DESCRIPTION));
        assert!(long.len() <= MAX_DESCRIPTION && long.ends_with("ü..."), "{long}");
    }
}
