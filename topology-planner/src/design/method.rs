//! The names of the designs.

use std::{fmt, num::NonZeroU32, str::FromStr};

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
    /// Rounds of gossip, then a round with an exact average.
    PeriodicAverage(PeriodicAverage),
    /// The Base-(k+1) graph: a sequence of steps with at most `k` neighbours, after which all nodes have the average. The
    /// planner chooses a `k` that is left open.
    BaseGraph(Option<NonZeroU32>),
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

/// The choices of [`Method::PeriodicAverage`]; the planner makes those that are left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PeriodicAverage {
    /// The design of the gossip, one of those that `auto` tries.
    pub inner: Option<&'static Method>,
    /// The rounds of gossip before each exact average.
    pub gossip_rounds: Option<NonZeroU32>,
}

/// The most rounds of gossip before an exact average.
const MAX_GOSSIP_ROUNDS: u32 = 1_000;

/// The methods that can be the gossip of a periodic average.
static GOSSIP: [Method; 10] = [
    Method::NguyenHe,
    Method::Tuned,
    Method::BassHeuristic,
    Method::BassOptimised,
    Method::Matcha,
    Method::DPsgd,
    Method::SgpUniform,
    Method::Exponential,
    Method::OnePeerExponential,
    Method::BaseGraph(None),
];

impl Method {
    /// All methods, in the order of the documentation.
    pub const ALL: [Self; 18] = [
        Self::Auto,
        Self::NguyenHe,
        Self::Tuned,
        Self::ExactAverage,
        Self::PeriodicAverage(PeriodicAverage { inner: None, gossip_rounds: None }),
        Self::BassHeuristic,
        Self::BassOptimised,
        Self::Matcha,
        Self::DPsgd,
        Self::SgpUniform,
        Self::Exponential,
        Self::OnePeerExponential,
        Self::BaseGraph(None),
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
            Self::PeriodicAverage(_) => "periodic-average",
            Self::BaseGraph(_) => "base",
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
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum UnknownMethod {
    /// There is no method of this name.
    #[error("there is no method {text:?}: use one of {}", Method::ALL.map(Method::name).join(", "))]
    Name { text: String },
    /// A method has no choices.
    #[error(
        "method {method} takes nothing behind its name; periodic-average and base do: \
         periodic-average:inner=METHOD,k=ROUNDS and base:k=NEIGHBOURS"
    )]
    NoChoices { method: Method },
    /// No number of neighbours in a step of a base graph.
    #[error("{text:?} is no choice of base: write k=NEIGHBOURS, the most neighbours of a node in a step, from 1 on")]
    Neighbours { text: String },
    /// No choice of a periodic average.
    #[error(
        "{text:?} is no choice of periodic-average: write inner=METHOD, k=ROUNDS, or both with a comma between them"
    )]
    Choice { text: String },
    /// A number of rounds of gossip that a periodic average cannot have.
    #[error(
        "k={text}: a periodic average has 1 to {} rounds of gossip before each exact average; without any it is \
         exact-average",
        MAX_GOSSIP_ROUNDS
    )]
    GossipRounds { text: String },
    /// A method that is no gossip.
    #[error("inner={text}: the gossip of a periodic average is one of {}", GOSSIP.map(Method::name).join(", "))]
    Inner { text: String },
}

impl FromStr for Method {
    type Err = UnknownMethod;

    /// Reads a name; those of a periodic average and of a base graph may have choices behind them.
    ///
    /// ```
    /// use mingle_planner::Method;
    /// assert_eq!("d-psgd".parse(), Ok(Method::DPsgd));
    /// assert!("periodic-average:inner=one-peer-exponential,k=3".parse::<Method>().is_ok());
    /// assert!("base:k=1".parse::<Method>().is_ok());
    /// assert!("periodic-average:k=0".parse::<Method>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, choices) = text.split_once(':').map_or((text, None), |(name, choices)| (name, Some(choices)));
        let method = Self::ALL.into_iter().find(|method| method.name() == name);
        match (method.ok_or_else(|| UnknownMethod::Name { text: text.to_owned() })?, choices) {
            (method, None) => Ok(method),
            (Self::PeriodicAverage(_), Some(choices)) => choices.parse().map(Self::PeriodicAverage),
            (Self::BaseGraph(_), Some(choice)) => {
                neighbours(choice).map(|neighbours| Self::BaseGraph(Some(neighbours)))
            }
            (method, Some(_)) => Err(UnknownMethod::NoChoices { method }),
        }
    }
}

/// Reads `k=NEIGHBOURS`.
fn neighbours(choice: &str) -> Result<NonZeroU32, UnknownMethod> {
    let number = choice.strip_prefix("k=").and_then(|number| number.parse().ok());
    number.ok_or_else(|| UnknownMethod::Neighbours { text: choice.to_owned() })
}

impl FromStr for PeriodicAverage {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut chosen = Self::default();
        for choice in text.split(',') {
            match choice.split_once('=') {
                Some(("k", rounds)) => {
                    let rounds = rounds.parse().ok().filter(|rounds: &NonZeroU32| rounds.get() <= MAX_GOSSIP_ROUNDS);
                    let refused = || UnknownMethod::GossipRounds { text: choice[2..].to_owned() };
                    chosen.gossip_rounds = Some(rounds.ok_or_else(refused)?);
                }
                Some(("inner", name)) => {
                    let inner = GOSSIP.iter().find(|method| method.name() == name);
                    chosen.inner = Some(inner.ok_or_else(|| UnknownMethod::Inner { text: name.to_owned() })?);
                }
                _ => return Err(UnknownMethod::Choice { text: choice.to_owned() }),
            }
        }
        Ok(chosen)
    }
}
