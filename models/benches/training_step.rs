//! One step of stochastic gradient descent, for each model at two batch sizes.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use mingle_models::{
    Augmentation, DataSource, DeviceName, OptimizerOptions, SampleShape, Samples, SiteWeight, Task, Trainer,
    TrainerOptions,
};

const STEPS: u32 = 10;

fn steps(criterion: &mut Criterion) {
    let digits = DataSource::Digits.load(1).unwrap().train;
    let photos = photos(640);
    let text = "text".parse::<DataSource>().unwrap().load(1).unwrap().train;
    let mut group = criterion.benchmark_group(format!("{STEPS} steps"));
    group.sample_size(10);
    for (model, data, samples) in [
        ("softmax", "digits", &digits),
        ("mlp", "digits", &digits),
        ("mlp", "28x28", &photos),
        ("cnn", "28x28", &photos),
        ("gpt:layers=2,width=64", "text", &text),
    ] {
        for batch_size in [32, 64] {
            let mut trainer = trainer(model, samples, batch_size);
            let mut parameters = trainer.task().initial_parameters(1);
            let id = BenchmarkId::new(format!("{model} on {data}"), batch_size);
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    let outcome = trainer.train(&parameters, STEPS).unwrap();
                    for (parameter, change) in parameters.iter_mut().zip(&outcome.delta) {
                        *parameter += change;
                    }
                });
            });
        }
    }
    group.finish();
}

fn trainer(model: &str, samples: &Samples, batch_size: usize) -> Trainer {
    let options = TrainerOptions {
        task: Task::new(model.parse().unwrap(), samples.shape(), samples.classes()).unwrap(),
        device: DeviceName::Cpu.open().unwrap(),
        optimizer: OptimizerOptions { momentum: 0.9, ..OptimizerOptions::sgd(0.01) },
        batch_size,
        augmentation: Augmentation::NONE,
        data_seed: 1,
        weight: SiteWeight::Equal,
    };
    Trainer::new(options, samples.clone()).unwrap()
}

/// Smooth patterns that depend on the label; the time of a step does not depend on its samples.
fn photos(count: usize) -> Samples {
    let shape = SampleShape::Image { channels: 1, height: 28, width: 28 };
    let labels: Vec<u16> = (0..count).map(|sample| (sample % 10) as u16).collect();
    let pixels = labels
        .iter()
        .flat_map(|&label| (0..shape.features()).map(move |pixel| (pixel as f32 * 0.01 * f32::from(label + 1)).sin()));
    let pixels = pixels.collect();
    Samples::new(shape, 10, pixels, labels).unwrap()
}

criterion_group!(benches, steps);
criterion_main!(benches);
