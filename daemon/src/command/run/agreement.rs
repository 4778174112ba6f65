//! Agreeing with the swarm on what is trained, before anything is mixed.
//!
//! Who says what the task is, the first of these that there is:
//!
//! ```text
//!   the last run in this home, if it left a model or records      unless --fresh
//!   --card FILE                                                   columns, classes and scaling
//!   a member of the swarm, or the peer that gave the plan         everything
//!   this peer: the operator of a swarm, or one that nobody told where others are
//! ```
//!
//! In a swarm without an operator, peers that all know each other's addresses and none of which has a task wait for the
//! one that is node 0 of the plan: that makes it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use libp2p::PeerId;
use mingle_models::{DataCard, Device, RawData};

use super::Peer;
use super::find_place::Ears;
use crate::cli::{RunArgs, TrainingArgs};
use crate::command::data;
use crate::events::Event;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::home::Home;
use crate::membership::{self, Hall};
use crate::place::Place;
use crate::task::{self, Parts};
use crate::task_card::{Assignment, Card};
use crate::task_file::TaskFile;

/// Between two requests for the task.
const FETCH_PAUSE: Duration = Duration::from_millis(200);

/// What a peer would train, and what it trains once that is agreed.
pub(super) struct Agreement {
    pub(super) device: Device,
    /// Until they are held to a card.
    raw: Option<RawData>,
    agreed: Option<(Card, Parts)>,
}

impl Agreement {
    /// Reads the data; what they mean is open.
    pub(super) fn begin(training: &TrainingArgs) -> Outcome<Self> {
        let raw = task::read(&training.data)?;
        task::check_model(&training.model, raw.shape())?;
        let device = task::open_device(&training.device)?;
        Ok(Self { device, raw: Some(raw), agreed: None })
    }

    /// The card that these data make by themselves.
    fn own_card(&self, arguments: &RunArgs) -> Outcome<Card> {
        let doing = format!("--data {}", arguments.training.data);
        let data = match (&arguments.card, &self.raw) {
            (Some(path), _) => data::read_card(path)?,
            (None, Some(raw)) => raw.card(arguments.training.seed).or_fail(Kind::BadInput, doing)?,
            (None, None) => {
                return Err(Failure::new(Kind::Unexpected, "the data were given away before they were used"));
            }
        };
        Card::new(&arguments.training, data)
    }

    /// Whether nobody else can have another opinion of what the data mean.
    fn means_the_same_everywhere(&self) -> bool {
        self.raw.as_ref().is_some_and(RawData::means_the_same_everywhere)
    }

    fn hold_to(&mut self, card: Card, data: &str) -> Outcome {
        let Some(raw) = self.raw.take() else { return Ok(()) };
        let parts = Parts::held_to(raw, &card.data, card.seed).map_err(|error| {
            Failure::new(Kind::Refused, error).hint(format!(
                "--data {data} must have the columns and classes of the swarm; `mingle data card` says which it has"
            ))
        })?;
        self.agreed = Some((card, parts));
        Ok(())
    }

    /// What was agreed on.
    pub(super) fn conclude(self) -> Outcome<(Card, Parts, Device)> {
        let (card, parts) = self
            .agreed
            .ok_or_else(|| Failure::new(Kind::Unexpected, "training begins without an agreement on the task"))?;
        Ok((card, parts, self.device))
    }
}

/// What stands in a home of earlier runs.
pub(super) struct HomeTask {
    card: Option<Card>,
    /// It left a model, or the weight of a run that is not over.
    holds_work: bool,
}

impl HomeTask {
    pub(super) fn of(home: &Home) -> Outcome<Self> {
        Ok(Self { card: TaskFile::last(home)?, holds_work: home.holds_work() })
    }
}

