//! In what two cards differ, and why something is none.

use crate::objective::Objective;
use crate::{SampleShape, Tokens};

/// In what two cards differ, with the words "here" and "there".
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CardDifference {
    /// A column or a class has another name.
    #[error("{kind} {number} is `{here}` here and `{there}` there")]
    Name {
        /// `column` or `class`.
        kind: &'static str,
        /// Which, counted from 1.
        number: usize,
        /// Its name on this side.
        here: String,
        /// Its name on the other.
        there: String,
    },
    /// One side has more columns or classes.
    #[error("{kind} {number} is `{name}` {}", if *at_here { "here, and there is none there" } else { "there, and there is none here" })]
    Count {
        /// `column` or `class`.
        kind: &'static str,
        /// The first that only one side has, counted from 1.
        number: usize,
        /// Its name.
        name: String,
        /// Whether this side has it.
        at_here: bool,
    },
    /// The samples have another shape.
    #[error("a sample is {here} here and {there} there")]
    Shape {
        /// On this side.
        here: SampleShape,
        /// On the other.
        there: SampleShape,
    },
    /// One side learns classes and the other a quantity.
    #[error("what is learnt is {here} here and {there} there")]
    Objective {
        /// On this side.
        here: Objective,
        /// On the other.
        there: Objective,
    },
    /// Raw values become other features.
    #[error("{what} is {here} here and {there} there")]
    Scaling {
        /// Which number.
        what: String,
        /// On this side.
        here: String,
        /// On the other.
        there: String,
    },
}

/// Why something is no card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// There is nothing to tell apart.
    #[error("{classes} classes cannot be learnt: at least 2 are needed")]
    Classes {
        /// How many there are.
        classes: usize,
    },
    /// A name that cannot be used.
    #[error("{kind} {number} has a name that cannot be used: {why}")]
    Name {
        /// `column` or `class`.
        kind: &'static str,
        /// Which, counted from 1.
        number: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// Names and numbers do not go together.
    #[error("{columns} column names do not go with the scaling of samples of shape {shape}")]
    Lengths {
        /// The shape of a sample.
        shape: SampleShape,
        /// How many names there are.
        columns: usize,
    },
    /// The classes are not the tokens of a text.
    #[error("the classes are not {tokens}: each is to be one, written as `mingle data card` writes it")]
    Tokens {
        /// What they should be.
        tokens: Tokens,
    },
    /// The quantity that is predicted cannot be.
    #[error("the target cannot be used: {why}")]
    Target {
        /// What is wrong.
        why: &'static str,
    },
    /// A number is infinite, none, or a negative deviation.
    #[error("the scaling has a number that is not finite, or a negative deviation")]
    NotFinite,
}
