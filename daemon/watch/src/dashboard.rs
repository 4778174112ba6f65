//! A dashboard of a running peer in the terminal.
//!
//! It is a client like any other: it works from another terminal, over ssh and beside a supervisor, and ending it does
//! nothing to the peer. A peer that ends leaves its last picture; one that is started again is followed again.

use std::time::Duration;

use mingle_peer::api::client::{Client, Lines};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Home, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::screen;
use crate::view::View;

/// Between two looks for a peer that has ended.
const RETRY: Duration = Duration::from_millis(500);
/// Between two pictures. A peer may send hundreds of events a second, and a picture for each would fall behind them.
const FRAME: Duration = Duration::from_millis(100);
/// The keyboard is read in spans of this length, so that its thread ends soon after the dashboard.
const KEY_POLL: Duration = Duration::from_millis(200);

/// Follows the peer in this home on the terminal of this process, until the user quits.
///
/// # Errors
/// No peer runs there, which is said before the terminal is touched; or standard output is no terminal to draw on.
pub async fn show(home: &Home) -> Result {
    let client = Client::new(home);
    // A peer that is not there is said on the plain terminal.
    let feed = Feed::open(&client).await?;
    let mut screen = Screen::open()?;
    follow(&client, feed, &mut screen).await
}

/// The terminal while the dashboard has it. Dropping it gives it back; a panic gives it back before it speaks.
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

/// What a peer sends.
struct Feed {
    snapshots: Lines,
    events: Lines,
}

/// One thing that it sent.
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
        // A stream that has ended is passed over: what the other still has is read first.
        tokio::select! {
            Some(text) = self.events.next() => Update::Event(text),
            Some(text) = self.snapshots.next() => Update::Snapshot(text),
            else => Update::Ended,
        }
    }
}

/// What the user did.
enum Key {
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
                Some(Key::Redraw) => {}
                Some(Key::Quit) | None => return Ok(()),
            },
            update = next(&mut feed, client) => match update {
                Next::Update(Update::Snapshot(text)) => view.on_snapshot(&text),
                Next::Update(Update::Event(text)) => view.on_event(&text),
                Next::Update(Update::Ended) => {
                    view.has_ended = true;
                    feed = None;
                }
                Next::Back(again) => {
                    view = View::default();
                    feed = Some(again);
                }
            },
        }
        is_drawn = false;
    }
}

enum Next {
    Update(Update),
    Back(Feed),
}

/// The next thing that the peer sends; without a peer, the peer that comes back.
async fn next(feed: &mut Option<Feed>, client: &Client) -> Next {
    if let Some(feed) = feed {
        return Next::Update(feed.next().await);
    }
    loop {
        tokio::time::sleep(RETRY).await;
        if let Ok(feed) = Feed::open(client).await {
            return Next::Back(feed);
        }
    }
}

/// Reads the keyboard on a thread of its own; it ends when nobody listens, or the terminal is gone.
fn keys() -> mpsc::Receiver<Key> {
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

fn meaning(event: &TerminalEvent) -> Option<Key> {
    match event {
        TerminalEvent::Resize(..) => Some(Key::Redraw),
        TerminalEvent::Key(key) if key.kind == KeyEventKind::Press => match key.code {
            KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
            // The terminal is in raw mode: it sends no signal.
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
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
        let quits =
            |code, modifiers| matches!(meaning(&TerminalEvent::Key(KeyEvent::new(code, modifiers))), Some(Key::Quit));
        assert!(quits(KeyCode::Char('q'), KeyModifiers::NONE) && quits(KeyCode::Esc, KeyModifiers::NONE));
        assert!(quits(KeyCode::Char('c'), KeyModifiers::CONTROL) && !quits(KeyCode::Char('c'), KeyModifiers::NONE));
        assert!(matches!(meaning(&TerminalEvent::Resize(80, 24)), Some(Key::Redraw)));
    }
}