impl Peer {
    /// Settles what can be settled without asking anybody.
    ///
    /// # Errors
    /// What the command line wants is not what the home holds the model of.
    pub(super) fn agree_by_itself(&mut self, last: HomeTask) -> Outcome {
        let Some(agreement) = &self.agreement else { return Ok(()) };
        let is_invited = self.membership.as_ref().is_some_and(|membership| membership.invite.is_some());
        let can_ask = is_invited || !self.arguments.bootstrap.is_empty();
        let is_bound = last.holds_work && !self.arguments.fresh;
        if let Some(card) = last.card.filter(|_| is_bound || !(can_ask || self.arguments.fresh)) {
            let wanted = self.wanted_of(&card)?;
            match wanted.difference(&card) {
                None => return self.agree_on(adopted(&card, &wanted)),
                Some(difference) if is_bound => return Err(self.needs_fresh(&difference)),
                Some(_) => {}
            }
        }
        // Asked for later.
        if can_ask && self.arguments.card.is_none() {
            return Ok(());
        }
        let card = agreement.own_card(&self.arguments)?;
        if !is_invited && self.arguments.card.is_none() && !agreement.means_the_same_everywhere() {
            self.log.tell(Event::OwnCard { columns: card.data.columns().len(), classes: card.data.classes().len() });
        }
        if is_invited {
            // The members have the last word: this is only what the peer would bring.
            return Ok(());
        }
        self.agree_on(card)
    }

    /// The task of the last run, with what this command line says otherwise.
    fn wanted_of(&self, card: &Card) -> Outcome<Card> {
        let mut training = self.arguments.training.clone();
        adopt(&mut training, &self.arguments.given.keys, card);
        let data = match &self.arguments.card {
            Some(path) => data::read_card(path)?,
            None => card.data.clone(),
        };
        Card::new(&training, data)
    }

    fn needs_fresh(&self, difference: &str) -> Failure {
        let home = self.home.root().display();
        Failure::new(Kind::Refused, format!("{home} holds the work of another run: {difference}, in that run"))
            .hint("leave those flags away to go on with it; give it another home with --home DIR; or give that work up with --fresh")
    }

    /// Asks members of the swarm, or of the plan, what they train, where that is still open.
    pub(super) async fn agree_with_others(&mut self, ears: &mut Ears<'_>, hall: &Hall, place: &Place) -> Outcome {
        let Some(agreement) = self.agreement.as_ref().filter(|agreement| agreement.agreed.is_none()) else {
            return Ok(());
        };
        let local = self.identity.peer_id();
        let others: Vec<PeerId> = match (agreement.means_the_same_everywhere(), self.plan_giver) {
            // Only what is known to be reachable is worth asking for what is known anyway.
            (true, giver) => giver.into_iter().collect(),
            (false, _) => place.peers.values().copied().filter(|peer| *peer != local).collect(),
        };
        let patience = Duration::from_secs(self.arguments.bootstrap_timeout_s);
        let may_wait = !agreement.means_the_same_everywhere();
        let makes_it = place.node.index() == 0 || !may_wait;
        match ask_for_task(ears, &others, patience, makes_it).await? {
            Some((peer, card)) => self.agree_with(peer, card)?,
            None if makes_it => {
                let card = self.agreement.as_ref().map(|agreement| agreement.own_card(&self.arguments)).transpose()?;
                card.map_or(Ok(()), |card| self.agree_on(card))?;
            }
            None => {
                let seconds = patience.as_secs();
                return Err(Failure::new(Kind::Unreachable, format!("no peer said within {seconds} s what the columns and classes are"))
                    .hint("start node 0 of the plan too: it says so; or give all peers one card: mingle data card -o card.json, then --card card.json"));
            }
        }
        self.announce_work(hall);
        Ok(())
    }

    /// Takes the task over that `peer` has.
    ///
    /// # Errors
    /// A flag of this peer says otherwise, or its data do not fit.
    pub(super) fn agree_with(&mut self, peer: PeerId, card: Card) -> Outcome {
        let keys = &self.arguments.given.keys;
        let is_strict = self.membership.is_some();
        if let Some(conflict) = conflict(&self.arguments.training, keys, &card, is_strict) {
            return Err(Failure::new(Kind::Refused, format!("{conflict} (so says {peer})"))
                .hint("leave that setting away: the swarm says what it is"));
        }
        if let Some(path) = &self.arguments.card
            && let Some(difference) = data::read_card(path)?.difference(&card.data)
        {
            let message = format!("--card {} is not the card of the swarm: {difference}", path.display());
            return Err(Failure::new(Kind::Refused, message).hint("leave --card away: the swarm says what it is"));
        }
        let last = HomeTask::of(&self.home)?;
        if let Some(difference) =
            last.card.filter(|_| last.holds_work && !self.arguments.fresh).and_then(|last| card.difference(&last))
        {
            return Err(self.needs_fresh(&difference));
        }
        self.log.tell(Event::TaskOf { peer: peer.to_string() });
        self.agree_on(card)
    }

