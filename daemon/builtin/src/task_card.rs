//! The task card of a built-in model: the settings that all peers of a swarm must agree on, and a recipe that they only
//! need to know.
//!
//! Model, rounds, seed, columns, classes, scaling, privacy, site weights and personal tensors are hashed: peers with
//! different hashes do not mix. The recipe, how each peer trains by itself, is sent to newcomers so that users need not
//! repeat it.

use mingle_models::{
    Augmentation, CardDifference, DataCard, Decay, ModelKind, OptimizerKind, OptimizerOptions, SiteWeight, Task,
};
use mingle_peer::error::Context;
use mingle_peer::task::{Advice, MAX_CARD_BYTES, TaskCard};
use mingle_peer::training::{Layout, PersonalLayers, PrivacySettings};
use mingle_peer::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::options::{GradientOptions, PrivacyOptions, TrainingOptions, WeightChoice, settled_weight};

/// The task of a swarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The model.
    pub model: ModelKind,
    /// Number of rounds.
    pub rounds: u64,
    /// Seed of the initial model, and of the choice of held-out samples.
    pub seed: u64,
    /// Meaning of features and labels.
    pub data: DataCard,
    /// Training settings of each peer.
    pub recipe: Recipe,
    /// Settings of differential privacy; `None` without it.
    #[serde(default)]
    pub privacy: Option<PrivacySettings>,
    /// Weight of a peer's changes relative to those of others.
    #[serde(default)]
    pub weight: SiteWeight,
    /// Names of tensors that stay with each peer.
    #[serde(default)]
    pub personal: Vec<String>,
    /// BLAKE3 of the parameters of the model file that all begin with; `None` for the model of the seed. Left out of the
    /// bytes where it is `None`: those are the bytes from before there were such files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beginning: Option<[u8; 32]>,
}

/// Training settings of a peer, on which peers need not agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Samples in a gradient step.
    pub batch_size: usize,
    /// The optimizer.
    #[serde(default)]
    pub optimizer: OptimizerKind,
    /// Step size.
    pub learning_rate: f64,
    /// Momentum of SGD.
    pub momentum: f64,
    /// Decay rate of the second moment of AdamW.
    #[serde(default = "usual_beta2")]
    pub beta2: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Decay of the step size from round to round.
    #[serde(default)]
    pub schedule: Decay,
    /// Rounds in which the step size rises.
    #[serde(default)]
    pub warmup: u64,
    /// The norm to which larger gradients are scaled.
    #[serde(default)]
    pub clip_gradients: Option<f64>,
    /// Augmentation of training images.
    pub augment: Augmentation,
}

fn usual_beta2() -> f64 {
    OptimizerOptions::BETA2
}

impl Recipe {
    /// The settings of the optimizer, as the command line has them.
    pub fn optimizer(&self) -> GradientOptions {
        let &Self { optimizer, momentum, beta2, weight_decay, schedule, warmup, clip_gradients, .. } = self;
        GradientOptions { optimizer, momentum, beta2, weight_decay, schedule, warmup, clip_gradients }
    }
}

impl Card {
    /// The card of a run with these options on data with this card.
    ///
    /// # Errors
    /// The model is invalid or does not fit the data, or the columns make the card too large to be sent.
    pub fn new(options: &TrainingOptions, data: DataCard) -> Result<Self> {
        let model: ModelKind =
            options.model.parse().context(ErrorKind::BadInput, format!("--model {}", options.model))?;
        let augment = options.augment.parse().context(ErrorKind::BadInput, format!("--augment {}", options.augment))?;
        let TrainingOptions { rounds, seed, batch_size, learning_rate, optimizer: how, .. } = *options;
        how.settings(learning_rate)?;
        how.rates(learning_rate, rounds)?;
        let GradientOptions { optimizer, momentum, beta2, weight_decay, schedule, warmup, clip_gradients } = how;
        let recipe = Recipe {
            batch_size,
            optimizer,
            learning_rate,
            momentum,
            beta2,
            weight_decay,
            schedule,
            warmup,
            clip_gradients,
            augment,
        };
        let privacy = options.privacy.settings()?;
        let wanted = options.task;
        let found = data.objective().kind();
        if wanted != found {
            let message = format!("--task {wanted} contradicts the card of the data, which is for {found}");
            return Err(Error::new(ErrorKind::BadInput, message));
        }
        let weight = settled_weight(options.weight)?;
        let personal = options.personal.clone();
        let card = Self { model, rounds, seed, data, recipe, privacy, weight, personal, beginning: None };
        let task = card.task()?;
        if !card.personal.is_empty() {
            let doing = format!("--personal {}", card.personal.join(","));
            PersonalLayers::shared_layout(&layout_of(&task), &card.personal).context(ErrorKind::BadInput, doing)?;
        }
        let bytes = postcard::to_stdvec(&card).context(ErrorKind::Unexpected, "cannot encode the task")?.len();
        if bytes > MAX_CARD_BYTES {
            let message = format!("the names and scales of the columns take {bytes} bytes, more than {MAX_CARD_BYTES}");
            return Err(
                Error::new(ErrorKind::BadInput, message).hint("give the columns shorter names, or leave some out")
            );
        }
        Ok(card)
    }

