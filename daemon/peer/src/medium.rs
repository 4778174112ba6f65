//! The medium of payloads: checks before a peer starts, and its traffic for people.

use mingle_net::multicast::{AirRate, MulticastSettings, PayloadMedium, interface_address};

use crate::error::{Context, ErrorKind, Result};

/// Checks that the interface of a medium is one of this machine. All else is found out when the plan is there, and
/// payloads go by stream where it does not serve.
///
/// # Errors
/// No interface has the name or address, or it has no IPv4 address.
pub fn check(medium: &PayloadMedium) -> Result {
    if let PayloadMedium::Multicast(options) = medium
        && let Some(name) = &options.interface
    {
        interface_address(name).context(ErrorKind::BadInput, format!("--medium {medium}"))?;
    }
    Ok(())
}

/// The settings of multicast, where that is the medium.
pub(crate) fn settings(medium: &PayloadMedium, rate: Option<AirRate>) -> Option<MulticastSettings> {
    MulticastSettings::of(medium, rate)
}
