//! Arguments of `mingle operator`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use libp2p::PeerId;

use super::HomeArgs;
use super::duration::duration;

/// Subcommands of `operator`.
#[derive(Debug, Subcommand)]
pub(crate) enum OperatorCommand {
    /// Say who may sign for the swarm of this home: founder, operator, delegate, recovery key
    Show(HomeArgs),
    /// Let another key sign plans, expulsions and invitations until a certain time, so that this one can stay offline
    Delegate(DelegateArgs),
    /// Take the delegation back: from then on the operator signs alone
    Revoke(HomeArgs),
    /// Import an operator certificate into this home: a delegation to its key, or a change of operator
    Accept(AcceptArgs),
    /// Make this home's key the operator, with the recovery key of the swarm
    Recover(RecoverArgs),
}

/// Arguments of `operator delegate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DelegateArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The PeerId of the home that signs from then on, as `mingle id` prints it there
    #[arg(long, value_name = "PEER")]
    pub(crate) to: PeerId,
    /// Until when: a date (2027-03-01), a time in UTC (2027-03-01T12:00:00Z), or how long from now (90d), a year at most
    #[arg(long, value_name = "WHEN", value_parser = until)]
    pub(crate) until: Until,
}

/// Arguments of `operator accept`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The appointment that `mingle operator delegate`, `revoke` or `recover` printed; `-` reads it from standard input
    pub(crate) appointment: String,
}

/// Arguments of `operator recover`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The file that `mingle init --swarm NAME --recovery-key FILE` wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) recovery_key: PathBuf,
    /// Which recovery of this swarm it is; the one with the highest number counts [default: the one after the last that this home
    /// knows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) number: Option<u16>,
}

/// A future time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Seconds since 1970.
    Date(u64),
    /// Time from now.
    For(Duration),
}

/// Parses a date, a time or a time span.
fn until(text: &str) -> Result<Until, String> {
    let midnight = format!("{text}T00:00:00Z");
    let date = humantime::parse_rfc3339_weak(text).or_else(|_| humantime::parse_rfc3339_weak(&midnight));
    if let Ok(date) = date {
        let since = date.duration_since(std::time::UNIX_EPOCH).map_err(|_| "it is before 1970".to_owned())?;
        return Ok(Until::Date(since.as_secs()));
    }
    duration(text).map(Until::For).map_err(|_| "write it as 2027-03-01, 2027-03-01T12:00:00Z, 12h or 90d".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_time_to_come_is_a_date_a_time_or_a_time_span() {
        for (text, expected) in [
            ("2027-03-01", Until::Date(1_803_859_200)),
            ("2027-03-01T12:00:00Z", Until::Date(1_803_902_400)),
            ("2027-03-01 12:00:00", Until::Date(1_803_902_400)),
            ("90d", Until::For(Duration::from_secs(90 * 86_400))),
        ] {
            assert_eq!(until(text).unwrap(), expected, "{text}");
        }
        for text in ["", "tomorrow", "2027-13-01", "2027", "1960-01-01", "5 parsecs"] {
            assert!(until(text).is_err(), "{text}");
        }
    }
}
