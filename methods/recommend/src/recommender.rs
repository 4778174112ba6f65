//! Recommendation of items after training; the file of a recommender stays with its client.

use serde::{Deserialize, Serialize};

use crate::error::RecommendError;
use crate::metrics::top;
use crate::model::Scorer;

/// The first bytes of a file, which name the version of the format.
const MAGIC: &[u8; 16] = b"mingle.recsys/1\n";
const WHAT: &str = "recommender";
/// The number of users that an error names.
const EXAMPLES: usize = 3;

/// A trained recommender: users, items, the known items of each user, and the scores of the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recommender {
    users: Vec<String>,
    items: Vec<String>,
    known: Vec<Vec<u32>>,
    scorer: Scorer,
}

/// An item for a user.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// The item.
    pub item: String,
    /// The score, in -1 to 1: the hyperbolic tangent of the network's output.
    pub score: f64,
}

impl Recommender {
    pub(crate) fn new(users: Vec<String>, items: Vec<String>, known: Vec<Vec<u32>>, scorer: Scorer) -> Self {
        Self { users, items, known, scorer }
    }

    /// The names of the users.
    pub fn users(&self) -> &[String] {
        &self.users
    }

    /// The items that a user knows already.
    ///
    /// # Errors
    /// [`RecommendError::UnknownUser`].
    pub fn known(&self, user: &str) -> Result<Vec<&str>, RecommendError> {
        let known = &self.known[self.find(user)?];
        Ok(known.iter().map(|item| self.items[*item as usize].as_str()).collect())
    }

    /// The best new items for a user, the best first.
    ///
    /// # Errors
    /// [`RecommendError::UnknownUser`].
    pub fn recommend(&self, user: &str, count: usize) -> Result<Vec<Recommendation>, RecommendError> {
        let at = self.find(user)?;
        let scores = self.scorer.scores(at, self.users.len()..self.users.len() + self.items.len());
        let best = top(&scores, &[&self.known[at]], count);
        let found = |item: u32| Recommendation {
            item: self.items[item as usize].clone(),
            score: f64::from(scores[item as usize]).tanh(),
        };
        Ok(best.into_iter().map(found).collect())
    }

    fn find(&self, user: &str) -> Result<usize, RecommendError> {
        let unknown = || RecommendError::UnknownUser {
            user: user.to_owned(),
            examples: self.users.iter().take(EXAMPLES).map(String::as_str).collect::<Vec<_>>().join(", "),
        };
        self.users.iter().position(|name| name == user).ok_or_else(unknown)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// `RecommendError::Bytes` when it cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RecommendError> {
        let body = postcard::to_stdvec(self).map_err(|error| none(&error.to_string()))?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(blake3::hash(&body).as_bytes());
        bytes.extend(body);
        Ok(bytes)
    }

    /// Decodes the bytes of a file.
    ///
    /// # Errors
    /// [`RecommendError::Bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecommendError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| none("it begins with something else"))?;
        let (hash, body) = rest.split_first_chunk::<32>().ok_or_else(|| none("it is too short"))?;
        if blake3::hash(body).as_bytes() != hash {
            return Err(none("it is damaged: its checksum is another"));
        }
        let found: Self = postcard::from_bytes(body).map_err(|error| none(&error.to_string()))?;
        let items = found.items.len();
        let is_known = |item: &u32| (*item as usize) < items;
        let is_sound = found.known.len() == found.users.len()
            && found.known.iter().all(|known| known.is_sorted() && known.iter().all(is_known))
            && found.scorer.is_sound(found.users.len().saturating_add(items));
        if is_sound { Ok(found) } else { Err(none("its parts do not fit together")) }
    }
}

fn none(reason: &str) -> RecommendError {
    RecommendError::Bytes { what: WHAT, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn mutated_recommenders_are_refused_or_recommend() {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let sound =
            Recommender::new(names(["ana", "ben"]), names(["x", "y"]), vec![vec![0], vec![]], Scorer::sized(4, 2, 1));
        let bytes = sound.to_bytes().unwrap();
        assert_eq!(Recommender::from_bytes(&bytes).unwrap(), sound);
        let body = bytes[MAGIC.len() + 32..].to_vec();
        // After a valid checksum, which the author of a malicious file can compute too.
        mingle_mutations::for_each_input("recommender", &[body], |input| {
            let file = [&MAGIC[..], blake3::hash(input).as_bytes(), input].concat();
            let Ok(read) = Recommender::from_bytes(&file) else { return };
            for user in read.users() {
                let found = read.recommend(user, 3).unwrap();
                let is_score = |score: f64| (-1.0..=1.0).contains(&score);
                assert!(found.len() <= 3 && found.iter().all(|item| is_score(item.score)), "{found:?}");
                assert!(read.known(user).unwrap().len() <= input.len());
            }
        });
    }
    #[test]
    fn a_recommender_whose_numbers_have_products_beyond_f32_is_refused() {
        let names = |name: &str| vec![name.to_owned()];
        let mut recommender = Recommender::new(names("ana"), names("x"), vec![Vec::new()], Scorer::sized(2, 2, 1));
        recommender.scorer.pooled[0] = 3e38;
        assert!(Recommender::from_bytes(&recommender.to_bytes().unwrap()).is_err());
        recommender.scorer.pooled[0] = 3e8;
        assert!(Recommender::from_bytes(&recommender.to_bytes().unwrap()).is_ok());
    }

    #[test]
    fn a_recommender_whose_network_has_no_width_is_refused() {
        for (width, hidden) in [(0, 1), (2, 0)] {
            let bytes =
                Recommender::new(vec!["ana".to_owned()], Vec::new(), vec![Vec::new()], Scorer::sized(1, width, hidden));
            let refused = Recommender::from_bytes(&bytes.to_bytes().unwrap()).unwrap_err();
            assert!(refused.to_string().contains("do not fit"), "{refused}");
        }
    }
}
