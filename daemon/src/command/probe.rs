//! `mingle probe`: measures the links between all peers present, for the planner.

use std::fmt::Write as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mingle_peer::api::client::{self, Client};
use mingle_peer::api::{Known, LinkSpeed};
use mingle_peer::output_file::OutputFile;
use mingle_peer::{Error, ErrorKind, Home, Result};
use serde_json::json;

use crate::cli::ProbeArgs;
use crate::out;

/// Time limit for connecting to two peers one after the other and measuring.
const PATIENCE: Duration = Duration::from_secs(60);

/// The results of all measurements.
#[derive(Default)]
struct Findings {
    links: Vec<LinkSpeed>,
    failures: Vec<(String, String, Error)>,
}

/// Measures each ordered pair, and writes the input of `plan make --links`.
pub(super) fn execute(arguments: &ProbeArgs, json: bool) -> Result {
    let output = arguments.output.as_deref().map(OutputFile::at).transpose()?;
    let home = Home::at(arguments.home.home.as_deref())?;
    let findings = client::block_on(measure_all(&home, arguments.one_at_a_time, json))?;
    let file = links_file(&findings.links);
    if let Some(output) = &output {
        output.write(file.as_bytes())?;
    }
    match (json, &arguments.output) {
        (true, _) => out::line(report(&findings)),
        (false, None) => out::line(file.trim_end()),
        (false, Some(path)) => out::line(format!("{} -> {}", summary(&findings.links), path.display())),
    }
    for (from, to, failure) in &findings.failures {
        out::remark(format_args!("warning: {from} -> {to} is not measured: {failure:#}"));
    }
    Ok(())
}

async fn measure_all(home: &Home, one_at_a_time: bool, json: bool) -> Result<Findings> {
    let client = Client::new(home);
    let known: Known = client.get("/v1/known").await?;
    if known.peers.len() < 2 {
        return Err(Error::new(ErrorKind::BadInput, "nobody else is there: there are no links to measure")
            .hint("invite others with `mingle invite`, and wait for them with `mingle wait --for waiting=N`"));
    }
    if let Some(objection) = known.objection {
        return Err(Error::new(ErrorKind::Refused, objection).hint("mingle ping PEER measures a link of this peer"));
    }
    let bar = progress_bar(known.peers.len(), json);
    let mut findings = Findings::default();
    for together in rounds(known.peers.len(), one_at_a_time) {
        let measuring = together.into_iter().map(|(from, to)| {
            let (from, to) = (known.peers[from].clone(), known.peers[to].clone());
            let client = client.clone();
            async move {
                let link = measure(client, &from, &to).await;
                (from, to, link)
            }
        });
        for (from, to, link) in futures::future::join_all(measuring).await {
            bar.inc(1);
            match link {
                Ok(link) => findings.links.push(link),
                Err(failure) => findings.failures.push((from, to, failure)),
            }
        }
    }
    bar.finish_and_clear();
    findings.links.sort_by(|one, other| (&one.from, &one.to).cmp(&(&other.from, &other.to)));
    if findings.links.is_empty()
        && let Some((_, _, failure)) = findings.failures.pop()
    {
        return Err(failure);
    }
    Ok(findings)
}

/// Requests the measurement of one link.
pub(super) async fn measure(client: Client, from: &str, to: &str) -> Result<LinkSpeed> {
    client.with_patience(PATIENCE).post(&format!("/v1/measure?from={from}&to={to}")).await
}

/// All ordered pairs of `0..count`, in rounds of pairs without a common end: a round robin tournament by the circle
/// method, in both directions.
fn rounds(count: usize, one_at_a_time: bool) -> Vec<Vec<(usize, usize)>> {
    // With an odd number, the one paired with the last place pauses.
    let places = count + count % 2;
    let mut rounds = Vec::new();
    for turn in 0..places - 1 {
        let seat = |place: usize| if place == 0 { 0 } else { (place - 1 + turn) % (places - 1) + 1 };
        let pairs: Vec<(usize, usize)> = (0..places / 2)
            .map(|place| (seat(place), seat(places - 1 - place)))
            .filter(|&(one, other)| one < count && other < count)
            .collect();
        rounds.push(pairs.clone());
        rounds.push(pairs.into_iter().map(|(one, other)| (other, one)).collect());
    }
    if one_at_a_time { rounds.concat().into_iter().map(|pair| vec![pair]).collect() } else { rounds }
}

fn progress_bar(peers: usize, json: bool) -> ProgressBar {
    let target = if json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("measuring {bar:30} {pos}/{len} links  {elapsed}");
    ProgressBar::with_draw_target(Some((peers * (peers - 1)) as u64), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The measurements in the form that the planner reads.
fn links_file(links: &[LinkSpeed]) -> String {
    let mut text =
        "# Measured by mingle probe. Losses are not measured: add `loss = 0.01` where you know them.\n".to_owned();
    for link in links {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n[[link]]\nfrom = \"{}\"\nto = \"{}\"\nrtt_ms = {:.3}\nmbit_s = {:.3}\n",
            link.from, link.to, link.rtt_ms, link.mbit_s
        );
    }
    text
}

/// A summary of all links, in one line.
fn summary(links: &[LinkSpeed]) -> String {
    let span = |number: fn(&LinkSpeed) -> f64| {
        let (least, most) = links
            .iter()
            .map(number)
            .fold((f64::INFINITY, 0.0_f64), |(least, most), number| (least.min(number), most.max(number)));
        format!("{least:.1} to {most:.1}")
    };
    format!(
        "measured {} directed links: round trips {} ms, {} Mbit/s",
        links.len(),
        span(|link| link.rtt_ms),
        span(|link| link.mbit_s)
    )
}

fn report(findings: &Findings) -> serde_json::Value {
    let failures: Vec<_> = findings
        .failures
        .iter()
        .map(|(from, to, failure)| json!({ "from": from, "to": to, "error": failure.to_json() }))
        .collect();
    json!({ "schema": "mingle.probe/1", "links": findings.links, "failures": failures })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use mingle_planner::link_measurements::LinkMeasurements;
    use std::collections::BTreeSet;

    #[test]
    fn every_ordered_pair_is_measured_once_and_nobody_is_in_two_at_a_time() {
        for count in 2..9 {
            let rounds = rounds(count, false);
            for round in &rounds {
                let ends: BTreeSet<usize> = round.iter().flat_map(|(from, to)| [*from, *to]).collect();
                assert_eq!(ends.len(), 2 * round.len(), "{count}: {round:?}");
            }
            let pairs: Vec<(usize, usize)> = rounds.concat();
            let different: BTreeSet<_> = pairs.iter().collect();
            assert!(pairs.len() == count * (count - 1) && different.len() == pairs.len(), "{count}: {pairs:?}");
            assert!(pairs.iter().all(|(from, to)| from != to));
        }
        assert!(super::rounds(5, true).iter().all(|round| round.len() == 1));
    }

    #[test]
    fn the_planner_reads_what_is_written() {
        let link = |from: &str, to: &str| LinkSpeed { from: from.into(), to: to.into(), rtt_ms: 11.25, mbit_s: 94.5 };
        let text = links_file(&[link("ana", "ben"), link("ben", "ana")]);
        let read = LinkMeasurements::parse(&text).unwrap();
        let topology = read.topology().unwrap();
        assert_eq!((topology.names(), topology.edges()), (&["ana".to_owned(), "ben".to_owned()][..], &[(0, 1)][..]));
    }
}
