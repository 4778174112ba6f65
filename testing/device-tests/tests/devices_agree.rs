//! Every device computes the same training, up to rounding.
//!
//! flex and ndarray share no kernel, so each checks the other. The graphics device is reached
//! through Vulkan, on a card or in software (Mesa: `apt-get install mesa-vulkan-drivers
//! libvulkan1`); its tests are ignored unless asked for, since not every machine has a driver.

#![allow(clippy::unwrap_used)]

use mingle_models::{
    Augmentation, DataSource, Device, DeviceError, DeviceName, Evaluator, ModelEvaluation, OptimizerOptions, Samples,
    SiteWeight, Task, TrainOutcome, Trainer, TrainerOptions,
};

/// Single precision keeps 7 digits; some tens of steps lose two or three of them to the order of
/// sums.
const PARAMETER_TOLERANCE: f32 = 1e-4;
const LOSS_TOLERANCE: f64 = 1e-4;

const STEPS: u32 = 30;

/// A test for each device but the default one.
macro_rules! on_other_devices {
    ($($name:ident: $check:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn on_ndarray() {
                $check(&DeviceName::NdArray.open().unwrap());
            }

            #[test]
            #[ignore = "needs a Vulkan driver"]
            fn on_vulkan() {
                $check(&vulkan());
            }
        }
    )*};
}

on_other_devices! {
    softmax_trains_as_on_the_default_device: |device: &Device| training_agrees("softmax", device);
    a_multilayer_perceptron_trains_as_on_the_default_device: |device: &Device| training_agrees("mlp:hidden=32", device);
    the_convolutional_network_computes_and_learns_as_on_the_default_device: convolutional_networks_agree;
    the_residual_network_computes_as_on_the_default_device: residual_networks_agree;
    a_language_model_computes_and_learns_as_on_the_default_device: language_models_agree;
}

#[test]
#[ignore = "needs a Vulkan driver"]
fn the_graphics_device_names_its_adapter_and_refuses_one_that_is_not_there() {
    let device = vulkan();
    println!("graphics device: {device}");
    let adapter = device.adapter();
    assert_eq!(adapter.backend, "wgpu");
    assert!(!adapter.name.is_empty());
    // Mesa's rasterizer has this name; anything else should be a card.
    assert_eq!(adapter.software, adapter.name.contains("llvmpipe"), "{adapter:?}");

    let error = DeviceName::Wgpu { index: Some(1_000) }.open().unwrap_err();
    let DeviceError::AdapterIndex { index: 1_000, names } = &error else { panic!("{error}") };
    assert!(names.contains(&adapter.name), "{error}");
    let first = DeviceName::Wgpu { index: Some(0) }.open().unwrap();
    assert_eq!(first.adapter(), adapter);
}

