//! Local training through the public interface.

use std::sync::Arc;

use mingle_models::{
    Augmentation, DataSource, Device, DeviceName, Evaluator, ModelKind, OptimizerOptions, SampleShape, Samples,
    SiteWeight, Task, TaskError, TrainError, Trainer, TrainerOptions,
};

fn cpu() -> Device {
    DeviceName::Cpu.open().unwrap()
}

fn options(task: Task, optimizer: OptimizerOptions, batch_size: usize) -> TrainerOptions {
    TrainerOptions {
        task,
        device: cpu(),
        optimizer,
        batch_size,
        augmentation: Augmentation::NONE,
        data_seed: 5,
        weight: SiteWeight::Equal,
    }
}

fn plain(learning_rate: f64) -> OptimizerOptions {
    OptimizerOptions::sgd(learning_rate)
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
    assert!(before.score() < 0.3, "untrained: {before:?}");
    assert!(after.score() > 0.93, "trained: {after:?}, losses {losses:?}");
    assert!(losses[19] < losses[0] / 5.0, "{losses:?}");
    assert_eq!(trainer.step(), 20 * 44);
}

#[test]
fn the_step_of_each_model_follows_the_gradient_found_by_finite_differences() {
    // One step with rate 1 on all samples changes the parameters by minus the gradient of the mean loss. The seed keeps
    // the hidden units away from the kink of the rectifier, where there is no slope.
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
    let sgd = OptimizerOptions { momentum: 0.8, weight_decay: 0.05, ..plain(0.2) };
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
fn adamw_takes_the_steps_of_the_paper_with_the_defaults_of_pytorch_across_calls() {
    let samples = small_samples();
    let task = Task::new(ModelKind::Softmax, samples.shape(), samples.classes()).unwrap();
    let gradient_of = |parameters: &[f32]| -> Vec<f32> {
        let mut probe = Trainer::new(options(task, plain(1.0), samples.len()), samples.clone()).unwrap();
        probe.train(parameters, 1).unwrap().delta.iter().map(|change| -change).collect()
    };
    let adamw = OptimizerOptions { weight_decay: 0.5, ..OptimizerOptions::adamw(0.02) };
    let mut trainer = Trainer::new(options(task, adamw, samples.len()), samples.clone()).unwrap();

    let mut expected = task.initial_parameters(2);
    let mut found = expected.clone();
    let (mut first, mut second) = (vec![0.0_f64; expected.len()], vec![0.0_f64; expected.len()]);
    let mut step = 0;
    for round in 0..3 {
        for _ in 0..4 {
            step += 1;
            let gradient = gradient_of(&expected);
            for (index, g) in gradient.iter().map(|g| f64::from(*g)).enumerate() {
                first[index] = 0.9 * first[index] + 0.1 * g;
                second[index] = 0.999 * second[index] + 0.001 * g * g;
                let (m, v) = (first[index] / (1.0 - 0.9f64.powi(step)), second[index] / (1.0 - 0.999f64.powi(step)));
                let x = f64::from(expected[index]) * (1.0 - 0.02 * 0.5);
                expected[index] = (x - 0.02 * m / (v.sqrt() + 1e-8)) as f32;
            }
        }
        let delta = trainer.train(&found, 4).unwrap().delta;
        advance(&mut found, &delta);
        for (index, (a, b)) in found.iter().zip(&expected).enumerate() {
            assert!((a - b).abs() < 2e-5, "round {round}, parameter {index}: {a}, not {b}");
        }
    }
}

#[test]
fn a_clipped_step_is_the_unclipped_one_scaled_to_the_norm_over_all_parameters() {
    let samples = small_samples();
    let task = Task::new("mlp:hidden=5".parse().unwrap(), samples.shape(), samples.classes()).unwrap();
    let from = task.initial_parameters(4);
    let step = |clip_gradients| {
        let clipped = OptimizerOptions { clip_gradients, ..plain(1.0) };
        Trainer::new(options(task, clipped, samples.len()), samples.clone()).unwrap().train(&from, 1).unwrap().delta
    };
    let gradient = step(None);
    let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
    for wanted in [0.25 * norm, 2.0 * norm] {
        let factor = (wanted / norm).min(1.0);
        for (found, whole) in step(Some(wanted)).iter().zip(&gradient) {
            assert!((f64::from(*found) - factor * f64::from(*whole)).abs() < 1e-6, "{found}, {whole} times {factor}");
        }
    }
}

#[test]
fn a_restarted_trainer_continues_bit_for_bit_with_its_momentum_or_moments() {
    let data = DataSource::Digits.load(4).unwrap();
    let with = |momentum| OptimizerOptions { momentum, ..plain(0.1) };
    let adamw = OptimizerOptions { weight_decay: 0.01, clip_gradients: Some(1.0), ..OptimizerOptions::adamw(0.002) };
    let cases = [("mlp:hidden=16", with(0.0), 0), ("mlp:hidden=16", with(0.9), 1), ("cnn", with(0.9), 1)];
    for (model, optimizer, vectors) in cases.into_iter().chain([("mlp:hidden=16", adamw, 2), ("cnn", adamw, 2)]) {
        let task = Task::new(model.parse().unwrap(), data.train.shape(), 10).unwrap();
        let trainer = || Trainer::new(options(task, optimizer, 20), data.train.clone()).unwrap();
        let mut parameters = task.initial_parameters(1);
        let mut through = trainer();
        let first = through.train(&parameters, 7).unwrap();
        advance(&mut parameters, &first.delta);
        let state = through.state().unwrap();
        assert!(state.len() <= through.largest_state(), "{model}: {} bytes", state.len());
        let bytes = vectors * 4 * task.parameter_count();
        assert!((bytes..bytes + (32 << 10)).contains(&(state.len() - 8)), "{model}: {} bytes", state.len());
        let expected = through.train(&parameters, 3).unwrap();

        let mut restarted = trainer();
        restarted.restore(&state).unwrap();
        assert!(restarted.train(&parameters, 3).unwrap() == expected, "{model}, {optimizer:?}");
        assert_eq!(restarted.step(), 10);
    }
}

#[test]
fn the_state_of_the_model_with_the_most_tensors_has_room() {
    // One step is enough: from the first on, all parameters have moments.
    let samples = DataSource::Digits.load(4).unwrap().train.select(&[0, 1]);
    let task = Task::new(ModelKind::ResnetLite, samples.shape(), 10).unwrap();
    let mut trainer = Trainer::new(options(task, OptimizerOptions::adamw(0.001), 2), samples).unwrap();
    trainer.train(&task.initial_parameters(1), 1).unwrap();
    let (state, most) = (trainer.state().unwrap().len(), trainer.largest_state());
    assert!(state <= most, "{state} bytes, {most} are said to be the most");
    // The room for a record: 64 KiB and two vectors.
    assert!(most <= (64 << 10) + 8 * task.parameter_count());
}

#[test]
fn a_trainer_with_another_optimizer_goes_on_with_the_next_batch_and_without_moments() {
    let samples = small_samples();
    let task = Task::new(ModelKind::Softmax, samples.shape(), samples.classes()).unwrap();
    let from = task.initial_parameters(3);
    let trainer = |optimizer| Trainer::new(options(task, optimizer, 5), samples.clone()).unwrap();
    let momentum = OptimizerOptions { momentum: 0.9, ..plain(0.1) };
    for (before, after) in [(momentum, OptimizerOptions::adamw(0.1)), (OptimizerOptions::adamw(0.1), momentum)] {
        let mut first = trainer(before);
        first.train(&from, 3).unwrap();
        let mut second = trainer(after);
        second.restore(&first.state().unwrap()).unwrap();
        assert_eq!(second.step(), 3);
        let mut fresh = trainer(after);
        fresh.restore(&3_u64.to_le_bytes()).unwrap();
        assert!(second.train(&from, 2).unwrap() == fresh.train(&from, 2).unwrap(), "{after:?}");
    }
}

#[test]
fn what_is_no_state_is_refused_and_changes_nothing() {
    let samples = small_samples();
    let task = Task::new(ModelKind::Softmax, samples.shape(), samples.classes()).unwrap();
    let sgd = OptimizerOptions { momentum: 0.9, ..plain(0.5) };
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
    trainer.set_learning_rate(0.0).unwrap();
    assert_eq!(trainer.train(&from, 2).unwrap().delta, vec![0.0; from.len()]);
    for wrong in [-0.1, f64::NAN, f64::INFINITY] {
        assert!(trainer.set_learning_rate(wrong).is_err(), "{wrong}");
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
    assert!(evaluation.loss.is_nan() && evaluation.score() <= 1.0);
}

#[test]
fn the_convolutional_network_learns_small_images() {
    let data = DataSource::Digits.load(1).unwrap();
    let task = Task::new(ModelKind::Cnn, data.train.shape(), 10).unwrap();
    let mut parameters = task.initial_parameters(1);
    let sgd = OptimizerOptions { momentum: 0.9, ..plain(0.05) };
    let mut trainer = Trainer::new(options(task, sgd, 16), data.train).unwrap();
    let evaluator = Evaluator::new(task, &cpu());
    let outcome = trainer.train(&parameters, 60).unwrap();
    advance(&mut parameters, &outcome.delta);
    let after = evaluator.evaluate(&parameters, &data.test).unwrap();
    assert!(after.score() > 0.6, "{after:?}");
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
        (OptimizerOptions { momentum: 1.0, ..plain(0.1) }, "momentum = 1 must be at least 0 and less than 1"),
        (OptimizerOptions { weight_decay: -1.0, ..plain(0.1) }, "weight_decay = -1 must be at least 0"),
        (OptimizerOptions { clip_gradients: Some(0.0), ..plain(0.1) }, "clip_gradients = 0 must be positive"),
        (
            OptimizerOptions { clip_gradients: Some(f64::INFINITY), ..plain(0.1) },
            "clip_gradients = inf must be positive",
        ),
        (
            OptimizerOptions { momentum: 0.9, ..OptimizerOptions::adamw(0.1) },
            "momentum = 0.9 must be 0: AdamW has moments of its own",
        ),
    ] {
        assert_eq!(refusal(options(task, sgd, 4), samples.clone()), message);
    }
    assert_eq!(refusal(options(task, plain(0.1), 0), samples.clone()), "batch_size = 0 must be at least 1");
    let digits = DataSource::Digits.load(1).unwrap().test;
    assert_eq!(
        refusal(options(task, plain(0.1), 4), digits),
        "the task is for samples of shape 3 and 4 classes, but these have shape 1x8x8 and 10 classes"
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

#[test]
fn a_shared_vector_is_trained_and_evaluated_to_the_same_bits_and_stays_as_it_is() {
    let data = DataSource::Digits.load(1).unwrap();
    for model in ["softmax", "mlp:hidden=20", "cnn"] {
        let task = Task::new(model.parse().unwrap(), data.train.shape(), 10).unwrap();
        let parameters = task.initial_parameters(1);
        let shared: Arc<[f32]> = Arc::from(&parameters[..]);
        let [mut copying, mut sharing] =
            [(); 2].map(|()| Trainer::new(options(task, plain(0.1), 32), data.train.clone()).unwrap());
        // The second call begins with an optimizer and batches that have been used.
        for steps in [1, 3] {
            let copied = copying.train(&parameters, steps).unwrap();
            assert_eq!(sharing.train_shared_while(&shared, steps, || true).unwrap(), copied, "{model}");
        }
        let evaluator = Evaluator::new(task, &cpu());
        let copied = evaluator.evaluate(&parameters, &data.test).unwrap();
        assert_eq!(evaluator.evaluate_shared_while(&shared, &data.test, || true).unwrap(), copied, "{model}");
        assert_eq!(*shared, parameters, "{model}");
    }
}
