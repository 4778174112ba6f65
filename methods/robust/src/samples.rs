//! The samples of one site, and the support of samples.

use serde::Serialize;

use crate::error::{Outside, RobustError};

/// Tolerance of the support: scaling to a box rounds, and a sample that is outside by less counts as on its edge.
const ROUNDING: f64 = 1e-12;

/// Samples with their labels (1 and -1) or targets.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSamples {
    columns: usize,
    movable: usize,
    values: Vec<f64>,
    targets: Vec<f64>,
}

impl LinearSamples {
    /// `values` row by row, `[rows][columns]`; `targets`, `[rows]`. The adversary moves the first `movable` columns only.
    ///
    /// # Errors
    /// The vectors do not fit together, there is no sample or no movable column, or a number is not finite.
    pub fn new(columns: usize, movable: usize, values: Vec<f64>, targets: Vec<f64>) -> Result<Self, RobustError> {
        if targets.is_empty() {
            return Err(RobustError::Shape("there is no sample"));
        }
        if movable == 0 || movable > columns {
            return Err(RobustError::Shape("there has to be a column that can move, and no more than there are"));
        }
        if columns.checked_mul(targets.len()) != Some(values.len()) {
            return Err(RobustError::Shape("there have to be as many values as columns and rows ask for"));
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(RobustError::NotFinite { row: at / columns, value: values[at] });
        }
        if let Some(row) = targets.iter().position(|target| !target.is_finite()) {
            return Err(RobustError::NotFinite { row, value: targets[row] });
        }
        Ok(Self { columns, movable, values, targets })
    }

    /// The number of columns, those that do not move included.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of columns that the adversary moves, which come first.
    #[must_use]
    pub fn movable(&self) -> usize {
        self.movable
    }

    /// The number of samples.
    #[must_use]
    pub fn count(&self) -> usize {
        self.targets.len()
    }

    /// The mean magnitude of the targets; 1 for labels.
    #[must_use]
    pub fn mean_target(&self) -> f64 {
        self.targets.iter().map(|target| target.abs()).sum::<f64>() / self.count() as f64
    }

    /// The same samples with other targets.
    pub(crate) fn with_targets(&self, of: impl Fn(f64) -> f64) -> Self {
        Self { targets: self.targets.iter().map(|&target| of(target)).collect(), ..self.clone() }
    }

    /// Each sample, `[columns]`, with its target.
    pub fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.values.chunks_exact(self.columns).zip(self.targets.iter().copied())
    }

    /// Checks that every label is 1 or -1.
    ///
    /// # Errors
    /// The first row whose label is neither.
    pub fn check_labels(&self) -> Result<(), RobustError> {
        match self.targets.iter().position(|&label| label != 1.0 && label != -1.0) {
            Some(row) => Err(RobustError::Label { row, value: self.targets[row] }),
            None => Ok(()),
        }
    }

    /// Checks that every sample is in the support. A sample outside it would make the value less than that of the
    /// samples themselves.
    ///
    /// # Errors
    /// The first sample that is outside.
    pub fn check(&self, support: &Support) -> Result<(), Outside> {
        match support {
            Support::Unbounded => Ok(()),
            Support::Box { lower, upper } => {
                let is_out = |value: f64| value < lower - ROUNDING || value > upper + ROUNDING;
                let mut rows = self.rows().enumerate();
                let found = rows.find_map(|(row, (sample, _))| {
                    let column = sample[..self.movable].iter().position(|&value| is_out(value))?;
                    Some(Outside::Box { row, column, value: sample[column], lower: *lower, upper: *upper })
                });
                found.map_or(Ok(()), Err)
            }
            Support::Polyhedron(half_spaces) => {
                let out = |sample: &[f64], target| {
                    let found = half_spaces.iter().position(|space| space.slack(sample, target) < -ROUNDING);
                    found.map(|space| (space, half_spaces[space].slack(sample, target)))
                };
                let mut rows = self.rows().enumerate();
                let found = rows.find_map(|(row, (sample, target))| {
                    let (half_space, slack) = out(sample, target)?;
                    Some(Outside::HalfSpace { row, half_space, by: -slack })
                });
                found.map_or(Ok(()), Err)
            }
        }
    }

    /// Clips all movable values to `[lower, upper]`; returns the number of values that were outside.
    pub fn clip(&mut self, lower: f64, upper: f64) -> usize {
        let mut clipped = 0;
        for row in self.values.chunks_exact_mut(self.columns) {
            for value in &mut row[..self.movable] {
                let inside = value.clamp(lower, upper);
                clipped += usize::from(inside.to_bits() != value.to_bits());
                *value = inside;
            }
        }
        clipped
    }
}

/// The support of samples: the region within which the adversary may move them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// Anywhere.
    Unbounded,
    /// Each movable column within bounds; targets are not bounded.
    Box {
        /// The least value of any column.
        lower: f64,
        /// The largest value of any column.
        upper: f64,
    },
    /// Within all half-spaces, `C x <= d`.
    Polyhedron(Vec<HalfSpace>),
}

/// `<coefficients, x> + target * y <= bound`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HalfSpace {
    /// The coefficients of the movable columns.
    pub coefficients: Vec<f64>,
    /// The coefficient of the target of a regression; 0 for labels.
    pub target: f64,
    /// The bound.
    pub bound: f64,
}

impl HalfSpace {
    /// The slack of the half-space at a sample; negative outside.
    pub(crate) fn slack(&self, sample: &[f64], target: f64) -> f64 {
        let sum: f64 = self.coefficients.iter().zip(sample).map(|(coefficient, value)| coefficient * value).sum();
        self.bound - sum - self.target * target
    }
}

impl Support {
    /// Checks the support for so many movable columns.
    pub(crate) fn check(&self, movable: usize) -> Result<(), RobustError> {
        match self {
            Self::Box { lower, upper } if !(lower < upper && lower.is_finite() && upper.is_finite()) => {
                Err(RobustError::NoSupport("a box needs a lower bound below its upper one"))
            }
            Self::Polyhedron(spaces) if spaces.is_empty() => {
                Err(RobustError::NoSupport("a polyhedron needs a half-space"))
            }
            Self::Polyhedron(spaces) => {
                let is_finite = |space: &HalfSpace| {
                    let numbers = space.coefficients.iter().chain([&space.target, &space.bound]);
                    space.coefficients.len() == movable && numbers.into_iter().all(|number| number.is_finite())
                };
                let all_are = spaces.iter().all(is_finite);
                all_are.then_some(()).ok_or(RobustError::NoSupport(
                    "a half-space needs a finite coefficient for each movable column, and a finite bound",
                ))
            }
            _ => Ok(()),
        }
    }
}
