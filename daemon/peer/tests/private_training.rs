//! Training whose changes are clipped, noised and counted: the changes that leave, the count that is kept, and the end
//! of changes.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_peer::Home;
use mingle_peer::training::{
    Budget, CorrelatedNoise, Evaluation, Layout, LocalTraining, MomentumStep, NoiseOfRound, NoiseSource, Patience,
    PrivacySettings, PrivateTraining, Trained, TrainingError,
};
use mingle_privacy::{NoiseDesign, NoiseGraph, NoisePair, NoiseParts};

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
    train_with(training, None)
}

fn train_with(training: &mut PrivateTraining, noise: Option<NoiseOfRound>) -> Trained {
    let budget = Budget {
        round: 0,
        local_steps: 4,
        rounds_left: 1,
        last_factor: 0.5,
        momentum: MomentumStep::default(),
        noise,
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

/// Noise of this member of a pair, a fifth of its standard deviation its own.
fn shared(adds: bool, round: u64) -> Option<NoiseOfRound> {
    let parts = NoiseParts { own: 1.0, pair: 5.0 };
    let design = NoiseDesign { graph: NoiseGraph::new(2, [(0, 1)]), parts };
    let noise = CorrelatedNoise::new([9; 32], &design, vec![NoisePair { adds, secret: [3; 32] }]);
    Some(NoiseOfRound { round, noise: Arc::new(noise) })
}

/// Two members with noise that they share, each with a home.
fn two_that_share() -> [Case; 2] {
    [(); 2].map(|()| {
        let mut case = Case::new(1.0, 4.0, 30.0);
        case.settings = case.settings.against(Some(1));
        case
    })
}

#[test]
fn noise_that_two_members_share_is_in_each_change_and_not_in_their_sum() {
    let cases = two_that_share();
    let mut sum = vec![0.0; DIMENSION];
    for (case, adds) in cases.iter().zip([true, false]) {
        // Known noise would be the same at both.
        let mut training = case.start_with(0.0, 4).with_noise(NoiseSource::default());
        let change = train_with(&mut training, shared(adds, 0)).change;
        assert!((deviation(&change) - 26.0_f64.sqrt()).abs() < 0.2, "{}", deviation(&change));
        sum.iter_mut().zip(change).for_each(|(sum, value)| *sum += value);
        let count = fs::read_to_string(case.home.privacy()).unwrap();
        assert!(count.contains(r#"{"noise":4.0,"own":1.0,"colluders":1,"changes":1}"#), "{count}");
    }
    assert!((deviation(&sum) - 2.0_f64.sqrt()).abs() < 0.1, "{}", deviation(&sum));
}

/// The attack: two changes under the same noise of a pair differ by what was learnt between them, and their own parts.
#[test]
fn a_round_that_is_trained_again_after_a_restart_has_none_of_the_noise_that_was_used() {
    let [case, _] = two_that_share();
    let first = train_with(&mut case.start().with_noise(NoiseSource::default()), shared(true, 7)).change;
    for round in [7, 3] {
        let mut restarted = case.start().with_noise(NoiseSource::default());
        let again = train_with(&mut restarted, shared(true, round)).change;
        assert!((deviation(&again) - 4.0).abs() < 0.2, "all of it from this member: {}", deviation(&again));
        let difference: Vec<f32> = first.iter().zip(&again).map(|(one, other)| one - other).collect();
        assert!((deviation(&difference) - 42.0_f64.sqrt()).abs() < 0.3, "{}", deviation(&difference));
    }
    let next = train_with(&mut case.start(), shared(true, 8)).change;
    assert!((deviation(&next) - 26.0_f64.sqrt()).abs() < 0.2, "a new round has noise of its own");
}

#[test]
fn changes_that_some_colluders_see_through_count_as_that_against_more_of_them() {
    let [case, _] = two_that_share();
    train_with(&mut case.start(), shared(true, 0));
    let epsilon = |colluders| {
        let inner =
            Constant { layout: Layout::flat(1), value: 0.0, steps: 4, trained: Arc::default(), last_factor: 1.0 };
        let settings = case.settings.against(colluders);
        PrivateTraining::new(Box::new(inner), settings, &case.home).unwrap().privacy().unwrap().epsilon
    };
    assert!(epsilon(Some(0)) == epsilon(Some(1)) && epsilon(Some(1)) < 2.0, "{}", epsilon(Some(1)));
    assert!(epsilon(Some(2)) > 4.0 && epsilon(None) == epsilon(Some(2)), "the own part alone: {}", epsilon(None));
}
