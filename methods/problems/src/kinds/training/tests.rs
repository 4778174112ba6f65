//! Training over sums, by nodes in one process.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use mingle_lab::solving::{Conditions, learn_here};
use mingle_planner::{DesignOptions, Method, Topology};
use mingle_solving::{
    Aggregation, Learned, LearningError, MemoryStore, Problem, Release, RoundLearning, RoundRules, RoundStore,
    RoundTask, StatisticsTable, SumPolicy,
};

/// A problem file with these lines.
fn task(lines: &str) -> Arc<dyn RoundTask> {
    let text = format!("kind = \"training\"\ndata = \"digits\"\n{lines}");
    crate::task(&text, Path::new("/tmp/problem.toml"), None).unwrap().unwrap()
}

/// The results of so many nodes on a complete graph.
fn learned(nodes: usize, lines: &str, sums: SumPolicy) -> Result<Vec<Learned>, String> {
    learned_of(task(lines), nodes, sums)
}

fn learned_of(task: Arc<dyn RoundTask>, nodes: usize, sums: SumPolicy) -> Result<Vec<Learned>, String> {
    let topology = Topology::generate(&format!("complete:n={nodes}")).unwrap();
    let plan = mingle_planner::design(&topology, Method::NguyenHe, &DesignOptions::default()).unwrap();
    let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
    let problem = Problem::of_rounds(task, Arc::new(names));
    let communication = problem.communication(&plan, Arc::new(mingle_solving::schedule(&plan).unwrap())).unwrap();
    let conditions = Conditions { sums, ..Conditions::default() };
    let found = learn_here(&problem, &Arc::new(communication), conditions, |_| {});
    found.map(|found| found.learned).map_err(|error| format!("{error:#?} {error}"))
}

fn last(learned: &Learned, metric: &str) -> f64 {
    learned.metric(&learned.history.last().unwrap().mean, metric).unwrap()
}

const SHORT: &str = "model = \"softmax\"\nrounds = 5\nlocal_steps = 5\n";

#[test]
fn all_nodes_have_one_model_that_is_better_than_each_alone_on_unlike_parts() {
    let lines = format!("{SHORT}split = \"label-sorted\"\n");
    let together = learned(4, &format!("{lines}rounds = 30\n").replacen("rounds = 5\n", "", 1), SumPolicy::default());
    let together = together.unwrap();
    assert!(together.iter().all(|one| one.files == together[0].files), "one model");
    let alone = learned(4, &format!("{lines}method = \"alone\"\n"), SumPolicy::default()).unwrap();
    assert!(alone[0].files != alone[1].files);
    assert!(last(&together[0], "accuracy") > 0.75, "{:?}", together[0].history.last());
    assert!(last(&alone[0], "accuracy") < 0.45, "{:?}", alone[0].history.last());
}

/// The pair of rounds, epsilon and accuracy that [privacy.md](../../../../../../docs/privacy.md) gives, with fewer rounds.
#[test]
fn noise_that_all_share_costs_what_was_asked_for_and_leaves_a_model() {
    let lines = "model = \"mlp:hidden=32\"\nrounds = 20\nlocal_steps = 15\nlearning_rate = 0.2\n\
                 [privacy]\nclip = 1.0\nepsilon_max = 8.1\ncolluders = 2\n";
    let found = learned(32, lines, SumPolicy::default()).unwrap();
    let epsilon = last(&found[0], "epsilon");
    let accuracy = last(&found[0], "accuracy");
    assert!(epsilon <= 8.1 && epsilon > 8.0, "{epsilon}");
    assert!(accuracy > 0.6, "{accuracy}");
    assert!(found.iter().all(|one| one.files == found[0].files), "one model");
}

const OF_SAMPLES: &str = "model = \"softmax\"\nrounds = 12\nlocal_steps = 1\nlearning_rate = 2.0\n\
                          [privacy]\nprotects = \"sample\"\nclip = 1.0\nepsilon_max = 2.0\n";

