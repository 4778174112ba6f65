//! A check of a robust model: its objective at all sites, and the duality gap.

use mingle_robust::{CHECK_ROW, DualityGap, GapSearch, SharedState, Site, check_models, check_terms};

use crate::collectives::Collectives;
use crate::error::SolveError;

/// A model of all sites and its distance from the best one: the same at all sites.
pub(super) struct Check {
    /// `[columns]`.
    pub(super) model: Vec<f64>,
    pub(super) gap: DualityGap,
    /// For each site: the worst loss of the model, its mean loss over the samples, the distance of the site's own model
    /// from it.
    pub(super) rows: Vec<[f64; 3]>,
}

impl Check {
    pub(super) async fn of(
        search: &mut GapSearch,
        collectives: &Collectives,
        state: &SharedState,
        site: &Site,
    ) -> Result<Self, SolveError> {
        let sums = collectives.total(&check_terms(state, collectives.me, site)).await?;
        let models = check_models(state.set().nominal().len(), &sums);
        let [last, mean, one, other] = site.check_row(&models);
        let [apart_of_last, apart_of_mean] = models.each_ref().map(|model| largest_difference(site.model(), model));
        let [loss_of_last, loss_of_mean] = models.each_ref().map(|model| site.nominal_loss(model));
        let own = [last, mean, one, other, loss_of_last, loss_of_mean, apart_of_last, apart_of_mean];
        let rows = collectives.gather(&own).await?;
        let checked: Vec<[f64; CHECK_ROW]> = rows.iter().map(|row| [row[0], row[1], row[2], row[3]]).collect();
        let (gap, is_mean) = search.conclude(state, &sums, &checked);
        let at = usize::from(is_mean);
        let [last, mean] = models;
        Ok(Self {
            model: if is_mean { mean } else { last },
            gap,
            rows: rows.iter().map(|row| [row[at], row[4 + at], row[6 + at]]).collect(),
        })
    }
}

fn largest_difference(own: &[f64], model: &[f64]) -> f64 {
    own.iter().zip(model).map(|(own, mean)| (own - mean).abs()).fold(0.0, f64::max)
}
