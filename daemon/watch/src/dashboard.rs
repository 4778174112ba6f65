//! A dashboard of a running peer in the terminal.
//!
//! It is a client like any other: it works from another terminal, over ssh and beside a supervisor, and ending it does
//! not affect the peer. When the peer ends, its last picture stays; when it is restarted, the dashboard follows it
//! again.

use std::time::Duration;

use mingle_peer::api::client::{Client, JsonLines};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Home, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::screen;
use crate::view::View;

/// The interval between attempts to reconnect to a peer that has ended.
const RETRY: Duration = Duration::from_millis(500);
/// The interval between two pictures. A peer may send hundreds of events a second; a picture for each would fall
/// behind.
const FRAME: Duration = Duration::from_millis(100);
/// The longest wait for a key, so that the keyboard's thread ends soon after the dashboard.
const KEY_POLL: Duration = Duration::from_millis(200);

/// Follows the peer in this home on the terminal of this process, until the user quits.
///
/// # Errors
/// No peer runs there, which is reported before the terminal is taken; or standard output is not a terminal.
pub async fn show(home: &Home) -> Result {
    let client = Client::new(home);
    // A missing peer is reported on the plain terminal.
    let feed = Feed::open(&client).await?;
    let mut screen = Screen::open()?;
    follow(&client, feed, &mut screen).await
}

/// The terminal in the dashboard's mode. Dropping it restores the terminal; a panic restores it before its message.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Result<Self> {
        ratatui::try_init().map(Self).context(ErrorKind::Unexpected, "cannot draw on this terminal")
    }

    fn draw(&mut self, view: &View) -> Result {
        let drawn = self.0.draw(|frame| screen::draw(frame, view));
        drawn.map(|_| ()).context(ErrorKind::Unexpected, "cannot draw on this terminal")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// The streams of a peer.
struct Feed {
    snapshots: JsonLines,
    events: JsonLines,
}

/// One item of these streams.
enum Update {
    Snapshot(String),
    Event(String),
    Ended,
}

impl Feed {
    async fn open(client: &Client) -> Result<Self> {
        let events = client.follow("/v1/events?since=0").await?;
        Ok(Self { snapshots: client.follow("/v1/status/follow").await?, events })
    }

    async fn next(&mut self) -> Update {
        // A stream that has ended is skipped: the other is read to its end first.
        tokio::select! {
            Some(text) = self.events.next() => Update::Event(text),
            Some(text) = self.snapshots.next() => Update::Snapshot(text),
            else => Update::Ended,
        }
    }
}

/// An action of the user.
enum KeyAction {
    Quit,
    Redraw,
}

async fn follow(client: &Client, feed: Feed, screen: &mut Screen) -> Result {
    let mut keys = keys();
    let mut view = View::default();
    let mut feed = Some(feed);
    let mut frames = tokio::time::interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_drawn = false;
    loop {
        tokio::select! {
            _ = frames.tick(), if !is_drawn => {
                screen.draw(&view)?;
                is_drawn = true;
                continue;
            }
            key = keys.recv() => match key {
                Some(KeyAction::Redraw) => {}
                Some(KeyAction::Quit) | None => return Ok(()),
            },
            update = next(&mut feed, client) => match update {
                NextUpdate::Update(Update::Snapshot(text)) => view.on_snapshot(&text),
                NextUpdate::Update(Update::Event(text)) => view.on_event(&text),
                NextUpdate::Update(Update::Ended) => {
                    view.has_ended = true;
                    feed = None;
                }
                NextUpdate::Back(again) => {
                    view = View::default();
                    feed = Some(again);
                }
            },
        }
        is_drawn = false;
    }
}

enum NextUpdate {
    Update(Update),
    Back(Feed),
}

/// The next update of the peer; without a peer, the feed of the restarted one.
async fn next(feed: &mut Option<Feed>, client: &Client) -> NextUpdate {
    if let Some(feed) = feed {
        return NextUpdate::Update(feed.next().await);
    }
    loop {
        tokio::time::sleep(RETRY).await;
        if let Ok(feed) = Feed::open(client).await {
            return NextUpdate::Back(feed);
        }
    }
}

/// Reads the keyboard on a thread of its own; it ends when the receiver is closed, or the terminal is gone.
fn keys() -> mpsc::Receiver<KeyAction> {
    let (sender, receiver) = mpsc::channel(8);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(KEY_POLL) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(_) => return,
            }
            let Ok(event) = event::read() else { return };
            if let Some(key) = meaning(&event)
                && sender.blocking_send(key).is_err()
            {
                return;
            }
        }
    });
    receiver
}

fn meaning(event: &TerminalEvent) -> Option<KeyAction> {
    match event {
        TerminalEvent::Resize(..) => Some(KeyAction::Redraw),
        TerminalEvent::Key(key) if key.kind == KeyEventKind::Press => match key.code {
            KeyCode::Char('q') | KeyCode::Esc => Some(KeyAction::Quit),
            // The terminal is in raw mode: it sends no signal.
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(KeyAction::Quit),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyEvent;

    #[test]
    fn q_escape_and_an_interrupt_quit_and_nothing_else_does() {
        let quits = |code, modifiers| {
            matches!(meaning(&TerminalEvent::Key(KeyEvent::new(code, modifiers))), Some(KeyAction::Quit))
        };
        assert!(quits(KeyCode::Char('q'), KeyModifiers::NONE) && quits(KeyCode::Esc, KeyModifiers::NONE));
        assert!(quits(KeyCode::Char('c'), KeyModifiers::CONTROL) && !quits(KeyCode::Char('c'), KeyModifiers::NONE));
        assert!(matches!(meaning(&TerminalEvent::Resize(80, 24)), Some(KeyAction::Redraw)));
    }
}
