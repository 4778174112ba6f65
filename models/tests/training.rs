//! What local training computes, seen from outside.

#![allow(clippy::unwrap_used)]

use mingle_models::{
    Augmentation, DataSource, Device, DeviceName, Evaluator, ModelKind, SampleShape, Samples, SgdOptions, Task,
    TaskError, TrainError, Trainer, TrainerOptions,
};

fn cpu() -> Device {
    DeviceName::Cpu.open().unwrap()
}

fn options(task: Task, sgd: SgdOptions, batch_size: usize) -> TrainerOptions {
    TrainerOptions { task, device: cpu(), sgd, batch_size, augmentation: Augmentation::NONE, data_seed: 5 }
}

fn plain(learning_rate: f64) -> SgdOptions {
    SgdOptions { learning_rate, momentum: 0.0, weight_decay: 0.0 }
}

fn advance(parameters: &mut [f32], delta: &[f32]) {
    for (parameter, change) in parameters.iter_mut().zip(delta) {
        *parameter += change;
    }
}

/// Twelve samples of three features in four classes, none of them special.
fn small_samples() -> Samples {
    let features = (0..36).map(|i| ((i * 7 % 13) as f32 - 6.0) / 5.0).collect();
    let labels = (0..12).map(|i| (i * 5 % 4) as u16).collect();
    Samples::new(SampleShape::Flat { features: 3 }, 4, features, labels).unwrap()
}

#[test]
fn a_short_run_of_the_multilayer_perceptron_reads_digits() {
    let data = DataSource::Digits.load(1).unwrap();
    let task = Task::new("mlp".parse().unwrap(), data.train.shape(), 10).unwrap();
    let mut parameters = task.initial_parameters(1);
    let mut trainer = Trainer::new(options(task, plain(0.3), 32), data.train).unwrap();
    let evaluator = Evaluator::new(task, &cpu());
    let before = evaluator.evaluate(&parameters, &data.test).unwrap();
    let mut losses = Vec::new();
    for _ in 0..20 {
        let outcome = trainer.train(&parameters, 44).unwrap();
        advance(&mut parameters, &outcome.delta);
        losses.push(outcome.mean_loss);
    }
    let after = evaluator.evaluate(&parameters, &data.test).unwrap();
    assert!(before.accuracy < 0.3, "untrained: {before:?}");
    assert!(after.accuracy > 0.93, "trained: {after:?}, losses {losses:?}");
    assert!(losses[19] < losses[0] / 5.0, "{losses:?}");
    assert_eq!(trainer.step(), 20 * 44);
}

#[test]
fn the_step_of_each_model_follows_the_gradient_found_by_finite_differences() {
    // One step with rate 1 on all samples changes the parameters by minus the gradient of the mean loss.
    // The seed keeps the hidden units away from the kink of the rectifier, where there is no slope.
    let samples = small_samples();
    for model in ["softmax", "mlp:hidden=5"] {
        let task = Task::new(model.parse().unwrap(), samples.shape(), samples.classes()).unwrap();
        let from = task.initial_parameters(4);
        let mut trainer = Trainer::new(options(task, plain(1.0), samples.len()), samples.clone()).unwrap();
        let outcome = trainer.train(&from, 1).unwrap();

        let evaluator = Evaluator::new(task, &cpu());
        let loss = |parameters: &[f32]| evaluator.evaluate(parameters, &samples).unwrap().loss;
        assert!((f64::from(outcome.mean_loss) - loss(&from)).abs() < 1e-6, "{model}");
        for (index, change) in outcome.delta.iter().enumerate() {
            let slope = {
                let at = |offset: f32| {
                    let mut moved = from.clone();
                    moved[index] += offset;
                    (f64::from(moved[index]), loss(&moved))
                };
                let ((left, below), (right, above)) = (at(-1e-3), at(1e-3));
                (above - below) / (right - left)
            };
            assert!((slope + f64::from(*change)).abs() < 5e-4, "{model}, parameter {index}: {slope} and {change}");
        }
    }
}

