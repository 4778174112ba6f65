//! Milliseconds of one training step: `training_speed MODEL BATCH_SIZE SECONDS`, on images of
//! 1 x 28 x 28 in ten classes. Prints one number. `scripts/rivals/training.py` sets it beside
//! PyTorch's; `RAYON_NUM_THREADS` bounds the threads.

#![allow(missing_docs)]

use std::env;
use std::error::Error;
use std::time::Instant;

use mingle_models::{
    Augmentation, DeviceName, OptimizerOptions, SampleShape, Samples, SiteWeight, Task, Trainer, TrainerOptions,
};

/// The steps that a peer of the daemon takes between two rounds, with `--local-steps 8`.
const STEPS: u32 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [model, batch_size, seconds] = arguments.as_slice() else {
        return Err("give a model, a batch size and how many seconds to measure".into());
    };
    let (batch_size, seconds): (usize, f64) = (batch_size.parse()?, seconds.parse()?);
    let samples = patterns(20 * batch_size)?;
    let task = Task::new(model.parse()?, samples.shape(), samples.classes())?;
    let options = TrainerOptions {
        task,
        device: DeviceName::Cpu.open()?,
        optimizer: OptimizerOptions::sgd(0.01),
        batch_size,
        augmentation: Augmentation::NONE,
        data_seed: 1,
        weight: SiteWeight::Equal,
    };
    let mut trainer = Trainer::new(options, samples)?;
    let mut parameters = task.initial_parameters(1);
    let mut milliseconds = Vec::new();
    let began = Instant::now();
    // The first steps also allocate memory.
    while milliseconds.len() < 4 || began.elapsed().as_secs_f64() < seconds {
        let began = Instant::now();
        let outcome = trainer.train(&parameters, STEPS)?;
        for (parameter, change) in parameters.iter_mut().zip(&outcome.delta) {
            *parameter += change;
        }
        milliseconds.push(began.elapsed().as_secs_f64() * 1e3 / f64::from(STEPS));
    }
    milliseconds.sort_by(f64::total_cmp);
    println!("{:.3}", milliseconds[milliseconds.len() / 2]);
    Ok(())
}

/// Smooth patterns that depend on the label.
fn patterns(count: usize) -> Result<Samples, Box<dyn Error>> {
    let shape = SampleShape::Image { channels: 1, height: 28, width: 28 };
    let labels: Vec<u16> = (0..count).map(|sample| (sample % 10) as u16).collect();
    let pixels = labels
        .iter()
        .flat_map(|&label| (0..shape.features()).map(move |pixel| (pixel as f32 * 0.01 * f32::from(label + 1)).sin()));
    Ok(Samples::new(shape, 10, pixels.collect(), labels)?)
}
