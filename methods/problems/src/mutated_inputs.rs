//! Mutated problem files of learning in rounds.
#![allow(clippy::unwrap_used)]

use mingle_mutations::for_each_input;

use crate::kinds::KINDS;

#[test]
fn mutated_files_of_learning_in_rounds_are_refused_or_posed() {
    let path = std::env::temp_dir().join("problem.toml");
    let task = |text: &str| crate::task(text, &path, None);
    let examples: Vec<Vec<u8>> = KINDS.iter().map(|kind| kind.example.as_bytes().to_vec()).collect();
    for kind in KINDS {
        assert!(matches!(task(kind.example), Ok(Some(_))), "{}: {:?}", kind.name, task(kind.example).err());
    }
    for_each_input("rounds_file", &examples, |input| {
        if let Ok(Some(task)) = task(&String::from_utf8_lossy(input)) {
            assert!(task.rules().rounds() > 0 && !task.describe().is_empty() && !task.rules().metrics().is_empty());
        }
    });
    assert!(path.is_absolute());
}
