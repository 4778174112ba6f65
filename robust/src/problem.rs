//! A robust problem whose samples are all in one place.

use crate::error::RobustError;
use crate::loss::RobustLoss;
use crate::samples::Samples;
use crate::weights::SiteWeights;

/// What one site brings.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSamples {
    /// Its samples.
    pub samples: Samples,
    /// How far, in the distance of Wasserstein, the worst distribution may be from them.
    pub radius: f64,
}

/// All sites.
#[derive(Clone, Debug, PartialEq)]
pub struct RobustProblem {
    /// The loss, and what its adversary may do.
    pub robust: RobustLoss,
    /// By site.
    pub sites: Vec<SiteSamples>,
    /// The weights of the sites, and how far from them the worst may be.
    pub weights: SiteWeights,
}

impl RobustProblem {
    /// Everything fits together.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), RobustError> {
        if self.sites.len() != self.weights.nominal.len() {
            return Err(RobustError::Shape("there has to be a nominal weight for each site"));
        }
        let first = self.sites.first().ok_or(RobustError::Shape("there is no site"))?;
        for site in &self.sites {
            check_radius(site.radius)?;
            let shape = |samples: &Samples| (samples.columns(), samples.movable());
            if shape(&site.samples) != shape(&first.samples) {
                return Err(RobustError::Shape("all sites need the same columns"));
            }
            self.robust.check_samples(&site.samples)?;
        }
        Ok(())
    }

    /// The same problem without any adversary but that of the weights: agnostic federated learning (AFL), with `theta` as it is;
    /// with `theta = 0` the usual mean loss; with a `theta` beyond the simplex the worst site's loss (DRFA).
    #[must_use]
    pub fn nominal(&self, theta: f64) -> Self {
        let mut nominal = self.clone();
        nominal.sites.iter_mut().for_each(|site| site.radius = 0.0);
        nominal.weights.theta = theta;
        nominal
    }

    /// The mean over sites, by nominal weight, of the losses of a model, and the loss at each site, as the samples are.
    #[must_use]
    pub fn losses(&self, model: &[f64]) -> Vec<f64> {
        self.sites.iter().map(|site| self.robust.nominal(model, &site.samples)).collect()
    }
}

pub(crate) fn check_radius(radius: f64) -> Result<(), RobustError> {
    if radius >= 0.0 && radius.is_finite() { Ok(()) } else { Err(RobustError::Radius(radius)) }
}
