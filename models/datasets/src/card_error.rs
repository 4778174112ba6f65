//! Differences between two cards, and errors of making one.

use crate::objective::Objective;
use crate::{SampleShape, Tokens};

/// A difference between two cards, in which "here" and "there" name the sides.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum CardDifference {
    /// A column or a class has another name.
    #[error("{kind} {number} is `{here}` here and `{there}` there")]
    Name { kind: &'static str, number: usize, here: String, there: String },
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
    Shape { here: SampleShape, there: SampleShape },
    /// One side learns classes and the other a quantity.
    #[error("what is learnt is {here} here and {there} there")]
    Objective { here: Objective, there: Objective },
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
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum CardError {
    /// There are fewer than two classes.
    #[error("{classes} classes cannot be learnt: at least 2 are needed")]
    Classes { classes: usize },
    /// A name that cannot be used.
    #[error("{kind} {number} has a name that cannot be used: {why}")]
    Name { kind: &'static str, number: usize, why: &'static str },
    /// The names and the scaling do not fit the shape.
    #[error("{columns} column names do not go with the scaling of samples of shape {shape}")]
    Lengths { shape: SampleShape, columns: usize },
    /// The classes are not the tokens of a text.
    #[error("the classes are not {tokens}: each is to be one, written as `mingle data card` writes it")]
    Tokens {
        /// The kind of token that the shape names.
        tokens: Tokens,
    },
    /// The predicted quantity is not valid.
    #[error("the target cannot be used: {why}")]
    Target { why: &'static str },
    /// A number is not finite, or a deviation negative.
    #[error("the scaling has a number that is not finite, or a negative deviation")]
    NotFinite,
}
