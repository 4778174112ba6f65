//! Training whose changes are clipped, noised and counted: the changes that leave, the count that is kept, and the end
//! of changes.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_peer::Home;
use mingle_peer::training::{
    Budget, Evaluation, Layout, LocalTraining, MomentumStep, NoiseSource, Patience, PrivacySettings, PrivateTraining,
    Trained, TrainingError,
};

/// Enough coordinates to estimate noise from.
const DIMENSION: usize = 20_000;

/// A training that always returns the same change.
struct Constant {
    layout: Layout,
    value: f32,
    steps: u32,
    trained: Arc<AtomicU64>,
    last_factor: f64,
}

impl LocalTraining for Constant {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        Ok(vec![0.0; DIMENSION])
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        self.trained.fetch_add(1, Ordering::Relaxed);
        self.last_factor = budget.last_factor;
        Ok(Trained { change: vec![self.value; from.len()], steps: self.steps, loss: Some(0.5) })
    }

    fn evaluate(&mut self, _: &[f32], _: &Patience) -> Result<Evaluation, TrainingError> {
        Ok(Evaluation::default())
    }

    fn state(&self) -> Vec<u8> {
        self.last_factor.to_le_bytes().to_vec()
    }
}

struct Case {
    home: Home,
    trained: Arc<AtomicU64>,
    settings: PrivacySettings,
}

impl Case {
    fn new(clip: f64, noise: f64, epsilon_max: f64) -> Self {
        let settings = PrivacySettings::new(clip, noise, epsilon_max, 1e-5).unwrap();
        Self { home: Home::temporary().unwrap(), trained: Arc::default(), settings }
    }

    fn start_with(&self, value: f32, steps: u32) -> PrivateTraining {
        let trained = Arc::clone(&self.trained);
        let inner = Constant { layout: Layout::flat(DIMENSION), value, steps, trained, last_factor: 1.0 };
        PrivateTraining::new(Box::new(inner), self.settings, &self.home).unwrap().with_noise(NoiseSource::known(1))
    }

    fn start(&self) -> PrivateTraining {
        self.start_with(1.0, 4)
    }

    fn counted(&self) -> u64 {
        let count: serde_json::Value = serde_json::from_slice(&fs::read(self.home.privacy()).unwrap()).unwrap();
        count["noised"].as_array().unwrap().iter().map(|part| part["changes"].as_u64().unwrap()).sum()
    }
}

fn train(training: &mut PrivateTraining) -> Trained {
    let budget = Budget {
        round: 0,
        local_steps: 4,
        rounds_left: 1,
        last_factor: 0.5,
        momentum: MomentumStep::default(),
        patience: Patience::default(),
    };
    training.train(&vec![0.0; DIMENSION], &budget).unwrap()
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f32]) -> f64 {
    let mean = mean(values);
    let square = values.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / values.len() as f64;
    square.sqrt()
}

#[test]
fn the_clip_holds_for_the_change_that_is_added_and_noise_has_its_deviation() {
    let case = Case::new(2.0, 3.0, 100.0);
    for (value, steps) in [(1.0, 4), (1.0, 1), (1e12, 4), (0.0, 4), (-7.0, 8)] {
        let trained = train(&mut case.start_with(value, steps));
        assert_eq!(
            (trained.steps, trained.loss),
            (4, Some(0.5)),
            "the node scales nothing afterwards, and learns no count"
        );
        let expected = f64::from(value.signum()) * if value == 0.0 { 0.0 } else { 2.0 / (DIMENSION as f64).sqrt() };
        let error = 6.0 / (DIMENSION as f64).sqrt();
        assert!((mean(&trained.change) - expected).abs() < 5.0 * error, "{value}");
        assert!((deviation(&trained.change) - 6.0).abs() < 5.0 * error, "{value}: {}", deviation(&trained.change));
        // The generator is known: without its noise, the rest is no longer than the clip.
        let noise = train(&mut case.start_with(0.0, 4)).change;
        let own = trained.change.iter().zip(&noise).map(|(sum, noise)| f64::from(sum - noise));
        let norm = own.map(|value| value * value).sum::<f64>().sqrt();
        assert!(norm <= 2.0 + 1e-3, "{value} with {steps} steps leaves {norm}");
        if value != 0.0 {
            assert!(norm >= 2.0 - 1e-3, "{value} with {steps} steps leaves {norm}");
        }
    }
}

#[test]
fn a_small_change_of_fewer_steps_counts_as_all_of_them_before_it_is_clipped() {
    let case = Case::new(100.0, 0.01, 1e6);
    let value = 0.1;
    let whole = mean(&train(&mut case.start_with(value, 4)).change);
    let half = mean(&train(&mut case.start_with(value, 2)).change);
    assert!((whole - 0.1).abs() < 0.05 && (half - 0.2).abs() < 0.05, "{whole} {half}");
}