    /// This is what the peer trains, and what its home remembers.
    fn agree_on(&mut self, card: Card) -> Outcome {
        let Some(agreement) = &mut self.agreement else { return Ok(()) };
        let training = &mut self.arguments.training;
        overwrite(training, &card);
        let remarks = agreement.raw.as_ref().map(RawData::remarks).unwrap_or_default();
        agreement.hold_to(card, &training.data)?;
        let constant = agreement.agreed.as_ref().map(|(card, _)| constant_columns(&card.data)).unwrap_or_default();
        for message in remarks.into_iter().chain(constant) {
            self.log.tell(Event::Warning { message });
        }
        Ok(())
    }

    /// What this peer does, once it knows.
    pub(super) fn work(&self) -> Option<Assignment> {
        match &self.agreement {
            None => Some(Assignment::Solve),
            Some(agreement) => agreement.agreed.as_ref().map(|(card, _)| Assignment::Train(Box::new(card.clone()))),
        }
    }

    /// Tells who asks what this peer does, if it knows; the home remembers it for the next start.
    pub(super) fn announce_work(&self, hall: &Hall) {
        if let Some(work) = self.work() {
            hall.take_on(work);
        }
    }

    /// [`remember_work`](Self::remember_work), unless the home has records that may refuse this start.
    pub(super) fn remember_new_work(&self) -> Outcome {
        let trains = matches!(self.work(), Some(Assignment::Train(_)));
        if trains && self.home.records().is_dir() && !self.arguments.fresh {
            return Ok(());
        }
        self.remember_work()
    }

    /// Writes down what is trained, and with what options, for the next start.
    pub(super) fn remember_work(&self) -> Outcome {
        if self.arguments.leaves {
            return Ok(());
        }
        if let Some(Assignment::Train(card)) = self.work() {
            TaskFile::write(&card, &self.home)?;
        }
        self.arguments.given.options.write(&self.home)
    }
}

