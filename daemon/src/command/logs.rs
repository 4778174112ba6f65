//! `mingle logs`: follows the events of a running peer.

use mingle_peer::api::client::{self, Client};
use mingle_peer::events::EventLine;
use mingle_peer::{Home, Result};

use crate::cli::HomeArgs;
use crate::out;

/// Prints the remembered events, then new ones until the peer ends.
pub(super) fn execute(arguments: &HomeArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.as_deref())?;
    client::block_on(async {
        let mut events = Client::new(&home).follow("/v1/events?since=0").await?;
        while let Some(text) = events.next().await {
            if json {
                out::line(text);
            } else if let Ok(line) = serde_json::from_str::<EventLine>(&text)
                && line.event.is_for_people()
            {
                out::line(line.event.sentence());
            }
        }
        Ok(())
    })
}
