//! Errors on the way to a masked sum.

use thiserror::Error;

use crate::signer::SignerError;

/// A reason for which a member takes no part in a masked sum.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum MaskingError {
    /// A sum of one has nothing to hide behind.
    #[error("a roster of {members} members cannot mask anything; it takes 2 or more")]
    Alone { members: usize },
    /// Two members with one identity are one.
    #[error("members {one} and {other} have the same identity key")]
    SameIdentity { one: usize, other: usize },
    /// An identity that is not an Ed25519 key.
    #[error("the identity of member {member} is no Ed25519 key")]
    Identity { member: usize },
    /// This member is not in the list.
    #[error("member {me} is not among {members}")]
    NotListed { me: usize, members: usize },
    /// This member's own key cannot be drawn or signed.
    #[error("the key for masked sums cannot be made")]
    Signer(#[source] SignerError),
    /// Announcements, or commitments, of too few or too many members.
    #[error("{got} members have announced a key, where the list has {members}")]
    Announcements { got: usize, members: usize },
    /// An announcement that cannot be read.
    #[error("the announced key of member {member} cannot be read")]
    Unreadable { member: usize },
    /// A key that its member did not sign for this list and attempt.
    #[error(
        "the announced key of member {member} is not signed by it for this list of members: somebody on the way changed it, or has another list"
    )]
    Forged { member: usize },
    /// A key that is not the one its member committed to.
    #[error("member {member} announced another key than it had committed to")]
    Commitment { member: usize },
    /// This member's own key came back as another.
    #[error("the key of this member, {me}, came back as another: somebody on the way changed it")]
    OwnKey { me: usize },
    /// A key of small order, with which no secret can be shared.
    #[error("the announced key of member {member} has a small order, and hides nothing")]
    SmallOrder { member: usize },
    /// The key of a mask cannot be expanded from the seed of a pair, whose length it does not fit.
    #[error("the key of a mask cannot be expanded")]
    Expansion,
    /// The total of the word by which masks are checked is another: they do not cancel.
    #[error(
        "the masks of a sum do not cancel, so its total is random, and reveals nothing: somebody on the way showed some members other numbers than the rest, or a member sends what no sound member sends"
    )]
    Uncancelled,
    /// A row that this member shared with all came back as another.
    #[error("a row of numbers that this member shared came back as another: somebody on the way changed it")]
    OwnRow,
    /// A sum with the number of one before.
    #[error("sum {number} cannot be masked after sum {last}: two sums would share a mask")]
    Reused { number: u64, last: u64 },
    /// A vector that does not fit.
    #[error("a vector of {words} words does not consist of wide numbers")]
    Words { words: usize },
    /// An agreed scale that cannot be.
    #[error(
        "the agreed scale 2^{agreed} is below this member's own 2^{own}, or beyond all: a member or a relay lies about it"
    )]
    Scale { agreed: i64, own: i32 },
}
