//! The training task of a peer, until the swarm has settled it.

use std::sync::Arc;

use futures::future::BoxFuture;
use libp2p::PeerId;
use serde::{Deserialize, Serialize};

use super::{Layout, LocalTraining, PrivacySettings};
use crate::error::{Error, ErrorKind, Result};
use crate::events::Event;
use crate::task::{MAX_CARD_BYTES, TaskCard};

/// The training task of a peer. It is settled with the members of the swarm, and then becomes the training itself.
pub trait TrainingTask: Send {
    /// Resolves when another program has set the task; `None` if the task is known from the start.
    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Called once [`ready`](Self::ready) has resolved. Returns events that report it to people.
    ///
    /// # Errors
    /// The task cannot be trained.
    fn begin(&mut self) -> Result<Vec<Event>> {
        Ok(Vec::new())
    }

    /// Returns `true` if all peers begin with the vector of the founder: see
    /// [`LocalTraining::begins_with_the_founder`].
    fn begins_with_the_founder(&self) -> bool {
        false
    }

    /// The task, once it is settled.
    fn card(&self) -> Option<Arc<dyn TaskCard>>;

    /// Returns `true` if only a member of the swarm, or node 0 of the plan, can settle the task: peers that decide by
    /// themselves could settle on different ones.
    fn needs_others(&self) -> bool;

    /// Rounds to train, as far as is known.
    fn rounds(&self) -> u64;

    /// Returns `true` if the number of rounds is that of the swarm's task, and not known yet: a member is asked for it
    /// before another program begins to train.
    fn awaits_rounds(&self) -> bool {
        false
    }

    /// The number of rounds in the task of a member, an encoded card.
    ///
    /// # Errors
    /// The card is of another kind of training.
    fn rounds_in(&self, card: &[u8], adoption: Adoption) -> Result<u64>;

    /// Sets the number of rounds, before training begins.
    fn set_rounds(&mut self, rounds: u64);

    /// Adopts the task of another peer, an encoded card. Returns events that report it to people.
    ///
    /// # Errors
    /// It is not the task of this peer: a setting of its user contradicts it, or its data do not fit.
    fn adopt(&mut self, card: &[u8], adoption: Adoption) -> Result<Vec<Event>>;

    /// Settles the task by itself, since no other peer will. Returns events that report it to people.
    ///
    /// # Errors
    /// No task can be derived from the data.
    fn propose(&mut self) -> Result<Vec<Event>>;

    /// The training of `node` of `nodes`.
    ///
    /// # Errors
    /// The model or the data cannot be used, or the task was never settled.
    fn build(self: Box<Self>, node: usize, nodes: usize) -> Result<Box<dyn LocalTraining>>;
}

/// The source of an adopted task.
#[derive(Clone, Copy, Debug)]
pub struct Adoption {
    /// The peer that sent it.
    pub from: PeerId,
    /// `true` if it is the task of a swarm with an operator, the recipe included.
    pub is_of_a_swarm: bool,
}

/// A training with a fixed task: peers whose layout, name, number of rounds or privacy differ are refused.
pub struct FixedTask {
    card: Arc<FixedCard>,
    training: Box<dyn LocalTraining>,
}

impl FixedTask {
    /// The task of running `training`, called `name`, for this number of rounds.
    ///
    /// # Errors
    /// The names of its tensors are too long to send.
    pub fn new(name: &str, rounds: u64, training: Box<dyn LocalTraining>) -> Result<Self> {
        let privacy = training.privacy().map(|spending| spending.settings);
        let card = FixedCard { name: name.to_owned(), rounds, layout: training.layout().clone(), privacy };
        let bytes = card.encode().len();
        if bytes > MAX_CARD_BYTES {
            let message = format!("the layout of the model takes {bytes} bytes, more than {MAX_CARD_BYTES}");
            return Err(Error::new(ErrorKind::BadInput, message).hint("give the tensors shorter names"));
        }
        Ok(Self { card: Arc::new(card), training })
    }

    /// The number of rounds in the card of a fixed task; none in that of another kind of training.
    pub fn rounds_of(card: &[u8]) -> Option<u64> {
        postcard::from_bytes::<FixedCard>(card).ok().map(|card| card.rounds)
    }
}

impl TrainingTask for FixedTask {
    fn card(&self) -> Option<Arc<dyn TaskCard>> {
        Some(self.card.clone())
    }

    fn begins_with_the_founder(&self) -> bool {
        self.training.begins_with_the_founder()
    }

    fn needs_others(&self) -> bool {
        false
    }

