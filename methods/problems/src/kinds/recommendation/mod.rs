//! Recommenders as a task of learning in rounds: the problem file, and one peer's part in it.

mod file;
mod learner;

use std::path::PathBuf;
use std::sync::Arc;

use mingle_models::Device;
use mingle_recommend::{
    DealOptions, Interactions, METRICS, RecommendError, SpectrumCache, co_cluster, interactions_of, read_interactions,
};
use mingle_solving::{LearningError, RoundLearning, RoundRules, RoundTask};

use crate::ProblemFileError;
use crate::dealt::{Dealt, own_data};
use crate::file::{RoundFile, open_device, shared_hash};
pub(crate) use file::RecommendationFile;
use learner::RecommendationLearner;

/// The name of the file with a client's learned recommender.
pub const RECOMMENDER: &str = "recommender.bin";

impl RoundFile for RecommendationFile {
    const KIND: &str = "recommendation";
    const USUAL_METHODS: &[(&str, &str)] = &[
        ("each alone", "method = \"alone\""),
        ("FedAvg", "method = \"fedavg\""),
        ("FedAvg, BPR", "method = \"fedavg\"\nloss = \"bpr\""),
        ("LPSFed, BPR", "method = \"lpsfed\"\nloss = \"bpr\""),
        ("LPSFed", "method = \"lpsfed\""),
    ];
    #[cfg(test)]
    const EXAMPLE: &str = "kind='recommendation'\ndata='{node}.csv'\nform='pairs'\nmethod='uniform'\nshare=0.3\nrounds=6\npatience=2\n\
                           epochs=5\nloss='bpr'\nfilter='none'\nkernel='connected'\nfrequencies=64\nlearning_rate=1e-3\nseed=7\n";

    fn task(self, folder: PathBuf, spectra: Option<PathBuf>) -> Result<Arc<dyn RoundTask>, ProblemFileError> {
        Ok(Arc::new(RecommendationProblem::new(self, folder, spectra)?))
    }
}

/// Recommenders: the task of all peers, and the source of this one's interactions.
#[derive(Debug)]
struct RecommendationProblem {
    file: RecommendationFile,
    rules: RoundRules,
    hash: [u8; 32],
    folder: PathBuf,
    cache: Option<SpectrumCache>,
    device: Device,
    dealt: Dealt<Interactions>,
}

impl RecommendationProblem {
    /// The task of a file in this folder. Spectra are cached in `spectra`, unless the file names a folder.
    ///
    /// # Errors
    /// The file has an invalid value.
    fn new(file: RecommendationFile, folder: PathBuf, spectra: Option<PathBuf>) -> Result<Self, ProblemFileError> {
        file.check()?;
        let names = METRICS.iter().map(|name| (*name).to_owned()).collect();
        let rules = RoundRules::new(file.rounds, names)?.judged_by(METRICS[0], file.patience)?;
        let cache = file.cache.as_ref().map(|cache| folder.join(cache)).or(spectra).map(SpectrumCache::at);
        let device = open_device(&file.device)?;
        let hash = shared_hash(&file.shared())?;
        Ok(Self { file, rules, hash, folder, cache, device, dealt: Dealt::default() })
    }

    /// The interactions of one client: its own file, or its part of the data that are dealt out.
    fn interactions(&self, node: usize, names: &[String]) -> Result<Interactions, LearningError> {
        match own_data(&self.file.data, &names[node])? {
            Some(own) => read_interactions(&self.folder.join(own), self.file.form).map_err(LearningError::of),
            None => self.dealt.part(node, names.len(), || self.deal(names.len()).map_err(LearningError::of)),
        }
    }

    /// Deals out one file, or planted interactions, to so many clients.
    fn deal(&self, clients: usize) -> Result<Vec<Interactions>, RecommendError> {
        let all = interactions_of(&self.file.data, &self.folder, self.file.form)?;
        let options = DealOptions { balanced: self.file.balanced, seed: self.file.seed };
        let clusters = match &self.cache {
            Some(cache) => cache.co_cluster(&all, clients, options)?,
            None => co_cluster(&all, clients, options)?,
        };
        Ok(clusters.parts)
    }
}

impl RoundTask for RecommendationProblem {
    fn hash(&self) -> [u8; 32] {
        self.hash
    }

    fn shared(&self) -> serde_json::Value {
        serde_json::to_value(self.file.shared()).unwrap_or_default()
    }

    fn describe(&self) -> String {
        self.file.describe()
    }

    fn title(&self) -> String {
        "Recommenders".to_owned()
    }

    fn rules(&self) -> &RoundRules {
        &self.rules
    }

