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

/// Shortest interval between snapshots, however fast the rounds are.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of keep-alive comments on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream of events, each with its number; ends with the peer.
pub(super) fn events(reader: EventReader, permit: OwnedSemaphorePermit) -> Response {
    respond(futures::stream::unfold((reader, permit), |(mut reader, permit)| async {
        let event = match reader.next().await? {
            Read::Event(told) => Sse::default().id(told.number.to_string()).data(&told.json),
            Read::Lost(count) => Sse::default().data(lost(count)),
        };
        Some((Ok(event), (reader, permit)))
    }))
}

/// A stream of the present snapshot and each new one; the last one before the peer's end is never left out.
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

/// Waits until there are no more new snapshots.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Home;
    use crate::events::{EventLog, Read};
    use http_body_util::BodyExt;
    use tokio::sync::Semaphore;

    async fn permit() -> OwnedSemaphorePermit {
        Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap()
    }

    async fn text(response: Response) -> String {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn the_last_snapshot_is_never_left_out_however_fast_it_comes() {
        let (board, look) = watch::channel(Arc::new(Status::starting("me".to_owned())));
        let response = snapshots(look, permit().await);
        let reading = tokio::spawn(text(response));
        tokio::task::yield_now().await;
        for round in 1..=500 {
            board.send_modify(|status| Arc::make_mut(status).round = round);
        }
        drop(board);
        let text = reading.await.unwrap();
        let seen: Vec<Status> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        assert_eq!(seen.last().unwrap().round, 500);
        assert!(seen.len() < 10, "{} snapshots went out", seen.len());
    }

    #[tokio::test]
    async fn a_reader_that_is_too_slow_is_told_how_many_events_it_lost_and_each_event_has_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let started = std::time::Instant::now();
        let log = EventLog::open(&Home::create(Some(folder.path())).unwrap(), Box::new(|_, _| {}), started).unwrap();
        let reader = log.feed().read(None);
        let mut other = log.feed().read(None);
        for round in 1..=1_500 {
            log.tell(Event::Round { round, weight_units: 0, clipped: None });
        }
        drop(log);
        let Some(Read::Lost(lost)) = other.next().await else { panic!("more were told than a reader may be behind") };
        let text = text(events(reader, permit().await)).await;
        assert!(text.contains(&format!(r#""event":"lost","count":{lost}"#)), "{text}");
        assert!(text.contains(&format!("id: {}\n", lost + 1)) && text.contains("id: 1500\n"), "{text}");
        assert!(!text.contains(&format!("id: {lost}\n")), "{text}");
    }
}
