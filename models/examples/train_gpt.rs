//! nanoGPT's setting for processors, in one place, as a reference for a swarm that trains on parts of the same text.
//!
//! ```text
//! cargo run --release -p mingle-models --example train_gpt -- text:input.txt
//! cargo run --release -p mingle-models --example train_gpt -- text 200 gpt:layers=2,width=32
//! ```
//!
//! The arguments are the text, the number of steps (2,000), the model, and the seed. The last line printed is the
//! evaluation on the last tenth of the text.

use std::error::Error;
use std::time::{Duration, Instant};

use mingle_models::{
    Augmentation, DataSource, DeviceName, Evaluator, LearningRateSchedule, ModelKind, OptimizerOptions, SiteWeight,
    Task, Trainer, TrainerOptions,
};

const BATCH: usize = 12;
const WARMUP: u64 = 100;
/// Steps between two lines.
const REPORT: u32 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize, default: &'static str| arguments.get(place).map_or(default, String::as_str);
    let source: DataSource = argument(0, "text").parse()?;
    let steps: u64 = argument(1, "2000").parse()?;
    let model: ModelKind = argument(2, "gpt").parse()?;
    let seed: u64 = argument(3, "0").parse()?;

    let data = source.load(seed)?;
    let device = DeviceName::Cpu.open()?;
    let task = Task::new(model, data.train.shape(), data.train.classes())?;
    println!(
        "{model}: {} parameters; {} tokens, {} held out",
        task.parameter_count(),
        data.train.len(),
        data.test.len()
    );
    let optimizer =
        OptimizerOptions { beta2: 0.99, weight_decay: 0.1, clip_gradients: Some(1.0), ..OptimizerOptions::adamw(1e-3) };
    let (augmentation, evaluator) = (Augmentation::NONE, Evaluator::new(task, &device));
    let options = TrainerOptions {
        task,
        device,
        optimizer,
        batch_size: BATCH,
        augmentation,
        data_seed: seed,
        weight: SiteWeight::Equal,
    };
    let mut trainer = Trainer::new(options, data.train)?;
    let rates = LearningRateSchedule::new(1e-3, "cosine:0.1".parse()?, WARMUP.min(steps / 2), steps)?;

    let mut parameters = task.initial_parameters(seed);
    let (mut training, mut loss) = (Duration::ZERO, 0.0);
    for step in 0..steps {
        let began = Instant::now();
        trainer.set_learning_rate(rates.rate(step))?;
        let outcome = trainer.train(&parameters, 1)?;
        for (parameter, change) in parameters.iter_mut().zip(&outcome.delta) {
            *parameter += change;
        }
        training += began.elapsed();
        loss += outcome.mean_loss / REPORT as f32;
        if trainer.step() % u64::from(REPORT) == 0 {
            let tokens = (trainer.step() * trainer.samples_per_step()) as f64 / training.as_secs_f64();
            println!("step {:5}  loss {loss:.4}  {tokens:.0} tokens/s", trainer.step());
            loss = 0.0;
        }
    }
    let evaluation = evaluator.evaluate(&parameters, &data.test)?;
    println!("validation loss {:.4}, {:?} of training", evaluation.loss, training);
    Ok(())
}
