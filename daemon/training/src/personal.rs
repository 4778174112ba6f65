//! Personal layers: local training in which some tensors stay with the peer.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glob::Pattern;
use thiserror::Error;

use crate::{Budget, Evaluation, Facts, Layout, LocalTraining, ModelEncoder, Patience, Tensor, Trained, TrainingError};

/// Any training, with personal layers: the swarm mixes the rest of the model, and the personal tensors never leave the
/// peer.
///
/// Each peer trains both parts together. FedPer (Arivazhagan et al., arXiv:1912.00818) and FedBN (Li et al.,
/// arXiv:2102.07623) are the cases of the last layers and of the batch normalisations. The records keep the personal
/// part with the state of the training; the peer's model file and evaluations contain both parts. The personal numbers
/// count towards [`largest_state`](LocalTraining::largest_state), which is bounded by the number of shared ones.
///
/// ```
/// use mingle_training::{Budget, Evaluation, Layout, LocalTraining, Patience, PersonalLayers, Trained, TrainingError};
///
/// struct Adder(Layout);
///
/// impl LocalTraining for Adder {
///     fn layout(&self) -> &Layout {
///         &self.0
///     }
///     fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
///         Ok(vec![1.0, 2.0, 3.0])
///     }
///     fn train(&mut self, _from: &[f32], _budget: &Budget) -> Result<Trained, TrainingError> {
///         Ok(Trained { change: vec![0.5; 3], steps: 1, loss: None })
///     }
///     fn evaluate(&mut self, _parameters: &[f32], _patience: &Patience) -> Result<Evaluation, TrainingError> {
///         Ok(Evaluation::default())
///     }
/// }
///
/// let adder = Adder(Layout::new([("body", vec![2]), ("head.bias", vec![1])]));
/// let mut training = PersonalLayers::new(Box::new(adder), &["head.*"])?;
/// assert_eq!(training.layout(), &Layout::new([("body", vec![2])]));
/// assert_eq!(training.initial()?, [1.0, 2.0]);
/// # Ok::<(), TrainingError>(())
/// ```
pub struct PersonalLayers {
    training: Box<dyn LocalTraining>,
    /// Layout of the shared tensors.
    layout: Layout,
    parts: Arc<OwnedRanges>,
    /// `None` until they are known.
    personal: Arc<Mutex<Option<Personal>>>,
}

/// The reason why a model cannot be divided into a personal and a shared part.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum PersonalError {
    /// A pattern is not valid.
    #[error("`{glob}` is no pattern of names: {reason}")]
    Pattern { glob: String, reason: String },
    /// A pattern matches no tensor.
    #[error("no tensor of the model is called `{glob}`: it has {names}")]
    FitsNothing { glob: String, names: String },
    /// All tensors would be personal, and none would be mixed.
    #[error("all tensors of the model would be personal, and none is left for the swarm to mix")]
    NothingShared,
    /// The record belongs to another model.
    #[error("the record holds {found} {what} numbers, and the model has {expected}")]
    Length { what: &'static str, expected: usize, found: usize },
}

/// The ranges of the whole vector with their owners, in order.
struct OwnedRanges {
    ranges: Vec<(Range<usize>, Owner)>,
    personal: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Peer,
    Swarm,
}

/// The present personal numbers, and those of the last evaluated model.
struct Personal {
    now: Vec<f32>,
    evaluated: Option<(blake3::Hash, Vec<f32>)>,
}

impl PersonalLayers {
    /// Makes the tensors of `training` that match one of these patterns personal; `*` stands for any characters of a
    /// name, `?` for one.
    ///
    /// # Errors
    /// A pattern is not valid or matches no tensor, or nothing would be shared.
    pub fn new<G: AsRef<str>>(training: Box<dyn LocalTraining>, globs: &[G]) -> Result<Self, PersonalError> {
        let layout = Self::shared_layout(training.layout(), globs)?;
        let tensors = training.layout().tensors();
        let parts = Arc::new(OwnedRanges::new(tensors, &chosen(tensors, globs)?));
        Ok(Self { training, layout, parts, personal: Arc::default() })
    }

