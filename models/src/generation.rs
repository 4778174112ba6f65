//! Text from a language model, a token at a time.
//!
//! Each token is drawn from the model's distribution given the last tokens, as many as its context has. That is the
//! softmax of the logits over the temperature, restricted to the `top_k` largest where that is set (Fan, Lewis and
//! Dauphin 2018). The same model, prompt and seed give the same text on the same kind of machine.

use burn::Tensor;
use burn::tensor::TensorData;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::device::Device;
use crate::flatten::unflatten;
use crate::model::BuiltinNetwork;
use crate::task::{Task, TaskError};
use mingle_datasets::Vocabulary;

/// The parameters of drawing tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenerationOptions {
    /// The divisor of logits: below 1, likely tokens become more likely. Positive.
    pub temperature: f64,
    /// The number of likeliest tokens that can be drawn, at least 1; `None` for all.
    pub top_k: Option<usize>,
    /// The seed of the draws.
    pub seed: u64,
}

impl Default for GenerationOptions {
    /// nanoGPT's: a temperature of 0.8 and the 200 likeliest tokens.
    fn default() -> Self {
        Self { temperature: 0.8, top_k: Some(200), seed: 0 }
    }
}

/// A language model that continues a text.
///
/// ```
/// use mingle_models::{DataSource, DeviceName, GenerationOptions, Task, TextGenerator, Vocabulary};
///
/// let data = "text".parse::<DataSource>()?.load(0)?;
/// let task = Task::new("gpt:layers=1,heads=2,width=16,context=16".parse()?, data.card.shape(), data.card.classes().len())?;
/// let vocabulary = Vocabulary::of_card(&data.card).unwrap();
/// let device = DeviceName::Cpu.open()?;
/// let untrained = task.initial_parameters(1);
/// let mut generator = TextGenerator::new(task, vocabulary, &untrained, &device, GenerationOptions::default())?;
/// generator.prompt("First Citizen:\n")?;
/// let bytes = generator.next_token()?;
/// assert_eq!(std::str::from_utf8(&bytes)?.chars().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TextGenerator {
    network: BuiltinNetwork,
    vocabulary: Vocabulary,
    device: Device,
    options: GenerationOptions,
    context: usize,
    /// The last tokens: at least one, at most as many as the context has.
    window: Vec<u16>,
    rng: ChaCha8Rng,
}

/// A decoder of characters from bytes that arrive a few at a time.
///
/// ```
/// use mingle_models::Utf8Stream;
///
/// let mut stream = Utf8Stream::default();
/// assert_eq!(stream.push(b"caf\xc3"), "caf");
/// assert_eq!(stream.push(b"\xa9\xff!\xe6"), "\u{e9}\u{fffd}!");
/// assert_eq!(stream.finish(), "\u{fffd}");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Utf8Stream {
    /// The bytes of a character that is not complete yet.
    begun: Vec<u8>,
}

impl Utf8Stream {
    /// Appends `bytes` and returns the characters that are complete now; U+FFFD for bytes that are part of none.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.begun.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = 0;
        for chunk in self.begun.utf8_chunks() {
            text += chunk.valid();
            rest += chunk.valid().len();
            let invalid = chunk.invalid();
            let is_begun = rest + invalid.len() == self.begun.len()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if invalid.is_empty() || is_begun {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            rest += invalid.len();
        }
        self.begun.drain(..rest);
        text
    }

    /// U+FFFD if the last character is not complete, else an empty text.
    pub fn finish(self) -> String {
        if self.begun.is_empty() { String::new() } else { char::REPLACEMENT_CHARACTER.to_string() }
    }
}

/// Errors of generating text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum GenerationError {
    /// The model is no language model.
    #[error("model {model} generates no text: a gpt is needed")]
    NoLanguageModel { model: String },
    /// The model has another number of tokens than its vocabulary.
    #[error("the model knows {model} tokens and its vocabulary has {vocabulary}")]
    Vocabulary { model: usize, vocabulary: usize },
    /// The parameters are not the task's.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A character of the prompt is not in the model's vocabulary.
    #[error("the character {character:?} of the prompt is none of the {known} that the model was trained on")]
    Prompt {
        /// The character.
        character: char,
        /// The number of characters in the vocabulary.
        known: usize,
    },
    /// An option is out of bounds.
    #[error("{0}")]
    Option(&'static str),
    /// The model diverged: the logits are infinite or not a number.
    #[error("the model says nothing of what follows: its numbers are not finite")]
    NotFinite,
    /// The device failed.
    #[error("the device failed while generating: {0}")]
    Device(String),
}

