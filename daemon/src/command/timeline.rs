//! `mingle timeline`: the activities of peers over time, and their shares.

use mingle_peer::output_file::OutputFile;
use mingle_peer::timeline::{self, FIRST_ROUND, Shares, draw, rounds_in_the_middle, window};
use mingle_peer::{Home, Result};
use serde_json::{Value, json};

use crate::cli::TimelineArgs;
use crate::out;

/// Reads the timelines, prints a line per peer, and draws them if requested.
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
        let svg = draw(&peers, arguments.rounds.unwrap_or_else(|| rounds_in_the_middle(&peers)))?;
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

#[allow(clippy::cast_precision_loss)] // for display
fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1e3
}

/// Share of the window, from 0 to 1.
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
