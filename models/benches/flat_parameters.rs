//! Flat parameters into tensors and out again: the fixed cost of each call of the trainer.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mingle_models::{
    Augmentation, DeviceName, ModelKind, OptimizerOptions, SampleShape, Samples, SiteWeight, Task, Trainer,
    TrainerOptions,
};

const PHOTO: SampleShape = SampleShape::Image { channels: 1, height: 28, width: 28 };

fn in_and_out(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flat_parameters");
    for model in ["mlp", "cnn"] {
        let kind: ModelKind = model.parse().unwrap();
        let task = Task::new(kind, PHOTO, 10).unwrap();
        let samples = Samples::new(PHOTO, 10, vec![0.0; PHOTO.features()], vec![0]).unwrap();
        let options = TrainerOptions {
            task,
            device: DeviceName::Cpu.open().unwrap(),
            optimizer: OptimizerOptions::default(),
            batch_size: 1,
            augmentation: Augmentation::NONE,
            data_seed: 0,
            weight: SiteWeight::Equal,
        };
        let mut trainer = Trainer::new(options, samples).unwrap();
        let parameters = task.initial_parameters(1);
        group.throughput(Throughput::Elements(parameters.len() as u64));
        group.bench_function(format!("{model}, {} in and out", parameters.len()), |bencher| {
            bencher.iter(|| trainer.train(&parameters, 0).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, in_and_out);
criterion_main!(benches);
