//! Losses of scores, and their derivatives, in f64 and without overflow.
//!
//! The bias-aware contrastive loss of a positive with score `f` and negatives `f_j` (Sim and Park, section 3.1, eq. 9):
//!
//! ```text
//!   - log  e^{cos(R + m) / tau} / ( e^{cos(R + m) / tau} + sum_j e^{cos(R_j) / tau} )         cos(R) = tanh f,  R in [0, pi]
//! ```
//!
//! The angle `R` is never differentiated: `cos(R + m) = tanh(f) cos m - sech(f) sin m`, whose derivative
//! `sech(f)^2 cos m + sech(f) tanh(f) sin m` is finite everywhere, where that of `arccos(tanh f)` is not.

use std::f64::consts::PI;

/// The loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RankingLoss {
    /// The contrastive loss, at a temperature.
    Contrastive {
        /// `tau`.
        temperature: f64,
    },
    /// Bayesian personalised ranking: `-log sigmoid(f - f_j)`, averaged over negatives (Rendle et al. 2009).
    Bpr,
}

impl RankingLoss {
    /// The loss of a positive with margin `margin` and its negatives, and its derivatives by their scores, the positive's first.
    pub fn of(self, positive: f64, margin: f64, negatives: &[f64]) -> (f64, Vec<f64>) {
        match self {
            Self::Contrastive { temperature } => contrastive(positive, margin, negatives, temperature),
            Self::Bpr => bpr(positive, negatives),
        }
    }
}

/// `1 / cosh f`, exact for large `f`.
fn sech(f: f64) -> f64 {
    let small = (-f.abs()).exp();
    2.0 * small / (1.0 + small * small)
}

/// The angle of a score: `arccos(tanh f)`, exact at both ends.
pub fn angle(f: f64) -> f64 {
    sech(f).atan2(f.tanh())
}

/// `cos(arccos(tanh f) + m)`, and its derivative by `f`.
pub fn shifted_cosine(f: f64, m: f64) -> (f64, f64) {
    let cos = f.tanh();
    let sech = sech(f);
    (cos * m.cos() - sech * m.sin(), sech * sech * m.cos() + sech * cos * m.sin())
}

/// The rule for the margin of a positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarginRule {
    /// The share `gamma` of the popularity angle that is the margin, before it is capped.
    pub gamma: f64,
    /// The share of the margin of all, `omega`.
    pub omega: f64,
}

impl MarginRule {
    /// `M = min(gamma xi, pi - R)` of a positive with score `f` and popularity angle `xi`.
    pub fn own(&self, f: f64, xi: f64) -> f64 {
        (self.gamma * xi).min(PI - angle(f))
    }

    /// `omega M_all + (1 - omega) M`, or `M` before the first `M_all`; capped so that the angle does not exceed pi.
    pub fn refined(&self, f: f64, own: f64, of_all: Option<f64>) -> f64 {
        let refined = of_all.map_or(own, |of_all| self.omega * of_all + (1.0 - self.omega) * own);
        refined.min(PI - angle(f))
    }
}

fn contrastive(positive: f64, margin: f64, negatives: &[f64], temperature: f64) -> (f64, Vec<f64>) {
    let (cosine, slope) = shifted_cosine(positive, margin);
    let logits: Vec<f64> =
        std::iter::once(cosine).chain(negatives.iter().map(|f| f.tanh())).map(|cos| cos / temperature).collect();
    let (log_sum, shares) = log_sum_exp(&logits);
    let slopes = std::iter::once(slope).chain(negatives.iter().map(|f| sech(*f).powi(2)));
    let mut gradient: Vec<f64> = shares.iter().zip(slopes).map(|(share, slope)| share * slope / temperature).collect();
    gradient[0] -= slope / temperature;
    (log_sum - logits[0], gradient)
}

fn bpr(positive: f64, negatives: &[f64]) -> (f64, Vec<f64>) {
    let count = negatives.len().max(1) as f64;
    let mut loss = 0.0;
    let mut gradient = vec![0.0];
    for negative in negatives {
        let margin = positive - negative;
        // log(1 + e^-x) without overflow, and its derivative.
        loss += (-margin.abs()).exp().ln_1p() + (-margin).max(0.0);
        let slope = -1.0 / (1.0 + margin.exp()) / count;
        gradient[0] += slope;
        gradient.push(-slope);
    }
    (loss / count, gradient)
}

/// `log sum_i e^{x_i}`, and the share of each term.
pub(crate) fn log_sum_exp(logits: &[f64]) -> (f64, Vec<f64>) {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let terms: Vec<f64> = logits.iter().map(|logit| (logit - largest).exp()).collect();
    let sum: f64 = terms.iter().sum();
    (largest + sum.ln(), terms.into_iter().map(|term| term / sum).collect())
}
