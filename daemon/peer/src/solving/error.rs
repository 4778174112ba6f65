//! Conversions from errors of solving to a peer's error, with the kind and the hint of each.

use mingle_solving::{CommunicationPlanError, MaskingError, NotSolved, ProblemError, SolveError};

use crate::error::{Error, ErrorKind};

/// An error of solving that can be converted to a peer's error.
pub trait Explain {
    /// The same error with its kind and hint.
    fn explain(self) -> Error;
}

impl Explain for ProblemError {
    fn explain(self) -> Error {
        let hint = match &self {
            Self::NotLinked { .. } => {
                Some("make the plan with --method clique-phi from a topology in which all members are linked")
            }
            Self::Columns { .. } => Some(SAY_THE_COLUMNS),
            _ => None,
        };
        with_hint(ErrorKind::BadInput, self, hint)
    }
}

impl Explain for CommunicationPlanError {
    fn explain(self) -> Error {
        let (kind, hint) = match &self {
            Self::Method { .. } => (ErrorKind::Integrity, Some("make it again with `mingle plan make`")),
            Self::TooSlow => {
                (ErrorKind::BadInput, Some("a symmetric plan, such as those of --method clique-phi, needs no averages"))
            }
            Self::NotConnected | Self::CannotAverage(_) => (ErrorKind::BadInput, None),
        };
        with_hint(kind, self, hint)
    }
}

impl Explain for SolveError {
    fn explain(self) -> Error {
        let (kind, hint) = match &self {
            Self::NotFinite(_) => (
                ErrorKind::Training,
                Some(
                    "numbers of very different size do that: standardize = true brings columns to one, budgets and weights want other units",
                ),
            ),
            Self::Diverged { remedy, .. } => (ErrorKind::Training, Some(*remedy)),
            Self::SumsInClear | Self::OtherScale => (ErrorKind::Refused, None),
            Self::Columns { .. } => (ErrorKind::Refused, Some(SAY_THE_COLUMNS)),
            Self::Neighbour(_) => (ErrorKind::Refused, None),
            Self::Budget(_) | Self::BudgetElsewhere { .. } => (ErrorKind::BadInput, None),
            Self::Support { .. } | Self::Robust(_) | Self::SamplesElsewhere { .. } => (ErrorKind::BadInput, None),
            Self::Subproblem { .. } => (
                ErrorKind::Training,
                Some(
                    "numbers of very different size do that: scaling = \"standard\" or a box brings columns to one; a radius or kappa that is tiny or huge does it too",
                ),
            ),
            Self::StatesDiffer { .. } => (
                ErrorKind::Integrity,
                Some("all peers need the same version of the program, on machines whose arithmetic is the same"),
            ),
            Self::Learning(_) => (ErrorKind::Training, None),
            Self::LearningElsewhere { .. } => (ErrorKind::Training, None),
            Self::Unlike { .. } => {
                (ErrorKind::Refused, Some("all peers need the same options and the same version of the program"))
            }
            Self::Masking(MaskingError::Signer(_)) => (ErrorKind::Unexpected, None),
            Self::Masking(_) => (ErrorKind::Refused, Some("compare the plans of all members (mingle plan show)")),
            Self::Collective(_) | Self::NoResult | Self::Unheard { .. } => (ErrorKind::Unexpected, None),
        };
        with_hint(kind, self, hint)
    }
}

impl Explain for NotSolved {
    fn explain(self) -> Error {
        let remedy = self.remedy;
        Error::of(ErrorKind::TimedOut, self).hint(remedy)
    }
}

/// Hint about tables with other columns.
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
        let failure = ProblemError::Unreadable { path: "beds.toml".into(), source }.explain();
        assert_eq!(failure.kind(), ErrorKind::BadInput);
        assert_eq!(format!("{failure:#}"), "cannot read the problem beds.toml: no luck");
        assert!(failure.source().is_some_and(|cause| cause.downcast_ref::<io::Error>().is_some()));
        let failure = NotSolved { iterations: 7, remedy: "more" }.explain();
        assert_eq!((failure.kind(), failure.next_step()), (ErrorKind::TimedOut, Some("more")));
        let diverged = SolveError::Diverged { least: 1.0, since: 10, residual: 9e9, iteration: 20, remedy: "less" };
        let failure = diverged.explain();
        assert_eq!((failure.kind(), failure.next_step()), (ErrorKind::Training, Some("less")));
    }
}
