//! Parsing of wait policies: the neighbours that a node waits for in each round.

use mingle_peer::{Error, ErrorKind, Result};
use mingle_protocol::WaitPolicy;

use crate::limits;

/// Parses `sync`, `bounded:STALENESS` or `async`.
///
/// # Errors
/// The text is none of them, or the staleness is too large.
pub fn parse_policy(text: &str) -> Result<WaitPolicy> {
    let parsed = match text.split_once(':') {
        None if text == "sync" => Some(WaitPolicy::Sync),
        None if text == "async" => Some(WaitPolicy::Async),
        Some(("bounded", staleness)) => staleness
            .parse()
            .ok()
            .filter(|staleness| *staleness <= limits::LARGEST_STALENESS)
            .map(|staleness| WaitPolicy::Bounded { staleness }),
        _ => None,
    };
    parsed.ok_or_else(|| {
        Error::new(
            ErrorKind::BadInput,
            format!("--wait {text}: choose sync, bounded:STALENESS (such as bounded:4) or async"),
        )
    })
}
