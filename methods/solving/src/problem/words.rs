//! Descriptions of problems in words.

use mingle_solver::{Regression, RegressionTable};

use super::{Problem, ProblemError, ProblemTask, read_table};
use crate::communication_plan::CommunicationPlan;

impl Problem {
    /// Describes the problem in one line.
    pub fn describe(&self) -> String {
        match &self.task {
            ProblemTask::Regression(task) => {
                let Regression { lambda, ridge, nonnegative, groups } = &task.regression;
                let mut words = format!("sparse regression of {}, lambda {lambda}", task.source.selection.target);
                if *ridge > 0.0 {
                    words += &format!(", ridge {ridge}");
                }
                if *nonnegative {
                    words += ", nonnegative";
                }
                if !groups.is_empty() {
                    words += &format!(", {} groups", groups.len());
                }
                words
            }
            ProblemTask::Allocation(task) => {
                let cliques = task.budgets.all();
                format!(
                    "{} nodes share {} budgets",
                    self.names.len(),
                    cliques.iter().filter(|c| c.budget.is_some()).count()
                )
            }
            ProblemTask::Robust(task) => task.describe(),
            ProblemTask::Rounds(task) => task.describe(),
        }
    }

    /// A warning about a regression with more columns than rows, where the tables of all nodes are at hand: they are
    /// read for it. None for other problems.
    ///
    /// # Errors
    /// A table cannot be used.
    pub fn caution(&self) -> Result<Option<String>, ProblemError> {
        let ProblemTask::Regression(task) = &self.task else { return Ok(None) };
        let tables = self.tables(&task.source, &|path| read_table(path, task))?;
        let rows: usize = tables.iter().map(RegressionTable::row_count).sum();
        let columns = tables.first().map_or(0, |table| table.columns().len());
        let tolerance = self.limits.tolerance;
        let iterations = self.limits.iterations;
        let caution = format!(
            "{columns} columns and {rows} rows: where these say little of a column, the iteration is slow, and may not come to the \
             tolerance {tolerance:e} within {iterations} iterations; more lambda, ridge or tolerance helps"
        );
        Ok((columns > rows).then_some(caution))
    }

    /// A title of a few words.
    pub fn title(&self) -> String {
        match &self.task {
            ProblemTask::Regression(task) => format!("Regression of {}", task.source.selection.target),
            ProblemTask::Robust(task) => format!("Robust model of {}", task.target()),
            ProblemTask::Rounds(task) => task.title(),
            ProblemTask::Allocation(task) => format!("{} cliques with budgets", task.budgets.all().len()),
        }
    }

    /// Describes how its nodes come to the solution.
    pub fn way(&self, communication: &CommunicationPlan) -> String {
        match &self.task {
            ProblemTask::Regression(_) => communication.agreement.describe(),
            ProblemTask::Allocation(_) => "splitting over cliques, one message to each member an iteration".to_owned(),
            ProblemTask::Rounds(_) => "rounds with exact means over trees of the plan".to_owned(),
            ProblemTask::Robust(_) => {
                format!("AD-LPMM with {}, and one row of each site an iteration", communication.agreement.describe())
            }
        }
    }
}
