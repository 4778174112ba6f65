//! Errors of solving, with the kind and the hint that belong to each.

use mingle_solving::{CommunicationPlanError, NotSolved, ProblemError, SolveError};

use super::{Error, ErrorKind};

impl From<ProblemError> for Error {
    fn from(error: ProblemError) -> Self {
        let hint = match &error {
            ProblemError::NotLinked { .. } => {
                Some("make the plan with --method clique-phi from a topology in which all members are linked")
            }
            ProblemError::Columns { .. } => Some(SAY_THE_COLUMNS),
            _ => None,
        };
        with_hint(ErrorKind::BadInput, error, hint)
    }
}

impl From<CommunicationPlanError> for Error {
    fn from(error: CommunicationPlanError) -> Self {
        let (kind, hint) = match &error {
            CommunicationPlanError::Method { .. } => {
                (ErrorKind::Integrity, Some("make it again with `mingle plan make`"))
            }
            CommunicationPlanError::TooSlow => {
                (ErrorKind::BadInput, Some("a symmetric plan, such as those of --method clique-phi, needs no averages"))
            }
            CommunicationPlanError::NotConnected | CommunicationPlanError::CannotAverage(_) => {
                (ErrorKind::BadInput, None)
            }
        };
        with_hint(kind, error, hint)
    }
}

impl From<SolveError> for Error {
    fn from(error: SolveError) -> Self {
        let (kind, hint) = match &error {
            SolveError::NotFinite(_) => (
                ErrorKind::Training,
                Some(
                    "numbers of very different size do that: standardize = true brings columns to one, budgets and weights want other units",
                ),
            ),
            SolveError::Diverged { remedy, .. } => (ErrorKind::Training, Some(*remedy)),
            SolveError::Columns { .. } => (ErrorKind::Refused, Some(SAY_THE_COLUMNS)),
            SolveError::Neighbour(_) => (ErrorKind::Refused, None),
            SolveError::Budget(_) | SolveError::BudgetElsewhere { .. } => (ErrorKind::BadInput, None),
            SolveError::Collective(_) | SolveError::NoResult | SolveError::Unheard { .. } => {
                (ErrorKind::Unexpected, None)
            }
        };
        with_hint(kind, error, hint)
    }
}

impl From<NotSolved> for Error {
    fn from(error: NotSolved) -> Self {
        let remedy = error.remedy;
        Self::of(ErrorKind::TimedOut, error).hint(remedy)
    }
}

/// What to do about tables with other columns.
const SAY_THE_COLUMNS: &str = "columns = [...] in the problem file says which are used, in which order";

fn with_hint(
    kind: ErrorKind,
    error: impl std::error::Error + Send + Sync + 'static,
    hint: Option<&'static str>,
) -> Error {
    hint.into_iter().fold(Error::of(kind, error), Error::hint)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::io;

    use super::*;

    #[test]
    fn an_error_of_a_problem_keeps_its_kind_its_cause_and_what_helps() {
        let source = io::Error::other("no luck");
        let failure = Error::from(ProblemError::Unreadable { path: "beds.toml".into(), source });
        assert_eq!(failure.kind(), ErrorKind::BadInput);
        assert_eq!(format!("{failure:#}"), "cannot read the problem beds.toml: no luck");
        assert!(failure.source().is_some_and(|cause| cause.downcast_ref::<io::Error>().is_some()));
        let failure = Error::from(NotSolved { iterations: 7, remedy: "more" });
        assert_eq!((failure.kind(), failure.next_step()), (ErrorKind::TimedOut, Some("more")));
        let diverged = SolveError::Diverged { least: 1.0, since: 10, residual: 9e9, iteration: 20, remedy: "less" };
        let failure = Error::from(diverged);
        assert_eq!((failure.kind(), failure.next_step()), (ErrorKind::Training, Some("less")));
    }
}