impl TextGenerator {
    /// A generator that continues from a line end, or from the first token where the vocabulary has none, until it is
    /// given a [`prompt`](Self::prompt).
    ///
    /// # Errors
    ///
    /// `GenerationError::NoLanguageModel`, `GenerationError::Vocabulary` or `GenerationError::Task` when the
    /// model, its vocabulary or its parameters do not fit; `GenerationError::Option` for an option out of bounds.
    pub fn new(
        task: Task,
        vocabulary: Vocabulary,
        parameters: &[f32],
        device: &Device,
        options: GenerationOptions,
    ) -> Result<Self, GenerationError> {
        let Some(size) = task.gpt() else {
            return Err(GenerationError::NoLanguageModel { model: task.model().to_string() });
        };
        let outputs = task.objective().outputs();
        if outputs != vocabulary.len() {
            return Err(GenerationError::Vocabulary { model: outputs, vocabulary: vocabulary.len() });
        }
        if !(options.temperature > 0.0 && options.temperature.is_finite()) {
            return Err(GenerationError::Option("the temperature must be positive"));
        }
        if options.top_k == Some(0) {
            return Err(GenerationError::Option("at least one token must be left to draw: top-k is 1 or more"));
        }
        task.check(parameters)?;
        let first = vocabulary.encode("\n").ok().and_then(|tokens| tokens.first().copied()).unwrap_or(0);
        Ok(Self {
            network: unflatten(task.blank(), parameters, &device.inference()),
            vocabulary,
            device: device.clone(),
            options,
            context: size.context(),
            window: vec![first],
            rng: ChaCha8Rng::seed_from_u64(options.seed),
        })
    }

    /// Makes `text` the text to continue; an empty one changes nothing.
    ///
    /// # Errors
    ///
    /// [`GenerationError::Prompt`] for a character that is not in the vocabulary.
    pub fn prompt(&mut self, text: &str) -> Result<(), GenerationError> {
        let known = self.vocabulary.len();
        let tokens = self.vocabulary.encode(text);
        let tokens = tokens.map_err(|error| GenerationError::Prompt { character: error.character, known })?;
        if !tokens.is_empty() {
            self.window = tokens[tokens.len().saturating_sub(self.context)..].to_vec();
        }
        Ok(())
    }

    /// Draws the next token and returns its bytes. They may be a part of a character where tokens are bytes.
    ///
    /// # Errors
    ///
    /// [`GenerationError::NotFinite`] for a model that diverged, [`GenerationError::Device`] when the device fails.
    pub fn next_token(&mut self) -> Result<Vec<u8>, GenerationError> {
        let logits = self.logits()?;
        let token = self.draw(&logits).ok_or(GenerationError::NotFinite)?;
        if self.window.len() == self.context {
            self.window.remove(0);
        }
        // Exact: a token is a class, and classes are 16 bits wide.
        self.window.push(token as u16);
        Ok(self.vocabulary.bytes(token))
    }

    /// The logits of the token that follows the window.
    fn logits(&self) -> Result<Vec<f32>, GenerationError> {
        let length = self.window.len();
        let seen: Vec<f32> = self.window.iter().copied().map(f32::from).collect();
        let seen = Tensor::from_data(TensorData::new(seen, [1, length]), &self.device.inference());
        let last = self.network.forward(seen).narrow(0, length - 1, 1);
        let failed = |error: String| GenerationError::Device(error);
        let data = last.try_into_data().map_err(|error| failed(error.to_string()))?;
        data.try_into_vec().map_err(|error| failed(error.to_string()))
    }

    fn draw(&mut self, logits: &[f32]) -> Option<usize> {
        let mut order: Vec<usize> = (0..logits.len()).collect();
        // The likeliest first, and the smaller token first among equals.
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        order.truncate(self.options.top_k.unwrap_or(usize::MAX));
        let largest = f64::from(logits[*order.first()?]);
        let share = |token: usize| ((f64::from(logits[token]) - largest) / self.options.temperature).exp();
        let shares: Vec<f64> = order.iter().map(|&token| share(token)).collect();
        let sum: f64 = shares.iter().sum();
        if !sum.is_finite() {
            return None;
        }
        let mut left = self.rng.random::<f64>() * sum;
        let drawn = shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        // Rounding may leave a small remainder; the last token takes it.
        drawn.map(|place| order[place]).or_else(|| order.last().copied())
    }
}
