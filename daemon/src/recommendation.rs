//! Recommenders as what a swarm learns in rounds: the file that says so, and one peer's part in it.

mod file;
mod learner;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mingle_models::Device;
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};
use mingle_recommend::{Interactions, METRICS, RecommendError, SpectrumCache, co_cluster, read_interactions};
use mingle_solving::{LearningError, RoundLearning, RoundRules, RoundTask};

pub(crate) use file::RecommendationFile;
use learner::Learner;
pub(crate) use report::{print_learned, write_learned};

/// What a file of recommendations calls itself.
const KIND: &str = "recommendation";
/// Stands for the name of the node in the name of its interactions.
const NODE: &str = "{node}";
/// No such file is longer.
const MOST_BYTES: u64 = 1 << 20;
/// What recommends, in the home of a peer that has learned.
pub(crate) const RECOMMENDER: &str = "recommender.bin";
/// Spectra that a peer has computed, in its home.
pub(crate) const SPECTRA: &str = "spectra";

/// What all peers learn, and where this one's interactions are.
#[derive(Debug)]
pub(crate) struct Recommendation {
    file: RecommendationFile,
    rules: RoundRules,
    hash: [u8; 32],
    folder: PathBuf,
    cache: Option<SpectrumCache>,
    device: Device,
    /// The parts of interactions that are dealt out, once they are computed.
    dealt: Mutex<Option<Arc<Vec<Interactions>>>>,
}

/// The recommendation that a problem file speaks of, if it does. Spectra are kept in `spectra`, unless the file says where.
///
/// # Errors
/// The file cannot be read, or says what cannot be.
pub(crate) fn read(path: &Path, spectra: Option<PathBuf>) -> Result<Option<Recommendation>> {
    let doing = || format!("cannot read the problem {}", path.display());
    let bytes = fs::metadata(path).context(ErrorKind::BadInput, doing())?.len();
    if bytes > MOST_BYTES {
        return Ok(None);
    }
    let text = fs::read_to_string(path).context(ErrorKind::BadInput, doing())?;
    let is_recommendation = toml::from_str::<toml::Table>(&text)
        .is_ok_and(|table| table.get("kind").and_then(toml::Value::as_str) == Some(KIND));
    if !is_recommendation {
        return Ok(None);
    }
    let file: RecommendationFile =
        toml::from_str(&text).context(ErrorKind::BadInput, format!("the problem {} does not hold", path.display()))?;
    let path = std::path::absolute(path).context(ErrorKind::BadInput, doing())?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    Recommendation::new(file, folder, spectra).map(Some)
}

impl Recommendation {
    /// What a file in this folder says.
    ///
    /// # Errors
    /// It says what cannot be.
    pub(crate) fn new(file: RecommendationFile, folder: PathBuf, spectra: Option<PathBuf>) -> Result<Self> {
        let doing = "the recommendation does not hold";
        file.check()?;
        let names = METRICS.iter().map(|name| (*name).to_owned()).collect();
        let rules = RoundRules::new(file.rounds, names)
            .and_then(|rules| rules.judged_by(METRICS[0], file.patience))
            .context(ErrorKind::BadInput, doing)?;
        let shared = serde_json::to_vec(&file.shared()).context(ErrorKind::Unexpected, doing)?;
        let cache = file.cache.as_ref().map(|cache| folder.join(cache)).or(spectra).map(SpectrumCache::at);
        let device = crate::task::open_device(&file.device)?;
        let hash = *blake3::hash(&shared).as_bytes();
        Ok(Self { file, rules, hash, folder, cache, device, dealt: Mutex::new(None) })
    }

    /// The interactions of one client.
    fn interactions(&self, node: usize, names: &[String]) -> std::result::Result<Interactions, RecommendError> {
        if self.file.data.contains(NODE) {
            return read_interactions(&self.folder.join(self.file.data.replace(NODE, &names[node])), self.file.form);
        }
        let mut dealt = self.dealt.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = match &*dealt {
            Some(parts) => Arc::clone(parts),
            None => {
                let all = read_interactions(&self.folder.join(&self.file.data), self.file.form)?;
                let parts = Arc::new(co_cluster(&all, names.len(), self.file.seed)?.parts);
                *dealt = Some(Arc::clone(&parts));
                parts
            }
        };
        Ok(parts[node].clone())
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

    fn open(&self, node: usize, names: &[String]) -> std::result::Result<Box<dyn RoundLearning>, LearningError> {
        let name = &names[node];
        if self.file.data.contains(NODE) && Path::new(name).components().count() != 1 {
            return Err(LearningError(format!("node {name} cannot be in the name of a file: give it another name")));
        }
        let interactions = self.interactions(node, names).map_err(|error| told(&error))?;
        let learner = Learner::new(&self.file, interactions, node, &self.device, self.cache.as_ref());
        Ok(Box::new(learner.map_err(|error| told(&error))?))
    }
}

/// An error and what it is from, in one sentence.
fn told(error: &RecommendError) -> LearningError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    LearningError(text)
}

/// The error of a recommender that is asked for something.
pub(crate) fn explain(error: RecommendError) -> Error {
    let kind = if matches!(error, RecommendError::Bytes { .. }) { ErrorKind::Integrity } else { ErrorKind::BadInput };
    Error::of(kind, error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
        let schedule = Arc::new(mingle_peer::plan::schedule(&plan).unwrap());
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
