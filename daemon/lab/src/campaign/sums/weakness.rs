//! Defences that members can be without, to see that the tests notice.

/// A defence that members lack; only tests have members without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code))]
pub(super) enum Weakness {
    /// Members take it that all keep what they released.
    TokensIgnored,
    /// Members count nothing.
    NothingCounted,
}