    fn open(&self, node: usize, names: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        let interactions = self.interactions(node, names)?;
        let learner = RecommendationLearner::new(&self.file, interactions, node, &self.device, self.cache.as_ref());
        Ok(Box::new(learner.map_err(LearningError::of)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;
    use std::fs;
    use std::sync::{Arc, Mutex};

    use mingle_lab::solving::{Conditions, learn_here};
    use mingle_planner::{DesignOptions, Method, Topology};
    use mingle_recommend::{Personalization, Planted, Recommender, RecommenderClient, federate, similarities};
    use mingle_solving::{Aggregation, Problem, StatisticsTable};

    use super::*;

    /// The means that nodes took, by node and round.
    type Taken = Arc<Mutex<BTreeMap<(usize, u64), Vec<f32>>>>;

    /// Recommenders that record the means they take.
    #[derive(Debug)]
    struct Observed {
        task: RecommendationProblem,
        taken: Taken,
    }

    impl RoundTask for Observed {
        fn hash(&self) -> [u8; 32] {
            self.task.hash()
        }

        fn describe(&self) -> String {
            self.task.describe()
        }

        fn title(&self) -> String {
            self.task.title()
        }

        fn rules(&self) -> &RoundRules {
            self.task.rules()
        }

        fn open(&self, node: usize, names: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
            let learning = self.task.open(node, names)?;
            Ok(Box::new(ObservedLearning { learning, node, taken: Arc::clone(&self.taken) }))
        }
    }

    struct ObservedLearning {
        learning: Box<dyn RoundLearning>,
        node: usize,
        taken: Taken,
    }

    impl RoundLearning for ObservedLearning {
        fn identity(&self) -> [u8; 32] {
            self.learning.identity()
        }

        fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
            self.learning.statistics(tables)
        }

        fn train(&mut self, round: u64) -> Result<Vec<f32>, LearningError> {
            self.learning.train(round)
        }

        fn aggregation(&self, round: u64) -> Aggregation {
            self.learning.aggregation(round)
        }

        fn take(&mut self, round: u64, aggregate: &[f32]) -> Result<(), LearningError> {
            self.taken.lock().unwrap().insert((self.node, round), aggregate.to_vec());
            self.learning.take(round, aggregate)
        }

        fn evaluate(&mut self, rounds: u64) -> Result<Vec<Option<f64>>, LearningError> {
            self.learning.evaluate(rounds)
        }

        fn state(&self) -> Vec<u8> {
            self.learning.state()
        }

        fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
            self.learning.restore(state)
        }

        fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
            self.learning.files()
        }
    }

    #[test]
    fn without_a_server_clients_learn_what_they_would_with_one() {
        let folder = tempfile::tempdir().unwrap();
        let text = "kind = \"recommendation\"\ndata = \"{node}.csv\"\nrounds = 4\nepochs = 2\nfrozen_rounds = 1\n\
                    frequencies = 12\nbatch_size = 200\nlearning_rate = 0.003\nseed = 5";
        let file: RecommendationFile = toml::from_str(text).unwrap();
        let topology = Topology::generate("rg:n=4,r=0.9,seed=3").unwrap();
        let plan = mingle_planner::design(&topology, Method::NguyenHe, &DesignOptions::default()).unwrap();
        let names: Arc<Vec<String>> = Arc::new(plan.nodes().map(|(name, _)| name.to_owned()).collect());
        for (at, name) in names.iter().enumerate() {
            let planted =
                Planted { communities: 1, users: 30 + 5 * at, items: 25, seed: at as u64, ..Planted::default() };
            let all = planted.draw();
            let lines: String = (0..all.users().len())
                .flat_map(|user| all.of_user(user).iter().map(move |item| (user, *item as usize)))
                .map(|(user, item)| format!("{},{}\n", all.users()[user], all.items()[item]))
                .collect();
            fs::write(folder.path().join(format!("{name}.csv")), format!("user,item\n{lines}")).unwrap();
        }
        let task = RecommendationProblem::new(file.clone(), folder.path().to_owned(), None).unwrap();
        let mut clients: Vec<RecommenderClient> = (0..4)
            .map(|node| {
                RecommendationLearner::new(&file, task.interactions(node, &names).unwrap(), node, &task.device, None)
                    .unwrap()
                    .into_client()
            })
            .collect();
        let options = file.client();
        let personalization = Personalization::Similarity { floor: 0.0 };
        let shares =
            similarities(&clients, personalization, options.kernel, options.frequencies, options.seed).unwrap();
        let most_similar = shares.iter().position(|share| *share == 1.0).unwrap();
        let (mut expected, mut means) = (Vec::new(), Vec::new());
        for round in 0..4 {
            federate(&mut clients, &shares, 2, round >= 1).unwrap();
            // The most similar client takes the mean itself.
            means.push(clients[most_similar].shared().unwrap());
            expected.push(clients.iter().map(|client| client.evaluate().unwrap().values()).collect::<Vec<_>>());
        }
        let taken = Taken::default();
        let observed = Observed { task, taken: Arc::clone(&taken) };
        let problem = Problem::of_rounds(Arc::new(observed), Arc::clone(&names));
        let schedule = Arc::new(mingle_solving::schedule(&plan).unwrap());
        let communication = Arc::new(problem.communication(&plan, schedule).unwrap());
        let found =
            learn_here(&problem, &communication, Conditions { loss: 0.2, seed: 1, ..Conditions::default() }, |_| {})
                .unwrap();
        let taken = taken.lock().unwrap();
        for (node, round) in (0..4).flat_map(|node| (1..4).map(move |round| (node, round))) {
            let (taken, mean) = (&taken[&(node, round)], &means[round as usize]);
            let weights = taken.len() - 1;
            let largest = mean.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            for (taken, mean) in taken.iter().zip(mean).take(weights) {
                assert!((taken - mean).abs() < 1e-6 * largest, "node {node}, round {round}: {taken} and {mean}");
            }
        }
        for (node, learned) in found.learned.iter().enumerate() {
            for (record, expected) in learned.history.iter().zip(&expected) {
                for (own, expected) in record.own.iter().zip(expected[node]) {
                    assert!((own.unwrap() - expected.unwrap()).abs() < 1e-6, "node {node}, round {}", record.round);
                }
            }
            if learned.best_round == 4 {
                let own = Recommender::from_bytes(&learned.files[0].1).unwrap();
                let central = clients[node].recommender().unwrap();
                let user = &own.users()[0];
                let pairs = own.recommend(user, 9).unwrap().into_iter().zip(central.recommend(user, 9).unwrap());
                assert!(pairs.into_iter().all(|(a, b)| a.item == b.item && (a.score - b.score).abs() < 1e-6));
            }
        }
    }
}