/// Each of the 1,437 images counts for no more than the clip, so that noise for all members together is little.
#[test]
fn noise_that_hides_samples_leaves_a_model_where_noise_that_hides_members_leaves_none() {
    let found = learned(4, OF_SAMPLES, SumPolicy::default()).unwrap();
    let epsilon = last(&found[0], "epsilon");
    assert!(epsilon <= 2.0 && epsilon > 1.98, "{epsilon}");
    assert!(found.iter().all(|one| one.files == found[0].files), "one model");
    let of_members = learned(4, &OF_SAMPLES.replace("\"sample\"", "\"member\""), SumPolicy::default()).unwrap();
    let accuracies = [&found, &of_members].map(|found| last(&found[0], "accuracy"));
    assert!(accuracies[0] > 0.75 && accuracies[1] < 0.4, "{accuracies:?}");
}

#[test]
fn entries_without_a_meaning_for_a_step_over_all_samples_are_refused() {
    let refused = |lines: &str| {
        let text = format!("kind = \"training\"\ndata = \"digits\"\n{lines}{OF_SAMPLES}");
        crate::task(&text, Path::new("/tmp/problem.toml"), None).unwrap_err().to_string()
    };
    for lines in ["batch_size = 8\n", "optimizer = \"adamw\"\n", "method = \"alone\"\n", "clip_gradients = 1.0\n"] {
        let entry = lines.split(' ').next().unwrap();
        assert!(refused(lines).contains(entry), "{}", refused(lines));
    }
    let steps = format!("kind = \"training\"\ndata = \"digits\"\n{}", OF_SAMPLES.replace("local_steps = 1\n", ""));
    let error = crate::task(&steps, Path::new("/tmp/problem.toml"), None).unwrap_err().to_string();
    assert!(error.contains("write local_steps = 1"), "{error}");
}

#[test]
fn noise_for_a_sum_needs_masks() {
    let private = format!("{SHORT}[privacy]\nclip = 1.0\nepsilon_max = 50.0\n");
    let plain = SumPolicy { plain: true, least_members: None };
    let refused = learned(3, &private, plain).unwrap_err();
    assert!(refused.contains("sums have to be masked"), "{refused}");
    assert!(learned(3, SHORT, plain).is_ok());
    // Against all but one there is no cover.
    let refused = learned(3, &format!("{private}colluders = 2\n"), SumPolicy::default()).unwrap_err();
    assert!(refused.contains("give at most 1"), "{refused}");
}

/// A task whose last node asks for a larger scale of sums than all others.
#[derive(Debug)]
struct WithALouderMember(Arc<dyn RoundTask>);

struct Louder(Box<dyn RoundLearning>);

impl RoundTask for WithALouderMember {
    fn hash(&self) -> [u8; 32] {
        self.0.hash()
    }
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn title(&self) -> String {
        self.0.title()
    }
    fn rules(&self) -> &RoundRules {
        self.0.rules()
    }
    fn needs_masked_sums(&self) -> bool {
        self.0.needs_masked_sums()
    }
    fn open(&self, node: usize, names: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        let part = self.0.open(node, names)?;
        Ok(if node + 1 == names.len() { Box::new(Louder(part)) } else { part })
    }
}

impl RoundLearning for Louder {
    fn identity(&self) -> [u8; 32] {
        self.0.identity()
    }
    fn prepare(&mut self, store: &mut dyn RoundStore) -> Result<(), LearningError> {
        self.0.prepare(store)
    }
    fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        self.0.statistics(tables)
    }
    fn train(&mut self, round: u64) -> Result<Vec<f32>, LearningError> {
        self.0.train(round)
    }
    fn release(
        &mut self,
        release: Release,
        contribution: Vec<f32>,
        store: &mut dyn RoundStore,
    ) -> Result<Vec<f32>, LearningError> {
        let mut numbers = self.0.release(release, contribution, store)?;
        numbers[0] = 1e20;
        Ok(numbers)
    }
    fn aggregation(&self, round: u64) -> Aggregation {
        self.0.aggregation(round)
    }
    fn take(&mut self, round: u64, aggregate: &[f32]) -> Result<(), LearningError> {
        self.0.take(round, aggregate)
    }
    fn evaluate(&mut self, rounds: u64) -> Result<Vec<Option<f64>>, LearningError> {
        self.0.evaluate(rounds)
    }
    fn state(&self) -> Vec<u8> {
        self.0.state()
    }
    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        self.0.restore(state)
    }
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        self.0.files()
    }
}

