//! The names of the designs.

use std::{fmt, str::FromStr};

/// A design: a way to choose links, weights and slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Method {
    /// The best of the designs below for the given medium, by their forecasts.
    Auto,
    /// Algorithm 1 of \[NH\]: a sparse directed graph of small diameter, filled up with links that cost no slot.
    NguyenHe,
    /// Algorithm 1 from many starts, with searched colourings and optimised column weights.
    Tuned,
    /// Gather to a root and scatter from it: the exact average in one period.
    ExactAverage,
    /// BASS: collision-free broadcast subsets, sampled with heuristic probabilities.
    BassHeuristic,
    /// BASS with optimised probabilities.
    BassOptimised,
    /// MATCHA: matchings, activated at random with optimised probabilities.
    Matcha,
    /// Vanilla D-PSGD: every edge both ways, symmetric Metropolis-Hastings weights.
    DPsgd,
    /// Vanilla SGP: every edge both ways, uniform columns.
    SgpUniform,
    /// The directed exponential graph: node `i` sends to `i + 2^k` for all `k` at once.
    Exponential,
    /// The one-peer exponential graph: node `i` sends to `i + 2^k`, one `k` per step.
    OnePeerExponential,
    /// The mixing matrix Phi of the maximal cliques, or of the edges where there are too many of those.
    CliquePhi,
    /// The mixing matrix Phi of the edges.
    EdgePhi,
    /// `(I + W) / 2` with Metropolis-Hastings weights.
    LazyMetropolis,
    /// `(I + W) / 2` with `W = I - 0.99 L / d`, the Laplacian `L` and the largest degree `d`.
    LazyLaplacian,
    /// `I - L / lambda`, with the largest eigenvalue of the Laplacian: the fastest of its kind without a negative
    /// eigenvalue.
    ScaledLaplacian,
}

impl Method {
    /// All methods, in the order of the documentation.
    pub const ALL: [Self; 16] = [
        Self::Auto,
        Self::NguyenHe,
        Self::Tuned,
        Self::ExactAverage,
        Self::BassHeuristic,
        Self::BassOptimised,
        Self::Matcha,
        Self::DPsgd,
        Self::SgpUniform,
        Self::Exponential,
        Self::OnePeerExponential,
        Self::CliquePhi,
        Self::EdgePhi,
        Self::LazyMetropolis,
        Self::LazyLaplacian,
        Self::ScaledLaplacian,
    ];

    /// Returns `true` if `auto` tries the method.
    #[must_use]
    pub fn is_tried_by_auto(self) -> bool {
        self != Self::Auto && !self.is_for_solvers()
    }

    /// Returns `true` for the symmetric matrices without negative eigenvalues that solvers of coupled problems mix
    /// with. They use every edge, and give up speed for eigenvalues that training has no use for: `auto` does not try
    /// them.
    #[must_use]
    pub const fn is_for_solvers(self) -> bool {
        matches!(
            self,
            Self::CliquePhi | Self::EdgePhi | Self::LazyMetropolis | Self::LazyLaplacian | Self::ScaledLaplacian
        )
    }

    /// The name in plan files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::NguyenHe => "nguyen-he",
            Self::Tuned => "tuned",
            Self::ExactAverage => "exact-average",
            Self::BassHeuristic => "bass-heuristic",
            Self::BassOptimised => "bass-optimised",
            Self::Matcha => "matcha",
            Self::DPsgd => "d-psgd",
            Self::SgpUniform => "sgp-uniform",
            Self::Exponential => "exponential",
            Self::OnePeerExponential => "one-peer-exponential",
            Self::CliquePhi => "clique-phi",
            Self::EdgePhi => "edge-phi",
            Self::LazyMetropolis => "lazy-metropolis",
            Self::LazyLaplacian => "lazy-laplacian",
            Self::ScaledLaplacian => "scaled-laplacian",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no method {text:?}: use one of {}", Method::ALL.map(Method::name).join(", "))]
pub struct UnknownMethod {
    /// The text.
    pub text: String,
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|method| method.name() == text)
            .ok_or_else(|| UnknownMethod { text: text.to_owned() })
    }
}
