//! Trains softmax regression on the embedded digits without a swarm, writes it as safetensors with PyTorch's names and
//! shapes, and reads it back.

use std::collections::BTreeMap;
use std::error::Error;

use mingle_models::{
    Augmentation, Checkpoint, DataSource, DeviceName, Evaluator, OptimizerOptions, SiteWeight, Task, Trainer,
    TrainerOptions,
};

fn main() -> Result<(), Box<dyn Error>> {
    let data = "digits".parse::<DataSource>()?.load(0)?;
    let device = DeviceName::Cpu.open()?;
    let task = Task::new("softmax".parse()?, data.train.shape(), data.train.classes())?;
    let optimizer = OptimizerOptions::sgd(0.1);
    let options = TrainerOptions {
        task,
        device: device.clone(),
        optimizer,
        batch_size: 32,
        augmentation: Augmentation::NONE,
        data_seed: 0,
        weight: SiteWeight::Equal,
    };
    let mut trainer = Trainer::new(options, data.train)?;

    let mut parameters = task.initial_parameters(0);
    for round in 1..=5 {
        let outcome = trainer.train(&parameters, 100)?;
        for (parameter, change) in parameters.iter_mut().zip(&outcome.delta) {
            *parameter += change;
        }
        println!("{:>4} steps: mean training loss {:.3}", round * 100, outcome.mean_loss);
    }

    let path = std::env::temp_dir().join(format!("mingle-example-{}.safetensors", std::process::id()));
    Checkpoint { parameters, metadata: BTreeMap::new() }.save(&path, &task)?;
    let read = Checkpoint::load(&path, &task)?;
    let evaluation = Evaluator::new(task, &device).evaluate(&read.parameters, &data.test)?;
    std::fs::remove_file(&path)?;
    println!("read back from safetensors: test accuracy {:.3}", evaluation.score());
    Ok(())
}
