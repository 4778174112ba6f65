//! Mutated problem files of learning in rounds.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use mingle_mutations::for_each_input;

const RECOMMENDATION: &str = "kind='recommendation'\ndata='{node}.csv'\nform='pairs'\nmethod='uniform'\nshare=0.3\nrounds=6\npatience=2\n\
                              epochs=5\nloss='bpr'\nfilter='none'\nkernel='connected'\nfrequencies=64\nlearning_rate=1e-3\nseed=7\n";
const NODES: &str = "kind='node-classification'\ndata='two-characters'\nsharing='robust'\nmetric='auc'\nrounds=60\n[model]\norders=4\n\
                     tau=0.5\nhidden=32\ndropout=0.1\n[collaboration]\nmost_weights=10\nalpha=0.5\n";

#[test]
fn mutated_files_of_learning_in_rounds_are_refused_or_posed() {
    let folder = std::env::temp_dir();
    let path = folder.join("problem.toml");
    let task = |text: &str| crate::task(text, &path, None);
    for seed in [RECOMMENDATION, NODES] {
        assert!(matches!(task(seed), Ok(Some(_))), "{seed}: {:?}", task(seed).err());
    }
    for_each_input("rounds_file", &[RECOMMENDATION, NODES].map(|seed| seed.as_bytes().to_vec()), |input| {
        if let Ok(Some(task)) = task(&String::from_utf8_lossy(input)) {
            assert!(task.rules().rounds() > 0 && !task.describe().is_empty() && !task.rules().metrics().is_empty());
        }
    });
    assert!(Path::new(&path).is_absolute());
}
