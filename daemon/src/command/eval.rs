//! `mingle eval`: evaluates a saved model on a data set.

use mingle_builtin::meaning;
use mingle_builtin::task::{self, TaskSamples};
use mingle_models::{Checkpoint, Evaluator, ModelEvaluation, ModelFile, ObjectiveKind, Task};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};

use crate::cli::{EvalArgs, SampleSource};
use crate::{model_files, out};

/// Loads model and data, evaluates the model, and prints its metrics.
pub(super) fn execute(arguments: &EvalArgs, json: bool) -> Result {
    let path = &arguments.file;
    let device = task::open_device(&arguments.device)?;
    let file = model_files::read(path)?;
    let parts = held_to_the_model(&file, arguments)?;
    parts.remarks().iter().for_each(|remark| out::remark(format_args!("note: {remark}")));
    let task = match_task(&file, &parts, arguments)?;
    let samples = match arguments.on {
        SampleSource::Test => parts.test,
        SampleSource::Train => parts.all(),
    };
    let checkpoint = Checkpoint::load(path, &task).context(ErrorKind::Integrity, "cannot load the model")?;
    let evaluation = Evaluator::new(task, &device)
        .evaluate(&checkpoint.parameters, &samples)
        .context(ErrorKind::Training, "cannot evaluate the model")?;
    if json {
        out::line(document(arguments, &file, &task, &evaluation));
        return Ok(());
    }
    let metrics: Vec<String> =
        evaluation.metrics().into_iter().map(|(name, value)| format!("{name} {value:.4}")).collect();
    let metrics = metrics.join("   ");
    out::line(format!("{metrics}   on {} {} samples of {}", evaluation.samples, arguments.on.name(), arguments.data));
    let round = file.metadata.get("rounds").map_or_else(String::new, |round| format!(", after round {round}"));
    remark!("{} for {}, {} parameters{round}", task.model(), task.shape(), task.parameter_count());
    Ok(())
}

/// The data with the columns, classes and scaling of the model's training.
fn held_to_the_model(file: &ModelFile, arguments: &EvalArgs) -> Result<TaskSamples> {
    let Some(card) = meaning::read(file, &arguments.file)? else {
        out::remark(format_args!(
            "note: {} does not say what its columns, classes and scaling are: those of the data are taken",
            arguments.file.display()
        ));
        return TaskSamples::load(&arguments.data, ObjectiveKind::Classification, arguments.seed);
    };
    let raw = task::read(&arguments.data)?;
    let path = arguments.file.display();
    TaskSamples::held_to(raw, &card, arguments.seed)
        .context(ErrorKind::BadInput, format!("{path} was not trained on such data"))
        .map_err(|failure| {
            failure.hint(format!(
                "name data of the same kind with --data; `mingle ckpt inspect {path}` lists its columns and classes"
            ))
        })
}

/// The model of the file, for samples of these data. All tensors must agree.
fn match_task(file: &ModelFile, parts: &TaskSamples, arguments: &EvalArgs) -> Result<Task> {
    let named = arguments.model.clone().or_else(|| file.model().map(|model| model.to_string()));
    let path = arguments.file.display();
    let Some(name) = named else {
        let tensors: Vec<&str> = file.tensors.iter().take(6).map(|tensor| tensor.name.as_str()).collect();
        return Err(Error::new(
            ErrorKind::BadInput,
            format!("{path} has the tensors of no model here: {}", tensors.join(", ")),
        )
        .hint("models here are softmax (linear), mlp (fc1, fc2), cnn (conv1, conv2, fc1, fc2) and resnet-lite (conv1, norm1, blocks, fc)"));
    };
    let task = parts.task(&name)?;
    let Some(difference) = file.difference(&task) else { return Ok(task) };
    let shape = task.shape();
    let objective = task.objective();
    let data = &arguments.data;
    Err(Error::new(
        ErrorKind::BadInput,
        format!("{path} is no {name} for {data}, whose samples are {shape} for {objective}: {difference}"),
    )
    .hint(format!("name the data that it was trained on with --data; `mingle ckpt inspect {path}` lists its tensors")))
}

fn document(arguments: &EvalArgs, file: &ModelFile, task: &Task, evaluation: &ModelEvaluation) -> serde_json::Value {
    let mut document = serde_json::json!({
        "schema": "mingle.eval/1",
        "file": arguments.file,
        "data": arguments.data,
        "on": arguments.on.name(),
        "model": task.model(),
        "parameters": task.parameter_count(),
        "metadata": file.metadata,
        "samples": evaluation.samples,
    });
    evaluation.metrics().into_iter().for_each(|(name, value)| document[name] = value.into());
    document
}
