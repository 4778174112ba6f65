//! Settings that the user of a peer chose, beside those of the task of its swarm.

use std::collections::BTreeSet;

use crate::options::TrainingOptions;
use crate::task_card::{Card, overwrite};

/// Takes the settings that were not chosen here from the card.
pub(super) fn adopt(training: &mut TrainingOptions, given: &BTreeSet<String>, card: &Card) {
    let mine = training.clone();
    overwrite(training, card);
    let keep = |key: &str| given.contains(key);
    if keep("model") {
        training.model = mine.model;
    }
    if keep("task") {
        training.task = mine.task;
    }
    if keep("augment") {
        training.augment = mine.augment;
    }
    training.rounds = if keep("rounds") { mine.rounds } else { training.rounds };
    training.seed = if keep("seed") { mine.seed } else { training.seed };
    training.batch_size = if keep("batch_size") { mine.batch_size } else { training.batch_size };
    // The rate of one optimizer is of no use for another.
    let keeps_rate = keep("learning_rate") || mine.optimizer.is_other(&training.optimizer, keep);
    training.learning_rate = if keeps_rate { mine.learning_rate } else { training.learning_rate };
    training.optimizer = mine.optimizer.or(&training.optimizer, keep);
    if keep("weight") && !mine.weight.admits(card.weight) {
        training.weight = mine.weight;
    }
    if keep("personal") {
        training.personal = mine.personal;
    }
    let own = &mine.privacy;
    let theirs = &mut training.privacy;
    theirs.dp_clip = if keep("dp_clip") { own.dp_clip } else { theirs.dp_clip };
    theirs.dp_noise = if keep("dp_noise") { own.dp_noise } else { theirs.dp_noise };
    theirs.dp_epsilon_max = if keep("dp_epsilon_max") { own.dp_epsilon_max } else { theirs.dp_epsilon_max };
    theirs.dp_delta = if keep("dp_delta") { own.dp_delta } else { theirs.dp_delta };
    theirs.dp_colluders = if keep("dp_colluders") { own.dp_colluders } else { theirs.dp_colluders };
}

