//! Milliseconds of one training step or of one evaluation:
//! `training_speed step|evaluation MODEL SHAPE SAMPLES SECONDS [DEVICE]`.
//!
//! SHAPE is `1x28x28` or `3x32x32`, images in ten classes, or `text`, characters of a vocabulary of 65. SAMPLES is the
//! size of a batch, or the number of images or tokens to evaluate. Prints the milliseconds, the number of parameters and
//! the seconds before the first measured step, which a graphics card needs to compile its kernels.
//! `scripts/rivals/training.py` sets them beside PyTorch's; `RAYON_NUM_THREADS` bounds the threads.

#![allow(missing_docs)]

use std::env;
use std::error::Error;
use std::time::Instant;

use mingle_models::{
    Augmentation, Device, DeviceName, Evaluator, OptimizerOptions, SampleShape, Samples, SiteWeight, Task, Tokens,
    Trainer, TrainerOptions,
};

/// The steps that a peer of the daemon takes between two rounds, with `--local-steps 8`.
const STEPS: u32 = 8;
/// The characters of the text: as many as Shakespeare's works have.
const VOCABULARY: usize = 65;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (given, device) = match arguments.as_slice() {
        [given @ .., device] if given.len() == 5 => (given, device.as_str()),
        given => (given, "cpu"),
    };
    let [work, model, shape, count, seconds] = given else {
        return Err("give step or evaluation, a model, a shape, a number of samples and seconds, and a device".into());
    };
    let (count, seconds): (usize, f64) = (count.parse()?, seconds.parse()?);
    let device = device.parse::<DeviceName>()?.open()?;
    let samples = match work.as_str() {
        "step" => samples(shape, 20 * count)?,
        "evaluation" => samples(shape, count)?,
        _ => return Err(format!("{work}: write step or evaluation").into()),
    };
    let task = Task::new(model.parse()?, samples.shape(), samples.classes())?;
    let Times { warm_up, mut milliseconds } = match work.as_str() {
        "step" => steps(task, &device, samples, count, seconds)?,
        _ => evaluations(task, &device, &samples, seconds)?,
    };
    milliseconds.sort_by(f64::total_cmp);
    println!("{:.3} {} {warm_up:.1}", milliseconds[milliseconds.len() / 2], task.parameter_count());
    Ok(())
}

struct Times {
    /// Seconds.
    warm_up: f64,
    milliseconds: Vec<f64>,
}

/// Calls `work` once to warm up, then for `seconds` and twice at least.
fn measured(seconds: f64, mut work: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<Times, Box<dyn Error>> {
    let began = Instant::now();
    work()?;
    let warm_up = began.elapsed().as_secs_f64();
    let mut milliseconds = Vec::new();
    let began = Instant::now();
    while milliseconds.len() < 2 || began.elapsed().as_secs_f64() < seconds {
        let began = Instant::now();
        work()?;
        milliseconds.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Times { warm_up, milliseconds })
}

fn steps(
    task: Task,
    device: &Device,
    samples: Samples,
    batch_size: usize,
    seconds: f64,
) -> Result<Times, Box<dyn Error>> {
    let options = TrainerOptions {
        task,
        device: device.clone(),
        optimizer: OptimizerOptions::sgd(0.01),
        batch_size,
        augmentation: Augmentation::NONE,
        data_seed: 1,
        weight: SiteWeight::Equal,
    };
    let mut trainer = Trainer::new(options, samples)?;
    let mut parameters = task.initial_parameters(1);
    let mut times = measured(seconds, || {
        let outcome = trainer.train(&parameters, STEPS)?;
        for (parameter, change) in parameters.iter_mut().zip(&outcome.delta) {
            *parameter += change;
        }
        Ok(())
    })?;
    times.milliseconds.iter_mut().for_each(|milliseconds| *milliseconds /= f64::from(STEPS));
    Ok(times)
}

fn evaluations(task: Task, device: &Device, samples: &Samples, seconds: f64) -> Result<Times, Box<dyn Error>> {
    let evaluator = Evaluator::new(task, device);
    let parameters = task.initial_parameters(1);
    measured(seconds, || {
        evaluator.evaluate(&parameters, samples)?;
        Ok(())
    })
}

/// Smooth patterns that depend on the label, or a text without sense. The time of a step does not depend on them.
fn samples(shape: &str, count: usize) -> Result<Samples, Box<dyn Error>> {
    let image = |channels, side| SampleShape::Image { channels, height: side, width: side };
    let shape = match shape {
        "1x28x28" => image(1, 28),
        "3x32x32" => image(3, 32),
        "text" => {
            // At least the longest window that is measured, and room to draw it from.
            let tokens = (0..count.max(4096) + 1).map(|place| (place * place % 8191 % VOCABULARY) as u16);
            return Ok(Samples::of_text(Tokens::Characters, VOCABULARY, tokens.collect())?);
        }
        _ => return Err(format!("{shape}: write 1x28x28, 3x32x32 or text").into()),
    };
    let labels: Vec<u16> = (0..count).map(|sample| (sample % 10) as u16).collect();
    let pixels = labels
        .iter()
        .flat_map(|&label| (0..shape.features()).map(move |pixel| (pixel as f32 * 0.01 * f32::from(label + 1)).sin()));
    Ok(Samples::new(shape, 10, pixels.collect(), labels)?)
}