    fn rounds(&self) -> u64 {
        self.card.rounds
    }

    fn rounds_in(&self, card: &[u8], Adoption { from, .. }: Adoption) -> Result<u64> {
        Self::rounds_of(card).ok_or_else(|| {
            Error::new(
                ErrorKind::Refused,
                format!("the swarm trains a built-in model, and this peer another (so says {from})"),
            )
        })
    }

    fn set_rounds(&mut self, rounds: u64) {
        Arc::make_mut(&mut self.card).rounds = rounds;
    }

    fn adopt(&mut self, card: &[u8], adoption: Adoption) -> Result<Vec<Event>> {
        match self.card.difference(&self.card.encode(), card) {
            None => Ok(Vec::new()),
            Some(difference) => {
                Err(Error::new(ErrorKind::Refused, format!("{difference} (so says {})", adoption.from)))
            }
        }
    }

    fn propose(&mut self) -> Result<Vec<Event>> {
        Ok(Vec::new())
    }

    fn build(self: Box<Self>, _node: usize, _nodes: usize) -> Result<Box<dyn LocalTraining>> {
        Ok(self.training)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FixedCard {
    name: String,
    rounds: u64,
    layout: Layout,
    privacy: Option<PrivacySettings>,
}

impl FixedCard {
    fn differs(&self, there: &Self) -> Option<String> {
        if self.name != there.name {
            return Some(format!("the task is `{}` here and `{}` there", self.name, there.name));
        }
        if self.rounds != there.rounds {
            return Some(format!("it has {} rounds here and {} rounds there", self.rounds, there.rounds));
        }
        PrivacySettings::difference_of(self.privacy.as_ref(), there.privacy.as_ref())
            .or_else(|| self.layout.difference(&there.layout))
    }
}

impl TaskCard for FixedCard {
    fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 task of a layout");
        hasher.update(&self.encode());
        *hasher.finalize().as_bytes()
    }

    fn hash_for(&self, rounds: u64) -> [u8; 32] {
        Self { rounds, ..self.clone() }.hash()
    }

    fn describe(&self) -> String {
        let Self { name, rounds, layout, privacy } = self;
        let private = privacy.map(|settings| format!(", private: {settings}")).unwrap_or_default();
        format!("{name}, {} parameters ({}), {rounds} rounds{private}", layout.dimension(), layout.describe())
    }

    fn encode(&self) -> Vec<u8> {
        // A value in memory always has an encoding.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    fn difference(&self, here: &[u8], there: &[u8]) -> Option<String> {
        let decoded = |bytes| postcard::from_bytes::<Self>(bytes).ok();
        match (decoded(here), decoded(there)) {
            (Some(here), Some(there)) => here.differs(&there),
            (Some(_), None) => Some("another program's model is trained here, and a built-in one there".to_owned()),
            (None, _) => Some("a built-in model is trained here, and another program's there".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_to_the_user_of_a_program_names_no_option_of_built_in_models() {
        let card = FixedCard { name: "mine".to_owned(), rounds: 8, layout: Layout::flat(3), privacy: None };
        let advice = card.advice();
        for text in [advice.same_task, advice.diverged] {
            assert!(!text.contains("--") && text.contains("program"), "{text}");
        }
    }

    #[test]
    fn tasks_differ_in_name_rounds_and_layout_and_say_so() {
        let here = FixedCard { name: "mine".to_owned(), rounds: 8, layout: Layout::flat(3), privacy: None };
        let differs = |there: &FixedCard| {
            assert_eq!(here.hash() == there.hash(), here.difference(&here.encode(), &there.encode()).is_none());
            here.difference(&here.encode(), &there.encode())
        };
        assert_eq!(differs(&here.clone()), None);
        let rounds = FixedCard { rounds: 9, ..here.clone() };
        assert_eq!(differs(&rounds).as_deref(), Some("it has 8 rounds here and 9 rounds there"));
        let layout = FixedCard { layout: Layout::flat(4), ..here.clone() };
        assert_eq!(differs(&layout).as_deref(), Some("tensor `parameters` has shape [3] here and [4] there"));
        let privacy = PrivacySettings::new(1.0, 4.0, 8.0, 1e-5).ok();
        let private = FixedCard { privacy, ..here.clone() };
        assert_eq!(
            differs(&private).as_deref(),
            Some("changes are not private here, and are there (clip 1, noise 4, epsilon at most 8 at delta 0.00001)")
        );
        let damaged = b"\xff\xff\xff";
        assert!(here.difference(&here.encode(), damaged).is_some() && here.difference(damaged, damaged).is_some());
    }
}
