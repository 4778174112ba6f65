//! The choice between masked and plain sums.

use thiserror::Error;

/// The fewest members whose sums are masked, by default: of two, each knows the other's part from the total.
pub const LEAST_MEMBERS: usize = 3;

/// A member's wishes for its sums. [`Default`] masks them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SumPolicy {
    /// `true` for sums in clear: those on the way to the root of the tree see them.
    pub plain: bool,
    /// The fewest members, if the user asks for a number; else [`LEAST_MEMBERS`], and two members sum in clear.
    pub least_members: Option<usize>,
}

impl SumPolicy {
    /// The fewest members that a first plan is made for: two would add up in clear.
    pub fn least_of_plan(&self) -> usize {
        self.least_members.unwrap_or(if self.plain { 2 } else { LEAST_MEMBERS })
    }
}

/// The protection of all sums of a piece of work, the same at all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumProtection {
    /// Masked.
    Masked,
    /// In clear, because the user asked for that.
    Plain,
    /// In clear, because of two members each computes the other's part from the total anyway.
    NothingToHide,
}

/// A swarm that is smaller than its user wants it for sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a sum of {members} members hides too little: this peer wants {least} or more, so it takes part in none (--least-members; --plain-sums sums in clear)"
)]
pub struct TooFewMembers {
    /// The members of the plan.
    pub members: usize,
    /// Those wanted.
    pub least: usize,
}

impl SumPolicy {
    /// The protection for so many members in words, for people.
    ///
    /// # Errors
    /// As [`protection`](Self::protection).
    pub fn describe(&self, members: usize) -> Result<&'static str, TooFewMembers> {
        self.protection(members).map(SumProtection::describe)
    }

    /// The protection for so many members.
    ///
    /// # Errors
    /// There are fewer than the user asked for.
    pub fn protection(&self, members: usize) -> Result<SumProtection, TooFewMembers> {
        let least = self.least_members.unwrap_or(LEAST_MEMBERS);
        if self.plain {
            return Ok(SumProtection::Plain);
        }
        if self.least_members.is_some() && members < least {
            return Err(TooFewMembers { members, least });
        }
        Ok(if members < LEAST_MEMBERS { SumProtection::NothingToHide } else { SumProtection::Masked })
    }
}

impl SumProtection {
    /// Returns `true` if sums are masked.
    pub fn is_masked(self) -> bool {
        self == Self::Masked
    }

    /// The protection in words, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Masked => "masked: members see totals, and no member's own part of them",
            Self::Plain => "in clear (--plain-sums): the node above in the tree sees a leaf's own numbers",
            Self::NothingToHide => "in clear: with fewer than 3 members each knows the other's part from the total",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_masked_from_three_members_on_and_refused_below_what_the_user_asks_for() {
        let default = SumPolicy::default();
        assert_eq!(default.protection(2), Ok(SumProtection::NothingToHide));
        assert_eq!(default.protection(3), Ok(SumProtection::Masked));
        let five = SumPolicy { least_members: Some(5), ..default };
        assert_eq!(five.protection(4), Err(TooFewMembers { members: 4, least: 5 }));
        assert_eq!(five.protection(5), Ok(SumProtection::Masked));
        let three = SumPolicy { least_members: Some(3), ..default };
        assert_eq!(three.protection(2), Err(TooFewMembers { members: 2, least: 3 }));
        let plain = SumPolicy { plain: true, ..five };
        assert_eq!((plain.protection(2), plain.protection(9)), (Ok(SumProtection::Plain), Ok(SumProtection::Plain)));
    }
}
