//! A robust problem with all samples in one place.

use crate::error::RobustError;
use crate::loss::RobustLoss;
use crate::penalty::DataScale;
use crate::samples::LinearSamples;
use crate::weights::SiteWeights;

/// The part of one site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSamples {
    /// The samples.
    pub samples: LinearSamples,
    /// The largest Wasserstein distance of the worst distribution from the samples.
    pub radius: f64,
}

/// A robust problem over several sites.
#[derive(Clone, Debug, PartialEq)]
pub struct RobustProblem {
    /// The loss, and the powers of its adversary.
    pub robust: RobustLoss,
    /// The part of each site.
    pub sites: Vec<SiteSamples>,
    /// The nominal weights of the sites, and the largest distance of the worst weights from them.
    pub weights: SiteWeights,
}

impl RobustProblem {
    /// Checks that all parts fit.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check(&self) -> Result<(), RobustError> {
        if self.sites.len() != self.weights.nominal.len() {
            return Err(RobustError::Shape("there has to be a nominal weight for each site"));
        }
        let first = self.sites.first().ok_or(RobustError::Shape("there is no site"))?;
        for site in &self.sites {
            check_radius(site.radius)?;
            let shape = |samples: &LinearSamples| (samples.columns(), samples.movable());
            if shape(&site.samples) != shape(&first.samples) {
                return Err(RobustError::Shape("all sites need the same columns"));
            }
            self.robust.check_samples(&site.samples)?;
        }
        Ok(())
    }

    /// The same problem with no adversary but that of the weights. It is agnostic federated learning (AFL) for a
    /// `theta` above 0, the usual mean loss for `theta = 0`, and the worst site's loss (DRFA) for a `theta` beyond the
    /// simplex.
    #[must_use]
    pub fn nominal(&self, theta: f64) -> Self {
        let mut nominal = self.clone();
        nominal.sites.iter_mut().for_each(|site| site.radius = 0.0);
        nominal.weights.theta = theta;
        nominal
    }

    /// The units of the data.
    ///
    /// # Errors
    /// The linear program of a polyhedral support was not solved.
    pub fn scale(&self) -> Result<DataScale, RobustError> {
        let zero = vec![0.0; self.sites.first().map_or(0, |site| site.samples.columns())];
        let losses = self.sites.iter().map(|site| self.robust.worst_loss(&zero, &site.samples, site.radius));
        let loss = self.weights.worst(&losses.collect::<Result<Vec<f64>, _>>()?).1;
        let sizes = self.sites.iter().map(|site| site.samples.mean_target());
        let prediction = sizes.zip(self.weights.nominal()).map(|(size, weight)| size * weight).sum();
        Ok(DataScale::new(loss, prediction))
    }

    /// The mean loss of a model, `[columns]`, at each site, `[sites]`, over the samples as they are.
    #[must_use]
    pub fn losses(&self, model: &[f64]) -> Vec<f64> {
        self.sites.iter().map(|site| self.robust.nominal(model, &site.samples)).collect()
    }
}

pub(crate) fn check_radius(radius: f64) -> Result<(), RobustError> {
    if radius >= 0.0 && radius.is_finite() { Ok(()) } else { Err(RobustError::Radius(radius)) }
}
