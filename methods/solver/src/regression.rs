//! Sparse linear regression: the columns that explain a target, over rows that many nodes hold.
//!
//! ```text
//!   min over x   1/(2N) sum over all N rows (a x - b)^2  +  ridge/2 || x ||^2  +  lambda penalty(x)
//! ```
//!
//! The objective is the mean over the nodes of `n/(2N) || A_i x - b_i ||^2 + ridge/2 || x ||^2 + lambda penalty(x)`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{ConsensusTerms, L1, NonnegativeL1, Nonsmooth, RegressionTable, SparseGroups, Standardization};

/// The largest weight accepted.
const LARGEST: f64 = 1e100;

/// The terms of a regression besides the fit of the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// Weight of the penalty; not negative.
    pub lambda: f64,
    /// Weight of half the squares of the coefficients; not negative.
    pub ridge: f64,
    /// `true` if coefficients may not be negative.
    pub nonnegative: bool,
    /// Groups of columns that are zero together; without groups the penalty is that of absolute values.
    pub groups: Vec<Vec<String>>,
}

/// Errors of a regression.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RegressionError {
    /// A weight is not a number, or makes the problem non-convex.
    #[error("{what} is {value:?}; it must be zero or a positive number up to 1e100, or the problem is not convex")]
    Weight {
        /// The name of the weight.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A column is in no group, in two, or not in the table.
    #[error("column `{column}` is {times}; with groups, each column is in one")]
    Grouping {
        /// The column.
        column: String,
        /// The fault, in words.
        times: &'static str,
    },
    /// Groups are combined with nonnegativity.
    #[error("groups and nonnegative do not go together")]
    GroupsAndNonnegative,
}

impl Regression {
    /// Checks the regression for these columns.
    ///
    /// # Errors
    ///
    /// [`RegressionError`].
    pub fn check(&self, columns: &[String]) -> Result<(), RegressionError> {
        self.check_weights()?;
        if self.groups.is_empty() {
            return Ok(());
        }
        let wrong = |column: &String, times| Err(RegressionError::Grouping { column: column.clone(), times });
        for column in columns {
            match self.groups.iter().flatten().filter(|other| *other == column).count() {
                0 => return wrong(column, "in no group"),
                1 => {}
                _ => return wrong(column, "in more than one group"),
            }
        }
        match self.groups.iter().flatten().find(|column| !columns.contains(column)) {
            Some(column) => wrong(column, "in a group, but not in the table"),
            None => Ok(()),
        }
    }

    /// Checks the parts that do not depend on the columns.
    ///
    /// # Errors
    ///
    /// [`RegressionError`].
    pub fn check_weights(&self) -> Result<(), RegressionError> {
        for (what, value) in [("lambda", self.lambda), ("ridge", self.ridge)] {
            if !(0.0..=LARGEST).contains(&value) {
                return Err(RegressionError::Weight { what, value });
            }
        }
        if self.nonnegative && !self.groups.is_empty() {
            return Err(RegressionError::GroupsAndNonnegative);
        }
        Ok(())
    }

    /// The penalty on the coefficients of these columns.
    #[must_use]
    pub fn penalty(&self, columns: &[String]) -> Box<dyn Nonsmooth> {
        let weight = self.lambda;
        if !self.groups.is_empty() {
            let place = |column: &String| columns.iter().position(|other| other == column);
            let groups = self.groups.iter().map(|group| group.iter().filter_map(place).collect()).collect();
            return Box::new(SparseGroups { weight, groups });
        }
        if self.nonnegative { Box::new(NonnegativeL1 { weight }) } else { Box::new(L1 { weight }) }
    }

    /// One node's terms: its rows, out of `rows_per_node` on average.
    #[must_use]
    pub fn terms(&self, table: &RegressionTable, scaling: &Standardization, rows_per_node: f64) -> ConsensusTerms {
        let smooth = table.least_squares(scaling, 1.0 / rows_per_node).with_ridge(self.ridge);
        ConsensusTerms { smooth: Box::new(smooth), nonsmooth: self.penalty(table.columns()) }
    }

