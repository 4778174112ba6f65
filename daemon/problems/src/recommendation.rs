//! Recommenders as what a swarm learns in rounds: the file that says so, and one peer's part in it.

mod file;
mod learner;

use std::path::PathBuf;

use mingle_models::Device;
use mingle_recommend::{
    DealOptions, Interactions, METRICS, RecommendError, SpectrumCache, co_cluster, interactions_of, read_interactions,
};
use mingle_solving::{LearningError, RoundLearning, RoundRules, RoundTask};

use crate::ProblemFileError;
use crate::dealt::{Dealt, own_data, told};
use crate::file::{RoundFile, open_device, shared_hash};
pub use file::{Method, RecommendationFile};
use learner::Learner;

/// What recommends: the file that a client leaves when it has learned.
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
}

/// Recommenders: what all peers learn, and where this one's interactions are.
#[derive(Debug)]
pub struct Recommendation {
    file: RecommendationFile,
    rules: RoundRules,
    hash: [u8; 32],
    folder: PathBuf,
    cache: Option<SpectrumCache>,
    device: Device,
    dealt: Dealt<Interactions>,
}

impl Recommendation {
    /// What a file in this folder says. Spectra are kept in `spectra`, unless the file says where.
    ///
    /// # Errors
    /// It says what cannot be.
    pub fn new(file: RecommendationFile, folder: PathBuf, spectra: Option<PathBuf>) -> Result<Self, ProblemFileError> {
        file.check()?;
        let names = METRICS.iter().map(|name| (*name).to_owned()).collect();
        let rules = RoundRules::new(file.rounds, names)?.judged_by(METRICS[0], file.patience)?;
        let cache = file.cache.as_ref().map(|cache| folder.join(cache)).or(spectra).map(SpectrumCache::at);
        let device = open_device(&file.device)?;
        let hash = shared_hash(&file.shared())?;
        Ok(Self { file, rules, hash, folder, cache, device, dealt: Dealt::default() })
    }

    /// The interactions of one client.
    fn interactions(&self, node: usize, names: &[String]) -> Result<Interactions, LearningError> {
        match own_data(&self.file.data, &names[node])? {
            Some(own) => read_interactions(&self.folder.join(own), self.file.form).map_err(|error| told(&error)),
            None => self.dealt.part(node, || self.deal(names.len()).map_err(|error| told(&error))),
        }
    }

    /// One file, or planted interactions, dealt out to so many clients.
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

impl RoundTask for Recommendation {
    fn hash(&self) -> [u8; 32] {
        self.hash
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
        let learner = Learner::new(&self.file, interactions, node, &self.device, self.cache.as_ref());
        Ok(Box::new(learner.map_err(|error| told(&error))?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::sync::Arc;

    use mingle_lab::solving::{Conditions, learn_here};
    use mingle_planner::{DesignOptions, Method, Topology};
    use mingle_recommend::{Client, Personalization, Planted, Recommender, federate, similarities};
    use mingle_solving::Problem;

    use super::*;

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
        let task = Recommendation::new(file.clone(), folder.path().to_owned(), None).unwrap();
        let mut clients: Vec<Client> = (0..4)
            .map(|node| {
                Learner::new(&file, task.interactions(node, &names).unwrap(), node, &task.device, None)
                    .unwrap()
                    .into_client()
            })
            .collect();
        let options = file.client();
        let personalization = Personalization::Similarity { floor: 0.0 };
        let shares =
            similarities(&clients, personalization, options.kernel, options.frequencies, options.seed).unwrap();
        let mut expected = Vec::new();
        for round in 0..4 {
            federate(&mut clients, &shares, 2, round >= 1).unwrap();
            expected.push(clients.iter().map(|client| client.evaluate().unwrap().values()).collect::<Vec<_>>());
        }
        let problem = Problem::of_rounds(Arc::new(task), Arc::clone(&names));
        let schedule = Arc::new(mingle_solving::schedule(&plan).unwrap());
        let communication = Arc::new(problem.communication(&plan, schedule).unwrap());
        let found = learn_here(&problem, &communication, Conditions { loss: 0.2, seed: 1 }, |_| {}).unwrap();
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
