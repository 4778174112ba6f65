//! Differences between two cards, and errors of making one.

use crate::objective::Objective;
use crate::{SampleShape, Tokens};

/// A difference between two cards, in which "here" and "there" name the sides.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CardDifference {
    /// A column or a class has another name.
    #[error("{kind} {number} is `{here}` here and `{there}` there")]
    Name {
        /// `column` or `class`.
        kind: &'static str,
        /// The position, counted from 1.
        number: usize,
        /// The name on this side.
        here: String,
        /// The name on the other side.
        there: String,
    },
    /// One side has more columns or classes.
    #[error("{kind} {number} is `{name}` {}", if *at_here { "here, and there is none there" } else { "there, and there is none here" })]
    Count {
        /// `column` or `class`.
        kind: &'static str,
        /// The position of the first that only one side has, counted from 1.
        number: usize,
        /// The name of it.
        name: String,
        /// `true` if this side has it.
        at_here: bool,
    },
    /// The samples have another shape.
    #[error("a sample is {here} here and {there} there")]
    Shape {
        /// The shape on this side.
        here: SampleShape,
        /// The shape on the other side.
        there: SampleShape,
    },
    /// One side learns classes and the other a quantity.
    #[error("what is learnt is {here} here and {there} there")]
    Objective {
        /// The objective on this side.
        here: Objective,
        /// The objective on the other side.
        there: Objective,
    },
    /// The scaling of raw values differs.
    #[error("{what} is {here} here and {there} there")]
    Scaling {
        /// The name of the number that differs.
        what: String,
        /// Its value on this side.
        here: String,
        /// Its value on the other side.
        there: String,
    },
}

/// Errors of making a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// There are fewer than two classes.
    #[error("{classes} classes cannot be learnt: at least 2 are needed")]
    Classes {
        /// The number of classes.
        classes: usize,
    },
    /// A name that cannot be used.
    #[error("{kind} {number} has a name that cannot be used: {why}")]
    Name {
        /// `column` or `class`.
        kind: &'static str,
        /// The position, counted from 1.
        number: usize,
        /// The reason.
        why: &'static str,
    },
    /// The names and the scaling do not fit the shape.
    #[error("{columns} column names do not go with the scaling of samples of shape {shape}")]
    Lengths {
        /// The shape of a sample.
        shape: SampleShape,
        /// The number of column names.
        columns: usize,
    },
    /// The classes are not the tokens of a text.
    #[error("the classes are not {tokens}: each is to be one, written as `mingle data card` writes it")]
    Tokens {
        /// The kind of token that the shape names.
        tokens: Tokens,
    },
    /// The predicted quantity is not valid.
    #[error("the target cannot be used: {why}")]
    Target {
        /// The reason.
        why: &'static str,
    },
    /// A number is not finite, or a deviation negative.
    #[error("the scaling has a number that is not finite, or a negative deviation")]
    NotFinite,
}