    /// The solution for a table in one place, with its objective and number of steps: accelerated proximal gradient
    /// descent until the optimality conditions hold to `tolerance`, for `most` steps at most.
    #[must_use]
    pub fn solve(
        &self,
        table: &RegressionTable,
        scaling: &Standardization,
        tolerance: f64,
        most: usize,
    ) -> CentralSolution {
        let terms = self.terms(table, scaling, table.row_count() as f64);
        let (x, steps) = crate::solve::alone(&*terms.smooth, &*terms.nonsmooth, tolerance, most);
        let objective = terms.smooth.value(&x) + terms.nonsmooth.value(&x);
        let mut gradient = vec![0.0; x.len()];
        terms.smooth.gradient(&x, &mut gradient);
        let optimality = crate::optimality(&*terms.nonsmooth, &x, &gradient, 1.0 / terms.smooth.smoothness());
        CentralSolution { x, objective, optimality, steps }
    }
}

/// A solution computed in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct CentralSolution {
    /// The scaled coefficients.
    pub x: Vec<f64>,
    /// The objective at `x`.
    pub objective: f64,
    /// The violation of the optimality conditions.
    pub optimality: f64,
    /// The number of steps.
    pub steps: usize,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Selection;

    fn table() -> RegressionTable {
        let rows: Vec<String> = (0..40)
            .map(|row| {
                let [a, b, c] = [7, 11, 13].map(|step| f64::from(row * step % 17) / 8.0 - 1.0);
                format!("{a},{b},{c},{}", 2.0 * a - 0.02 * b + 1.0)
            })
            .collect();
        let text = format!("a,b,c,y\n{}\n", rows.join("\n"));
        RegressionTable::read(text.as_bytes(), &Selection { target: "y".to_owned(), columns: Vec::new() }).unwrap()
    }

    fn scaled(table: &RegressionTable) -> Standardization {
        let centered = Standardization::centering(&table.sums());
        centered.clone().with_deviations(&table.squares(&centered), table.row_count() as f64)
    }

    #[test]
    fn a_penalty_leaves_the_column_that_explains() {
        let table = table();
        let scaling = scaled(&table);
        for lambda in [0.0, 0.05] {
            let found = Regression { lambda, ..Regression::default() }.solve(&table, &scaling, 1e-13, 10_000);
            let (coefficients, intercept) = scaling.back(&found.x);
            assert!(found.optimality <= 1e-13, "{found:?}");
            if lambda == 0.0 {
                assert!((coefficients[0] - 2.0).abs() < 1e-10 && (intercept - 1.0).abs() < 1e-10);
            } else {
                assert!(coefficients[0] > 1.8 && coefficients[1..] == [0.0, 0.0], "{coefficients:?}");
            }
        }
    }

    #[test]
    fn groups_are_zero_together_and_nonnegative_coefficients_are_not_negative() {
        let (table, group) = (table(), |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect());
        let grouped =
            Regression { lambda: 0.05, groups: vec![group(&["a"]), group(&["b", "c"])], ..Regression::default() };
        grouped.check(table.columns()).unwrap();
        let found = grouped.solve(&table, &scaled(&table), 1e-12, 10_000);
        assert!(found.x[0] > 0.5 && found.x[1..] == [0.0, 0.0], "{found:?}");
        let nonnegative = Regression { nonnegative: true, ..Regression::default() };
        let found = nonnegative.solve(&table, &scaled(&table), 1e-12, 10_000);
        assert!(found.x.iter().all(|x| *x >= 0.0) && found.x[1] == 0.0, "{found:?}");
    }

    #[test]
    fn what_is_not_convex_or_grouped_wrongly_is_named() {
        let columns = table().columns().to_vec();
        let refused = |regression: Regression| regression.check(&columns).unwrap_err().to_string();
        let usual = Regression::default();
        assert!(refused(Regression { lambda: -1.0, ..usual.clone() }).starts_with("lambda is -1"));
        assert!(refused(Regression { ridge: f64::NAN, ..usual.clone() }).starts_with("ridge is NaN"));
        let groups = |groups: &[&[&str]]| Regression {
            groups: groups.iter().map(|group| group.iter().map(|&name| name.to_owned()).collect()).collect(),
            ..usual.clone()
        };
        assert!(refused(groups(&[&["a", "b"]])).starts_with("column `c` is in no group"));
        assert!(refused(groups(&[&["a", "b"], &["b", "c"]])).starts_with("column `b` is in more than one group"));
        assert!(refused(groups(&[&["a", "b", "c", "d"]])).starts_with("column `d` is in a group, but not"));
        assert!(refused(Regression { nonnegative: true, ..groups(&[&["a"]]) }).contains("do not go together"));
    }
}
