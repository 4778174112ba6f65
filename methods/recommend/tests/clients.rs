//! Training of clients: alone, together, and after a restart.
#![allow(clippy::unwrap_used)]

use mingle_models::{Device, DeviceName};
use mingle_recommend::{
    ClientOptions, Filtering, Interactions, Kernel, LossKind, Personalization, Planted, RecommendError, Recommender,
    RecommenderClient, SpectrumCache, federate, similarities,
};

fn device() -> Device {
    DeviceName::Cpu.open().unwrap()
}

fn options() -> ClientOptions {
    ClientOptions { frequencies: 12, batch_size: 256, learning_rate: 5e-3, ..ClientOptions::default() }
}

fn clients(count: usize, options: ClientOptions) -> Vec<RecommenderClient> {
    let client = |at: usize| {
        let planted = Planted { communities: 1, users: 30 + 4 * at, items: 24, seed: at as u64, ..Planted::default() };
        RecommenderClient::new(planted.draw(), options, at as u64, &device(), None).unwrap()
    };
    (0..count).map(client).collect()
}

/// 50 users and 40 items in two blocks without interactions between them.
fn blocks() -> Interactions {
    let names: Vec<(String, String)> = (0..50)
        .flat_map(|user| (0..20).map(move |item| (format!("{user}"), format!("{}", item + 20 * (user % 2)))))
        .filter(|(user, item)| (user.parse::<u32>().unwrap() + item.parse::<u32>().unwrap() * 7) % 4 > 0)
        .collect();
    Interactions::from_pairs(names.iter().map(|(user, item)| (user.as_str(), item.as_str())))
}

#[test]
fn two_blocks_are_learned_by_heart() {
    for loss in [LossKind::Contrastive, LossKind::Bpr] {
        let mut client =
            RecommenderClient::new(blocks(), ClientOptions { loss, ..options() }, 1, &device(), None).unwrap();
        client.train(60).unwrap();
        let recall = client.training_recall(20).unwrap();
        assert!(recall > 0.9, "{loss:?}: {recall}");
    }
}

#[test]
fn a_client_goes_on_from_its_state_bit_for_bit() {
    let mut whole = clients(1, options()).remove(0);
    whole.train(2).unwrap();
    let shared = whole.shared().unwrap().len();
    whole.take(&vec![0.01; shared], 0.5).unwrap();
    let state = whole.state().unwrap();
    whole.train(2).unwrap();
    let mut again = clients(1, options()).remove(0);
    again.restore(&state).unwrap();
    assert_eq!(again.state().unwrap(), state);
    again.train(2).unwrap();
    assert_eq!(again.state().unwrap(), whole.state().unwrap());
    assert_eq!(again.evaluate().unwrap(), whole.evaluate().unwrap());
    // Bytes that are no state are refused, and change nothing.
    let mut other = clients(2, options()).remove(1);
    let before = other.state().unwrap();
    assert!(matches!(other.restore(&state), Err(RecommendError::Bytes { .. })));
    assert!(other.restore(&state[..state.len() / 2]).is_err());
    assert_eq!(other.state().unwrap(), before);
}

#[test]
fn who_is_not_similar_keeps_its_own_and_who_is_takes_the_mean() {
    let mut client = clients(1, options()).remove(0);
    client.train(1).unwrap();
    let own = client.shared().unwrap();
    assert_eq!(own.len(), 28_930);
    let mean: Vec<f32> = own.iter().map(|value| value + 1.0).collect();
    client.take(&mean, 0.0).unwrap();
    assert_eq!(client.shared().unwrap(), own);
    client.take(&mean, 1.0).unwrap();
    let (weights, taken) = (own.len() - 1, client.shared().unwrap());
    assert_eq!(taken[..weights], mean[..weights]);
    client.take(&own, 0.25).unwrap();
    for ((found, mean), own) in client.shared().unwrap()[..weights].iter().zip(&own).zip(&taken) {
        assert!((found - (0.25 * mean + 0.75 * own)).abs() < 1e-6);
    }
    assert!(client.take(&own[1..], 0.5).is_err());
}