/// It would have the integers of all others rounded, each by itself, and noise hides nothing in a sum of those.
#[test]
fn a_member_that_asks_for_a_larger_scale_of_sums_is_refused() {
    let task = Arc::new(WithALouderMember(task(PRIVATE)));
    let refused = learned_of(task, 3, SumPolicy::default()).unwrap_err();
    assert!(refused.contains("the scale of a sum is not the one"), "{refused}");
}

const PRIVATE: &str = "model = \"softmax\"\nrounds = 3\nlocal_steps = 2\n[privacy]\nclip = 1.0\nepsilon_max = 9.0\n";

/// One node's part, after its first stage of statistics.
fn opened(store: &mut dyn RoundStore) -> Box<dyn RoundLearning> {
    let names = ["a", "b", "c"].map(str::to_owned);
    let mut part = task(PRIVATE).open(1, &names).unwrap();
    prepare(part.as_mut(), store).unwrap();
    part
}

fn prepare(part: &mut dyn RoundLearning, store: &mut dyn RoundStore) -> Result<(), LearningError> {
    part.prepare(store)?;
    let row = part.statistics(&[])?.unwrap();
    part.statistics(&[vec![row; 3]]).map(drop)
}

fn release(part: &mut dyn RoundLearning, store: &mut MemoryStore, members: u8, round: u64) -> Vec<f32> {
    let trained = part.train(round).unwrap();
    part.release(Release { round, members: [members; 32] }, trained, store).unwrap()
}

/// The number of releases that are counted.
fn counted(store: &MemoryStore) -> u64 {
    mingle_privacy::CountFile::parse(&store.count().unwrap().unwrap()).unwrap().noised.count()
}

#[test]
fn a_peer_that_is_started_again_releases_the_same_numbers_and_counts_them_once() {
    let mut store = MemoryStore::default();
    let mut part = opened(&mut store);
    let sent = release(part.as_mut(), &mut store, 7, 0);
    assert_eq!(counted(&store), 1);
    let mut again = opened(&mut store);
    assert_eq!(release(again.as_mut(), &mut store, 7, 0), sent);
    assert_eq!(counted(&store), 1);
    // Even where it would train to something else: whoever saw both would see the difference.
    assert_eq!(release(again.as_mut(), &mut store, 7, 0), sent);
}

/// The difference of two sums with one set of noise would be the part of the member that changed.
#[test]
fn other_members_another_model_or_another_key_of_anybody_bring_other_noise_and_are_counted() {
    let mut store = MemoryStore::default();
    let mut part = opened(&mut store);
    let first = part.state();
    let sent = release(part.as_mut(), &mut store, 7, 0);
    part.restore(&first).unwrap();
    let with_others = release(part.as_mut(), &mut store, 8, 0);
    assert_eq!(counted(&store), 2);
    // A member that lost its home has another key.
    part.restore(&first).unwrap();
    let row = part.statistics(&[]).unwrap().unwrap();
    let other = row.iter().map(|number| number + 1.0).collect::<Vec<f64>>();
    let own_card = row[..5].iter().chain(&other[5..]).copied().collect();
    part.statistics(&[vec![own_card, row.clone(), row]]).unwrap();
    let after_a_loss = release(part.as_mut(), &mut store, 7, 0);
    assert_eq!(counted(&store), 3);
    for (one, other) in [(&sent, &with_others), (&sent, &after_a_loss), (&with_others, &after_a_loss)] {
        let same = one.iter().zip(other).filter(|(a, b)| a == b).count();
        // The scale is the same, and a number of some thousand different ones now and then.
        assert!(same < one.len() / 50, "{same} of {} numbers are the same", one.len());
    }
}

#[test]
fn the_scale_of_a_contribution_says_nothing_of_the_data() {
    let mut store = MemoryStore::default();
    let mut part = opened(&mut store);
    let numbers = release(part.as_mut(), &mut store, 7, 0);
    let limit = *numbers.last().unwrap();
    assert!(limit.log2().fract() == 0.0 && numbers.iter().all(|number| number.abs() <= limit && number.fract() == 0.0));
    let huge = vec![f32::MAX; numbers.len() - 1];
    let name = Release { round: 1, members: [7; 32] };
    let numbers = part.release(name, huge, &mut store).unwrap();
    assert!(*numbers.last().unwrap() == limit && numbers.iter().all(|number| number.abs() <= limit));
}