    /// The tensors of `layout` that match no pattern.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn shared_layout<G: AsRef<str>>(layout: &Layout, globs: &[G]) -> Result<Layout, PersonalError> {
        let is_personal = chosen(layout.tensors(), globs)?;
        let shared = layout.tensors().iter().zip(is_personal).filter(|(_, is_personal)| !is_personal);
        let layout = Layout::new(shared.map(|(tensor, _)| (tensor.name.clone(), tensor.shape.clone())));
        if layout.dimension() == 0 { Err(PersonalError::NothingShared) } else { Ok(layout) }
    }

    /// The whole model, `[dimension of the layout]`, from a record: `shared` holds the numbers of `layout` that match
    /// no pattern, `state` the [`state`](LocalTraining::state) beside them.
    ///
    /// # Errors
    /// As for [`new`](Self::new), or one of the parts has another length.
    pub fn recorded<G: AsRef<str>>(
        layout: &Layout,
        globs: &[G],
        shared: &[f32],
        state: &[u8],
    ) -> Result<Vec<f32>, PersonalError> {
        let parts = OwnedRanges::new(layout.tensors(), &chosen(layout.tensors(), globs)?);
        let length = |what, expected, found| {
            if found == expected { Ok(()) } else { Err(PersonalError::Length { what, expected, found }) }
        };
        length("shared", layout.dimension() - parts.personal, shared.len())?;
        let own = from_bytes(&state[..state.len().min(size_of::<f32>() * parts.personal)]);
        length("personal", parts.personal, own.len())?;
        Ok(parts.join(shared, &own))
    }

    /// The whole model with the present personal numbers, or those of the initial model if there are none yet.
    fn whole(&mut self, shared: &[f32]) -> Result<Vec<f32>, TrainingError> {
        if lock(&self.personal).is_none() {
            self.initial()?;
        }
        let personal = lock(&self.personal);
        Ok(self.parts.join(shared, personal.as_ref().map_or(&[], |personal| &personal.now)))
    }
}

impl LocalTraining for PersonalLayers {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        let (shared, own) = self.parts.divide(&self.training.initial()?);
        lock(&self.personal).get_or_insert(Personal { now: own, evaluated: None });
        Ok(shared)
    }

    fn begins_with_the_founder(&self) -> bool {
        self.training.begins_with_the_founder()
    }

    fn is_absent(&self) -> bool {
        self.training.is_absent()
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        let from = self.whole(from)?;
        let Trained { change, steps, loss } = self.training.train(&from, budget)?;
        let (shared, own) = self.parts.divide(&change);
        if let Some(personal) = lock(&self.personal).as_mut() {
            personal.now.iter_mut().zip(own).for_each(|(value, change)| *value += change);
        }
        Ok(Trained { change: shared, steps, loss })
    }

    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError> {
        let whole = self.whole(parameters)?;
        if let Some(personal) = lock(&self.personal).as_mut() {
            personal.evaluated = Some((hash(parameters), personal.now.clone()));
        }
        self.training.evaluate(&whole, patience)
    }

    fn state(&self) -> Vec<u8> {
        // Without it a restarted peer begins with the initial ones, as it did until then.
        let Some(own) = lock(&self.personal).as_ref().map(|personal| to_bytes(&personal.now)) else {
            return Vec::new();
        };
        [own, self.training.state()].concat()
    }

    fn largest_state(&self) -> usize {
        size_of::<f32>() * self.parts.personal + self.training.largest_state()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
        if state.is_empty() {
            return Ok(());
        }
        let length = size_of::<f32>() * self.parts.personal;
        let (own, rest) = state.split_at_checked(length).ok_or("the state of the personal layers is too short")?;
        *lock(&self.personal) = Some(Personal { now: from_bytes(own), evaluated: None });
        self.training.restore(rest)
    }

    fn facts(&self) -> Facts {
        self.training.facts()
    }

    /// Encodes the whole model: the vector evaluated last with the personal numbers of that evaluation, any other with
    /// the present ones.
    fn model_encoder(&self) -> ModelEncoder {
        let encode = self.training.model_encoder();
        let parts = self.parts.clone();
        let personal = self.personal.clone();
        Arc::new(move |shared| {
            let whole = match lock(&personal).as_ref() {
                Some(Personal { evaluated: Some((of, own)), .. }) if *of == hash(shared) => parts.join(shared, own),
                Some(Personal { now, .. }) => parts.join(shared, now),
                None => return Err("the personal layers of the model are not known before it is trained".into()),
            };
            encode(&whole)
        })
    }

    /// Encodes the shared tensors alone, by their layout.
    fn shared_model_encoder(&self) -> ModelEncoder {
        self.layout().clone().encoder()
    }
}