/// The first chosen setting that contradicts the card; those of the recipe only count where `is_strict`.
pub(super) fn conflict(
    training: &TrainingOptions,
    given: &BTreeSet<String>,
    card: &Card,
    is_strict: bool,
) -> Option<String> {
    let mut theirs = training.clone();
    overwrite(&mut theirs, card);
    let same_model = training.model.parse().is_ok_and(|model: mingle_models::ModelKind| model == card.model);
    let same_augment = training.augment.parse().is_ok_and(|it: mingle_models::Augmentation| it == card.recipe.augment);
    let model = if same_model { theirs.model.clone() } else { training.model.clone() };
    let augment = if same_augment { theirs.augment.clone() } else { training.augment.clone() };
    let weight = if training.weight.admits(card.weight) { theirs.weight } else { training.weight };
    let agreed = [
        ("task", training.task.to_string(), theirs.task.to_string()),
        ("model", model, theirs.model.clone()),
        ("rounds", training.rounds.to_string(), theirs.rounds.to_string()),
        ("seed", training.seed.to_string(), theirs.seed.to_string()),
        ("weight", weight.to_string(), theirs.weight.to_string()),
        ("personal", training.personal.join(","), theirs.personal.join(",")),
    ];
    let recipe = [
        ("batch_size", training.batch_size.to_string(), theirs.batch_size.to_string()),
        ("learning_rate", training.learning_rate.to_string(), theirs.learning_rate.to_string()),
        ("augment", augment, theirs.augment.clone()),
    ];
    let written = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
    let pairs = training.privacy.entries().into_iter().zip(theirs.privacy.entries());
    let privacy = pairs.map(|((key, mine), (_, theirs))| (key, written(mine), written(theirs)));
    let pairs = training.optimizer.entries().into_iter().zip(theirs.optimizer.entries());
    let recipe = recipe.into_iter().chain(pairs.map(|((key, mine), (_, theirs))| (key, mine, theirs)));
    let all = agreed.into_iter().chain(privacy).chain(recipe.filter(|_| is_strict));
    let mut differing = all.filter(|(key, mine, theirs)| given.contains(*key) && mine != theirs);
    differing.next().map(|(key, mine, theirs)| {
        let option = key.replace('_', "-");
        format!("--{option} {mine} contradicts the task of the swarm, which has {theirs}")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::options::{GradientOptions, PrivacyOptions, WeightChoice};
    use crate::task_card::Recipe;
    use mingle_models::{DataCard, OptimizerKind, SiteWeight};
    use mingle_peer::training::PrivacySettings;

    fn card() -> Card {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let data = DataCard::of_table(names(["a", "b"]), names(["x", "y"]), &[0.0; 2], &[1.0; 2]).unwrap();
        Card { rounds: 8, model: "softmax".parse().unwrap(), ..Card::new(&TrainingOptions::default(), data).unwrap() }
    }

    #[test]
    fn what_nobody_chose_is_taken_over_and_what_somebody_chose_is_refused_by_name() {
        let card = card();
        let mut training = TrainingOptions { rounds: 9, batch_size: 64, ..TrainingOptions::default() };
        let given = |keys: &[&str]| -> BTreeSet<String> { keys.iter().map(|key| (*key).to_owned()).collect() };
        assert_eq!(conflict(&training, &given(&["data"]), &card, true), None);
        let says = conflict(&training, &given(&["rounds"]), &card, false).unwrap();
        assert_eq!(says, "--rounds 9 contradicts the task of the swarm, which has 8");
        assert_eq!(conflict(&training, &given(&["batch_size"]), &card, false), None, "a recipe is a peer's own");
        let says = conflict(&training, &given(&["batch_size"]), &card, true).unwrap();
        assert_eq!(says, "--batch-size 64 contradicts the task of the swarm, which has 32");
        let clipped = GradientOptions { clip_gradients: Some(1.0), warmup: 3, ..training.optimizer };
        training.optimizer = GradientOptions { optimizer: OptimizerKind::AdamW, ..clipped };
        assert_eq!(conflict(&training, &given(&["optimizer", "warmup"]), &card, false), None);
        let says = conflict(&training, &given(&["optimizer", "warmup"]), &card, true).unwrap();
        assert_eq!(says, "--optimizer adamw contradicts the task of the swarm, which has sgd");
        let says = conflict(&training, &given(&["clip_gradients"]), &card, true).unwrap();
        assert_eq!(says, "--clip-gradients 1 contradicts the task of the swarm, which has none");
        training.weight = WeightChoice::Samples;
        let says = conflict(&training, &given(&["weight"]), &card, false).unwrap();
        assert_eq!(says, "--weight samples contradicts the task of the swarm, which has equal");
        let weighted = Card { weight: SiteWeight::by_samples(70).unwrap(), ..card.clone() };
        assert_eq!(conflict(&training, &given(&["weight"]), &weighted, true), None);
        let mut joiner = training.clone();
        adopt(&mut joiner, &given(&["weight"]), &weighted);
        assert_eq!(joiner.weight.to_string(), "samples:70");
        training.weight = "samples:71".parse().unwrap();
        let says = conflict(&training, &given(&["weight"]), &weighted, false).unwrap();
        assert_eq!(says, "--weight samples:71 contradicts the task of the swarm, which has samples:70");
        training.privacy = PrivacyOptions {
            dp_clip: Some(1.0),
            dp_noise: Some(4.0),
            dp_epsilon_max: Some(8.0),
            ..PrivacyOptions::default()
        };
        let says = conflict(&training, &given(&["dp_clip", "dp_noise"]), &card, false).unwrap();
        assert_eq!(says, "--dp-clip 1 contradicts the task of the swarm, which has none");
        let private = Card { privacy: PrivacySettings::new(1.0, 5.0, 8.0, 1e-6).ok(), ..card.clone() };
        let says = conflict(&training, &given(&["dp_clip", "dp_noise"]), &private, false).unwrap();
        assert_eq!(says, "--dp-noise 4 contradicts the task of the swarm, which has 5");
        let mut joiner = training.clone();
        adopt(&mut joiner, &given(&["dp_clip"]), &private);
        assert_eq!(joiner.privacy.settings().unwrap(), private.privacy);
        adopt(&mut training, &given(&["rounds"]), &card);
        assert_eq!(training.privacy, PrivacyOptions::default());
        assert_eq!((training.rounds, training.batch_size, training.model.as_str()), (9, 32, "softmax"));
    }

    #[test]
    fn the_recipe_of_one_optimizer_is_not_that_of_another() {
        let theirs = Card { recipe: Recipe { momentum: 0.9, warmup: 4, ..card().recipe }, ..card() };
        let adamw = GradientOptions { optimizer: OptimizerKind::AdamW, ..GradientOptions::default() };
        let mine = TrainingOptions { optimizer: adamw, learning_rate: 0.001, ..TrainingOptions::default() };
        let of = |keys: &[&str]| {
            let mut training = mine.clone();
            adopt(&mut training, &keys.iter().map(|key| (*key).to_owned()).collect(), &theirs);
            (training.optimizer, training.learning_rate)
        };
        assert_eq!(of(&["optimizer"]), (GradientOptions { warmup: 4, ..adamw }, 0.001));
        assert_eq!(of(&[]), (theirs.recipe.optimizer(), 0.1));
    }
}
