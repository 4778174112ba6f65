//! The model that a member trains, as federated averaging sees it: a flat vector, and steps on data of the member's own.

use mingle_solving::LearningError;

/// The model of one member. Vectors are `[dimension]`.
pub trait LocalModel: Send {
    /// Length of the vector.
    fn dimension(&self) -> usize;

    /// A hash of the data, as far as they are known: what was kept for other data is not used.
    fn identity(&self) -> [u8; 32];

    /// A hash of what the vector and the data mean, such as the names and shapes of tensors: the same at all members.
    fn meaning(&self) -> [u8; 32];

    /// The sentence for a person where the [meaning](Self::meaning) is another at the member `other`.
    fn unlike(&self, other: &str) -> String;

    /// The vector before the first round: the same at all members, or where all begin with that of one
    /// ([`Beginning::OfFounder`]), any of that length at the others.
    ///
    /// # Errors
    /// There is none.
    fn beginning(&mut self) -> Result<Vec<f32>, LearningError>;

    /// Takes the steps of a round from this vector, and returns the change. This may take long.
    ///
    /// # Errors
    /// The training cannot go on.
    fn train(&mut self, round: LocalRound, from: &[f32]) -> Result<Vec<f32>, LearningError>;

    /// The number of samples that count by themselves; none where there are no such.
    fn samples(&self) -> Option<u64> {
        None
    }

    /// Passes the gradient of the loss of each single sample at this vector to `take`, `[dimension]`. This may take long.
    ///
    /// # Errors
    /// The model has no single samples.
    fn sample_gradients(&mut self, at: &[f32], take: &mut dyn FnMut(&[f32])) -> Result<(), LearningError> {
        let _ = (at, take);
        Err(LearningError("this model has no gradients of single samples".to_owned()))
    }

    /// Returns `true` if training from the same vector comes to the same numbers whenever it is repeated.
    fn repeats_itself(&self) -> bool {
        false
    }

    /// The quality of a vector: a number for each metric of the settings, in that order, or none where it is not measured.
    ///
    /// # Errors
    /// The vector is no longer usable.
    fn evaluate(&mut self, parameters: &[f32]) -> Result<Vec<Option<f64>>, LearningError>;

    /// The state that later steps depend on, beside the vector.
    fn state(&self) -> Vec<u8>;

    /// Restores such a state.
    ///
    /// # Errors
    /// It is of another model.
    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError>;

    /// A description of the data and the model, such as "120 samples to train on"; empty if there is none.
    fn found(&self) -> String;

    /// The vector as the bytes of a model file.
    ///
    /// # Errors
    /// It cannot be encoded.
    fn encode(&self, parameters: &[f32]) -> Result<Vec<u8>, LearningError>;
}

/// The source of the vector before the first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// Each member has the same by itself.
    Common,
    /// One member sends its own to all.
    OfFounder,
}

/// A round of a member's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRound {
    /// The round, counted from 0.
    pub round: u64,
    /// Steps to take.
    pub steps: u32,
    /// Rounds from this one on, this one included.
    pub rounds_left: u64,
}
