//! Bugs on request: a test that never fails proves nothing, so the fault tests are tried on nodes that break the rules.

/// A rule that a node breaks on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Parcels leave before the record that holds them is on disk.
    SendsBeforeWriting,
    /// Parcels are confirmed before a record that has applied them is on disk.
    ConfirmsBeforeWriting,
    /// A parcel that comes twice is applied twice.
    AppliesTwice,
    /// Weights are applied without their numerators.
    DropsNumerators,
    /// What others remember of later states is ignored.
    NeverDiscards,
    /// The marks by which neighbours repeat what was confirmed to them are ignored.
    IgnoresMarks,
    /// Parcels are told apart by their numbers alone.
    IgnoresChains,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::SendsBeforeWriting,
        Self::ConfirmsBeforeWriting,
        Self::AppliesTwice,
        Self::DropsNumerators,
        Self::NeverDiscards,
        Self::IgnoresMarks,
        Self::IgnoresChains,
    ];
}