#[test]
fn noise_is_another_in_every_change_and_in_every_start() {
    let case = Case::new(1.0, 4.0, 100.0);
    let mut training = case.start();
    assert_ne!(train(&mut training).change, train(&mut training).change);
    let fresh = || {
        let inner = Constant {
            layout: Layout::flat(DIMENSION),
            value: 0.0,
            steps: 4,
            trained: Arc::default(),
            last_factor: 1.0,
        };
        PrivateTraining::new(Box::new(inner), case.settings, &case.home).unwrap()
    };
    assert_ne!(train(&mut fresh()).change, train(&mut fresh()).change, "the noise of the system");
    assert_eq!(train(&mut case.start()).change, train(&mut case.start()).change, "known noise, for simulations");
}

#[test]
fn the_trainer_learns_by_what_its_change_was_multiplied_in_all() {
    let case = Case::new(1.0, 4.0, 100.0);
    let mut training = case.start();
    train(&mut training);
    train(&mut training);
    let factor = f64::from_le_bytes(training.state().try_into().unwrap());
    let expected = 0.5 / (DIMENSION as f64).sqrt();
    assert!((factor - expected).abs() < 1e-9, "{factor} {expected}");
}

#[test]
fn a_change_is_counted_on_disk_before_it_leaves_and_a_restart_goes_on_with_the_count() {
    let case = Case::new(1.0, 4.0, 8.0);
    let mut before = case.start();
    assert!(!case.home.privacy().exists(), "nothing has left");
    for made in 1..=3 {
        train(&mut before);
        assert_eq!(case.counted(), made);
    }
    let spent = before.privacy().unwrap();
    // Like a process that is killed.
    std::mem::forget(before);
    let mut after = case.start();
    assert_eq!(after.privacy().unwrap(), spent);
    train(&mut after);
    assert_eq!((after.privacy().unwrap().changes, case.counted()), (4, 4));
    assert!(after.privacy().unwrap().epsilon > spent.epsilon);
    // The privacy spent is not forgotten either if the next run has other noise.
    let other = PrivacySettings::new(1.0, 40.0, 8.0, 1e-5).unwrap();
    let other = Case { home: case.home, trained: Arc::default(), settings: other };
    let begun = other.start().privacy().unwrap();
    assert!(begun.changes == 4 && (begun.epsilon - after.privacy().unwrap().epsilon).abs() < 1e-9, "{begun:?}");
}

#[test]
fn at_the_maximum_nothing_leaves_any_more_and_nothing_is_trained() {
    let case = Case::new(1.0, 4.0, 2.0);
    let mut training = case.start();
    let allowed = training.privacy().unwrap().changes_left;
    assert!(allowed > 1);
    for _ in 0..allowed {
        assert!(!training.privacy().unwrap().is_spent);
        assert_eq!(train(&mut training).steps, 4);
    }
    let spending = training.privacy().unwrap();
    assert!(spending.is_spent && spending.epsilon <= 2.0, "{spending:?}");
    let expected = Trained { change: vec![0.0; DIMENSION], steps: 0, loss: None };
    assert_eq!(train(&mut training), expected);
    assert_eq!(train(&mut case.start()), expected, "nor after a restart");
    assert_eq!((case.trained.load(Ordering::Relaxed), case.counted()), (allowed, allowed));
}

#[test]
fn what_cannot_be_counted_does_not_leave() {
    let case = Case::new(1.0, 4.0, 8.0);
    let mut training = case.start();
    // The file cannot be replaced while a folder has its name.
    fs::create_dir(case.home.privacy()).unwrap();
    assert_eq!(train(&mut training).steps, 0);
    assert!(train(&mut training).change.iter().all(|value| *value == 0.0));
    assert_eq!(training.privacy().unwrap().changes, 0);
    fs::remove_dir(case.home.privacy()).unwrap();
    assert_eq!(train(&mut training).steps, 4);
}

#[test]
fn a_round_without_steps_costs_nothing() {
    let case = Case::new(1.0, 4.0, 8.0);
    let mut training = case.start_with(1.0, 0);
    assert_eq!(train(&mut training).change, vec![0.0; DIMENSION]);
    assert_eq!(training.privacy().unwrap().changes, 0);
}

#[test]
fn a_count_that_cannot_be_read_is_an_error_and_no_fresh_start() {
    let case = Case::new(1.0, 4.0, 8.0);
    let inner =
        || Constant { layout: Layout::flat(1), value: 0.0, steps: 1, trained: Arc::default(), last_factor: 1.0 };
    let other = r#"{"schema":"mingle.privacy/9","noised":[]}"#;
    let unsound = r#"{"schema":"mingle.privacy/1","noised":[{"noise":-1.0,"changes":2}]}"#;
    for damaged in ["", "{}", other, unsound] {
        fs::write(case.home.privacy(), damaged).unwrap();
        let error = PrivateTraining::new(Box::new(inner()), case.settings, &case.home).err().unwrap();
        assert!(error.to_string().contains("how much privacy is spent"), "{damaged}: {error}");
    }
}
