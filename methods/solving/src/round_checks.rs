//! Checks of what a node's own learning hands out, before it is shared.

use crate::learning::LearningError;

/// The most stages of statistics, and the most numbers in a row of one.
const MOST_STAGES: usize = 64;
const LONGEST_ROW: usize = 1 << 20;

/// Checks a row of statistics of a stage, if there is one.
pub(crate) fn check_row(row: Option<Vec<f64>>, stage: usize) -> Result<Option<Vec<f64>>, LearningError> {
    let Some(row) = row else { return Ok(None) };
    if row.is_empty() || row.len() > LONGEST_ROW || stage >= MOST_STAGES {
        let numbers = row.len();
        return Err(LearningError(format!(
            "stage {stage} of the statistics has {numbers} numbers: a row has 1 to {LONGEST_ROW}, there are {MOST_STAGES} stages"
        )));
    }
    match row.iter().position(|number| !number.is_finite()) {
        Some(at) => Err(LearningError(format!("number {at} in stage {stage} of the statistics is {}", row[at]))),
        None => Ok(Some(row)),
    }
}

/// Checks what a training shares.
pub(crate) fn check_finite(contribution: &[f32]) -> Result<(), LearningError> {
    match contribution.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(LearningError(format!(
            "the training diverged: number {at} of what is shared is {}; try a smaller learning rate",
            contribution[at]
        ))),
        None => Ok(()),
    }
}

/// Checks the metrics of a model, of which so many are expected.
pub(crate) fn check_metrics(own: Vec<Option<f64>>, metrics: usize) -> Result<Vec<Option<f64>>, LearningError> {
    if own.len() != metrics {
        return Err(LearningError(format!("{} metrics were measured, {metrics} are expected", own.len())));
    }
    match own.iter().flatten().find(|value| !value.is_finite()) {
        Some(value) => Err(LearningError(format!("the training diverged: a metric is {value}"))),
        None => Ok(own),
    }
}
