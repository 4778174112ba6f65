//! A chart of the timelines of several peers, below each other.

use mingle_plot::{Bar, Group, lane_chart};

use super::{PeerTimeline, Shares, Span, SpanKind, Window, read};
use crate::error::{Error, ErrorKind, Result};
use crate::home::Home;

/// Names of the kinds of bar, by number.
const KINDS: [&str; 6] = ["training", "waiting", "sending", "receiving", "record", "evaluation"];
/// The lane of each kind.
const LANES: [usize; 6] = [0, 0, 1, 2, 3, 0];
/// First round in the statistics: in earlier ones connections are established and memory is allocated.
pub const FIRST_ROUND: u64 = 3;
/// Rounds in the chart, unless they are given.
const DRAWN_ROUNDS: u64 = 4;

/// The timelines of a whole swarm: a chart, and the share of communication that training hid.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The chart.
    pub svg: String,
    /// The share of the time with parcels on their way that was spent training; `None` if there was no parcel.
    pub hidden: Option<f64>,
}

impl Picture {
    /// Reads and draws the timelines in these homes.
    ///
    /// # Errors
    /// A timeline cannot be read, or ends before the rounds to be drawn.
    pub fn of(homes: &[Home]) -> Result<Self> {
        let peers = homes.iter().map(|home| read(&home.timeline())).collect::<Result<Vec<_>>>()?;
        let mut all = Shares::default();
        for peer in &peers {
            all.add(&Shares::of(peer, window(peer, FIRST_ROUND, u64::MAX)?));
        }
        Ok(Self { svg: draw(&peers, rounds_in_the_middle(&peers))?, hidden: all.hidden() })
    }
}

/// The time of some rounds of a peer.
///
/// # Errors
/// The timeline does not contain them.
pub fn window(peer: &PeerTimeline, first: u64, last: u64) -> Result<Window> {
    Window::of_rounds(peer, first, last).ok_or_else(|| {
        let rounds =
            if last == u64::MAX { format!("round {first} or later") } else { format!("rounds {first} to {last}") };
        Error::new(ErrorKind::BadInput, format!("the timeline of node {} does not have {rounds}", peer.node))
    })
}

/// Four rounds from the middle of the shortest timeline.
pub fn rounds_in_the_middle(peers: &[PeerTimeline]) -> (u64, u64) {
    let rounds = |peer: &PeerTimeline| {
        let round = |span: &Span| if let SpanKind::Round { round } = span.deed { Some(round) } else { None };
        peer.spans.iter().filter_map(round).max().unwrap_or(1)
    };
    let middle = peers.iter().map(rounds).min().unwrap_or(1).div_ceil(2);
    (middle, middle + DRAWN_ROUNDS - 1)
}

/// Draws some rounds of all peers, below each other.
///
/// # Errors
/// A timeline does not contain them.
pub fn draw(peers: &[PeerTimeline], (first, last): (u64, u64)) -> Result<String> {
    // The peers' clocks may differ by a little; on one machine they are one clock.
    let origin = peers.iter().map(|peer| peer.began_unix_us).min().unwrap_or(0);
    let mut range: Option<(u64, u64)> = None;
    for peer in peers {
        let window = window(peer, first, last)?;
        let offset = peer.began_unix_us - origin;
        let (from, to) = range.unwrap_or((u64::MAX, 0));
        range = Some((from.min(window.from_us + offset), to.max(window.to_us + offset)));
    }
    let (from, to) = range.unwrap_or((0, 1));
    let groups: Vec<Group> = peers.iter().map(|peer| group(peer, peer.began_unix_us - origin, (from, to))).collect();
    let title = format!("Rounds {first} to {last}");
    Ok(lane_chart(&title, "milliseconds", (0.0, milliseconds(to - from)), &KINDS, &groups))
}

fn group(peer: &PeerTimeline, offset: u64, (from, to): (u64, u64)) -> Group {
    let mut group = Group { name: format!("node {}", peer.node), lanes: vec![Vec::new(); 4], ticks: Vec::new() };
    let place = |at: u64| milliseconds((at + offset).saturating_sub(from));
    for span in peer.spans.iter().filter(|span| span.to_us + offset >= from && span.from_us + offset <= to) {
        match kind_of(span.deed) {
            Some(kind) => group.lanes[LANES[kind]].push(Bar { kind, from: place(span.from_us), to: place(span.to_us) }),
            None if span.to_us + offset <= to => group.ticks.push(place(span.to_us)),
            None => {}
        }
    }
    group
}

/// The number of the kind of bar; `None` for a round, whose end is a line.
fn kind_of(deed: SpanKind) -> Option<usize> {
    match deed {
        SpanKind::Train => Some(0),
        SpanKind::Wait => Some(1),
        SpanKind::Send { .. } => Some(2),
        SpanKind::Receive { .. } => Some(3),
        SpanKind::Record => Some(4),
        SpanKind::Evaluate => Some(5),
        SpanKind::Round { .. } => None,
    }
}

#[allow(clippy::cast_precision_loss)] // for display
fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1e3
}
