//! Sparse linear regression: the columns that explain a target, over rows that many nodes hold.
//!
//! ```text
//!   min over x   1/(2N) sum over all N rows (a x - b)^2  +  ridge/2 || x ||^2  +  lambda penalty(x)
//! ```
//!
//! The objective is the mean over the nodes of `n/(2N) || A_i x - b_i ||^2 + ridge/2 || x ||^2 + lambda penalty(x)`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    ConsensusTerms, L1, LeastSquares, NonnegativeL1, ProximalNewton, Query, RegressionTable, SharedFacts, Smooth,
    SparseGroups, SparsityPenalty, Standardization,
};

/// The largest weight accepted.
const LARGEST: f64 = 1e100;
/// The steps of descent after which it counts as slow.
const MOST_DESCENT: usize = 500;

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
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum RegressionError {
    /// A weight is not a number, or makes the problem non-convex.
    #[error("{what} is {value:?}; it must be zero or a positive number up to 1e100, or the problem is not convex")]
    Weight { what: &'static str, value: f64 },
    /// A column is in no group, in two, or not in the table.
    #[error("column `{column}` is {times}; with groups, each column is in one")]
    Grouping { column: String, times: &'static str },
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
    pub fn penalty(&self, columns: &[String]) -> Box<dyn SparsityPenalty> {
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
        let smooth = Box::new(self.fit(table, scaling, rows_per_node));
        ConsensusTerms { smooth, nonsmooth: self.penalty(table.columns()) }
    }

    /// The smooth one of a node's terms.
    #[must_use]
    pub fn fit(&self, table: &RegressionTable, scaling: &Standardization, rows_per_node: f64) -> LeastSquares {
        table.least_squares(scaling, 1.0 / rows_per_node).with_ridge(self.ridge)
    }

    /// The solution for a table in one place, with its objective and number of steps: accelerated proximal gradient
    /// descent, and where that is slow [`ProximalNewton`], until the optimality conditions hold to `tolerance`, for
    /// `most` steps at most.
    #[must_use]
    pub fn solve(
        &self,
        table: &RegressionTable,
        scaling: &Standardization,
        tolerance: f64,
        most: usize,
    ) -> CentralSolution {
        let fit = self.fit(table, scaling, table.row_count() as f64);
        let penalty = self.penalty(table.columns());
        let (x, descended) = crate::solve::alone(&fit, &*penalty, tolerance, most.min(MOST_DESCENT));
        let gradient_at = |x: &[f64]| {
            let mut gradient = vec![0.0; x.len()];
            fit.gradient(x, &mut gradient);
            gradient
        };
        let smoothness = if fit.smoothness() > 0.0 { fit.smoothness() } else { 1.0 };
        let rows = table.row_count();
        let facts = SharedFacts { trace: fit.trace(), rows, ridge: self.ridge, smoothness, tolerance };
        let gradient = gradient_at(&x);
        let mut newton = ProximalNewton::new(self.penalty(table.columns()), facts, x, gradient);
        let mut steps = descended;
        while steps < most
            && let Some(query) = newton.query()
        {
            newton.answer(match query {
                Query::Product(direction) => fit.curvature(&direction),
                Query::Gradient(x) => gradient_at(&x),
            });
            steps += 1;
        }
        let x = newton.solution().to_vec();
        let optimality = crate::optimality(&*penalty, &x, &gradient_at(&x), 1.0 / smoothness);
        CentralSolution { objective: fit.value(&x) + penalty.value(&x), x, optimality, steps }
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

    /// Columns, rows of all nodes, and the correlation of any two columns.
    fn wide(columns: usize, rows: usize, alike: f64) -> RegressionTable {
        let mut state = 1_u64;
        let mut draw = || {
            let mut uniform = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f64 / f64::from(1 << 24)
            };
            (0..12).map(|_| uniform()).sum::<f64>() - 6.0
        };
        let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
        let mut text = format!("{},y\n", names.join(","));
        for _ in 0..rows {
            let shared = draw() * alike.sqrt();
            let row: Vec<f64> = (0..columns).map(|_| shared + draw() * (1.0 - alike).sqrt()).collect();
            let explained = row[0] - 2.0 * row[1] + 0.5 * row[2] + 0.1 * draw();
            row.iter().for_each(|value| text += &format!("{value},"));
            text += &format!("{explained}\n");
        }
        RegressionTable::read(text.as_bytes(), &Selection { target: "y".to_owned(), columns: Vec::new() }).unwrap()
    }

    #[test]
    fn more_columns_than_rows_and_columns_that_are_alike_are_solved_to_the_certificate() {
        for (columns, rows) in [(100, 30), (100, 180)] {
            for alike in [0.0, 0.9, 0.99] {
                let table = wide(columns, rows, alike);
                let scaling = scaled(&table);
                for lambda in [0.05, 0.01, 0.001, 1e-4] {
                    let usual = Regression { lambda, ..Regression::default() };
                    let pairs = (0..columns / 2).map(|at| vec![format!("c{at}"), format!("c{}", at + columns / 2)]);
                    let kinds = [
                        usual.clone(),
                        Regression { nonnegative: true, ..usual.clone() },
                        Regression { groups: pairs.collect(), ..usual },
                    ];
                    for regression in kinds {
                        let found = regression.solve(&table, &scaling, 1e-10, 20_000);
                        let steps = MOST_DESCENT + rows.min(columns) + 20;
                        assert!(
                            found.optimality <= 1e-10 && found.steps <= steps,
                            "{columns} columns, {rows} rows, {alike} alike, {regression:?}: {found:?}"
                        );
                    }
                }
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
