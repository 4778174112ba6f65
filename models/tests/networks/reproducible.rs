//! The same seeds give the same bits, whatever else runs and on however many threads.

use std::process::Command;

use mingle_models::{
    Augmentation, DataSource, DeviceName, OptimizerOptions, SiteWeight, Task, Trainer, TrainerOptions,
};

/// Set in the child processes of [`the_number_of_threads_does_not_change_a_bit`].
const MODEL: &str = "MINGLE_TEST_MODEL";

/// Trains and returns the change as hexadecimal digits.
fn trained_bits(model: &str, optimizer: OptimizerOptions, steps: u32) -> String {
    let data = DataSource::Digits.load(6).unwrap();
    let task = Task::new(model.parse().unwrap(), data.train.shape(), 10).unwrap();
    let options = TrainerOptions {
        task,
        device: DeviceName::Cpu.open().unwrap(),
        optimizer,
        batch_size: 64,
        augmentation: Augmentation::NONE,
        data_seed: 8,
        weight: SiteWeight::Equal,
    };
    let mut trainer = Trainer::new(options, data.train).unwrap();
    let outcome = trainer.train(&task.initial_parameters(7), steps).unwrap();
    format!("{:016x}", digest(outcome.delta.iter().chain([&outcome.mean_loss])))
}

fn with_momentum() -> OptimizerOptions {
    OptimizerOptions { momentum: 0.9, weight_decay: 1e-4, ..OptimizerOptions::sgd(0.05) }
}

/// FNV-1a over all bits, which detects any change for the purpose of a test.
fn digest<'a>(values: impl Iterator<Item = &'a f32>) -> u64 {
    values.fold(0xcbf2_9ce4_8422_2325, |hash: u64, value| {
        (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Peers of different versions must start from one point and be evaluated on the same samples. A change of these values
/// must be announced: old and new peers do not mix.
#[test]
fn what_peers_must_agree_on_is_the_same_on_every_machine_and_in_every_version() {
    let data = DataSource::Digits.load(1).unwrap();
    assert_eq!(data.test.labels()[..12], [0, 6, 4, 6, 5, 8, 9, 2, 5, 6, 5, 1]);
    let initial = |model: &str| {
        let task = Task::new(model.parse().unwrap(), data.train.shape(), 10).unwrap();
        digest(task.initial_parameters(1).iter())
    };
    let digests = ["softmax", "mlp", "cnn", "resnet-lite"].map(initial);
    let pinned = [0x4438_a783_1cb7_636b, 0x4d64_2c3c_153a_f5db, 0x0489_d884_038c_3058, 0x0175_44fe_28b3_68e4];
    assert_eq!(digests, pinned, "{digests:#x?}");
}

#[test]
fn training_twice_at_once_gives_the_bits_of_training_alone() {
    let alone = trained_bits("mlp", with_momentum(), 40);
    let together: Vec<_> = (0..4).map(|_| std::thread::spawn(|| trained_bits("mlp", with_momentum(), 40))).collect();
    for thread in together {
        assert_eq!(thread.join().unwrap(), alone);
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    // The wide hidden layer and the convolutions are large enough to be divided among threads.
    for model in ["mlp:hidden=2048", "cnn", "resnet-lite"] {
        let digests: Vec<String> = ["1", "5"].iter().map(|threads| digest_with(model, threads)).collect();
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{model}: {digests:?}");
    }
}

/// The digest of a fresh process which uses this many threads.
fn digest_with(model: &str, threads: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "reproducible::child_prints_its_digest", "--nocapture"])
        .env(MODEL, model)
        .env("RAYON_NUM_THREADS", threads)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let digest = text.lines().find_map(|line| line.strip_prefix("digest "));
    digest.unwrap_or_else(|| panic!("no digest in {text}")).to_owned()
}

#[test]
fn child_prints_its_digest() {
    // Only runs in a child process of the test above.
    if let Ok(model) = std::env::var(MODEL) {
        let adamw = OptimizerOptions { clip_gradients: Some(0.1), ..OptimizerOptions::adamw(0.01) };
        println!("\ndigest {} {}", trained_bits(&model, with_momentum(), 3), trained_bits(&model, adamw, 3));
    }
}
