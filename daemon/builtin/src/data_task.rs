//! A built-in model on local data, as a task: the meaning of columns and classes is agreed with the swarm.
//!
//! The task comes from the first of these sources that exists:
//!
//! ```text
//!   the last run in this home, if it left a model or records      unless --fresh
//!   --card FILE                                                   columns, classes and scaling
//!   a member of the swarm, or the peer that gave the plan         everything
//!   this peer: the operator of a swarm, or one that nobody told where others are
//! ```

mod chosen;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use mingle_models::{DataCard, Device, RawData, SiteWeight};
use mingle_peer::error::Context;
use mingle_peer::events::{Event, OwnCard};
use mingle_peer::task::TaskCard;
use mingle_peer::training::{Adoption, Facts, LocalTraining, PersonalLayers, PrivateTraining, TrainingTask};
use mingle_peer::{Error, ErrorKind, Home, Result, plan};

use crate::beginning::Beginning;
use crate::card_file::read_card;
use crate::compare_alone::TrainedAs;
use crate::options::{TrainingOptions, WeightChoice, settled_weight};
use crate::task::{self, LocalTask, TaskSamples};
use crate::task_card::{Card, overwrite};
use crate::task_file::TaskFile;
use crate::training::{BuiltInTraining, BuiltinLearner, FirstModel};
use chosen::{adopt, conflict};

/// Options of the task.
#[derive(Clone, Debug, Default)]
pub struct DataTaskOptions {
    /// The training options.
    pub training: TrainingOptions,
    /// Keys of the options that the user chose, such as `learning_rate`: they are not taken over from others.
    pub chosen: BTreeSet<String>,
    /// Path of a card with columns, classes and scaling.
    pub card: Option<PathBuf>,
    /// Path of the plan, if this peer brings it.
    pub plan: Option<PathBuf>,
    /// `true` if bootstrap addresses were given, whose peers can be asked for the task.
    pub has_bootstraps: bool,
    /// `true` to give up the work of the last run in the home.
    pub fresh: bool,
    /// `true` to begin a run of another task with the model in the home.
    pub continues: bool,
    /// Path of the model file that the run begins with.
    pub begin_with: Option<PathBuf>,
}

/// The task that a peer proposes, and its training once the task is settled.
pub struct DataTask {
    home: Home,
    /// Its training options are those of the task, once that is settled.
    options: DataTaskOptions,
    device: Device,
    /// The data before a card is applied to them.
    raw: Option<RawData>,
    settled: Option<(Arc<Card>, TaskSamples)>,
    trained_as: TrainedAs,
}

/// The task of an earlier run in a home.
pub struct HomeTask {
    card: Option<Card>,
    /// `true` if the home holds a model, or the weight of an unfinished run.
    holds_work: bool,
}

impl HomeTask {
    /// Reads the task of the last run from the home.
    ///
    /// # Errors
    /// A file of the home cannot be read.
    pub fn of(home: &Home) -> Result<Self> {
        Ok(Self { card: TaskFile::last(home)?, holds_work: home.holds_work() })
    }
}

impl DataTask {
    /// Reads the data; their meaning is not settled yet.
    pub fn begin(options: DataTaskOptions, home: Home) -> Result<Self> {
        let training = &options.training;
        let raw = task::read(&training.data)?;
        task::check_model(&training.model, raw.shape(), training.task)?;
        let device = task::open_device(&training.device)?;
        let trained_as = TrainedAs::default();
        Ok(Self { home, options, device, raw: Some(raw), settled: None, trained_as })
    }

    /// The node as which it trains, known once training begins.
    pub fn trained_as(&self) -> TrainedAs {
        self.trained_as.clone()
    }

