//! Releases of members whose training comes to other numbers when it is repeated, as that of a script does.
#![allow(clippy::unwrap_used)]

use mingle_federated::{Beginning, FederatedLearning, FederatedSettings, LocalModel, LocalRound, SharedPrivacy};
use mingle_privacy::{PrivacySettings, ProtectedUnit};
use mingle_solving::{LearningError, MemoryStore, Release, RoundLearning, RoundStore};

const MEMBERS: usize = 4;
const DIMENSION: usize = 6;

/// A model whose steps never come to the same numbers.
struct Restless(u32);

impl LocalModel for Restless {
    fn dimension(&self) -> usize {
        DIMENSION
    }
    fn identity(&self) -> [u8; 32] {
        [1; 32]
    }
    fn meaning(&self) -> [u8; 32] {
        [2; 32]
    }
    fn unlike(&self, other: &str) -> String {
        format!("unlike {other}")
    }
    fn beginning(&mut self) -> Result<Vec<f32>, LearningError> {
        Ok(vec![0.0; DIMENSION])
    }
    fn train(&mut self, _: LocalRound, _: &[f32]) -> Result<Vec<f32>, LearningError> {
        self.0 += 1;
        Ok(vec![self.0 as f32 / 100.0; DIMENSION])
    }
    fn evaluate(&mut self, _: &[f32]) -> Result<Vec<Option<f64>>, LearningError> {
        Ok(Vec::new())
    }
    fn state(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(&mut self, _: &[u8]) -> Result<(), LearningError> {
        Ok(())
    }
    fn found(&self) -> String {
        String::new()
    }
    fn encode(&self, _: &[f32]) -> Result<Vec<u8>, LearningError> {
        Ok(Vec::new())
    }
}

/// A member, with what its disk holds.
struct Member {
    learning: FederatedLearning,
    store: MemoryStore,
}

fn settings() -> FederatedSettings {
    let settings = PrivacySettings::for_changes(1.0, 20, 8.0, 1e-5).unwrap();
    let privacy = Some(SharedPrivacy { settings, colluders: 1, protects: ProtectedUnit::Member });
    FederatedSettings { privacy, ..FederatedSettings::new(12, 5) }
}

fn names() -> Vec<String> {
    (0..MEMBERS).map(|node| node.to_string()).collect()
}

/// The member of a new process with this disk.
fn started(node: usize, store: MemoryStore) -> Member {
    let model = Box::new(Restless(node as u32));
    let learning = FederatedLearning::new(settings(), (node, &names()), Beginning::OfFounder, model).unwrap();
    Member { learning, store }
}

/// An attempt of all members at the first round, as far as to what each of them releases.
fn attempt(members: &mut [Member]) -> Vec<Vec<f32>> {
    let prepare = |member: &mut Member| {
        member.learning.prepare(&mut member.store).unwrap();
        member.learning.statistics(&[]).unwrap().unwrap()
    };
    let rows: Vec<Vec<f64>> = members.iter_mut().map(prepare).collect();
    members.iter_mut().for_each(|member| drop(member.learning.statistics(std::slice::from_ref(&rows)).unwrap()));
    let tokens: Vec<Vec<f64>> =
        members.iter_mut().map(|member| member.learning.token(0, &member.store).unwrap()).collect();
    let release = |member: &mut Member| {
        member.learning.take_tokens(&tokens);
        let change = member.learning.train(0).unwrap();
        member.learning.release(Release { round: 0, members: [7; 32] }, change, &mut member.store).unwrap()
    };
    members.iter_mut().map(release).collect()
}

/// The number of releases that a member has counted.
fn counted(member: &Member) -> u64 {
    let text: serde_json::Value = serde_json::from_str(&member.store.count().unwrap().unwrap()).unwrap();
    text["noised"].as_array().unwrap().iter().map(|noised| noised["changes"].as_u64().unwrap()).sum()
}

fn swarm() -> Vec<Member> {
    (0..MEMBERS).map(|node| started(node, MemoryStore::default())).collect()
}

#[test]
fn members_that_have_kept_what_they_released_send_it_again_and_count_it_once() {
    let mut members = swarm();
    let first = attempt(&mut members);
    members[2] = started(2, members[2].store.clone());
    assert_eq!(attempt(&mut members), first);
    assert!(members.iter().all(|member| counted(member) == 1));
}

#[test]
fn a_member_whose_disk_was_put_back_has_all_release_anew_so_that_no_two_sums_differ_by_its_part_alone() {
    let mut members = swarm();
    // Its key is made, and nothing is released.
    attempt(&mut members);
    let before = {
        let mut fresh = started(2, MemoryStore::default());
        fresh.learning.prepare(&mut fresh.store).unwrap();
        fresh.store
    };
    members[2] = started(2, before.clone());
    let first = attempt(&mut members);
    let counts: Vec<u64> = members.iter().map(counted).collect();
    members[2] = started(2, before);
    let second = attempt(&mut members);
    for (node, (first, second)) in first.iter().zip(&second).enumerate() {
        // The limit of the scale is the last number.
        let is_new = first[..DIMENSION].iter().zip(second).all(|(one, other)| one.to_bits() != other.to_bits());
        assert!(is_new, "member {node} sent the same beside another part of member 2: {first:?}");
    }
    let now: Vec<u64> = members.iter().map(counted).collect();
    assert_eq!(now, [counts[0] + 1, counts[1] + 1, 1, counts[3] + 1], "each release is counted");
}

#[test]
fn a_disk_that_is_put_back_to_an_earlier_release_of_the_same_round_has_all_release_anew_each_time() {
    let mut members = swarm();
    attempt(&mut members);
    let earlier = members[2].store.clone();
    // Another member lost its release, so that all have released the round twice.
    members[1] = started(1, MemoryStore::default());
    let mut last = attempt(&mut members);
    for _ in 0..3 {
        members[2] = started(2, earlier.clone());
        let next = attempt(&mut members);
        for (node, (last, next)) in last.iter().zip(&next).enumerate() {
            assert!(last[..DIMENSION].iter().zip(next).all(|(one, other)| one != other), "member {node}");
        }
        last = next;
    }
    assert_eq!(attempt(&mut members), last, "all keep this one");
}

#[test]
fn a_training_that_diverged_releases_noise_alone_and_says_so_to_its_own_user() {
    let mut member = started(0, MemoryStore::default());
    member.learning.prepare(&mut member.store).unwrap();
    let change = vec![f32::NAN; DIMENSION];
    let release = Release { round: 0, members: [7; 32] };
    let released = member.learning.release(release, change, &mut member.store).unwrap();
    assert!(released.iter().all(|number| number.is_finite()), "{released:?}");
    let files = member.learning.files().unwrap();
    let (_, report) = files.iter().find(|(name, _)| name == "privacy-of-sums.json").unwrap();
    let report: serde_json::Value = serde_json::from_slice(report).unwrap();
    assert_eq!(report["diverged_rounds"], 1, "{report}");
}
