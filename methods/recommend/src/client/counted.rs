//! The quality of a client's rankings, user by user.

use super::RecommenderClient;
use crate::metrics::{K, Mean, RankingQuality, UserGroup, ndcg, recall, top};

/// The measures, accumulated user by user.
pub(super) struct Counted {
    validation: Mean,
    recall: Mean,
    ndcg: Mean,
    popular: Mean,
    rare: Mean,
    of_users: [Mean; UserGroup::COUNT],
    is_recommended: Vec<bool>,
}

impl Counted {
    pub(super) fn new(items: usize) -> Self {
        let mean = Mean::default();
        Self {
            validation: mean,
            recall: mean,
            ndcg: mean,
            popular: mean,
            rare: mean,
            of_users: [mean; UserGroup::COUNT],
            is_recommended: vec![false; items],
        }
    }

    pub(super) fn add(&mut self, scores: &[f32], user: usize, client: &RecommenderClient) {
        let RecommenderClient { split, is_popular, groups, .. } = client;
        let train = &split.train[user];
        let validation = &split.validation[user];
        let test = &split.test[user];
        self.validation.add(ndcg(&top(scores, &[train], K), validation, K));
        let ranking = top(scores, &[train, validation], K);
        self.recall.add(recall(&ranking, test, K));
        let gain = ndcg(&ranking, test, K);
        self.ndcg.add(gain);
        self.of_users[groups[user] as usize].add(gain);
        for (mean, wanted) in [(&mut self.popular, true), (&mut self.rare, false)] {
            let group: Vec<u32> = test.iter().copied().filter(|item| is_popular[*item as usize] == wanted).collect();
            if !group.is_empty() {
                mean.add(recall(&ranking, &group, K));
            }
        }
        ranking.iter().for_each(|item| self.is_recommended[*item as usize] = true);
    }

    pub(super) fn quality(&self) -> RankingQuality {
        let covered = self.is_recommended.iter().filter(|is| **is).count();
        let has_any = self.recall.value().is_some();
        RankingQuality {
            validation_ndcg: self.validation.value(),
            recall: self.recall.value(),
            ndcg: self.ndcg.value(),
            coverage: has_any.then(|| covered as f64 / self.is_recommended.len().max(1) as f64),
            recall_popular: self.popular.value(),
            recall_rare: self.rare.value(),
            ndcg_of_users: self.of_users.map(Mean::value),
        }
    }
}
