//! Descriptions of problems in words.

use mingle_solver::Regression;

use super::{Problem, ProblemTask};
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
            ProblemTask::Coupled(task) => {
                let components = task.components().join(", ");
                format!("{} of {} nodes, coupled by {} cliques", components, self.names.len(), task.cliques().len())
            }
            ProblemTask::NetworkLasso(task) => {
                format!("network lasso of {}, lambda {}, {} links", task.target(), task.lambda, task.link_count())
            }
            ProblemTask::Robust(task) => task.describe(),
            ProblemTask::Rounds(task) => task.describe(),
        }
    }

    /// A title of a few words.
    pub fn title(&self) -> String {
        match &self.task {
            ProblemTask::Regression(task) => format!("Regression of {}", task.source.selection.target),
            ProblemTask::Robust(task) => format!("Robust model of {}", task.target()),
            ProblemTask::Rounds(task) => task.title(),
            ProblemTask::Allocation(task) => format!("{} cliques with budgets", task.budgets.all().len()),
            ProblemTask::Coupled(task) => format!("{} coupled cliques", task.cliques().len()),
            ProblemTask::NetworkLasso(task) => format!("Network lasso of {}", task.target()),
        }
    }

    /// Describes how its nodes come to the solution.
    pub fn way(&self, communication: &CommunicationPlan) -> String {
        match &self.task {
            ProblemTask::Regression(_) => communication.agreement.describe(),
            ProblemTask::Allocation(_) | ProblemTask::Coupled(_) => {
                "splitting over cliques, one message to each member an iteration".to_owned()
            }
            ProblemTask::NetworkLasso(_) => {
                "splitting over links, one message to each neighbour an iteration".to_owned()
            }
            ProblemTask::Rounds(_) => "rounds with exact means over trees of the plan".to_owned(),
            ProblemTask::Robust(_) => {
                format!("AD-LPMM with {}, and one row of each site an iteration", communication.agreement.describe())
            }
        }
    }
}
