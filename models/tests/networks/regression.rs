//! Regression: the step of a trainer, and the fit of a line.

use std::fmt::Write;

use mingle_models::{
    Augmentation, CardDifference, DataSource, DeviceName, Evaluator, ObjectiveKind, OptimizerOptions, Quality,
    SiteWeight, Task, Trainer, TrainerOptions,
};

/// `y = 3 a - 2 b + 100`, a table of 60 rows.
fn table() -> String {
    let mut table = "a,b,y\n".to_owned();
    for row in 0..60 {
        let (a, b) = (f64::from(row * 7 % 13), f64::from(row * 5 % 11));
        writeln!(table, "{a},{b},{}", 3.0 * a - 2.0 * b + 100.0).unwrap();
    }
    table
}

fn source(text: &str) -> (tempfile::TempDir, DataSource) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    std::fs::write(&path, text).unwrap();
    let source = format!("csv:{}", path.display()).parse().unwrap();
    (folder, source)
}

#[test]
fn linear_regression_finds_the_line_and_is_judged_in_the_units_of_the_table() {
    let (_folder, source) = source(&table());
    let data = source.load_for(ObjectiveKind::Regression, 3).unwrap();
    let target = data.card.target().unwrap().clone();
    assert_eq!(target.name(), "y");
    let task = Task::new("softmax".parse().unwrap(), data.train.shape(), data.train.objective()).unwrap();
    assert_eq!(task.parameter_count(), 3);
    let device = DeviceName::Cpu.open().unwrap();
    let options = TrainerOptions {
        task,
        device: device.clone(),
        optimizer: OptimizerOptions::sgd(0.2),
        batch_size: 48,
        augmentation: Augmentation::NONE,
        data_seed: 1,
        weight: SiteWeight::Equal,
    };
    let mut parameters = task.initial_parameters(1);
    let mut trainer = Trainer::new(options, data.train).unwrap();
    let outcome = trainer.train(&parameters, 300).unwrap();
    for (parameter, change) in parameters.iter_mut().zip(outcome.delta) {
        *parameter += change;
    }
    let evaluator = Evaluator::new(task, &device);
    let evaluation = evaluator.evaluate(&parameters, &data.test).unwrap();
    let Quality::Regression { mse, rmse, r2 } = evaluation.quality else { panic!("{evaluation:?}") };
    assert!(r2 > 0.999_99 && rmse < 0.02, "{evaluation:?}");
    assert!((mse / (evaluation.loss * target.deviation().powi(2)) - 1.0).abs() < 1e-9, "{evaluation:?}");
    // Predicting the mean of the training data for everything scores 0 at most.
    let nothing = evaluator.evaluate(&[0.0; 3], &data.test).unwrap();
    assert!(nothing.score() <= 0.0 && nothing.score() > -1.0, "{nothing:?}");
}

#[test]
fn one_step_is_that_of_the_mean_squared_error() {
    let (_folder, source) = source(&table());
    let data = source.load_for(ObjectiveKind::Regression, 3).unwrap();
    let task = Task::new("softmax".parse().unwrap(), data.train.shape(), data.train.objective()).unwrap();
    let device = DeviceName::Cpu.open().unwrap();
    let options = TrainerOptions {
        task,
        device: device.clone(),
        optimizer: OptimizerOptions::sgd(1.0),
        batch_size: data.train.len(),
        augmentation: Augmentation::NONE,
        data_seed: 1,
        weight: SiteWeight::Equal,
    };
    let evaluator = Evaluator::new(task, &device);
    let loss = |parameters: &[f32]| evaluator.evaluate(parameters, &data.train).unwrap().loss;
    let from = [0.3, -0.2, 0.1];
    let outcome = Trainer::new(options, data.train.clone()).unwrap().train(&from, 1).unwrap();
    assert!((f64::from(outcome.mean_loss) - loss(&from)).abs() < 1e-5);
    for (index, change) in outcome.delta.iter().enumerate() {
        let at = |offset: f32| {
            let mut moved = from;
            moved[index] += offset;
            loss(&moved)
        };
        let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
        assert!((slope + f64::from(*change)).abs() < 1e-3, "parameter {index}: {slope} and {change}");
    }
}

#[test]
fn a_card_of_classes_and_one_of_a_quantity_are_told_apart() {
    let (_folder, source) = source(&table().replace(".5", ""));
    let raw = source.read().unwrap();
    let quantity = raw.card_for(ObjectiveKind::Regression, 0).unwrap();
    let other = raw.card_for(ObjectiveKind::Regression, 1).unwrap();
    assert!(quantity.difference(&other).is_some(), "scaled by other rows");
    let text = serde_json::to_string(&quantity).unwrap();
    assert_eq!(serde_json::from_str::<mingle_models::DataCard>(&text).unwrap(), quantity);
    let digits = "digits".parse::<DataSource>().unwrap().read().unwrap().card(0).unwrap();
    let difference = quantity.difference(&digits).unwrap();
    assert!(matches!(difference, CardDifference::Objective { .. }));
    assert_eq!(difference.to_string(), "what is learnt is one number here and 10 classes there");
    for damage in [r#""deviation":0"#, r#""deviation":-1"#] {
        let start = text.rfind(r#""deviation":"#).unwrap();
        let broken = format!("{}{damage}}}}}", &text[..start]);
        assert!(serde_json::from_str::<mingle_models::DataCard>(&broken).is_err(), "{broken}");
    }
}