    /// Decodes a card; `None` if the bytes hold none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        // A zero is the beginning that was left out; after a whole card it is not read.
        postcard::from_bytes(&[bytes, &[0]].concat()).ok()
    }

    /// The model for the samples of this card.
    pub fn task(&self) -> Result<Task> {
        Task::new(self.model, self.data.shape(), self.data.objective())
            .context(ErrorKind::BadInput, format!("--model {} does not fit the data", self.model))
    }

    /// A description in one line, for people.
    pub fn describe(&self) -> String {
        let shape = self.data.shape();
        let outputs = match self.data.target() {
            None => format!("in {} classes", self.data.classes().len()),
            Some(target) => format!("to predict `{}`", target.name()),
        };
        let private = self.privacy.map(|settings| format!(", private: {settings}")).unwrap_or_default();
        let weighted = match self.weight {
            SiteWeight::Equal => String::new(),
            SiteWeight::Samples { unit } => format!(", peers count by their samples ({unit} as one)"),
        };
        let personal = match self.personal.as_slice() {
            [] => String::new(),
            names => format!(", personal: {}", names.join(",")),
        };
        let begun = self.beginning.map(|hash| format!(", from the model blake3:{}", short_hash(&hash)));
        let parameters = self.task().map_or(0, |task| task.parameter_count());
        format!(
            "{} for {shape} {outputs}, {parameters} parameters, {} rounds, seed {}{}{weighted}{personal}{private}",
            self.model,
            self.rounds,
            self.seed,
            begun.unwrap_or_default()
        )
    }

    /// Hash by which peers and records compare tasks: it covers everything but the recipe.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 task card");
        // Values in memory always have an encoding.
        let data = (self.data.shape(), self.data.classes(), self.data.columns(), self.data.scaling());
        let words = postcard::to_stdvec(&(self.model, self.rounds, self.seed, data)).unwrap_or_default();
        hasher.update(&words);
        // A classification has the hash that it had before there were regressions.
        if let Some(target) = self.data.target() {
            hasher.update(b"target");
            hasher.update(&postcard::to_stdvec(target).unwrap_or_default());
        }
        // A task without privacy has the hash that it had before there was privacy.
        if let Some(settings) = &self.privacy {
            hasher.update(&postcard::to_stdvec(settings).unwrap_or_default());
        }
        // With equal weights, the hash is that from before there were others.
        if let SiteWeight::Samples { unit } = self.weight {
            hasher.update(b"weight");
            hasher.update(&unit.get().to_le_bytes());
        }
        if !self.personal.is_empty() {
            hasher.update(b"personal");
            hasher.update(&postcard::to_stdvec(&self.personal).unwrap_or_default());
        }
        if let Some(beginning) = &self.beginning {
            hasher.update(b"beginning");
            hasher.update(beginning);
        }
        *hasher.finalize().as_bytes()
    }

    /// The first difference to the task `there`, in a sentence with "here" and "there"; `None` if they agree.
    pub fn difference(&self, there: &Self) -> Option<String> {
        let differ = |what: &str, here: &dyn std::fmt::Display, there: &dyn std::fmt::Display| {
            Some(format!("{what} is {here} here and {there} there"))
        };
        if self.model != there.model {
            return differ("the model", &self.model, &there.model);
        }
        if self.rounds != there.rounds {
            return Some(format!("it has {} rounds here and {} rounds there", self.rounds, there.rounds));
        }
        if self.seed != there.seed {
            return differ("the seed", &self.seed, &there.seed);
        }
        if self.weight != there.weight {
            return differ("--weight", &self.weight, &there.weight);
        }
        if self.personal != there.personal {
            let words =
                |card: &Self| if card.personal.is_empty() { "none".to_owned() } else { card.personal.join(",") };
            return differ("--personal", &words(self), &words(there));
        }
        if self.beginning != there.beginning {
            let words = |card: &Self| match &card.beginning {
                None => "none".to_owned(),
                Some(hash) => format!("the model blake3:{}", short_hash(hash)),
            };
            return differ("--begin-with", &words(self), &words(there));
        }
        PrivacySettings::difference_of(self.privacy.as_ref(), there.privacy.as_ref())
            .or_else(|| self.data.difference(&there.data).map(|difference: CardDifference| difference.to_string()))
    }
}

