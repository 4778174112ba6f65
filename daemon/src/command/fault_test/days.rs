//! Fault test of one swarm for many virtual days, with its memory observed.

use std::process::ExitCode;
use std::time::Instant;

use mingle_lab::campaign::table::grouped;
use mingle_lab::campaign::{Days, DaysReport, Moment};
use mingle_peer::{Error, ErrorKind, units};
use mingle_protocol::sim::{Profile, SimError};

use super::cost;
use crate::cli::FaultTestArgs;
use crate::out;

/// Runs the swarm of the first seed for this many days, and prints a line or an object per day.
pub(super) fn execute(
    arguments: &FaultTestArgs,
    profiles: &[Profile],
    days: u32,
    json: bool,
) -> mingle_peer::Result<ExitCode> {
    let &[profile] = profiles else {
        return Err(Error::new(ErrorKind::BadInput, "--days: take one profile, such as --profile kill"));
    };
    let seed = arguments.first;
    let Some(swarm) = Days::new(profile, seed) else {
        let message = format!("--days: not with {profile}, whose plans change or whose disks lose what is on them");
        return Err(Error::new(ErrorKind::BadInput, message).hint("take kill, loss or partition"));
    };
    if !json {
        out::line(format!("{profile}, seed {seed}: {} nodes", swarm.nodes()));
    }
    match run(swarm, days, |report| out::line(if json { serde_json::json!(report).to_string() } else { line(report) }))
    {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            let failure = Error::new(ErrorKind::Integrity, format!("{profile}, seed {seed}: {error}"));
            if !json {
                return Err(failure);
            }
            out::line(serde_json::json!({ "error": failure.to_json() }));
            Ok(ExitCode::from(ErrorKind::Integrity as u8))
        }
    }
}

fn run(mut swarm: Days, days: u32, tell: impl Fn(&DaysReport)) -> Result<(), SimError> {
    let began = Instant::now();
    for _ in 0..days {
        tell(&swarm.next_day(|| cost(began))?);
    }
    tell(&swarm.finish(|| cost(began))?);
    Ok(())
}

fn line(report: &DaysReport) -> String {
    match report.at {
        Moment::Day { day, rounds } => format!(
            "day {:>5}  {:>11} rounds  {:>11} kills  {:>7} partitions  {:>13} checks  {:>6.1} MB  {:>7.1} s",
            day,
            grouped(rounds),
            grouped(report.kills),
            grouped(report.partitions),
            grouped(report.checks),
            report.peak_memory_bytes.map_or(0.0, units::megabytes),
            report.wall_s,
        ),
        Moment::End { numerators_off_by, .. } => format!(
            "all have drained: every unit of weight is there, the numerators are off by {numerators_off_by:.1e}  blake3:{}",
            &report.digest[..8]
        ),
    }
}