    /// Settles the task as far as possible without asking other peers. Returns events for people.
    ///
    /// # Errors
    /// The command line contradicts the task of the model in the home.
    pub fn settle_by_itself(&mut self, last: HomeTask, is_invited: bool) -> Result<Vec<Event>> {
        let can_ask = is_invited || self.options.has_bootstraps;
        let is_bound = last.holds_work && !self.options.fresh;
        if let Some(card) = last.card.filter(|_| is_bound || !(can_ask || self.options.fresh)) {
            let wanted = self.wanted_of(&card)?;
            // Rounds may differ: a finished run continues. The records refuse it for an unfinished one.
            let prolonged = Card { rounds: wanted.rounds, ..card.clone() };
            let known = if is_bound { &prolonged } else { &card };
            match wanted.difference(known) {
                // The columns and classes stay the same, whatever else is new.
                Some(_) if is_bound && self.options.continues => return self.settle(wanted),
                None => return self.settle(adopted(known, &wanted)),
                Some(difference) if is_bound => return Err(self.needs_fresh(&difference)),
                Some(_) => {}
            }
        }
        // Other peers are asked later.
        if can_ask && self.options.card.is_none() {
            return Ok(Vec::new());
        }
        let card = self.own_card()?;
        if is_invited {
            // The members decide: this is only what the peer would propose.
            return Ok(Vec::new());
        }
        let own = (self.options.card.is_none() && self.needs_others()).then(|| {
            Event::OwnCard(OwnCard { columns: card.data.columns().len(), classes: card.data.classes().len() })
        });
        let told = self.settle(card)?;
        Ok(own.into_iter().chain(told).collect())
    }

    /// The card derived from these data alone.
    fn own_card(&self) -> Result<Card> {
        let own = &self.options.training;
        let training = &TrainingOptions { weight: own.weight.or_unit(|| self.own_unit())?, ..own.clone() };
        let doing = format!("--data {}", training.data);
        let data = match (&self.options.card, &self.raw) {
            (Some(path), _) => read_card(path)?,
            (None, Some(raw)) => raw.card_for(training.task, training.seed).context(ErrorKind::BadInput, doing)?,
            (None, None) => {
                return Err(Error::new(ErrorKind::Unexpected, "the data were given away before they were used"));
            }
        };
        let card = Card::new(training, data)?;
        let beginning = self.beginning(&card)?.map(|beginning| beginning.hash);
        Ok(Card { beginning, ..card })
    }

    /// The model file that the run begins with, if one is given; it has to be a model of this card.
    fn beginning(&self, card: &Card) -> Result<Option<Beginning>> {
        self.options.begin_with.as_deref().map(|path| Beginning::read(path, card)).transpose()
    }

    /// The unit of site weights where this peer chooses it. A site with the mean number of samples counts as one, if
    /// the sites are known from their card or the data are dealt by a plan; otherwise a site with as many samples as
    /// this peer.
    fn own_unit(&self) -> Result<SiteWeight> {
        let card = self.options.card.as_deref().map(read_card).transpose()?;
        if let Some(all) = card.and_then(|card| card.sites()) {
            return Ok(SiteWeight::by_mean_of(all.samples, all.sites));
        }
        let samples = self.raw.as_ref().map_or(0, RawData::training_samples) as u64;
        match (&self.options.training.split, &self.options.plan) {
            (None, _) => Ok(SiteWeight::by_mean_of(samples, 1)),
            (Some(_), Some(path)) => Ok(SiteWeight::by_mean_of(samples, plan::read(path)?.node_count() as u64)),
            (Some(_), None) => settled_weight(WeightChoice::Samples),
        }
    }

    /// The task of the last run, changed by the options of this command line.
    fn wanted_of(&self, card: &Card) -> Result<Card> {
        let mut training = self.options.training.clone();
        adopt(&mut training, &self.options.chosen, card);
        training.weight = training.weight.or_unit(|| self.own_unit())?;
        let data = match &self.options.card {
            Some(path) => read_card(path)?,
            None => card.data.clone(),
        };
        let wanted = Card::new(&training, data)?;
        let own = self.beginning(&wanted)?.map(|beginning| beginning.hash);
        Ok(Card { beginning: own.or(card.beginning), ..wanted })
    }

