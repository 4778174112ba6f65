//! `mingle replay`: repeats a recorded fault test, and compares it with the record.

use std::io::Read;
use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};
use mingle_plaintext::InputFile;
use mingle_protocol::Time;
use mingle_protocol::sim::{Journal, SeedOutcome, TraceEntry};

use crate::cli::ReplayArgs;
use crate::out;

/// Larger than any journal with the most possible faults.
const MOST_BYTES: u64 = 16 << 20;

/// Runs the journal again. A recorded failure that recurs is the purpose of a replay, not a failure of it.
pub(super) fn execute(arguments: &ReplayArgs, json: bool) -> Result {
    let journal = read(&arguments.journal)?;
    let (outcome, log) = if arguments.trace { journal.trace() } else { (journal.replay(), Vec::new()) };
    let agrees = journal.agrees_with(&outcome);
    if json {
        out::line(document(&journal, &outcome, &log, agrees));
    } else {
        print(&journal, &outcome, &log);
    }
    if agrees {
        return Ok(());
    }
    let made_by = journal.made_by();
    let release = env!("CARGO_PKG_VERSION");
    let message = format!(
        "the run is not the recorded one: blake3:{} where {} was recorded",
        &hex::encode(outcome.digest)[..8],
        &hex::encode(journal.digest())[..8]
    );
    let failure = Error::new(ErrorKind::Integrity, message);
    Err(if made_by == release {
        failure
            .hint(format!("a build of release {made_by} made the journal, as this one is: another state of the code"))
    } else {
        failure.hint(format!("release {made_by} made the journal, this is {release}: replay it with {made_by}"))
    })
}

fn read(path: &Path) -> Result<Journal> {
    let doing = || format!("cannot read the journal {}", path.display());
    let mut text = String::new();
    let file = InputFile::open(path).context(ErrorKind::BadInput, doing())?;
    let bytes = file.take(MOST_BYTES + 1).read_to_string(&mut text).context(ErrorKind::BadInput, doing())?;
    if bytes as u64 > MOST_BYTES {
        return Err(Error::new(ErrorKind::BadInput, format!("{}: no journal has more than 16 MiB", doing())));
    }
    serde_json::from_str(&text).context(ErrorKind::BadInput, doing())
}

fn print(journal: &Journal, outcome: &SeedOutcome, log: &[(Time, TraceEntry)]) {
    out::line(format!(
        "run        {} seed {}{}: {} nodes, {} faults, repaired at {}, stopped at {}",
        journal.profile(),
        journal.seed(),
        journal.variant(),
        outcome.nodes,
        journal.faults().len(),
        journal.repair(),
        journal.stop()
    ));
    for (at, entry) in log {
        out::line(format!("{:>18}  {entry}", at.to_string()));
    }
    out::line(format!(
        "happened   {} kills, {} cuts, {} disk faults; the ledger was added up {} times",
        outcome.kills,
        outcome.link_cuts,
        outcome.disk_faults,
        outcome.checks()
    ));
    out::line(format!("ended      at {}, blake3:{}", outcome.ended, &hex::encode(outcome.digest)[..8]));
    match &outcome.failure {
        Some(failure) => out::line(format!("FAILED     {failure:#}")),
        None => out::line("held       every unit of weight is accounted for"),
    }
}

fn document(journal: &Journal, outcome: &SeedOutcome, log: &[(Time, TraceEntry)], agrees: bool) -> serde_json::Value {
    let entry =
        |(at, entry): &(Time, TraceEntry)| serde_json::json!({ "at_us": at, "entry": entry.to_string().trim_start() });
    serde_json::json!({
        "schema": "mingle.replay/2",
        "release": env!("CARGO_PKG_VERSION"),
        "made_by": journal.made_by(),
        "profile": journal.profile(),
        "seed": journal.seed(),
        "injected_bug": journal.variant().injected_bug,
        "robust": journal.variant().robust.to_string(),
        "overlap": journal.variant().overlap.to_string(),
        "nodes": outcome.nodes,
        "faults": journal.faults().len(),
        "agrees": agrees,
        "digest": hex::encode(outcome.digest),
        "recorded_digest": hex::encode(journal.digest()),
        "ended_us": outcome.ended,
        "events": outcome.events,
        "kills": outcome.kills,
        "checks": outcome.checks(),
        "failure": outcome.failure.as_ref().map(ToString::to_string),
        "recorded_failure": journal.failure(),
        "trace": log.iter().map(entry).collect::<Vec<_>>(),
    })
}
