//! A kind for tests: every node has a number, and all learn the mean.

use std::path::PathBuf;
use std::sync::Arc;

use mingle_solving::{Aggregation, LearningError, RoundLearning, RoundRules, RoundTask, StatisticsTable};
use serde::{Deserialize, Serialize};

use crate::ProblemFileError;
use crate::file::{RoundFile, shared_hash};

/// A problem file with `kind = "toy"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToyFile {
    kind: String,
    /// The numbers of the nodes, in the order of the plan.
    numbers: Vec<f32>,
    rounds: u64,
    /// `true` if nothing is shared.
    #[serde(default)]
    alone: bool,
}

/// The task of all nodes.
#[derive(Debug)]
struct ToyTask {
    file: ToyFile,
    rules: RoundRules,
    hash: [u8; 32],
}

/// One node's number, and what it takes for the mean.
struct ToyLearner {
    number: f32,
    mean: f32,
    alone: bool,
}

impl RoundFile for ToyFile {
    const KIND: &str = "toy";
    const USUAL_METHODS: &[(&str, &str)] = &[("alone", "alone = true"), ("together", "alone = false")];
    const EXAMPLE: &str = "kind='toy'\nnumbers=[1.0, 2.0, 6.0]\nrounds=3\nalone=false\n";

    fn task(self, _: PathBuf, _: Option<PathBuf>) -> Result<Arc<dyn RoundTask>, ProblemFileError> {
        let rules = RoundRules::new(self.rounds, vec!["distance".to_owned()])?;
        Ok(Arc::new(ToyTask { hash: shared_hash(&self)?, file: self, rules }))
    }
}

impl RoundTask for ToyTask {
    fn hash(&self) -> [u8; 32] {
        self.hash
    }

    fn shared(&self) -> serde_json::Value {
        serde_json::to_value(&self.file).unwrap_or_default()
    }

    fn describe(&self) -> String {
        format!("the mean of {} numbers", self.file.numbers.len())
    }

    fn title(&self) -> String {
        "Mean".to_owned()
    }

    fn rules(&self) -> &RoundRules {
        &self.rules
    }

    fn open(&self, node: usize, _: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        let number = *self.file.numbers.get(node).ok_or_else(|| LearningError(format!("node {node} has no number")))?;
        Ok(Box::new(ToyLearner { number, mean: number, alone: self.file.alone }))
    }
}

impl RoundLearning for ToyLearner {
    fn identity(&self) -> [u8; 32] {
        *blake3::hash(&self.number.to_le_bytes()).as_bytes()
    }

    fn statistics(&mut self, _: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        Ok(None)
    }

    fn train(&mut self, _: u64) -> Result<Vec<f32>, LearningError> {
        Ok(vec![self.number])
    }

    fn aggregation(&self, _: u64) -> Aggregation {
        if self.alone { Aggregation::None } else { Aggregation::Mean }
    }

    fn take(&mut self, _: u64, aggregate: &[f32]) -> Result<(), LearningError> {
        self.mean = aggregate[0];
        Ok(())
    }

    fn evaluate(&mut self, _: u64) -> Result<Vec<Option<f64>>, LearningError> {
        Ok(vec![Some(f64::from(self.mean - self.number).abs())])
    }

    fn state(&self) -> Vec<u8> {
        self.mean.to_le_bytes().to_vec()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        let bytes = state.try_into().map_err(|_| LearningError("this is no number".to_owned()))?;
        self.mean = f32::from_le_bytes(bytes);
        Ok(())
    }

    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        Ok(vec![("mean.txt".to_owned(), format!("{}\n", self.mean).into_bytes())])
    }
}

mod tests {
    #![allow(clippy::unwrap_used)]
    use mingle_lab::solving::{Conditions, learn_here};
    use mingle_planner::{DesignOptions, Method, Topology};
    use mingle_solving::{Learned, Problem};

    use super::*;

    /// The results of three nodes for a problem file with these lines.
    fn learned(lines: &str) -> (Vec<String>, Vec<Learned>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("problem.toml");
        std::fs::write(&path, lines).unwrap();
        let task = crate::read(&path, None).unwrap().unwrap();
        let topology = Topology::generate("complete:n=3").unwrap();
        let plan = mingle_planner::design(&topology, Method::NguyenHe, &DesignOptions::default()).unwrap();
        let names: Arc<Vec<String>> = Arc::new(plan.nodes().map(|(name, _)| name.to_owned()).collect());
        let problem = Problem::of_rounds(task, Arc::clone(&names));
        let schedule = Arc::new(mingle_solving::schedule(&plan).unwrap());
        let communication = Arc::new(problem.communication(&plan, schedule).unwrap());
        let found =
            learn_here(&problem, &communication, Conditions { loss: 0.2, seed: 1, ..Conditions::default() }, |_| {})
                .unwrap();
        (names.to_vec(), found.learned)
    }

    #[test]
    fn nodes_of_a_kind_that_only_the_registry_names_learn_by_its_problem_file() {
        let (names, all) = learned(ToyFile::EXAMPLE);
        for (learned, distance) in all.iter().zip([2.0, 1.0, 3.0]) {
            assert_eq!(learned.files, [("mean.txt".to_owned(), b"3\n".to_vec())]);
            assert_eq!(learned.best().unwrap().own, [Some(distance)]);
            assert_eq!(learned.best().unwrap().mean, [Some(2.0)]);
        }
        let written: Vec<String> =
            crate::learned_files(&names, &all).unwrap().into_iter().map(|(name, _)| name).collect();
        assert!(written.contains(&"mean.txt".to_owned()), "{written:?}");
        assert!(crate::learned_table(&names, &all).contains("distance"));
    }

    #[test]
    fn its_usual_methods_differ_as_they_say() {
        let methods = crate::usual_methods("toy").iter().map(|(_, lines)| {
            let (_, all) = learned(&format!("kind = \"toy\"\nnumbers = [1.0, 2.0, 6.0]\nrounds = 1\n{lines}"));
            all[0].best().unwrap().mean[0].unwrap()
        });
        assert_eq!(methods.collect::<Vec<f64>>(), [0.0, 2.0]);
    }
}
