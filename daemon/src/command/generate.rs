//! `mingle generate`: text from a language model that a swarm trained.

use std::path::Path;

use mingle_builtin::meaning;
use mingle_models::{
    Checkpoint, DataCard, DeviceName, GenerationError, GenerationOptions, ModelFile, SampleShape, Task, TextGenerator,
    Utf8Stream, Vocabulary,
};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};

use crate::cli::GenerateArgs;
use crate::{model_files, out};

/// Prints the prompt and the generated text, as it is generated.
pub(super) fn execute(arguments: &GenerateArgs, json: bool) -> Result {
    let path = model_files::named(&arguments.model)?;
    let mut generator = load(&path, arguments)?;
    let doing = "cannot generate";
    generator.prompt(&arguments.prompt).context(ErrorKind::BadInput, "--prompt")?;
    let mut stream = Utf8Stream::default();
    let mut text = String::new();
    let mut say = |piece: String| if json { text += &piece } else { out::piece(&piece) };
    say(arguments.prompt.clone());
    for _ in 0..arguments.length {
        let bytes = generator.next_token().context(ErrorKind::Training, doing)?;
        say(stream.push(&bytes));
    }
    say(stream.finish());
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.generation/1",
            "file": path,
            "seed": arguments.seed,
            "tokens": arguments.length,
            "text": text,
        }));
    } else {
        out::line("");
    }
    Ok(())
}

/// The model of a file, with the vocabulary in its metadata.
fn load(path: &Path, arguments: &GenerateArgs) -> Result<TextGenerator> {
    let file = model_files::read(path)?;
    let card = meaning::read(&file, path)?;
    let (task, vocabulary) = card.and_then(|card| text_task(&file, &card)).ok_or_else(|| {
        let model = file.model().map_or_else(|| "none of the models here".to_owned(), |model| model.to_string());
        let message = format!("{} generates no text: its model is {model}", path.display());
        Error::new(ErrorKind::BadInput, message)
            .hint("train one with --data text:FILE --model gpt; its model file says what its tokens are")
    })?;
    let checkpoint = Checkpoint::load(path, &task).context(ErrorKind::Integrity, "cannot load the model")?;
    let device = DeviceName::Cpu.open().context(ErrorKind::Unexpected, "cannot compute")?;
    let GenerateArgs { temperature, top_k, seed, .. } = *arguments;
    let options = GenerationOptions { temperature, top_k: Some(top_k), seed };
    let refused = |error: &GenerationError| match error {
        GenerationError::Option(_) => ErrorKind::BadInput,
        _ => ErrorKind::Integrity,
    };
    TextGenerator::new(task, vocabulary, &checkpoint.parameters, &device, options)
        .map_err(|error| Error::of(refused(&error), error))
}

/// The task and the vocabulary of a language model, from its file.
fn text_task(file: &ModelFile, card: &DataCard) -> Option<(Task, Vocabulary)> {
    let vocabulary = Vocabulary::of_card(card)?;
    let task = Task::new(file.model()?, card.shape(), card.objective()).ok()?;
    matches!(task.shape(), SampleShape::Text { .. }).then_some((task, vocabulary))
}
