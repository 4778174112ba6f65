//! The penalty of the constraints: its start, scaled to the data, and its balancing while the method runs.

use serde::Serialize;

/// The factor of one change of a penalty.
pub const PENALTY_FACTOR: f64 = 2.0;
/// A penalty changes where one relative residual is this many times the other.
const IMBALANCE: f64 = 2.0;
/// The fewest iterations between two changes.
const SHORTEST_PERIOD: u64 = 10;
/// A period between two changes is at least this part of all iterations so far, so that changes become rare and the
/// convergence proof for a constant penalty holds from some iteration on.
const PART_OF_ALL: u64 = 8;
/// The most by which a penalty may differ from its start, either way.
const LARGEST_CHANGE: f64 = 1e6;

/// The penalty of the constraints, and the treatment of the coupled ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Penalty {
    /// `c`, above 0: constant, or where the method begins if it is adaptive.
    pub c: f64,
    /// The proximal terms of the coupled constraints.
    pub linearisation: Linearisation,
    /// `true` if the penalty is scaled to the data and then balances the primal and dual residuals. The linearised forms
    /// have a constant one.
    pub adaptive: bool,
    /// The factor of over-relaxation, from 1 (none) to below 2. The linearised forms have none.
    pub relaxation: f64,
}

impl Default for Penalty {
    fn default() -> Self {
        Self { c: 0.3, linearisation: Linearisation::None, adaptive: true, relaxation: 1.6 }
    }
}

impl Penalty {
    /// The method as in the paper: a constant penalty, without over-relaxation.
    #[must_use]
    pub fn constant(c: f64, linearisation: Linearisation) -> Self {
        Self { c, linearisation, adaptive: false, relaxation: 1.0 }
    }
}

/// The constants `c1` and `c2` of the proximal terms, at least `c` times the largest eigenvalue of `A^T A` for either
/// group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Linearisation {
    /// No proximal term: the losses `z` of all sites are the exact minimum, by a projection onto the set of weights.
    /// `t`, `eta` and `gam` are then not needed.
    #[default]
    None,
    /// The least constants allowed: `2 c` and `(S + 1) c`.
    Least,
    /// The constants of the paper: `2 S c` for both, slower with more sites.
    Paper,
}

/// The units of the data, the same at all sites: the start of an adaptive penalty, and the size of an error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataScale {
    /// The worst loss of the zero model.
    pub loss: f64,
    /// The size of predictions: the mean magnitude of targets, 1 for labels.
    pub prediction: f64,
}

impl DataScale {
    /// The scale of losses and predictions near 1.
    pub const ONE: Self = Self { loss: 1.0, prediction: 1.0 };

    /// The scale of these numbers; 1 in place of one that is not above 0 and finite.
    #[must_use]
    pub fn new(loss: f64, prediction: f64) -> Self {
        let usable = |value: f64| if value > 0.0 && value.is_finite() { value } else { 1.0 };
        Self { loss: usable(loss), prediction: usable(prediction) }
    }
}

/// The numbers by which a site steps in one iteration, the same at all sites.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steering {
    /// The penalty of `w = wh_s`.
    pub model: f64,
    /// The penalty of `z_s = pi_s`.
    pub loss: f64,
    /// The factor of over-relaxation.
    pub relaxation: f64,
}

impl Steering {
    /// One constant penalty, without over-relaxation.
    #[must_use]
    pub fn constant(c: f64) -> Self {
        Self { model: c, loss: c, relaxation: 1.0 }
    }

    /// The numbers of the first iteration, for data of this scale.
    #[must_use]
    pub fn begin(penalty: &Penalty, scale: DataScale) -> Self {
        let constant = Self { relaxation: penalty.relaxation, ..Self::constant(penalty.c) };
        if !penalty.adaptive {
            return constant;
        }
        let DataScale { loss, prediction } = scale;
        Self { model: penalty.c * loss / (prediction * prediction), loss: penalty.c / loss, ..constant }
    }
}

/// The residuals of one group of constraints, each as a share of what it is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Balance {
    /// The violation, as a share of the variables.
    pub(crate) primal: f64,
    /// The change of the variables times the penalty, as a share of the multipliers.
    pub(crate) dual: f64,
}

impl Balance {
    /// The factor for the penalty.
    fn factor(self) -> f64 {
        if self.primal > IMBALANCE * self.dual {
            PENALTY_FACTOR
        } else if self.dual > IMBALANCE * self.primal {
            1.0 / PENALTY_FACTOR
        } else {
            1.0
        }
    }
}

/// Residual balancing with relative residuals (Wohlberg 2017), at iterations that become rare.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Balancing {
    start: Steering,
    now: Steering,
    iterations: u64,
    changed: u64,
}

impl Balancing {
    pub(crate) fn new(start: Steering) -> Self {
        Self { start, now: start, iterations: 0, changed: 0 }
    }

    pub(crate) fn steering(&self) -> Steering {
        self.now
    }

    /// Counts an iteration and changes the penalties where it is time. Returns `true` if one changed.
    pub(crate) fn note(&mut self, model: Balance, loss: Balance) -> bool {
        self.iterations += 1;
        if self.iterations - self.changed < SHORTEST_PERIOD.max(self.iterations / PART_OF_ALL) {
            return false;
        }
        let within =
            |now: f64, factor: f64, start: f64| (now * factor).clamp(start / LARGEST_CHANGE, start * LARGEST_CHANGE);
        let next = Steering {
            model: within(self.now.model, model.factor(), self.start.model),
            loss: within(self.now.loss, loss.factor(), self.start.loss),
            ..self.now
        };
        let changed = next != self.now;
        if changed {
            self.changed = self.iterations;
            self.now = next;
        }
        changed
    }
}
