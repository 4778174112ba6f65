//! Scaling of the columns of tables, from sums and extrema over all nodes.

/// The least ratio of deviation to largest number of a column that varies; below it, it is rounding.
const CONSTANT: f64 = 1e-9;

/// The scaling of numbers before a problem is solved: each column to mean 0 and deviation 1 over all nodes, the target
/// to mean 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Standardization {
    means: Vec<f64>,
    deviations: Vec<f64>,
    target: f64,
}

impl Standardization {
    /// The identity.
    #[must_use]
    pub fn none(columns: usize) -> Self {
        Self { means: vec![0.0; columns], deviations: vec![1.0; columns], target: 0.0 }
    }

    /// Centring by the means that follow from the [sums](crate::RegressionTable::sums) over all nodes, or from those divided by
    /// any number.
    #[must_use]
    pub fn centering(sums: &[f64]) -> Self {
        let columns = sums.len().saturating_sub(2);
        let means = sums[1..=columns].iter().map(|sum| sum / sums[0]).collect();
        Self { means, deviations: vec![1.0; columns], target: sums[columns + 1] / sums[0] }
    }

    /// Adds the deviations that follow from the [squares](crate::RegressionTable::squares) over all nodes and the number of all
    /// rows, or from those divided by any number. A column that does not vary is not divided: it is zero after
    /// centring.
    #[must_use]
    pub fn with_deviations(mut self, squares: &[f64], rows: f64) -> Self {
        for ((deviation, square), mean) in self.deviations.iter_mut().zip(squares).zip(&self.means) {
            let found = (square.max(0.0) / rows).sqrt();
            *deviation = if found > CONSTANT * mean.abs() && found > 0.0 { found } else { 1.0 };
        }
        self
    }

    /// Scaling of the columns from their least and largest numbers over all nodes, `[columns]` each, to
    /// `[lower, upper]`. The target is unchanged. A column that does not vary becomes the middle.
    #[must_use]
    pub fn to_range(least: &[f64], largest: &[f64], lower: f64, upper: f64) -> Self {
        let deviation = |(least, largest): (&f64, &f64)| {
            let range = (largest - least) / (upper - lower);
            if Self::varies(*least, *largest) { range } else { 1.0 }
        };
        let deviations: Vec<f64> = least.iter().zip(largest).map(deviation).collect();
        let mean = |((least, largest), deviation): ((&f64, &f64), &f64)| {
            if Self::varies(*least, *largest) { least - lower * deviation } else { least - 0.5 * (lower + upper) }
        };
        let means = least.iter().zip(largest).zip(&deviations).map(mean).collect();
        Self { means, deviations, target: 0.0 }
    }

    /// Scaling by a subtrahend and then a divisor for each column, `[columns]` each; the target is unchanged.
    #[must_use]
    pub fn of(means: Vec<f64>, deviations: Vec<f64>) -> Self {
        Self { means, deviations, target: 0.0 }
    }

    /// Returns `true` if a column with this least and largest number varies by more than rounding.
    #[must_use]
    pub fn varies(least: f64, largest: f64) -> bool {
        largest - least > CONSTANT * least.abs().max(largest.abs())
    }

    /// This scaling of the columns, with an unchanged target.
    #[must_use]
    pub fn of_columns_alone(mut self) -> Self {
        self.target = 0.0;
        self
    }

    /// A row, `[columns]`, scaled.
    pub fn scaled<'a>(&'a self, row: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let columns = self.means.iter().zip(&self.deviations);
        row.iter().zip(columns).map(|(value, (mean, deviation))| (value - mean) / deviation)
    }

    /// The subtrahend and the divisor of each column, `[columns]` each.
    #[must_use]
    pub fn columns(&self) -> (&[f64], &[f64]) {
        (&self.means, &self.deviations)
    }

    /// The subtrahend of the target.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.target
    }

    /// The coefficients and the intercept for unscaled numbers.
    #[must_use]
    pub fn back(&self, x: &[f64]) -> (Vec<f64>, f64) {
        let coefficients: Vec<f64> = x.iter().zip(&self.deviations).map(|(x, deviation)| x / deviation).collect();
        let shift: f64 = coefficients.iter().zip(&self.means).map(|(coefficient, mean)| coefficient * mean).sum();
        (coefficients, self.target - shift)
    }
}
