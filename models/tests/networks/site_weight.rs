//! Changes of sites with unequal numbers of samples: weighted by these, their mean is the step on all data in one
//! place.

use mingle_models::{
    Augmentation, DataSource, DeviceName, OptimizerOptions, Samples, SiteWeight, Task, Trainer, TrainerOptions,
};

/// The change of one gradient step on all of `samples`.
fn step(samples: &Samples, weight: SiteWeight) -> Vec<f32> {
    let task = Task::new("softmax".parse().unwrap(), samples.shape(), samples.classes()).unwrap();
    let options = TrainerOptions {
        task,
        device: DeviceName::Cpu.open().unwrap(),
        optimizer: OptimizerOptions::sgd(0.1),
        batch_size: samples.len(),
        augmentation: Augmentation::NONE,
        data_seed: 1,
        weight,
    };
    let mut trainer = Trainer::new(options, samples.clone()).unwrap();
    assert_eq!(trainer.factor(), weight.factor(samples.len() as u64));
    trainer.train(&task.initial_parameters(1), 1).unwrap().delta
}

/// The distance of two vectors over the length of the second.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|value| value * value).sum::<f32>().sqrt();
    square(&mut a.iter().zip(b).map(|(a, b)| a - b)) / square(&mut b.iter().copied())
}

#[test]
fn the_mean_of_weighted_changes_is_the_step_of_all_samples_in_one_place_and_that_of_equal_ones_is_not() {
    let all = "digits".parse::<DataSource>().unwrap().load(0).unwrap().train;
    let mut by_class: Vec<usize> = (0..all.len()).collect();
    by_class.sort_by_key(|&sample| all.labels()[sample]);
    // A thirtieth, a sixth, and the rest, each with its own classes.
    let (cuts, places) = ([0, all.len() / 30, all.len() / 5, all.len()], 3);
    let sites: Vec<Samples> = (0..places).map(|site| all.select(&by_class[cuts[site]..cuts[site + 1]])).collect();
    let mean_change = |weight: SiteWeight| -> Vec<f32> {
        let changes: Vec<Vec<f32>> = sites.iter().map(|site| step(site, weight)).collect();
        let mean = |at: usize| changes.iter().map(|change| change[at]).sum::<f32>() / places as f32;
        (0..changes[0].len()).map(mean).collect()
    };
    let one_place = step(&all, SiteWeight::Equal);
    let weighted = apart(&mean_change(SiteWeight::by_mean_of(all.len() as u64, places as u64)), &one_place);
    let equal = apart(&mean_change(SiteWeight::Equal), &one_place);
    assert!(weighted < 1e-5, "{weighted}");
    assert!(equal > 0.3, "{equal}");
}
