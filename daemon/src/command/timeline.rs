//! `mingle timeline`: what peers did when, and how much of it was waiting.

use mingle_peer::output_file::OutputFile;
use mingle_peer::timeline::{self, PeerTimeline, Shares, Span, SpanKind, Window};
use mingle_peer::{Error, ErrorKind, Home, Result};
use mingle_plot::{Bar, Group, lane_chart};
use serde_json::{Value, json};

use crate::cli::TimelineArgs;
use crate::out;

/// What the bars of the picture are called, by their number.
const KINDS: [&str; 6] = ["training", "waiting", "sending", "receiving", "record", "evaluation"];
/// The lane of each of them.
const LANES: [usize; 6] = [0, 0, 1, 2, 3, 0];
/// At the beginning, connections come up and memory is found.
const FIRST_ROUND: u64 = 3;
/// Rounds in the picture, unless they are given.
const DRAWN_ROUNDS: u64 = 4;

/// Reads the timelines, prints a line a peer, and draws them where that is asked for.
pub(super) fn execute(arguments: &TimelineArgs, json: bool) -> Result {
    let output = arguments.output.as_deref().map(OutputFile::at).transpose()?;
    let mut peers = Vec::new();
    for folder in &arguments.homes {
        peers.push(timeline::read(&Home::at(Some(folder))?.timeline())?);
    }
    peers.sort_by_key(|peer| peer.node);
    let (first, last) = arguments.rounds.unwrap_or((FIRST_ROUND, u64::MAX));
    let shares = peers.iter().map(|peer| Ok((peer.node, Shares::of(peer, window(peer, first, last)?))));
    let shares = shares.collect::<Result<Vec<(u32, Shares)>>>()?;
    if let Some(output) = &output {
        let svg = draw(&peers, arguments.rounds.unwrap_or_else(|| in_the_middle(&peers)))?;
        output.write(svg.as_bytes())?;
    }
    if json {
        let peers: Vec<Value> = shares.iter().map(|(node, shares)| to_json(*node, shares)).collect();
        out::line(json!({ "schema": "mingle.timeline-shares/1", "peers": peers }));
    } else {
        out::line("node  rounds  ms a round  training  waiting  parcels move  of which hidden by training");
        shares.iter().for_each(|(node, shares)| out::line(to_text(*node, shares)));
    }
    Ok(())
}

/// The timelines of a whole swarm: drawn, and how much of its communication training hid.
pub(super) struct Picture {
    pub(super) svg: String,
    /// `None` where no parcel moved.
    pub(super) hidden: Option<f64>,
}

/// Reads and draws the timelines in these homes.
pub(super) fn look_at(homes: &[Home]) -> Result<Picture> {
    let peers = homes.iter().map(|home| timeline::read(&home.timeline())).collect::<Result<Vec<_>>>()?;
    let mut all = Shares::default();
    for peer in &peers {
        all.add(&Shares::of(peer, window(peer, FIRST_ROUND, u64::MAX)?));
    }
    Ok(Picture { svg: draw(&peers, in_the_middle(&peers))?, hidden: all.hidden() })
}

fn window(peer: &PeerTimeline, first: u64, last: u64) -> Result<Window> {
    Window::of_rounds(peer, first, last).ok_or_else(|| {
        let rounds =
            if last == u64::MAX { format!("round {first} or later") } else { format!("rounds {first} to {last}") };
        Error::new(ErrorKind::BadInput, format!("the timeline of node {} does not have {rounds}", peer.node))
    })
}

/// A few rounds that all peers have, half-way.
fn in_the_middle(peers: &[PeerTimeline]) -> (u64, u64) {
    let rounds = |peer: &PeerTimeline| {
        let round = |span: &Span| if let SpanKind::Round { round } = span.deed { Some(round) } else { None };
        peer.spans.iter().filter_map(round).max().unwrap_or(1)
    };
    let middle = peers.iter().map(rounds).min().unwrap_or(1).div_ceil(2);
    (middle, middle + DRAWN_ROUNDS - 1)
}

fn draw(peers: &[PeerTimeline], (first, last): (u64, u64)) -> Result<String> {
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

/// The number of the bar; the end of a round is a line.
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

/// Part of the window, from 0 to 1.
fn part(shares: &Shares, micros: u64) -> f64 {
    milliseconds(micros) / milliseconds(shares.whole_us.max(1))
}

#[allow(clippy::cast_precision_loss)] // for display
fn round_ms(shares: &Shares) -> f64 {
    milliseconds(shares.whole_us) / shares.rounds.max(1) as f64
}

fn to_text(node: u32, shares: &Shares) -> String {
    let percent = |micros| 100.0 * part(shares, micros);
    let hidden = shares.hidden().map_or_else(|| "-".to_owned(), |hidden| format!("{:.0} %", 100.0 * hidden));
    format!(
        "{node:>4} {:>7} {:>11.1} {:>7.0} % {:>6.0} % {:>11.0} % {hidden:>28}",
        shares.rounds,
        round_ms(shares),
        percent(shares.training_us),
        percent(shares.waiting_us),
        percent(shares.moving_us),
    )
}

fn to_json(node: u32, shares: &Shares) -> Value {
    json!({
        "node": node,
        "rounds": shares.rounds,
        "round_ms": round_ms(shares),
        "training": part(shares, shares.training_us),
        "waiting": part(shares, shares.waiting_us),
        "moving": part(shares, shares.moving_us),
        "hidden": shares.hidden(),
    })
}
