//! `mingle predict`: predictions of a model for samples with unknown class or quantity.

use std::io::Write;
use std::path::Path;

use mingle_builtin::meaning;
use mingle_builtin::task::{self, TaskSamples};
use mingle_models::{
    Checkpoint, CsvFeatures, DataCard, DataSource, ModelFile, Prediction, PredictionTable, Predictor, SampleShape,
    Samples, Task,
};
use mingle_peer::error::Context;
use mingle_peer::output_file::OutputFile;
use mingle_peer::{Error, ErrorKind, Result};
use serde_json::json;

use crate::cli::PredictArgs;
use crate::{model_files, out};

/// Rows of a batch.
const ROWS: usize = 512;

/// Predicts all samples, and writes a line for each.
pub(super) fn execute(arguments: &PredictArgs, json: bool) -> Result {
    let output = arguments.output.as_deref().map(OutputFile::at).transpose()?;
    let path = model_files::named(&arguments.model)?;
    let device = task::open_device(&arguments.device)?;
    let file = model_files::read(&path)?;
    let card = meaning::read(&file, &path)?.ok_or_else(|| says_too_little(&path))?;
    let task = task_of(&file, &card, &path)?;
    if let SampleShape::Text { .. } = task.shape() {
        return Err(Error::new(ErrorKind::BadInput, format!("{} is a language model", path.display()))
            .hint("`mingle generate` prints the text that it predicts"));
    }
    let checkpoint = Checkpoint::load(&path, &task).context(ErrorKind::Integrity, "cannot load the model")?;
    let predictor =
        Predictor::new(task, &device, &checkpoint.parameters).context(ErrorKind::Integrity, "cannot use the model")?;
    let mut features = FeatureSource::open(&arguments.data, &card)?;
    let mut sheet = PredictionSheet::begin(&card, arguments.probabilities, json, output.is_some())?;
    loop {
        let rows = features.next()?;
        if rows.is_empty() {
            break;
        }
        let predictions = predictor.predict(rows, &card).context(ErrorKind::Training, "cannot predict")?;
        for prediction in &predictions {
            sheet.push(prediction)?;
        }
    }
    match (output, &arguments.output) {
        (Some(output), Some(path)) => {
            output.write(&sheet.kept)?;
            out::remark(format_args!("wrote {}: {} predictions", path.display(), sheet.rows));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn says_too_little(path: &Path) -> Error {
    let message = format!("{} does not say what its columns, classes and scaling are", path.display());
    Error::new(ErrorKind::BadInput, message)
        .hint("models that mingle has written say so; docs/data.md lists what they say")
}

fn task_of(file: &ModelFile, card: &DataCard, path: &Path) -> Result<Task> {
    let doing = || format!("{} is no model for the data that it names", path.display());
    let Some(model) = file.model() else { return Err(Error::new(ErrorKind::BadInput, doing())) };
    let task = Task::new(model, card.shape(), card.objective()).context(ErrorKind::Integrity, doing())?;
    match file.difference(&task) {
        None => Ok(task),
        Some(difference) => Err(Error::new(ErrorKind::Integrity, format!("{}: {difference}", doing()))),
    }
}

/// The source of the features.
enum FeatureSource {
    Table(Box<CsvFeatures>),
    /// The test part of a set of images, with the index of the next sample.
    Images(Samples, usize),
}

impl FeatureSource {
    fn open(data: &str, card: &DataCard) -> Result<Self> {
        let doing = || format!("--data {data}");
        let source: DataSource = data.parse().context(ErrorKind::BadInput, doing())?;
        if let DataSource::Csv(source) = &source {
            let table = CsvFeatures::open(&source.path, card.clone()).context(ErrorKind::BadInput, doing())?;
            if !table.unused().is_empty() {
                out::remark(format_args!("note: not used: {}", table.unused().join(", ")));
            }
            return Ok(Self::Table(Box::new(table)));
        }
        let raw = source.read().context(ErrorKind::BadInput, doing())?;
        let parts = TaskSamples::held_to(raw, card, 0).context(ErrorKind::BadInput, doing())?;
        Ok(Self::Images(parts.test, 0))
    }

    fn next(&mut self) -> Result<Vec<f32>> {
        match self {
            Self::Table(table) => table.next_rows(ROWS).context(ErrorKind::BadInput, "cannot predict"),
            Self::Images(samples, begin) => {
                let end = (*begin + ROWS).min(samples.len());
                Ok(samples.gather(std::mem::replace(begin, end)..end))
            }
        }
    }
}

/// Predictions as lines: comma-separated values below a line of names, or JSON.
struct PredictionSheet<'a> {
    card: &'a DataCard,
    with_probabilities: bool,
    json: bool,
    /// `true` to collect the lines instead of writing them to standard output.
    keeps: bool,
    kept: Vec<u8>,
    rows: usize,
}

impl<'a> PredictionSheet<'a> {
    fn begin(card: &'a DataCard, with_probabilities: bool, json: bool, keeps: bool) -> Result<Self> {
        let mut sheet = Self { card, with_probabilities, json, keeps, kept: Vec::new(), rows: 0 };
        if !json {
            sheet.put(&sheet.table().names())?;
        }
        Ok(sheet)
    }

    fn table(&self) -> PredictionTable<'a> {
        PredictionTable { card: self.card, with_probabilities: self.with_probabilities }
    }

    fn push(&mut self, prediction: &Prediction) -> Result {
        let table = self.table();
        self.rows += 1;
        let line = if self.json { self.object(prediction).to_string() } else { table.line(prediction) };
        self.put(&line)
    }

    fn object(&self, prediction: &Prediction) -> serde_json::Value {
        match prediction {
            Prediction::Quantity(quantity) => json!({ "quantity": quantity }),
            Prediction::Class { class, probabilities } => {
                let mut object = json!({ "class": self.card.classes()[*class], "probability": probabilities[*class] });
                if self.with_probabilities {
                    let named = self.card.classes().iter().cloned().zip(probabilities.iter().copied().map(Into::into));
                    object["probabilities"] = serde_json::Value::Object(named.collect());
                }
                object
            }
        }
    }

    fn put(&mut self, line: &str) -> Result {
        if self.keeps {
            return writeln!(self.kept, "{line}").context(ErrorKind::Unexpected, "cannot write down a prediction");
        }
        out::line(line);
        Ok(())
    }
}
