//! The end of a running peer on request, up to its last events.

use std::fs::File;
use std::path::Path;

use mingle_peer::api::Stopping;
use mingle_peer::api::client::Client;
use mingle_peer::error::Context;
use mingle_peer::events::{Event, EventLine};
use mingle_peer::{Error, ErrorKind, Home, Result};
use tokio::sync::oneshot;

/// The end of a peer, as reported by its last events.
pub struct Ended {
    /// Rounds done.
    pub round: u64,
    /// Its push-sum weight, in units of 2^-40.
    pub weight_units: u64,
    /// `true` if it handed its weight over, and others know.
    pub left: bool,
    /// The reason why it could not end in good order.
    pub failure: Option<String>,
}

/// Sends the request to `path`, and waits until the process has ended.
///
/// # Errors
/// No peer runs in the home, it refuses, or its lock cannot be waited for.
pub async fn ask(home: &Home, path: &str) -> Result<(Stopping, Ended)> {
    let client = Client::new(home);
    // Opened before the request, so that no event is missed.
    let mut events = client.follow("/v1/events").await?;
    let stopping: Stopping = client.post(path).await?;
    let mut ended = Ended { round: stopping.round, weight_units: stopping.weight_units, left: false, failure: None };
    let mut has_said = false;
    while let Some(text) = events.next().await {
        match serde_json::from_str::<EventLine>(&text).map(|line| line.event) {
            Ok(Event::Done { round, weight_units, .. }) => {
                ended.round = round;
                ended.weight_units = weight_units;
                has_said = true;
            }
            Ok(Event::Left) => ended.left = true,
            Ok(Event::Failed { message, .. }) => (ended.failure, has_said) = (Some(message), true),
            _ => {}
        }
    }
    if !has_said {
        ended.failure = Some("it was killed, or crashed, while it ended".to_owned());
    }
    end_of_process(&home.root().join("lock")).await?;
    Ok((stopping, ended))
}

/// Waits until the lock of the home is free.
async fn end_of_process(lock: &Path) -> Result {
    let doing = format!("cannot wait for {}", lock.display());
    let file = File::open(lock).context(ErrorKind::BadInput, &doing)?;
    let (sender, ended) = oneshot::channel();
    // A thread of its own: a wait for a lock cannot be cancelled, and must not keep this command from ending.
    std::thread::spawn(move || sender.send(file.lock_shared()));
    match ended.await {
        Ok(locked) => locked.context(ErrorKind::Unexpected, doing),
        Err(_) => Err(Error::new(ErrorKind::Unexpected, doing)),
    }
}
