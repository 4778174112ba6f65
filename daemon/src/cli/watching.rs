//! Arguments of the commands that observe and control a running peer.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use super::HomeArgs;
use super::duration::duration;

/// Arguments of `wait`.
#[derive(Args, Clone, Debug)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The condition: waiting=N (so many invited peers wait for a plan), plan, peers=N (so many neighbours are up),
    /// joined, round=N or done
    #[arg(long = "for", value_name = "CONDITION")]
    pub(crate) condition: WaitCondition,
    /// Give up after so long (exit code 5; 3 if no peer runs there then)
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// Arguments of `stop`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Ask the swarm to end its training in agreement, before its last round, and return at once: the operator of the swarm
    /// decides that for all; asked elsewhere, it ends once more than half of the members ask
    #[arg(long, conflicts_with = "timeout")]
    pub(crate) for_all: bool,
    /// Do not wait longer than this for the end of the peer (exit code 5); it goes on ending
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// Arguments of `timeline`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TimelineArgs {
    /// Homes of peers that keep or kept a timeline (run --timeline on)
    #[arg(required = true, value_name = "HOME")]
    pub(crate) homes: Vec<PathBuf>,
    /// Look at these rounds only [default: all but the first two; four from the middle in the picture]
    #[arg(long, value_name = "FIRST..LAST", value_parser = rounds)]
    pub(crate) rounds: Option<(u64, u64)>,
    /// Draw them, as SVG
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A condition on the state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitCondition {
    /// At least this many neighbours are up.
    Peers(usize),
    /// At least this many peers with an invitation wait here for a plan that names them.
    Waiting(usize),
    /// The plan is known.
    Plan,
    /// All neighbours were up, and training began.
    Joined,
    /// At least this many rounds are done.
    Round(u64),
    /// All rounds are done, and all files are written.
    Done,
}

impl FromStr for WaitCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.split_once('=') {
            None if text == "plan" => Some(Self::Plan),
            None if text == "joined" => Some(Self::Joined),
            None if text == "done" => Some(Self::Done),
            Some(("peers", count)) => count.parse().ok().map(Self::Peers),
            Some(("waiting", count)) => count.parse().ok().map(Self::Waiting),
            Some(("round", count)) => count.parse().ok().map(Self::Round),
            _ => None,
        };
        parsed.ok_or_else(|| "choose waiting=N, plan, peers=N, joined, round=N or done".to_owned())
    }
}

impl std::fmt::Display for WaitCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Peers(count) => write!(f, "peers={count}"),
            Self::Waiting(count) => write!(f, "waiting={count}"),
            Self::Plan => f.write_str("plan"),
            Self::Joined => f.write_str("joined"),
            Self::Round(round) => write!(f, "round={round}"),
            Self::Done => f.write_str("done"),
        }
    }
}

/// Arguments of `probe`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProbeArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Write the measurements here, for `mingle plan make --links` [default: print them]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Measure one link after another, where links share a medium; else links without a common end are measured together
    #[arg(long)]
    pub(crate) one_at_a_time: bool,
}

/// Arguments of `ping`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PingArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// A member by its PeerId, to which the peer that runs here measures its link, or an address, to see who answers
    #[arg(value_name = "PEER|ADDR")]
    pub(crate) whom: String,
    /// Give an address up after so long (exit code 3)
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// Parses `FIRST..LAST`, both included.
fn rounds(text: &str) -> Result<(u64, u64), String> {
    let ends = text.split_once("..").and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    ends.filter(|(first, last)| first <= last)
        .ok_or_else(|| "rounds are given as FIRST..LAST, such as 10..14".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn conditions_read_back_as_they_are_written() {
        for text in ["peers=3", "waiting=2", "plan", "joined", "round=40", "done"] {
            assert_eq!(text.parse::<WaitCondition>().unwrap().to_string(), text);
        }
        for text in ["", "peers", "peers=", "peers=-1", "round=x", "plan=1", "finished"] {
            assert!(text.parse::<WaitCondition>().unwrap_err().contains("peers=N"), "{text}");
        }
    }
}