#[test]
fn clients_learn_together_and_each_keeps_what_is_its_own() {
    let mut together = clients(3, options());
    let shares = similarities(&together, Personalization::Similarity { floor: 0.0 }, Kernel::Paper, 12, 0).unwrap();
    assert!(shares.contains(&0.0) && shares.contains(&1.0), "{shares:?}");
    for round in 0..4 {
        federate(&mut together, &shares, 5, round >= 1).unwrap();
    }
    let quality: Vec<_> = together.iter().map(|client| client.evaluate().unwrap()).collect();
    assert!(quality.iter().all(|quality| quality.recall.unwrap() > 0.0), "{quality:?}");
    let mut averaged = clients(3, options());
    federate(&mut averaged, &[1.0; 3], 1, true).unwrap();
    let weights: Vec<Vec<f32>> = averaged.iter().map(|client| client.shared().unwrap()).collect();
    assert_eq!(weights[0][..28_929], weights[2][..28_929]);
    assert_ne!(averaged[0].state().unwrap(), averaged[2].state().unwrap());
}

#[test]
fn what_is_written_down_recommends_what_the_client_would() {
    let mut client = RecommenderClient::new(blocks(), options(), 1, &device(), None).unwrap();
    // Longer training would memorize which items of the block the user has not had, since they are among its negatives.
    client.train(10).unwrap();
    let recommender = client.recommender().unwrap();
    let bytes = recommender.to_bytes().unwrap();
    assert_eq!(Recommender::from_bytes(&bytes).unwrap(), recommender);
    // An even user is in the first block, which has items 0 to 19.
    let found = recommender.recommend("8", 3).unwrap();
    assert!(found.iter().all(|one| one.item.parse::<u32>().unwrap() < 20), "{found:?}");
    assert!(found.is_sorted_by(|a, b| a.score >= b.score));
    let known = recommender.known("8").unwrap();
    assert!(found.iter().all(|one| !known.contains(&one.item.as_str())));
    let told = recommender.recommend("nobody", 3).unwrap_err().to_string();
    assert_eq!(told, "nobody is called nobody here; users are such as 0, 1, 2");
    for at in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        assert!(Recommender::from_bytes(&damaged).is_err(), "byte {at}");
        assert!(Recommender::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_spectrum_is_computed_once_and_anew_when_its_file_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let cache = SpectrumCache::at(folder.path());
    let first = RecommenderClient::new(blocks(), options(), 1, &device(), Some(&cache)).unwrap();
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let (bytes, state) = (std::fs::read(&file).unwrap(), first.state().unwrap());
    for damage in [&bytes[..bytes.len() / 2], b"nothing", &[bytes.clone(), vec![1]].concat()] {
        std::fs::write(&file, damage).unwrap();
        let again = RecommenderClient::new(blocks(), options(), 1, &device(), Some(&cache)).unwrap();
        assert_eq!(again.state().unwrap(), state);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn what_cannot_be_learned_from_is_refused_with_what_to_do() {
    let new = |interactions, options| {
        RecommenderClient::new(interactions, options, 0, &device(), None).err().unwrap().to_string()
    };
    let few = Interactions::from_pairs([("a", "x"), ("b", "x")]);
    let told = new(few, options());
    assert!(
        told.contains("3 users and items are too few for a filter of 12 frequencies")
            && told.contains("frequencies = 2"),
        "{told}"
    );
    assert!(new(blocks(), ClientOptions { omega: 1.5, ..options() }).contains("omega = 1.5: 0 to 1"));
    assert!(new(blocks(), ClientOptions { negatives: 0, ..options() }).contains("negatives = 0"));
    assert!(new(blocks(), ClientOptions { learning_rate: f64::NAN, ..options() }).contains("learning rate"));
}

#[test]
fn the_network_without_a_filter_learns_too_and_differently() {
    let with = |filter| {
        let mut client = clients(1, ClientOptions { filter, ..options() }).remove(0);
        client.train(3).unwrap();
        client.evaluate().unwrap()
    };
    assert_ne!(with(Filtering::LowPass), with(Filtering::None));
}
