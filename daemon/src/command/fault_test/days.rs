//! One swarm for many virtual days, with its memory watched.

use std::process::ExitCode;
use std::time::Instant;

use mingle_peer::{Error, ErrorKind, results, units};
use mingle_protocol::sim::{Day, Outcome, Profile, SimError, Soak};

use super::report::grouped;
use crate::cli::FaultTestArgs;
use crate::out;

/// Runs the swarm of the first seed for so many days, a line or an object a day.
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
    let Some(mut soak) = Soak::new(profile, seed) else {
        let message = format!("--days: not with {profile}, whose plans change or whose disks lose what is on them");
        return Err(Error::new(ErrorKind::BadInput, message).hint("take kill, loss or partition"));
    };
    if !json {
        out::line(format!("{profile}, seed {seed}: {} nodes", soak.nodes()));
    }
    let began = Instant::now();
    for _ in 0..days {
        match soak.next_day() {
            Ok(day) => out::line(if json { object(profile, &day, began) } else { line(&day, began) }),
            Err(error) => return fail(profile, seed, &error, json),
        }
    }
    let outcome = soak.finish();
    if let Some(error) = &outcome.failure {
        return fail(profile, seed, error, json);
    }
    let digest = hex::encode(outcome.digest);
    if json {
        out::line(last_object(profile, &outcome, soak.drift(), began));
    } else {
        let drift = soak.drift();
        out::line(format!(
            "all have drained: every unit of weight is there, the numerators are off by {drift:.1e}  blake3:{}",
            &digest[..8]
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn line(day: &Day, began: Instant) -> String {
    let Outcome { kills, partitions, .. } = &day.so_far;
    format!(
        "day {:>5}  {:>11} rounds  {:>11} kills  {:>7} partitions  {:>13} checks  {:>6.1} MB  {:>7.1} s",
        day.day,
        grouped(day.rounds),
        grouped(*kills),
        grouped(*partitions),
        grouped(day.so_far.checks()),
        results::peak_resident_bytes().map_or(0.0, units::megabytes),
        began.elapsed().as_secs_f64(),
    )
}

fn object(profile: Profile, day: &Day, began: Instant) -> String {
    let mut object = counts(profile, &day.so_far, began);
    object["day"] = day.day.into();
    object["rounds"] = day.rounds.into();
    object.to_string()
}

fn last_object(profile: Profile, outcome: &Outcome, drift: f64, began: Instant) -> String {
    let mut object = counts(profile, outcome, began);
    object["drained"] = true.into();
    object["numerators_off_by"] = drift.into();
    object.to_string()
}

fn counts(profile: Profile, outcome: &Outcome, began: Instant) -> serde_json::Value {
    serde_json::json!({
        "schema": "mingle.fault-test-days/1",
        "release": env!("CARGO_PKG_VERSION"),
        "profile": profile,
        "seed": outcome.seed,
        "nodes": outcome.nodes,
        "virtual_s": outcome.ended.micros() / 1_000_000,
        "kills": outcome.kills,
        "partitions": outcome.partitions,
        "link_cuts": outcome.link_cuts,
        "rollbacks": outcome.rollbacks,
        "checks": outcome.checks(),
        "wire_checks": outcome.wire_checks,
        "disk_checks": outcome.disk_checks,
        "events": outcome.events,
        "digest": hex::encode(outcome.digest),
        "wall_s": began.elapsed().as_secs_f64(),
        "peak_memory_bytes": results::peak_resident_bytes(),
    })
}

fn fail(profile: Profile, seed: u64, error: &SimError, json: bool) -> mingle_peer::Result<ExitCode> {
    let failure = Error::new(ErrorKind::Integrity, format!("{profile}, seed {seed}: {error}"));
    if json {
        out::line(serde_json::json!({ "error": failure.to_json() }));
        return Ok(ExitCode::from(ErrorKind::Integrity as u8));
    }
    Err(failure)
}