#[test]
fn momentum_and_weight_decay_are_those_of_the_textbook_across_calls() {
    let samples = small_samples();
    let task = Task::new(ModelKind::Softmax, samples.shape(), samples.classes()).unwrap();
    let gradient_of = |parameters: &[f32]| -> Vec<f32> {
        let mut probe = Trainer::new(options(task, plain(1.0), samples.len()), samples.clone()).unwrap();
        probe.train(parameters, 1).unwrap().delta.iter().map(|change| -change).collect()
    };
    let sgd = SgdOptions { learning_rate: 0.2, momentum: 0.8, weight_decay: 0.05 };
    let mut trainer = Trainer::new(options(task, sgd, samples.len()), samples.clone()).unwrap();

    let mut expected = task.initial_parameters(2);
    let mut found = expected.clone();
    let mut velocity = vec![0.0; expected.len()];
    for round in 0..4 {
        for _ in 0..3 {
            let gradient = gradient_of(&expected);
            for ((x, v), g) in expected.iter_mut().zip(&mut velocity).zip(gradient) {
                *v = 0.8 * *v + (g + 0.05 * *x);
                *x -= 0.2 * *v;
            }
        }
        let delta = trainer.train(&found, 3).unwrap().delta;
        advance(&mut found, &delta);
        for (index, (a, b)) in found.iter().zip(&expected).enumerate() {
            assert!((a - b).abs() < 1e-5, "round {round}, parameter {index}: {a}, not {b}");
        }
    }
    // A state without velocities is that of a trainer at rest: only the gradient counts.
    trainer.restore(&12_u64.to_le_bytes()).unwrap();
    let delta = trainer.train(&found, 1).unwrap().delta;
    for ((change, g), x) in delta.iter().zip(gradient_of(&found)).zip(&found) {
        assert!((change + 0.2 * (g + 0.05 * x)).abs() < 1e-5);
    }
}

#[test]
fn a_restarted_trainer_continues_bit_for_bit_with_its_momentum() {
    let data = DataSource::Digits.load(4).unwrap();
    for (model, momentum) in [("mlp:hidden=16", 0.0), ("mlp:hidden=16", 0.9), ("cnn", 0.9)] {
        let task = Task::new(model.parse().unwrap(), data.train.shape(), 10).unwrap();
        let sgd = SgdOptions { momentum, ..plain(0.1) };
        let trainer = || Trainer::new(options(task, sgd, 20), data.train.clone()).unwrap();
        let mut parameters = task.initial_parameters(1);
        let mut through = trainer();
        let first = through.train(&parameters, 7).unwrap();
        advance(&mut parameters, &first.delta);
        let state = through.state().unwrap();
        assert!(state.len() <= through.largest_state(), "{model}: {} bytes", state.len());
        let velocities = if momentum > 0.0 { 4 * task.parameter_count() } else { 0 };
        assert!((velocities..velocities + (32 << 10)).contains(&(state.len() - 8)), "{model}: {} bytes", state.len());
        let expected = through.train(&parameters, 3).unwrap();

        let mut restarted = trainer();
        restarted.restore(&state).unwrap();
        assert!(restarted.train(&parameters, 3).unwrap() == expected, "{model}, momentum {momentum}");
        assert_eq!(restarted.step(), 10);
    }
}

#[test]
fn what_is_no_state_is_refused_and_changes_nothing() {
    let samples = small_samples();
    let task = Task::new(ModelKind::Softmax, samples.shape(), samples.classes()).unwrap();
    let sgd = SgdOptions { momentum: 0.9, ..plain(0.5) };
    let mut trainer = Trainer::new(options(task, sgd, 12), samples).unwrap();
    trainer.train(&task.initial_parameters(3), 2).unwrap();
    let state = trainer.state().unwrap();
    for damage in [&[][..], &[1, 2, 3], &state[..state.len() / 2], &[&state[..8], b"no record"].concat()] {
        assert!(matches!(trainer.restore(damage), Err(TrainError::State(_))), "{} bytes", damage.len());
        assert_eq!(trainer.step(), 2);
    }
}

