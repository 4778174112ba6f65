//! Scores of a model on some nodes.

/// The scores of a model on the validation nodes and on the test nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeScores {
    /// On the nodes that choose the best model.
    pub validation: Score,
    /// On the nodes that evaluate it.
    pub test: Score,
}

/// The scores of a model on some nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// The share of nodes that are classified correctly; `None` where there are no nodes.
    pub accuracy: Option<f64>,
    /// For two classes: the probability that the difference of logits is larger at a node of the second class than at
    /// one of the first, the area under the receiver operating characteristic. `None` where one class is missing.
    pub auc: Option<f64>,
}

impl Score {
    /// The scores of logits, `[nodes, classes]`.
    pub(crate) fn of(logits: &[f32], labels: &[u16], classes: usize) -> Self {
        let told = |row: &[f32]| {
            // Ties go to the first class.
            let mut best = 0;
            (1..row.len()).for_each(|class| {
                if row[class] > row[best] {
                    best = class;
                }
            });
            best
        };
        let rows = logits.chunks_exact(classes).zip(labels);
        let right = rows.filter(|(row, label)| told(row) == usize::from(**label)).count();
        let auc = (classes == 2).then(|| {
            let margins = logits.chunks_exact(2).map(|row| row[1] - row[0]);
            area(margins.zip(labels.iter().map(|label| *label == 1)).collect())
        });
        Self { accuracy: Some(right as f64 / labels.len().max(1) as f64), auc: auc.flatten() }
    }
}

/// The area under the curve by ranks (Mann and Whitney 1947), where equal values have their mean rank.
fn area(mut scored: Vec<(f32, bool)>) -> Option<f64> {
    scored.sort_by(|one, other| one.0.total_cmp(&other.0));
    let positive = scored.iter().filter(|(_, is)| *is).count();
    let negative = scored.len() - positive;
    if positive == 0 || negative == 0 {
        return None;
    }
    let mut ranks = 0.0;
    let mut before = 0;
    for equals in scored.chunk_by(|one, other| one.0 == other.0) {
        let rank = before as f64 + (equals.len() as f64 + 1.0) / 2.0;
        ranks += rank * equals.iter().filter(|(_, is)| *is).count() as f64;
        before += equals.len();
    }
    let least = positive as f64 * (positive as f64 + 1.0) / 2.0;
    Some((ranks - least) / (positive as f64 * negative as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_counts_pairs_in_order_and_half_of_those_that_are_equal() {
        let of = |scores: &[(f32, bool)]| area(scores.to_vec());
        assert_eq!(of(&[(0.1, false), (0.2, true), (0.3, true)]), Some(1.0));
        assert_eq!(of(&[(0.1, true), (0.2, false)]), Some(0.0));
        assert_eq!(of(&[(0.5, true), (0.5, false), (0.7, true)]), Some(0.75));
        assert_eq!(of(&[(0.1, true)]), None);
        let score = Score::of(&[1.0, 0.0, 0.0, 1.0, 3.0, 3.5], &[0, 1, 0], 2);
        assert_eq!((score.accuracy, score.auc), (Some(2.0 / 3.0), Some(1.0)));
    }
}
