//! Numbers for people: ledger units as weights, bytes as megabytes.

/// A push-sum weight from ledger units of 2^-40.
#[allow(clippy::cast_precision_loss)] // for display; equality is tested on the integers
pub(crate) fn weight(units: u64) -> f64 {
    units as f64 / (1_u64 << 40) as f64
}

/// Bytes as megabytes of 10^6 bytes.
#[allow(clippy::cast_precision_loss)] // for display
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