/// Asks all of `others` at once, again and again, until one has a task. None: nobody had one in time, or, with
/// `at_once`, everybody who answers has none.
async fn ask_for_task(
    ears: &mut Ears<'_>,
    others: &[PeerId],
    patience: Duration,
    at_once: bool,
) -> Outcome<Option<(PeerId, Card)>> {
    let give_up = tokio::time::Instant::now() + patience;
    let mut refusals: BTreeMap<PeerId, Failure> = BTreeMap::new();
    loop {
        let streams = &ears.network.streams;
        let mut asked: FuturesUnordered<_> = others
            .iter()
            .map(|&peer| {
                let mut streams = streams.clone();
                async move { (peer, membership::fetch_task(&mut streams, peer, None).await) }
            })
            .collect();
        while let Some((peer, answer)) = asked.next().await {
            match answer {
                Ok(Some(Assignment::Train(card))) => return Ok(Some((peer, *card))),
                Ok(Some(Assignment::Solve)) => {
                    return Err(Failure::new(
                        Kind::Refused,
                        format!("peer {peer} solves a problem, and this peer trains a model"),
                    )
                    .hint("start all peers of a swarm with the same --problem, or all without"));
                }
                Ok(None) => {}
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
            Some(_) = ears.events.recv() => {}
            () = tokio::time::sleep(FETCH_PAUSE) => {}
        }
    }
}

fn constant_columns(card: &DataCard) -> Option<String> {
    let constant = card.constant_columns();
    let first = constant.first()?;
    let others = if constant.len() == 1 { String::new() } else { format!(" and {} others", constant.len() - 1) };
    Some(format!(
        "column `{first}`{others} never varied where the scaling was taken, and is left out: its feature is 0"
    ))
}

/// The card with the recipe of this command line.
fn adopted(card: &Card, wanted: &Card) -> Card {
    Card { recipe: wanted.recipe.clone(), ..card.clone() }
}

/// Takes from the card what nobody chose on this side.
fn adopt(training: &mut TrainingArgs, given: &std::collections::BTreeSet<String>, card: &Card) {
    let mine = training.clone();
    overwrite(training, card);
    let keep = |key: &str| given.contains(key);
    if keep("model") {
        training.model = mine.model;
    }
    if keep("augment") {
        training.augment = mine.augment;
    }
    training.rounds = if keep("rounds") { mine.rounds } else { training.rounds };
    training.seed = if keep("seed") { mine.seed } else { training.seed };
    training.batch_size = if keep("batch_size") { mine.batch_size } else { training.batch_size };
    training.learning_rate = if keep("learning_rate") { mine.learning_rate } else { training.learning_rate };
    training.momentum = if keep("momentum") { mine.momentum } else { training.momentum };
    training.weight_decay = if keep("weight_decay") { mine.weight_decay } else { training.weight_decay };
}

fn overwrite(training: &mut TrainingArgs, card: &Card) {
    let Card { model, rounds, seed, recipe, .. } = card;
    training.model = model.to_string();
    training.augment = recipe.augment.to_string();
    (training.rounds, training.seed, training.batch_size) = (*rounds, *seed, recipe.batch_size);
    (training.learning_rate, training.momentum, training.weight_decay) =
        (recipe.learning_rate, recipe.momentum, recipe.weight_decay);
}

/// The first chosen setting that is not as the card has it; those of the recipe only count where `is_strict`.
fn conflict(
    training: &TrainingArgs,
    given: &std::collections::BTreeSet<String>,
    card: &Card,
    is_strict: bool,
) -> Option<String> {
    let mut theirs = training.clone();
    overwrite(&mut theirs, card);
    let same_model = training.model.parse().is_ok_and(|model: mingle_models::ModelKind| model == card.model);
    let same_augment = training.augment.parse().is_ok_and(|it: mingle_models::Augmentation| it == card.recipe.augment);
    let model = if same_model { theirs.model.clone() } else { training.model.clone() };
    let augment = if same_augment { theirs.augment.clone() } else { training.augment.clone() };
    let agreed = [
        ("model", model, theirs.model.clone()),
        ("rounds", training.rounds.to_string(), theirs.rounds.to_string()),
        ("seed", training.seed.to_string(), theirs.seed.to_string()),
    ];
    let recipe = [
        ("batch_size", training.batch_size.to_string(), theirs.batch_size.to_string()),
        ("learning_rate", training.learning_rate.to_string(), theirs.learning_rate.to_string()),
        ("momentum", training.momentum.to_string(), theirs.momentum.to_string()),
        ("weight_decay", training.weight_decay.to_string(), theirs.weight_decay.to_string()),
        ("augment", augment, theirs.augment.clone()),
    ];
    let all = agreed.into_iter().chain(recipe.into_iter().filter(|_| is_strict));
    let mut differing = all.filter(|(key, mine, theirs)| given.contains(*key) && mine != theirs);
    differing.next().map(|(key, mine, theirs)| {
        let option = key.replace('_', "-");
        format!("--{option} {mine} contradicts the task of the swarm, which has {theirs}")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::tests::training_defaults;
    use std::collections::BTreeSet;

    fn card() -> Card {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let data = DataCard::of_table(names(["a", "b"]), names(["x", "y"]), &[0.0; 2], &[1.0; 2]).unwrap();
        Card { rounds: 8, model: "softmax".parse().unwrap(), ..Card::new(&training_defaults(), data).unwrap() }
    }

    #[test]
    fn what_nobody_chose_is_taken_over_and_what_somebody_chose_is_refused_by_name() {
        let card = card();
        let mut training = TrainingArgs { rounds: 9, batch_size: 64, ..training_defaults() };
        let given = |keys: &[&str]| -> BTreeSet<String> { keys.iter().map(|key| (*key).to_owned()).collect() };
        assert_eq!(conflict(&training, &given(&["data"]), &card, true), None);
        let says = conflict(&training, &given(&["rounds"]), &card, false).unwrap();
        assert_eq!(says, "--rounds 9 contradicts the task of the swarm, which has 8");
        assert_eq!(conflict(&training, &given(&["batch_size"]), &card, false), None, "a recipe is a peer's own");
        let says = conflict(&training, &given(&["batch_size"]), &card, true).unwrap();
        assert_eq!(says, "--batch-size 64 contradicts the task of the swarm, which has 32");
        adopt(&mut training, &given(&["rounds"]), &card);
        assert_eq!((training.rounds, training.batch_size, training.model.as_str()), (9, 32, "softmax"));
    }
}
