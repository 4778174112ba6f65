//! `mingle follow`: the model of a swarm in a file, while it is trained.

use mingle_peer::Result;
use mingle_peer::follow::following::FollowOptions;
use mingle_peer::follow::keeping::{KeepOptions, keep};
use mingle_peer::membership::Ticket;

use crate::cli::FollowArgs;
use crate::signals::StopSignals;
use crate::{event_loop, out};

/// Follows until the training is over, or the user stops it.
pub(super) fn execute(arguments: &FollowArgs, json: bool) -> Result {
    let ticket = Ticket::of_argument(&arguments.ticket)?;
    let FollowArgs { precision, every, timeout, once, stop_with_stdin, .. } = *arguments;
    let follow = FollowOptions { precision, every, patience: timeout };
    let FollowArgs { output, home, exec, .. } = arguments.clone();
    let options = KeepOptions { output, home, follow, command: exec, once };
    event_loop::run(async {
        let mut signals = StopSignals::listen(stop_with_stdin)?;
        let tell = |event: &_| if json { out::line(serde_json::json!(event)) } else { out::remark(event) };
        keep(&ticket, options, async || signals.next().await, tell).await
    })
}