fn convolutional_networks_agree(device: &Device) {
    let (task, train, test) = digits("cnn");
    let few = test.select(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let parameters = task.initial_parameters(3);
    let one_step = |device: &Device| trained(task, device, train.select(&[0, 1, 2, 3]), 1);
    let (expected, expected_step) = (evaluated(task, &cpu(), &parameters, &few), one_step(&cpu()));
    assert_evaluations_agree(device, &evaluated(task, device, &parameters, &few), &expected);
    assert_outcomes_agree(device, &one_step(device), &expected_step);
}

fn residual_networks_agree(device: &Device) {
    let (task, _, test) = digits("resnet-lite");
    // ndarray takes seconds for one image, and a rasterizer half a minute to compile the gradients.
    let one = test.select(&[0]);
    let parameters = task.initial_parameters(3);
    let expected = evaluated(task, &cpu(), &parameters, &one);
    assert_evaluations_agree(device, &evaluated(task, device, &parameters, &one), &expected);
}

fn language_models_agree(device: &Device) {
    let data = "text".parse::<DataSource>().unwrap().load(1).unwrap();
    let model = "gpt:layers=2,heads=2,width=16,context=16".parse().unwrap();
    let task = Task::new(model, data.train.shape(), data.train.classes()).unwrap();
    let few = data.test.select(&(0..100).collect::<Vec<_>>());
    let expected = trained(task, &cpu(), data.train.clone(), 10);
    assert_outcomes_agree(device, &trained(task, device, data.train, 10), &expected);
    let parameters = after(task, &expected);
    let expected = evaluated(task, &cpu(), &parameters, &few);
    assert_evaluations_agree(device, &evaluated(task, device, &parameters, &few), &expected);
}

fn training_agrees(model: &str, device: &Device) {
    let (task, train, test) = digits(model);
    let expected = trained(task, &cpu(), train.clone(), STEPS);
    let parameters = after(task, &expected);
    let expected_evaluation = evaluated(task, &cpu(), &parameters, &test);
    // The model must have learnt something for agreement to mean anything.
    assert!(expected_evaluation.score() > 0.5, "{expected_evaluation:?}");
    let outcome = trained(task, device, train, STEPS);
    assert_outcomes_agree(device, &outcome, &expected);
    let evaluation = evaluated(task, device, &parameters, &test);
    assert_evaluations_agree(device, &evaluation, &expected_evaluation);
}

fn digits(model: &str) -> (Task, Samples, Samples) {
    let data = DataSource::Digits.load(1).unwrap();
    let task = Task::new(model.parse().unwrap(), data.train.shape(), data.train.classes()).unwrap();
    (task, data.train, data.test)
}

fn trained(task: Task, device: &Device, samples: Samples, steps: u32) -> TrainOutcome {
    let options = TrainerOptions {
        task,
        device: device.clone(),
        optimizer: OptimizerOptions { momentum: 0.9, weight_decay: 1e-4, ..OptimizerOptions::sgd(0.05) },
        batch_size: 32,
        augmentation: Augmentation::NONE,
        data_seed: 2,
        weight: SiteWeight::Equal,
    };
    let mut trainer = Trainer::new(options, samples).unwrap();
    trainer.train(&task.initial_parameters(3), steps).unwrap()
}

fn after(task: Task, outcome: &TrainOutcome) -> Vec<f32> {
    let before = task.initial_parameters(3);
    before.iter().zip(&outcome.delta).map(|(before, change)| before + change).collect()
}

fn evaluated(task: Task, device: &Device, parameters: &[f32], samples: &Samples) -> ModelEvaluation {
    Evaluator::new(task, device).evaluate(parameters, samples).unwrap()
}

fn assert_outcomes_agree(device: &Device, found: &TrainOutcome, expected: &TrainOutcome) {
    let difference = found.delta.iter().zip(&expected.delta).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("{device}: parameters differ by at most {difference:e}");
    assert!(difference <= PARAMETER_TOLERANCE, "{device}: parameters differ by {difference:e}");
    let losses = (f64::from(found.mean_loss), f64::from(expected.mean_loss));
    assert!((losses.0 - losses.1).abs() <= LOSS_TOLERANCE, "{device}: losses {losses:?}");
    assert_eq!(found.samples, expected.samples);
    assert!(expected.delta.iter().any(|change| change.abs() > 10.0 * PARAMETER_TOLERANCE));
}

fn assert_evaluations_agree(device: &Device, found: &ModelEvaluation, expected: &ModelEvaluation) {
    assert!((found.loss - expected.loss).abs() <= LOSS_TOLERANCE, "{device}: {found:?}, not {expected:?}");
    // Two logits that are equal up to rounding may change places in one sample.
    let one_sample = 1.0 / expected.samples as f64;
    assert!((found.score() - expected.score()).abs() <= one_sample, "{device}: {found:?}, not {expected:?}");
}

fn cpu() -> Device {
    DeviceName::Cpu.open().unwrap()
}

/// The graphics device.
fn vulkan() -> Device {
    DeviceName::Wgpu { index: None }.open().unwrap_or_else(|error| panic!("{error}"))
}