impl TaskCard for Card {
    fn hash(&self) -> [u8; 32] {
        Self::hash(self)
    }

    fn hash_for(&self, rounds: u64) -> [u8; 32] {
        Self::hash(&Self { rounds, ..self.clone() })
    }

    fn describe(&self) -> String {
        Self::describe(self)
    }

    fn encode(&self) -> Vec<u8> {
        // Values in memory always have an encoding.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    fn difference(&self, here: &[u8], there: &[u8]) -> Option<String> {
        match (Self::decode(here), Self::decode(there)) {
            (Some(here), Some(there)) => here.difference(&there),
            (Some(_), None) => Some("a built-in model is trained here, and another program's there".to_owned()),
            (None, _) => Some("another program's model is trained here, and a built-in one there".to_owned()),
        }
    }

    fn advice(&self) -> Advice {
        Advice {
            same_task: "all peers of a swarm need the same plan, --model, --rounds and --seed, and the columns, classes and scaling of \
                        one card: --bootstrap and tickets bring them, --card FILE names them",
            diverged: "lower --learning-rate or --momentum, or set --clip-gradients; where only this peer diverges, look at its data",
        }
    }
}

/// The first digits of a hash, enough to tell two models apart.
pub(crate) fn short_hash(hash: &[u8; 32]) -> String {
    hash[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Overwrites the options with the settings of the card.
pub fn overwrite(training: &mut TrainingOptions, card: &Card) {
    let Card { model, rounds, seed, recipe, privacy, weight, personal, .. } = card;
    training.personal = personal.clone();
    training.privacy = PrivacyOptions::of(*privacy);
    training.weight = WeightChoice::from(*weight);
    training.model = model.to_string();
    training.task = card.data.objective().kind();
    training.augment = recipe.augment.to_string();
    training.rounds = *rounds;
    training.seed = *seed;
    training.batch_size = recipe.batch_size;
    training.learning_rate = recipe.learning_rate;
    training.optimizer = recipe.optimizer();
}

/// The settings of the command line that a task determines: their keys, and their values as they are written there; no
/// value where a setting is off.
pub fn settings_of(card: &Card) -> Vec<(&'static str, Vec<String>)> {
    let mut training = TrainingOptions::default();
    overwrite(&mut training, card);
    let TrainingOptions { model, task, augment, rounds, seed, batch_size, learning_rate, weight, .. } = training;
    let words = [("model", model), ("task", task.to_string()), ("augment", augment), ("weight", weight.to_string())];
    let counts = [("rounds", rounds), ("seed", seed), ("batch_size", batch_size as u64)];
    let counts = counts.map(|(key, value)| (key, value.to_string()));
    let optimizer = training.optimizer.entries().into_iter().chain([("learning_rate", learning_rate.to_string())]);
    let optimizer = optimizer.map(|(key, value)| (key, Some(value).filter(|value| value != "none")));
    let privacy = training.privacy.entries().map(|(key, value)| (key, value.map(|value| value.to_string())));
    let set = words.into_iter().chain(counts).map(|(key, value)| (key, vec![value]));
    let may_be_off = optimizer.chain(privacy).map(|(key, value)| (key, value.into_iter().collect()));
    set.chain(may_be_off).chain([("personal", training.personal)]).collect()
}

/// The layout of the flat parameters of a task. Each tensor is a row: burn keeps its own shapes, and the model file has
/// those of PyTorch.
pub fn layout_of(task: &Task) -> Layout {
    Layout::new(task.flat_tensors().into_iter().map(|(name, length)| (name, vec![length])))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn card(columns: &[&str]) -> Card {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let zeros = vec![0.0; columns.len()];
        let data = DataCard::of_table(columns, vec!["x".into(), "y".into()], &zeros, &zeros).unwrap();
        Card::new(&TrainingOptions::default(), data).unwrap()
    }

    #[test]
    fn tasks_differ_in_what_peers_must_agree_on_and_not_in_the_recipe() {
        let here = card(&["a", "b"]);
        let changed = |change: &dyn Fn(&mut Card)| {
            let mut there = here.clone();
            change(&mut there);
            assert_eq!(here.hash() == there.hash(), here.difference(&there).is_none());
            here.difference(&there)
        };
        assert_eq!(changed(&|_| {}), None);
        assert_eq!(changed(&|card| card.recipe.batch_size = 7), None);
        assert_eq!(changed(&|card| card.rounds = 9).unwrap(), "it has 20000 rounds here and 9 rounds there");
        assert_eq!(changed(&|card| card.seed = 9).unwrap(), "the seed is 0 here and 9 there");
        let private = |noise| PrivacySettings::new(1.0, noise, 8.0, 1e-5).ok();
        assert_eq!(
            changed(&|card| card.privacy = private(4.0)).unwrap(),
            "changes are not private here, and are there (clip 1, noise 4, epsilon at most 8 at delta 0.00001)"
        );
        let here_private = Card { privacy: private(4.0), ..here.clone() };
        let noisier = Card { privacy: private(5.0), ..here.clone() };
        assert_ne!(here_private.hash(), noisier.hash());
        let difference = here_private.difference(&noisier).unwrap();
        assert_eq!(difference, "the noise of differential privacy is 4 here and 5 there");
        let by_samples = |unit| SiteWeight::by_samples(unit).unwrap();
        let weighted = "--weight is equal here and samples:300 there";
        assert_eq!(changed(&|card| card.weight = by_samples(300)).unwrap(), weighted);
        let [some, others] = [300, 301].map(|unit| Card { weight: by_samples(unit), ..here.clone() });
        assert_ne!(some.hash(), others.hash());
        assert_eq!(some.difference(&others).unwrap(), "--weight is samples:300 here and samples:301 there");
        let begun = changed(&|card| card.beginning = Some([0xab; 32])).unwrap();
        assert_eq!(begun, "--begin-with is none here and the model blake3:abababababab there");
        let other = card(&["a", "c"]).data;
        assert_eq!(changed(&|card| card.data = other.clone()).unwrap(), "column 2 is `b` here and `c` there");
    }

    #[test]
    fn a_card_survives_the_wire_and_the_file() {
        let mut card = Card { privacy: PrivacySettings::new(1.0, 4.0, 8.0, 1e-5).ok(), ..card(&["a", "b"]) };
        card.weight = SiteWeight::by_samples(1 << 40).unwrap();
        card.recipe.optimizer = OptimizerKind::AdamW;
        card.recipe.schedule = "step:10,0.5".parse().unwrap();
        card.recipe.clip_gradients = Some(0.5);
        assert_eq!(Card::decode(&card.encode()).as_ref(), Some(&card));
        let begun = Card { beginning: Some([7; 32]), ..card.clone() };
        assert_eq!(Card::decode(&begun.encode()).as_ref(), Some(&begun));
        assert_eq!(begun.encode().len(), card.encode().len() + 33, "nothing stands for no beginning");
        assert!(Card::decode(&begun.encode()[..begun.encode().len() - 20]).is_none());
        let text = serde_json::to_string(&card).unwrap();
        let read: Card = serde_json::from_str(&text).unwrap();
        assert_eq!((read.hash(), &read), (card.hash(), &card));
        // A file without optimizer settings means SGD at a constant rate.
        let old = [
            r#""optimizer":"adamw","#,
            r#""beta2":0.999,"#,
            r#""schedule":"step:10,0.5","#,
            r#""warmup":0,"#,
            r#""clip_gradients":0.5,"#,
        ];
        let old = old.iter().fold(text, |text, words| text.replace(words, ""));
        assert!(!old.contains("warmup"), "{old}");
        let read: Card = serde_json::from_str(&old).unwrap();
        assert_eq!(read.recipe.optimizer(), GradientOptions::default());
    }
}
