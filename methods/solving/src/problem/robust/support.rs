//! The support of samples as a problem file describes it, and checks of samples against it.

use std::collections::BTreeMap;

use mingle_robust::HalfSpace;
use mingle_solver::{RegressionTable, Standardization};
use serde::{Deserialize, Serialize};

use crate::problem::SampleError;

/// The excess over a bound that counts as a rounding error.
const ROUNDING: f64 = 1e-12;

/// The support as the file describes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::problem) enum SupportEntry {
    Unbounded,
    Box { lower: f64, upper: f64 },
    HalfSpaces(Vec<HalfSpaceEntry>),
}

/// A half-space: `sum of coefficients * columns + target * target <= bound`, in the numbers of the tables.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::problem) struct HalfSpaceEntry {
    pub(super) coefficients: BTreeMap<String, f64>,
    #[serde(default)]
    pub(super) target: f64,
    pub(super) bound: f64,
}

pub(super) fn check_box(table: &RegressionTable, lower: f64, upper: f64) -> Result<(), SampleError> {
    for (at, (row, _)) in table.rows().enumerate() {
        let outside = |value: &f64| *value < lower - ROUNDING || *value > upper + ROUNDING;
        if let Some(column) = row.iter().position(outside) {
            let value = row[column];
            let column = table.columns()[column].clone();
            return Err(SampleError::OutsideBox { row: at + 1, column, value, lower, upper });
        }
    }
    Ok(())
}

pub(super) fn check_half_spaces(table: &RegressionTable, entries: &[HalfSpaceEntry]) -> Result<(), SampleError> {
    let none = Standardization::none(table.columns().len());
    for (half_space, entry) in entries.iter().enumerate() {
        let space = entry.scaled(table.columns(), &none)?;
        for (row, (sample, target)) in table.rows().enumerate() {
            let by = space.coefficients.iter().zip(sample).map(|(c, x)| c * x).sum::<f64>() + space.target * target
                - space.bound;
            if by > ROUNDING {
                return Err(SampleError::OutsideHalfSpace { row: row + 1, half_space: half_space + 1, by });
            }
        }
    }
    Ok(())
}

impl HalfSpaceEntry {
    /// The half-space in scaled columns, `x' = (x - mean) / deviation`.
    pub(super) fn scaled(&self, columns: &[String], scaling: &Standardization) -> Result<HalfSpace, SampleError> {
        if let Some(name) = self.coefficients.keys().find(|name| !columns.contains(name)) {
            return Err(SampleError::NoColumn(name.clone()));
        }
        let (means, deviations) = scaling.columns();
        let of = |column: &String| self.coefficients.get(column).copied().unwrap_or(0.0);
        let shift: f64 = columns.iter().zip(means).map(|(column, mean)| of(column) * mean).sum();
        let coefficients = columns.iter().zip(deviations).map(|(column, deviation)| of(column) * deviation).collect();
        Ok(HalfSpace { coefficients, target: self.target, bound: self.bound - shift })
    }
}
