//! The worst expected loss of a model near the samples of one site, as a value.

use crate::cone_program::{Affine, ConeProgram};
use crate::epigraph::mean_loss;
use crate::error::RobustError;
use crate::loss::{Loss, RobustLoss, dot};
use crate::samples::{LinearSamples, Support};
use crate::units::Units;

/// The steps of the search for `lam`: they reduce the range to 1e-19 of it.
const STEPS: usize = 90;
/// The factor by which a step of golden section search reduces the range.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

impl RobustLoss {
    /// The largest expected loss of a model, `[columns]`, under any distribution within `radius` of the samples. One
    /// search over `lam`, of 90 times rows times columns, or a linear program where the support is a polyhedron.
    ///
    /// # Errors
    /// The linear program was not solved.
    pub fn worst_loss(&self, model: &[f64], samples: &LinearSamples, radius: f64) -> Result<f64, RobustError> {
        if radius == 0.0 {
            return Ok(self.nominal(model, samples));
        }
        match DualFunction::new(self, model, samples, radius) {
            Some(search) => Ok(search.least(f64::NEG_INFINITY)),
            None => self.worst_by_program(model, samples, radius),
        }
    }

    /// Returns `true` if the worst loss is at most `bound`; `false` also where no search is possible, near samples in a
    /// polyhedron.
    pub(crate) fn is_worst_within(&self, bound: f64, model: &[f64], samples: &LinearSamples, radius: f64) -> bool {
        if radius == 0.0 {
            return self.nominal(model, samples) <= bound;
        }
        DualFunction::new(self, model, samples, radius).is_some_and(|search| search.least(bound) <= bound)
    }

    fn worst_by_program(&self, model: &[f64], samples: &LinearSamples, radius: f64) -> Result<f64, RobustError> {
        let units = Units::of(&self.loss, samples);
        let mut program = ConeProgram::default();
        let columns = program.variables(model.len());
        for (&column, value) in columns.iter().zip(model) {
            program.zero(Affine::constant(-value / units.prediction).plus(1.0, column));
        }
        let lam = program.nonnegative_variable();
        let worst = program.variable();
        let robust = units.scale_loss(self);
        let samples = units.scale_samples(samples);
        let mean = mean_loss(&mut program, &columns, Some(lam), &robust, &samples);
        program.nonnegative(Affine::of(worst).plus(-radius, lam).add(-1.0, &mean));
        program.cost(worst, 0.0, 1.0);
        Ok(units.loss * program.prepare()?.solve()?.cost)
    }
}

/// `radius lam + mean of the suprema`, a convex function of `lam`.
struct DualFunction<'a> {
    robust: &'a RobustLoss,
    model: &'a [f64],
    samples: &'a LinearSamples,
    radius: f64,
    predictions: Vec<f64>,
    range: [f64; 2],
}

impl<'a> DualFunction<'a> {
    /// A search; `None` where the suprema have no closed form.
    fn new(robust: &'a RobustLoss, model: &'a [f64], samples: &'a LinearSamples, radius: f64) -> Option<Self> {
        if matches!(robust.support, Support::Polyhedron(_)) {
            return None;
        }
        let steepest = robust.loss.steepest();
        let moving = model[..samples.movable()].iter().map(|value| steepest * value.abs()).fold(0.0, f64::max);
        let predictions: Vec<f64> = samples.rows().map(|(sample, _)| dot(model, sample)).collect();
        let mut least = if robust.support == Support::Unbounded { moving } else { 0.0 };
        let mut most = moving;
        if robust.loss.is_classification() {
            // Beyond this `lam` changing a label costs more than it gains on any sample.
            let flipped = predictions.iter().map(|prediction| robust.loss.value(prediction.abs(), -1.0));
            most = most.max(flipped.fold(0.0, f64::max) / robust.kappa);
        } else {
            least = least.max(steepest / robust.kappa);
        }
        Some(Self { robust, model, samples, radius, predictions, range: [least, most.max(least)] })
    }

    /// The least value, or any value that is no larger than `enough`.
    fn least(&self, enough: f64) -> f64 {
        let [mut low, mut high] = self.range;
        let mut best = self.value(low).min(self.value(high));
        let inner = |low: f64, high: f64| [high - GOLDEN * (high - low), low + GOLDEN * (high - low)];
        let mut at = inner(low, high);
        let mut values = at.map(|lam| self.value(lam));
        for _ in 0..STEPS {
            best = best.min(values[0]).min(values[1]);
            if best <= enough || high <= low {
                break;
            }
            if values[0] <= values[1] {
                high = at[1];
                at = inner(low, high);
                values = [self.value(at[0]), values[0]];
            } else {
                low = at[0];
                at = inner(low, high);
                values = [values[1], self.value(at[1])];
            }
        }
        best
    }

    fn value(&self, lam: f64) -> f64 {
        let rows = self.samples.rows().zip(&self.predictions);
        let suprema = rows.map(|((sample, target), &prediction)| self.supremum(lam, sample, target, prediction));
        self.radius * lam + suprema.sum::<f64>() / self.samples.count() as f64
    }

    /// The largest loss at one sample under the adversary, less the cost of its change.
    fn supremum(&self, lam: f64, sample: &[f64], target: f64, prediction: f64) -> f64 {
        let loss = self.robust.loss;
        let flip_cost = self.robust.kappa * lam;
        let Some(pieces) = loss.pieces(target) else {
            let own = loss.value(prediction, target);
            return match loss {
                Loss::Huber { .. } => own,
                _ => own.max(loss.value(prediction, -target) - flip_cost),
            };
        };
        let value = |piece: &crate::loss::Piece| {
            let flip = if piece.flipped { flip_cost } else { 0.0 };
            let here = piece.slope * prediction + piece.target_slope * target + piece.constant;
            here - flip + self.gain(lam, piece.slope, sample)
        };
        pieces.iter().map(value).fold(0.0, f64::max)
    }

    /// The gain on a piece of this slope by moving the sample within a box.
    fn gain(&self, lam: f64, slope: f64, sample: &[f64]) -> f64 {
        let Support::Box { lower, upper } = self.robust.support else { return 0.0 };
        let columns = sample.iter().zip(self.model).take(self.samples.movable());
        columns
            .map(|(value, model)| {
                let change = slope * model;
                let room = if change > 0.0 { upper - value } else { value - lower };
                (change.abs() - lam).max(0.0) * room.max(0.0)
            })
            .sum()
    }
}