impl OwnedRanges {
    fn new(tensors: &[Tensor], is_personal: &[bool]) -> Self {
        let mut ranges = Vec::with_capacity(tensors.len());
        let mut at = 0;
        let mut personal = 0;
        for (tensor, &is_personal) in tensors.iter().zip(is_personal) {
            let owner = if is_personal { Owner::Peer } else { Owner::Swarm };
            ranges.push((at..at + tensor.len(), owner));
            at += tensor.len();
            personal += if is_personal { tensor.len() } else { 0 };
        }
        Self { ranges, personal }
    }

    /// Joins both parts into the whole vector.
    fn join<'a>(&self, mut shared: &'a [f32], mut own: &'a [f32]) -> Vec<f32> {
        let mut whole = Vec::with_capacity(shared.len() + own.len());
        for (range, owner) in &self.ranges {
            let part = if *owner == Owner::Peer { &mut own } else { &mut shared };
            let (head, rest) = part.split_at(range.len().min(part.len()));
            whole.extend_from_slice(head);
            *part = rest;
        }
        whole
    }

    /// Divides a whole vector into the shared and the personal part.
    fn divide(&self, whole: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let mut shared = Vec::new();
        let mut own = Vec::with_capacity(self.personal);
        for (range, owner) in &self.ranges {
            let part = if *owner == Owner::Peer { &mut own } else { &mut shared };
            part.extend_from_slice(whole.get(range.clone()).unwrap_or_default());
        }
        (shared, own)
    }
}

/// For each tensor, `true` if a pattern matches its name.
fn chosen<G: AsRef<str>>(tensors: &[Tensor], globs: &[G]) -> Result<Vec<bool>, PersonalError> {
    let mut is_chosen = vec![false; tensors.len()];
    for glob in globs.iter().map(AsRef::as_ref) {
        let pattern = Pattern::new(glob)
            .map_err(|error| PersonalError::Pattern { glob: glob.to_owned(), reason: error.msg.to_owned() })?;
        let fits: Vec<bool> = tensors.iter().map(|tensor| pattern.matches(&tensor.name)).collect();
        if !fits.contains(&true) {
            let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
            return Err(PersonalError::FitsNothing { glob: glob.to_owned(), names: names.join(", ") });
        }
        is_chosen.iter_mut().zip(fits).for_each(|(is_chosen, fits)| *is_chosen |= fits);
    }
    Ok(is_chosen)
}

/// Locks the personal numbers. A poisoned lock is usable: no holder panics.
fn lock(personal: &Mutex<Option<Personal>>) -> MutexGuard<'_, Option<Personal>> {
    personal.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hash(vector: &[f32]) -> blake3::Hash {
    blake3::hash(&to_bytes(vector))
}

fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Adds 1 to each number in a step, and counts its steps.
    struct Adder {
        layout: Layout,
        steps: u8,
    }

    impl LocalTraining for Adder {
        fn layout(&self) -> &Layout {
            &self.layout
        }

        fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
            Ok((0..self.layout.dimension()).map(|index| index as f32).collect())
        }

        fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
            self.steps += 1;
            Ok(Trained { change: vec![1.0; from.len()], steps: budget.local_steps, loss: None })
        }

        fn evaluate(&mut self, parameters: &[f32], _: &Patience) -> Result<Evaluation, TrainingError> {
            Ok(Evaluation {
                metrics: [("sum".to_owned(), f64::from(parameters.iter().sum::<f32>()))].into_iter().collect(),
                ..Evaluation::default()
            })
        }

        fn state(&self) -> Vec<u8> {
            vec![self.steps]
        }

        fn largest_state(&self) -> usize {
            1
        }

        fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
            self.steps = state[0];
            Ok(())
        }
    }

    fn layered(globs: &[&str]) -> Result<PersonalLayers, PersonalError> {
        let layout = Layout::new([
            ("norm.weight", vec![1]),
            ("body.weight", vec![2]),
            ("norm.bias", vec![1]),
            ("head", vec![1]),
        ]);
        PersonalLayers::new(Box::new(Adder { layout, steps: 0 }), globs)
    }

    fn budget() -> Budget {
        Budget {
            round: 0,
            local_steps: 1,
            rounds_left: 1,
            last_factor: 1.0,
            momentum: crate::MomentumStep::default(),
            noise: None,
            patience: Patience::default(),
        }
    }

    fn file_of(training: &PersonalLayers, shared: &[f32]) -> Vec<f32> {
        let bytes = training.model_encoder()(shared).unwrap();
        from_bytes(&bytes[bytes.len() - 20..])
    }

    #[test]
    fn only_the_rest_of_the_model_is_shared_and_both_parts_train() {
        let mut training = layered(&["norm.*", "head"]).unwrap();
        assert_eq!(training.layout(), &Layout::new([("body.weight", vec![2])]));
        assert!(training.model_encoder()(&[0.0, 0.0]).is_err());
        assert_eq!(training.initial().unwrap(), [1.0, 2.0]);
        let trained = training.train(&[10.0, 20.0], &budget()).unwrap();
        assert_eq!(trained.change, [1.0, 1.0]);
        let sum = training.evaluate(&[10.0, 20.0], &Patience::default()).unwrap().metrics;
        assert_eq!(sum.get("sum"), Some(30.0 + 1.0 + 4.0 + 5.0));
        // The evaluated model keeps its personal part while training goes on; another vector gets the present one.
        training.train(&[10.0, 20.0], &budget()).unwrap();
        let sorted = |mut numbers: Vec<f32>| {
            numbers.sort_by(f32::total_cmp);
            numbers
        };
        assert_eq!(sorted(file_of(&training, &[10.0, 20.0])), [1.0, 4.0, 5.0, 10.0, 20.0]);
        let for_others = training.shared_model_encoder()(&[10.0, 20.0]).unwrap();
        assert_eq!(for_others, training.layout().clone().encoder()(&[10.0, 20.0]).unwrap(), "nothing personal");
        assert_eq!(sorted(file_of(&training, &[10.5, 20.0])), [2.0, 5.0, 6.0, 10.5, 20.0]);
    }

    #[test]
    fn a_restarted_peer_has_its_personal_part_and_the_state_of_its_training() {
        let mut training = layered(&["head"]).unwrap();
        assert_eq!(training.state(), Vec::<u8>::new());
        training.train(&[0.0; 4], &budget()).unwrap();
        let state = training.state();
        assert_eq!(state.len(), training.largest_state());
        let mut restarted = layered(&["head"]).unwrap();
        restarted.restore(&state).unwrap();
        assert_eq!(restarted.state(), state);
        assert_eq!(file_of(&restarted, &[0.0; 4]).iter().sum::<f32>(), 5.0);
        let layout = restarted.training.layout().clone();
        let recorded = |shared: &[f32], state: &[u8]| PersonalLayers::recorded(&layout, &["head"], shared, state);
        assert_eq!(recorded(&[0.5; 4], &state).unwrap(), [0.5, 0.5, 0.5, 0.5, 5.0]);
        assert!(recorded(&[0.5; 5], &state).unwrap_err().to_string().contains("5 shared numbers"));
        assert!(recorded(&[0.5; 4], &[]).unwrap_err().to_string().contains("0 personal numbers"));
        restarted.restore(&[]).unwrap();
        assert!(restarted.restore(&state[..3]).unwrap_err().to_string().contains("too short"));
    }

    #[test]
    fn patterns_that_fit_nothing_or_all_are_refused() {
        let said = |globs: &[&str]| layered(globs).err().unwrap().to_string();
        assert_eq!(
            said(&["norm.*", "tail"]),
            "no tensor of the model is called `tail`: it has norm.weight, body.weight, norm.bias, head"
        );
        assert!(said(&["*"]).starts_with("all tensors of the model would be personal"));
        assert!(said(&["[a"]).starts_with("`[a` is no pattern of names: "));
    }
}