#[test]
fn no_steps_change_nothing_and_a_new_rate_counts_from_the_next_step() {
    let samples = small_samples();
    let task = Task::new(ModelKind::Softmax, samples.shape(), samples.classes()).unwrap();
    let from = task.initial_parameters(3);
    let mut trainer = Trainer::new(options(task, plain(0.5), 12), samples).unwrap();
    let outcome = trainer.train(&from, 0).unwrap();
    assert_eq!(outcome.delta, vec![0.0; from.len()]);
    assert_eq!((outcome.mean_loss, outcome.samples), (0.0, 0));

    let fast = trainer.train(&from, 1).unwrap();
    assert_eq!(fast.samples, 12);
    trainer.set_learning_rate(0.25).unwrap();
    let slow = trainer.train(&from, 1).unwrap();
    for (fast, slow) in fast.delta.iter().zip(&slow.delta) {
        assert!((fast - 2.0 * slow).abs() < 1e-6, "{fast} and {slow}");
    }
}

#[test]
fn divergence_is_reported_in_the_outcome_and_not_as_a_panic() {
    let samples = small_samples();
    let task = Task::new("mlp:hidden=4".parse().unwrap(), samples.shape(), samples.classes()).unwrap();
    let mut trainer = Trainer::new(options(task, plain(1e30), 12), samples.clone()).unwrap();
    let outcome = trainer.train(&task.initial_parameters(1), 20).unwrap();
    assert!(outcome.delta.iter().any(|change| !change.is_finite()));
    let broken = vec![f32::NAN; task.parameter_count()];
    let evaluation = Evaluator::new(task, &cpu()).evaluate(&broken, &samples).unwrap();
    assert!(evaluation.loss.is_nan() && evaluation.accuracy <= 1.0);
}

#[test]
fn the_convolutional_network_learns_small_images() {
    let data = DataSource::Digits.load(1).unwrap();
    let task = Task::new(ModelKind::Cnn, data.train.shape(), 10).unwrap();
    let mut parameters = task.initial_parameters(1);
    let sgd = SgdOptions { momentum: 0.9, ..plain(0.05) };
    let mut trainer = Trainer::new(options(task, sgd, 16), data.train).unwrap();
    let evaluator = Evaluator::new(task, &cpu());
    let outcome = trainer.train(&parameters, 60).unwrap();
    advance(&mut parameters, &outcome.delta);
    let after = evaluator.evaluate(&parameters, &data.test).unwrap();
    assert!(after.accuracy > 0.6, "{after:?}");
}

#[test]
fn what_does_not_fit_together_is_refused_with_a_sentence() {
    let samples = small_samples();
    let task = Task::new(ModelKind::Softmax, samples.shape(), samples.classes()).unwrap();
    let refusal = |options: TrainerOptions, samples: Samples| match Trainer::new(options, samples) {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    };
    let empty = samples.select(&[]);
    assert_eq!(Trainer::new(options(task, plain(0.1), 4), empty).err(), Some(TrainError::NoSamples));
    for (sgd, message) in [
        (plain(0.0), "learning_rate = 0 must be positive"),
        (plain(f64::NAN), "learning_rate = NaN must be positive"),
        (SgdOptions { momentum: 1.0, ..plain(0.1) }, "momentum = 1 must be at least 0 and less than 1"),
        (SgdOptions { weight_decay: -1.0, ..plain(0.1) }, "weight_decay = -1 must be at least 0"),
    ] {
        assert_eq!(refusal(options(task, sgd, 4), samples.clone()), message);
    }
    assert_eq!(refusal(options(task, plain(0.1), 0), samples.clone()), "batch_size = 0 must be at least 1");
    let digits = DataSource::Digits.load(1).unwrap().test;
    assert_eq!(
        refusal(options(task, plain(0.1), 4), digits),
        "the task is for samples of shape 3 in 4 classes, but these have shape 1x8x8 and 10 classes"
    );

    let mut trainer = Trainer::new(options(task, plain(0.1), 4), samples.clone()).unwrap();
    let length = TaskError::Length { model: ModelKind::Softmax, expected: 16, found: 15 };
    assert_eq!(trainer.train(&[0.0; 15], 1), Err(TrainError::Task(length.clone())));
    let evaluation = Evaluator::new(task, &cpu()).evaluate(&[0.0; 15], &samples);
    assert_eq!(evaluation, Err(TrainError::Task(length)));
}

#[test]
fn a_trainer_can_move_to_another_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<Trainer>();
    assert_send::<Evaluator>();
}