#[test]
fn a_peer_without_budget_adds_noise_alone_and_counts_nothing_more() {
    let mut store = MemoryStore::default();
    let mut part = opened(&mut store);
    let mut rounds = 0;
    loop {
        release(part.as_mut(), &mut store, 7, rounds);
        rounds += 1;
        if counted(&store) < rounds {
            break;
        }
    }
    assert_eq!(counted(&store), 3, "those of the problem file");
    let huge = vec![f32::MAX; 650];
    let noise = part.release(Release { round: rounds, members: [7; 32] }, huge, &mut store).unwrap();
    let mean = noise[..650].iter().map(|value| f64::from(*value)).sum::<f64>() / 650.0;
    assert!(mean.abs() < 6.0 * 1024.0 / 650.0_f64.sqrt(), "a mean of {mean} is no noise alone");
    assert_eq!(counted(&store), 3);
}

#[test]
fn a_count_that_cannot_be_read_ends_the_attempt() {
    let mut store = MemoryStore::default();
    store.keep_count("{").unwrap();
    let mut part = task(PRIVATE).open(1, &["a", "b", "c"].map(str::to_owned)).unwrap();
    assert!(prepare(part.as_mut(), &mut store).unwrap_err().to_string().contains("no count of releases"));
}

#[test]
fn a_member_with_another_card_is_named() {
    let mut part = task(SHORT).open(1, &["a", "b", "c"].map(str::to_owned)).unwrap();
    let row = part.statistics(&[]).unwrap().unwrap();
    let other = row.iter().map(|number| number + 1.0).collect();
    let refused = part.statistics(&[vec![row.clone(), row, other]]).unwrap_err().to_string();
    assert!(refused.contains("not those of c"), "{refused}");
}

#[test]
fn tables_of_several_sites_need_a_card() {
    let folder = tempfile::tempdir().unwrap();
    for site in ["a", "b", "c"] {
        let rows: String = (0..20).map(|row| format!("{row},{}\n", ["no", "yes"][row % 2])).collect();
        std::fs::write(folder.path().join(format!("{site}.csv")), format!("x,ill\n{rows}")).unwrap();
    }
    let problem = |card: &str| {
        let text = format!("kind = \"training\"\ndata = \"csv:{{node}}.csv\"\nmodel = \"softmax\"\n{card}");
        crate::task(&text, &folder.path().join("problem.toml"), None)
    };
    let names = ["a", "b", "c"].map(str::to_owned);
    let refused = problem("").unwrap().unwrap().open(0, &names).err().unwrap().to_string();
    assert!(refused.contains("mingle data card"), "{refused}");
    let data: mingle_models::DataSource = format!("csv:{}", folder.path().join("a.csv").display()).parse().unwrap();
    let mut card = serde_json::to_value(data.read().unwrap().card(0).unwrap()).unwrap();
    let path = folder.path().join("card.json");
    std::fs::write(&path, card.to_string()).unwrap();
    assert!(problem("card = \"card.json\"").unwrap_err().to_string().contains("is no card of data"));
    card["schema"] = mingle_models::DataCard::SCHEMA.into();
    std::fs::write(&path, card.to_string()).unwrap();
    let part = problem("card = \"card.json\"").unwrap().unwrap().open(0, &names).unwrap();
    let found = part.found();
    assert!(found.starts_with("16 samples to train on, 4 to evaluate on; 4 parameters; "), "{found}");
    assert!(found.contains("label: column `ill`, the last"), "{found}");
}

#[test]
fn a_state_of_another_training_is_refused() {
    let names = ["a", "b", "c"].map(str::to_owned);
    let mut part = task(SHORT).open(0, &names).unwrap();
    let state = part.state();
    part.train(0).unwrap();
    let trained = part.state();
    part.restore(&state).unwrap();
    part.train(0).unwrap();
    assert_eq!(part.state(), trained, "the same batches again");
    let mut larger = task("model = \"mlp:hidden=8\"\n").open(0, &names).unwrap();
    assert!(larger.restore(&state).is_err());
    assert!(part.restore(&state[..9]).is_err());
}
