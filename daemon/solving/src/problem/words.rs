//! Descriptions of problems in words.

use mingle_solver::{Regression, Table};

use super::{Problem, ProblemError, Task, read_table};
use crate::communication_plan::CommunicationPlan;

impl Problem {
    /// Describes the problem in one line.
    pub fn describe(&self) -> String {
        match &self.task {
            Task::Regression(task) => {
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
            Task::Allocation(task) => {
                let cliques = task.budgets.all();
                format!(
                    "{} nodes share {} budgets",
                    self.names.len(),
                    cliques.iter().filter(|c| c.budget.is_some()).count()
                )
            }
            Task::Robust(task) => task.describe(),
            Task::Rounds(task) => task.describe(),
        }
    }

    /// A warning about a regression with more columns than rows, where the tables of all nodes are at hand: they are
    /// read for it. None for other problems.
    ///
    /// # Errors
    /// A table cannot be used.
    pub fn caution(&self) -> Result<Option<String>, ProblemError> {
        let Task::Regression(task) = &self.task else { return Ok(None) };
        let tables = self.tables(&task.source, &|path| read_table(path, task))?;
        let rows: usize = tables.iter().map(Table::row_count).sum();
        let columns = tables.first().map_or(0, |table| table.columns().len());
        let (tolerance, iterations) = (self.limits.tolerance, self.limits.iterations);
        let caution = format!(
            "{columns} columns and {rows} rows: where these say little of a column, the iteration is slow, and may not come to the \
             tolerance {tolerance:e} within {iterations} iterations; more lambda, ridge or tolerance helps"
        );
        Ok((columns > rows).then_some(caution))
    }

    /// A title of a few words.
    pub fn title(&self) -> String {
        match &self.task {
            Task::Regression(task) => format!("Regression of {}", task.source.selection.target),
            Task::Robust(task) => format!("Robust model of {}", task.target()),
            Task::Rounds(task) => task.title(),
            Task::Allocation(task) => format!("{} cliques with budgets", task.budgets.all().len()),
        }
    }

    /// Describes how its nodes come to the solution.
    pub fn way(&self, communication: &CommunicationPlan) -> String {
        match &self.task {
            Task::Regression(_) => communication.agreement.describe(),
            Task::Allocation(_) => "splitting over cliques, one message to each member an iteration".to_owned(),
            Task::Rounds(_) => "rounds with exact means over trees of the plan".to_owned(),
            Task::Robust(_) => {
                format!("AD-LPMM with {}, and one row of each site an iteration", communication.agreement.describe())
            }
        }
    }
}