    fn needs_fresh(&self, difference: &str) -> Error {
        let home = self.home.root().display();
        Error::new(ErrorKind::Refused, format!("{home} holds the work of another run: {difference}, in that run"))
            .hint("leave those flags away to go on with it; give it another home with --home DIR; begin another run with --continue, which takes the model along, or with --fresh, which gives it up")
    }

    /// Adopts the card of a member.
    fn take_over(&mut self, bytes: &[u8], adoption: Adoption) -> Result<Vec<Event>> {
        let from = adoption.from;
        let card = decode(bytes, adoption)?;
        let keys = &self.options.chosen;
        if let Some(conflict) = conflict(&self.options.training, keys, &card, adoption.is_of_a_swarm) {
            return Err(Error::new(ErrorKind::Refused, format!("{conflict} (so says {from})"))
                .hint("leave that setting away: the swarm says what it is"));
        }
        if let Some(path) = &self.options.card
            && let Some(difference) = read_card(path)?.difference(&card.data)
        {
            let message = format!("--card {} is not the card of the swarm: {difference}", path.display());
            return Err(Error::new(ErrorKind::Refused, message).hint("leave --card away: the swarm says what it is"));
        }
        if let Some(path) = &self.options.begin_with {
            self.beginning(&card)?.map_or(Ok(()), |own| own.check(path, &card))?;
        }
        let last = HomeTask::of(&self.home)?;
        if let Some(difference) = last
            .card
            .filter(|_| last.holds_work && !self.options.fresh && !self.options.continues)
            .and_then(|last| card.difference(&last))
        {
            return Err(self.needs_fresh(&difference));
        }
        let wanted = self.wanted_of(&card)?;
        self.settle(adopted(&card, &wanted))
    }

    /// Settles the task. Returns events for people.
    fn settle(&mut self, card: Card) -> Result<Vec<Event>> {
        let Some(raw) = self.raw.take() else { return Ok(Vec::new()) };
        let training = &mut self.options.training;
        overwrite(training, &card);
        let told = raw.remarks().into_iter().chain(constant_columns(&card.data));
        let told: Vec<Event> = told.map(|message| Event::Warning { message }).collect();
        let parts = TaskSamples::held_to(raw, &card.data, card.seed).map_err(|error| {
            Error::new(ErrorKind::Refused, error).hint(format!(
                "--data {} must have the columns and classes of the swarm; `mingle data card` says which it has",
                training.data
            ))
        })?;
        let samples = parts.training_samples() as u64;
        let capped = training.split.is_none() && card.weight.caps(samples);
        let capped = capped.then(|| Event::Warning { message: capped_weight(card.weight, samples) });
        self.settled = Some((Arc::new(card), parts));
        Ok(told.into_iter().chain(capped).collect())
    }

    fn conclude(self, node: usize, nodes: usize) -> Result<BuiltInTraining> {
        let (card, mut parts) = self
            .settled
            .ok_or_else(|| Error::new(ErrorKind::Unexpected, "training begins without an agreement on the task"))?;
        let first = match self.options.begin_with.as_deref() {
            _ if card.beginning.is_none() => FirstModel::OfTheSeed,
            Some(path) => FirstModel::File(Beginning::read(path, &card)?.parameters),
            None => FirstModel::Elsewhere,
        };
        // The training is built once.
        let _ = self.trained_as.set((node, nodes));
        let training = self.options.training;
        if let Some(split) = &training.split {
            parts.deal(split, nodes, training.seed)?;
        }
        let local = LocalTask::new(&training, &parts, node, self.device)?;
        drop(parts);
        let facts = Facts {
            device: local.device.adapter().to_string(),
            train_samples: local.train.len(),
            test_samples: local.test.len(),
        };
        let task = local.task;
        let rates = training.optimizer.rates(training.learning_rate, training.rounds)?;
        let (trainer, evaluator, test) = local.build(&training, node)?;
        let learner = BuiltinLearner { trainer, rates, evaluator, test };
        Ok(BuiltInTraining::new(Arc::unwrap_or_clone(card), task, learner, facts, first))
    }
}

