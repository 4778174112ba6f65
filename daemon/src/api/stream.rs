//! Streams of server-sent events: the events of the bus, and each new snapshot.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event as Sse, KeepAlive};
use axum::response::{IntoResponse, Response, Sse as SseResponse};
use futures::Stream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::events::{Event, EventLine, EventReader, Read};
use crate::status::Status;

/// Snapshots follow each other no faster, however fast the rounds are.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(100);
/// A stream that has nothing to say says so this often.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The events, each with its number; ends with the peer.
pub(super) fn events(reader: EventReader, permit: OwnedSemaphorePermit) -> Response {
    respond(futures::stream::unfold((reader, permit), |(mut reader, permit)| async {
        let event = match reader.next().await? {
            Read::Event(told) => Sse::default().id(told.number.to_string()).data(&told.json),
            Read::Lost(count) => Sse::default().data(lost(count)),
        };
        Some((Ok(event), (reader, permit)))
    }))
}

/// The present snapshot and each new one; the last one before the peer's end is never left out.
pub(super) fn snapshots(mut board: watch::Receiver<Arc<Status>>, permit: OwnedSemaphorePermit) -> Response {
    board.mark_changed();
    respond(futures::stream::unfold((board, permit, None), |(mut board, permit, sent_at)| async move {
        if let Some(sent_at) = sent_at {
            let next: Instant = sent_at + SNAPSHOT_INTERVAL;
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = ended(board.clone()) => {}
            }
        }
        board.changed().await.ok()?;
        let status = Arc::clone(&board.borrow_and_update());
        let text = serde_json::to_string(&*status).ok()?;
        Some((Ok(Sse::default().data(text)), (board, permit, Some(Instant::now()))))
    }))
}

/// Waits until nothing new will be shown.
async fn ended(mut board: watch::Receiver<Arc<Status>>) {
    while board.changed().await.is_ok() {}
}

fn respond(stream: impl Stream<Item = Result<Sse, Infallible>> + Send + 'static) -> Response {
    SseResponse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

fn lost(count: u64) -> String {
    let line = EventLine::now(0, Event::Lost { count });
    serde_json::to_string(&line).unwrap_or_default()
}
