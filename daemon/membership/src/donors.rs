//! The initial model of a newcomer, or of a peer that was away for long: the present model of members of the plan.
//!
//! Up to three members are asked at once, and each coordinate is the median of the three answers: one of three that
//! lies decides nothing. If only one or two answer, the first answer is accepted within the bounds that hold for every
//! model.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream;
use libp2p::PeerId;

use crate::exchange::fetch_model;

/// Models that are compared.
const DONORS: usize = 3;
/// Pause between two rounds of requests.
const PAUSE: Duration = Duration::from_millis(300);
/// Time that the later models may take beyond twice that of the first one.
const GRACE: Duration = Duration::from_secs(1);
/// Largest magnitude of a number in a model: the node would refuse others.
const LARGEST_NUMBER: f32 = 1e30;

/// An initial model taken from members.
#[derive(Debug)]
pub struct Borrowed {
    /// The members that supplied it.
    pub donors: Vec<PeerId>,
    /// `[dimension]`.
    pub model: Vec<f32>,
}

/// Asks these members, in this order, for their models until at least one supplies a model of norm at most `max_norm`.
pub async fn borrow_model(
    streams: libp2p_stream::Control,
    members: Vec<PeerId>,
    dimension: usize,
    max_norm: f64,
) -> Borrowed {
    loop {
        let asked = members.clone().into_iter().map(|peer| ask(streams.clone(), peer, dimension, max_norm));
        let given =
            first_few(stream::iter(asked).buffer_unordered(DONORS).filter_map(futures::future::ready), GRACE).await;
        if let Some(borrowed) = combine(given) {
            return borrowed;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn ask(
    mut streams: libp2p_stream::Control,
    peer: PeerId,
    dimension: usize,
    max_norm: f64,
) -> Option<(PeerId, Vec<f32>)> {
    let model = fetch_model(&mut streams, peer, dimension).await?;
    is_credible(&model, max_norm, peer).then_some((peer, model))
}

/// The first models to arrive, at most `DONORS`: after the first one, the others have as long again, and `grace`.
async fn first_few<T>(models: impl futures::Stream<Item = T>, grace: Duration) -> Vec<T> {
    let began = Instant::now();
    let mut models = std::pin::pin!(models);
    let mut given: Vec<T> = models.next().await.into_iter().collect();
    let until = Instant::now() + began.elapsed() + grace;
    while given.len() < DONORS
        && let Ok(Some(next)) = tokio::time::timeout_at(until.into(), models.next()).await
    {
        given.push(next);
    }
    given
}

fn is_credible(model: &[f32], max_norm: f64, from: PeerId) -> bool {
    let square: f64 = model.iter().map(|value| f64::from(*value).powi(2)).sum();
    let is_credible = square.sqrt() <= max_norm && model.iter().all(|value| value.abs() <= LARGEST_NUMBER);
    if !is_credible {
        tracing::warn!(%from, norm = square.sqrt(), max_norm, "a member gives a model that no sound peer has");
    }
    is_credible
}

/// The coordinatewise median of three models, or the first of fewer.
fn combine(given: Vec<(PeerId, Vec<f32>)>) -> Option<Borrowed> {
    let (donors, mut models): (Vec<_>, Vec<_>) = given.into_iter().unzip();
    match models.as_mut_slice() {
        [first, second, third] => {
            for ((a, b), c) in first.iter_mut().zip(second.iter()).zip(third.iter()) {
                *a = a.min(*b).max(a.max(*b).min(*c));
            }
            Some(Borrowed { donors, model: models.swap_remove(0) })
        }
        [] => None,
        _ => Some(Borrowed { donors: donors.into_iter().take(1).collect(), model: models.swap_remove(0) }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn donors(models: &[[f32; 2]]) -> Vec<(PeerId, Vec<f32>)> {
        models.iter().map(|model| (PeerId::random(), model.to_vec())).collect()
    }

    #[test]
    fn one_of_three_donors_that_lies_decides_nothing() {
        for liar in 0..3 {
            let mut models = [[1.0, 2.0], [1.5, 1.0], [1.25, 1.5]];
            models[liar] = [1e20, -1e20];
            let borrowed = combine(donors(&models)).unwrap();
            assert_eq!(borrowed.donors.len(), 3);
            assert!((1.0..=1.5).contains(&borrowed.model[0]), "{:?}", borrowed.model);
            assert!((1.0..=2.0).contains(&borrowed.model[1]), "{:?}", borrowed.model);
        }
        let two = combine(donors(&[[1.0, 2.0], [3.0, 4.0]])).unwrap();
        assert_eq!((two.model.as_slice(), two.donors.len()), ([1.0, 2.0].as_slice(), 1));
        assert!(combine(Vec::new()).is_none());
    }

    #[test]
    fn a_model_beyond_the_bounds_is_no_model() {
        let from = PeerId::random();
        assert!(is_credible(&[3.0, 4.0], 5.0, from));
        assert!(!is_credible(&[3.0, 4.1], 5.0, from));
        assert!(!is_credible(&[2e30, 0.0], f64::MAX, from));
    }

    #[tokio::test]
    async fn donors_that_do_not_answer_hold_nobody_up_for_long() {
        let grace = Duration::from_millis(1);
        assert_eq!(first_few(stream::iter([1, 2]).chain(stream::pending()), grace).await, [1, 2]);
        assert_eq!(first_few(stream::iter([1, 2, 3, 4]), grace).await, [1, 2, 3]);
        assert!(first_few(stream::empty::<u8>(), grace).await.is_empty());
    }
}