impl TrainingTask for DataTask {
    fn card(&self) -> Option<Arc<dyn TaskCard>> {
        self.settled.as_ref().map(|(card, _)| -> Arc<dyn TaskCard> { card.clone() })
    }

    fn begins_with_the_founder(&self) -> bool {
        self.settled.as_ref().is_some_and(|(card, _)| card.beginning.is_some())
    }

    fn needs_others(&self) -> bool {
        !self.raw.as_ref().is_some_and(RawData::means_the_same_everywhere)
    }

    fn rounds(&self) -> u64 {
        self.options.training.rounds
    }

    fn rounds_in(&self, card: &[u8], adoption: Adoption) -> Result<u64> {
        decode(card, adoption).map(|card| card.rounds)
    }

    fn set_rounds(&mut self, rounds: u64) {
        self.options.training.rounds = rounds;
        if let Some((card, _)) = &mut self.settled {
            Arc::make_mut(card).rounds = rounds;
        }
    }

    fn adopt(&mut self, card: &[u8], adoption: Adoption) -> Result<Vec<Event>> {
        self.take_over(card, adoption)
    }

    fn propose(&mut self) -> Result<Vec<Event>> {
        self.own_card().and_then(|card| self.settle(card))
    }

    fn build(self: Box<Self>, node: usize, nodes: usize) -> Result<Box<dyn LocalTraining>> {
        let (privacy, personal) = match &self.settled {
            Some((card, _)) => (card.privacy, card.personal.clone()),
            None => (None, Vec::new()),
        };
        let goes_on = self.home.holds_work() && !self.options.fresh;
        let lacks_the_file = self.options.begin_with.is_none() && !goes_on;
        if !personal.is_empty() && TrainingTask::begins_with_the_founder(&*self) && lacks_the_file {
            let message = "the swarm begins with a model file, and of personal tensors each peer needs its own";
            return Err(Error::new(ErrorKind::BadInput, message)
                .hint("give this peer a file with --begin-with FILE, as the founder has it"));
        }
        let home = self.home.clone();
        let mut training: Box<dyn LocalTraining> = Box::new(self.conclude(node, nodes)?);
        if !personal.is_empty() {
            let doing = format!("--personal {}", personal.join(","));
            training = Box::new(PersonalLayers::new(training, &personal).context(ErrorKind::BadInput, doing)?);
        }
        match privacy {
            Some(settings) => Ok(Box::new(PrivateTraining::new(training, settings, &home)?)),
            None => Ok(training),
        }
    }
}

/// The card of a member.
fn decode(bytes: &[u8], Adoption { from, .. }: Adoption) -> Result<Card> {
    Card::decode(bytes).ok_or_else(|| {
        Error::new(
            ErrorKind::Refused,
            format!("the swarm trains something else than a built-in model (so says {from})"),
        )
        .hint(
            "start this peer with the trainer of that model: --trainer attach, or --trainer 'COMMAND'; docs/python.md",
        )
    })
}

fn constant_columns(card: &DataCard) -> Option<String> {
    let constant = card.constant_columns();
    let first = constant.first()?;
    let others = if constant.len() == 1 { String::new() } else { format!(" and {} others", constant.len() - 1) };
    Some(format!(
        "column `{first}`{others} never varied where the scaling was taken, and is left out: its feature is 0"
    ))
}

fn capped_weight(weight: SiteWeight, samples: u64) -> String {
    format!(
        "with --weight {weight}, this peer counts {} times as much as one of that size, and its {samples} samples would be more: let all \
         peers name a larger number",
        SiteWeight::FACTOR_MAX
    )
}

/// The card with the recipe of this command line.
fn adopted(card: &Card, wanted: &Card) -> Card {
    Card { recipe: wanted.recipe.clone(), ..card.clone() }
}
