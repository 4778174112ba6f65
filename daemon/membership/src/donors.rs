//! The initial model of a newcomer, or of a peer that was away for long: the present model of members of the plan.
//!
//! Up to three members are asked at once. Of three models, each coordinate is the median: one donor that lies decides
//! nothing. Of two that are near each other it is the mean. If two are far apart and there are more members, all are
//! asked again, a few times; then the first model is taken, within the bounds that hold for every model, and a person
//! is warned. After the first model, the later ones have as long again, and the time of a model on a slow link, so that
//! fast members do not decide alone.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream;
use libp2p::PeerId;

use crate::exchange::{MODEL_TIMEOUT, fetch_model};

/// Models that are compared.
const DONORS: usize = 3;
/// Pause between two rounds of requests.
const PAUSE: Duration = Duration::from_millis(300);
/// Time that the later models have beyond twice that of the first one, beside the time for their bytes.
const GRACE: Duration = Duration::from_secs(1);
/// Speed of the slowest link that the later models have time for, in bytes per millisecond: 2 Mbit/s.
const SLOW_LINK: u64 = 250;
/// Two models are far apart when they differ by more than this part of the longer one.
const FAR_APART: f64 = 0.5;
/// Attempts that end with only two models, far apart, before the first is taken: a third member may supply one.
const TRIES: u32 = 3;
/// Largest absolute value in a model: the node would refuse a larger one.
const LARGEST_NUMBER: f32 = 1e30;

/// An initial model taken from members.
#[derive(Debug)]
pub struct Borrowed {
    /// The members that supplied it.
    pub donors: Vec<PeerId>,
    /// `[dimension]`.
    pub model: Vec<f32>,
    /// Another member, whose model is far from this one: which of the two is right is unknown.
    pub contradicted_by: Option<PeerId>,
}

impl Borrowed {
    /// A warning for a person, if the model of another member contradicts this one.
    pub fn warning(&self) -> Option<String> {
        let donor = self.donors.first()?;
        let other = self.contradicted_by?;
        Some(format!(
            "the models of {donor} and {other} are far apart, and no third member gives one: this peer begins with that of {donor}, \
             which was there first"
        ))
    }
}

/// Asks these members, in this order, for their models until at least one supplies a model of norm at most `max_norm`.
pub async fn borrow_model(
    streams: libp2p_stream::Control,
    members: Vec<PeerId>,
    dimension: usize,
    max_norm: f64,
) -> Borrowed {
    let grace = grace(dimension);
    let mut contradictions = 0;
    loop {
        let asked = members.clone().into_iter().map(|peer| ask(streams.clone(), peer, dimension, max_norm));
        let given =
            first_few(stream::iter(asked).buffer_unordered(DONORS).filter_map(futures::future::ready), grace).await;
        if let Some(borrowed) = combine(given) {
            contradictions += u32::from(borrowed.contradicted_by.is_some());
            let may_be_settled = members.len() >= DONORS && contradictions < TRIES;
            if borrowed.contradicted_by.is_none() || !may_be_settled {
                return borrowed;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Time that the later models have beyond twice that of the first one: `GRACE`, and the time of a model on a slow link,
/// at most `MODEL_TIMEOUT`.
fn grace(dimension: usize) -> Duration {
    let bytes = u64::try_from(dimension).unwrap_or(u64::MAX).saturating_mul(4);
    GRACE + Duration::from_millis(bytes / SLOW_LINK).min(MODEL_TIMEOUT)
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

/// The first models to arrive, up to [`DONORS`]: after the first one, the others have as long again, and `grace`.
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

/// The median of three models by coordinate, the mean of two that are near each other, else the first. Of two that are
/// far apart, the second donor contradicts the first. `None` without models.
fn combine(given: Vec<(PeerId, Vec<f32>)>) -> Option<Borrowed> {
    let (mut donors, mut models): (Vec<_>, Vec<_>) = given.into_iter().unzip();
    let mut contradicted_by = None;
    match models.as_mut_slice() {
        [] => return None,
        [_] => {}
        [first, second] if are_near(first, second) => {
            first.iter_mut().zip(second.iter()).for_each(|(a, b)| *a = a.midpoint(*b));
        }
        [_, _] => contradicted_by = donors.pop(),
        [first, second, third, ..] => {
            for ((a, b), c) in first.iter_mut().zip(second.iter()).zip(third.iter()) {
                *a = a.min(*b).max(a.max(*b).min(*c));
            }
        }
    }
    Some(Borrowed { donors, model: models.swap_remove(0), contradicted_by })
}

fn are_near(one: &[f32], other: &[f32]) -> bool {
    let length = |square: f64| square.sqrt();
    let norm = |model: &[f32]| length(model.iter().map(|value| f64::from(*value).powi(2)).sum());
    let distance = length(one.iter().zip(other).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum());
    distance <= FAR_APART * norm(one).max(norm(other))
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
        assert!(combine(Vec::new()).is_none());
    }

    #[test]
    fn of_two_donors_that_are_far_apart_the_first_is_taken_and_a_person_is_told() {
        let near = combine(donors(&[[1.0, 2.0], [1.5, 2.5]])).unwrap();
        assert_eq!((near.model.as_slice(), near.donors.len()), ([1.25, 2.25].as_slice(), 2));
        assert!(near.warning().is_none());
        let given = donors(&[[1.0, 2.0], [30.0, 4.0]]);
        let names = [given[0].0, given[1].0].map(|peer| peer.to_string());
        let far = combine(given).unwrap();
        assert_eq!((far.model.as_slice(), far.donors.len()), ([1.0, 2.0].as_slice(), 1));
        let warning = far.warning().unwrap();
        assert!(names.iter().all(|name| warning.contains(name)), "{warning}");
        let alone = combine(donors(&[[1.0, 2.0]])).unwrap();
        assert!(alone.warning().is_none() && alone.model == [1.0, 2.0]);
        assert!(combine(donors(&[[0.0; 2]; 2])).unwrap().warning().is_none(), "both begin with nothing");
    }

    #[test]
    fn donors_of_large_models_have_the_time_that_those_take() {
        assert_eq!(grace(650), GRACE + Duration::from_millis(10));
        assert_eq!(grace(1_659_985), GRACE + Duration::from_millis(26_559));
        assert_eq!(grace(usize::MAX), GRACE + MODEL_TIMEOUT);
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
