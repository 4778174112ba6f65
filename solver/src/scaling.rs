//! How the columns of tables are scaled, by what all nodes' sums and extrema come to.

/// A column whose deviation is a smaller share of its largest number does not vary, but for rounding.
const CONSTANT: f64 = 1e-9;

/// How numbers are scaled before anything is solved: each column to mean 0 and deviation 1 over all nodes, the target to mean 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    means: Vec<f64>,
    deviations: Vec<f64>,
    target: f64,
}

impl Scaling {
    /// None at all.
    #[must_use]
    pub fn none(columns: usize) -> Self {
        Self { means: vec![0.0; columns], deviations: vec![1.0; columns], target: 0.0 }
    }

    /// To the means that follow from the [sums](crate::Table::sums) over all nodes, or those divided by any number.
    #[must_use]
    pub fn centering(sums: &[f64]) -> Self {
        let columns = sums.len().saturating_sub(2);
        let means = sums[1..=columns].iter().map(|sum| sum / sums[0]).collect();
        Self { means, deviations: vec![1.0; columns], target: sums[columns + 1] / sums[0] }
    }

    /// To the deviations that follow from the [squares](crate::Table::squares) over all nodes and the number of all rows, or those
    /// divided by any number. A column that does not vary is left as it is: it is zero then.
    #[must_use]
    pub fn with_deviations(mut self, squares: &[f64], rows: f64) -> Self {
        for ((deviation, square), mean) in self.deviations.iter_mut().zip(squares).zip(&self.means) {
            let found = (square.max(0.0) / rows).sqrt();
            *deviation = if found > CONSTANT * mean.abs() && found > 0.0 { found } else { 1.0 };
        }
        self
    }

    /// The columns from their least and largest numbers over all nodes, `[columns]` each, to `[lower, upper]`; the target is left
    /// as it is. A column that does not vary becomes the middle.
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

    /// What is subtracted from each column, and what it is divided by then, `[columns]` each; the target is left as it is.
    #[must_use]
    pub fn of(means: Vec<f64>, deviations: Vec<f64>) -> Self {
        Self { means, deviations, target: 0.0 }
    }

    /// Whether a column with this least and largest number varies, but for rounding.
    #[must_use]
    pub fn varies(least: f64, largest: f64) -> bool {
        largest - least > CONSTANT * least.abs().max(largest.abs())
    }

    /// The same for the columns, and the target as it is.
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

    /// What is subtracted from each column, and what it is divided by then, `[columns]` each.
    #[must_use]
    pub fn columns(&self) -> (&[f64], &[f64]) {
        (&self.means, &self.deviations)
    }

    /// What is subtracted from the target.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.target
    }

    /// The coefficients and the intercept for numbers as they were before.
    #[must_use]
    pub fn back(&self, x: &[f64]) -> (Vec<f64>, f64) {
        let coefficients: Vec<f64> = x.iter().zip(&self.deviations).map(|(x, deviation)| x / deviation).collect();
        let shift: f64 = coefficients.iter().zip(&self.means).map(|(coefficient, mean)| coefficient * mean).sum();
        (coefficients, self.target - shift)
    }
}
