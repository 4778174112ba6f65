//! `mingle watch`: a dashboard of a running peer in the terminal.

use std::io::IsTerminal;

use mingle_peer::api::client;
use mingle_peer::{Error, ErrorKind, Home, Result};
use mingle_watch::dashboard;

use crate::cli::HomeArgs;

/// Follows the peer until the user quits.
pub(super) fn execute(arguments: &HomeArgs) -> Result {
    if !std::io::stdout().is_terminal() {
        return Err(Error::new(ErrorKind::BadInput, "mingle watch draws on a terminal, and standard output is none")
            .hint("mingle status, or mingle logs --json"));
    }
    let home = Home::at(arguments.home.as_deref())?;
    client::block_on(dashboard::show(&home))
}
