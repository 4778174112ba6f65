//! Trains a model on all the data in one place, as a reference for peers who share it.
//!
//! ```text
//! cargo run --release -p mingle-models --example train_alone -- digits mlp
//! cargo run --release -p mingle-models --example train_alone -- idx:DIR cnn 300 model.safetensors
//! ```
//!
//! The arguments are the data source, the model, how many steps to take, and where to write the
//! result.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use mingle_models::{
    Augmentation, Checkpoint, DataSource, DeviceName, Evaluator, ModelKind, OptimizerOptions, SiteWeight, Task,
    Trainer, TrainerOptions,
};

const REPORTS: u32 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize, default: &'static str| arguments.get(place).map_or(default, String::as_str);
    let source: DataSource = argument(0, "digits").parse()?;
    let model: ModelKind = argument(1, "mlp").parse()?;
    let steps: u32 = argument(2, "1000").parse()?;
    let batch_size: usize = std::env::var("BATCH").map_or(Ok(32), |size| size.parse())?;

    let data = source.load(1)?;
    let device = DeviceName::Cpu.open()?;
    let task = Task::new(model, data.train.shape(), data.train.classes())?;
    println!("{source}: {} samples of shape {}", data.train.len(), task.shape());
    println!("{model}: {} parameters on {device}", task.parameter_count());

    let mut parameters = task.initial_parameters(1);
    let optimizer = OptimizerOptions { momentum: 0.9, weight_decay: 1e-4, ..OptimizerOptions::sgd(0.02) };
    let options = TrainerOptions {
        task,
        device: device.clone(),
        optimizer,
        batch_size,
        augmentation: Augmentation::NONE,
        data_seed: 1,
        weight: SiteWeight::Equal,
    };
    let mut trainer = Trainer::new(options, data.train)?;
    let evaluator = Evaluator::new(task, &device);
    let mut training = Duration::ZERO;
    let mut accuracy = 0.0;
    for _ in 0..REPORTS {
        let start = Instant::now();
        let outcome = trainer.train(&parameters, steps.div_ceil(REPORTS))?;
        for (parameter, change) in parameters.iter_mut().zip(&outcome.delta) {
            *parameter += change;
        }
        training += start.elapsed();
        let evaluation = evaluator.evaluate(&parameters, &data.test)?;
        accuracy = evaluation.score();
        println!(
            "step {:5}  loss {:.4}  test loss {:.4}  test accuracy {accuracy:.4}  {:.2} ms/step",
            trainer.step(),
            outcome.mean_loss,
            evaluation.loss,
            1e3 * training.as_secs_f64() / trainer.step() as f64,
        );
    }
    if let Some(path) = arguments.get(3) {
        let metadata = BTreeMap::from([("accuracy".to_owned(), format!("{accuracy:.4}"))]);
        Checkpoint { parameters, metadata }.save(Path::new(path), &task)?;
        println!("wrote {path}");
    }
    Ok(())
}
