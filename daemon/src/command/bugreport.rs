//! `mingle bugreport`: packs the information needed to diagnose a failure, and nothing secret.
//!
//! Only files of a fixed list are included. The key, models, records and data are not on it. Addresses in the text
//! become `host-1`, `host-2` and so on, the same one everywhere; the user's home folder becomes `~`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use mingle_builtin::task_file::TaskFile;
use mingle_doctor::{Archive, Entry, Redaction};
use mingle_peer::error::Context;
use mingle_peer::output_file::OutputFile;
use mingle_peer::{ErrorKind, Home, Result};

use crate::cli::BugreportArgs;
use crate::command::{ckpt, doctor};
use crate::out;

/// Longest part of a file that is included, its end: the last events matter most.
const MAX_BYTES: u64 = 4 << 20;

const README: &str = "\
Made by `mingle bugreport`. Look through it before you give it to anyone.

  version.json   which program this is
  doctor.json    what `mingle doctor` finds on this machine
  records.json   what `mingle ckpt list` finds in the home; only if no peer runs there
  config.toml    the settings
  plan.json      the plan, with the names and PeerIds of its nodes
  task.json      what is trained
  summary.json   how the last run went
  events.jsonl   what happened, the last 4 MiB of it; what was before, in events.1.jsonl

Not inside: the key, models, records, data. Addresses are replaced by host-1, host-2 and so on.
";

const CANNOT_PACK: &str = "cannot pack the report";

/// Writes the archive and lists its contents.
pub(super) fn execute(arguments: &BugreportArgs, json: bool) -> Result {
    let output = OutputFile::at(&arguments.output)?;
    let home = Home::at(arguments.peer.home.home.as_deref())?;
    let mut redaction = Redaction::new();
    let mut archive = Archive::new("mingle-report");
    add(&mut archive, "README.txt", README.as_bytes())?;
    add(&mut archive, "version.json", text_of(&version()).as_bytes())?;
    // A report that fails is replaced by its error.
    let doctor = doctor::report(&arguments.peer).unwrap_or_else(|failure| failure.to_json());
    add(&mut archive, "doctor.json", redaction.apply(&text_of(&doctor)).as_bytes())?;
    let records = ckpt::report(&home).unwrap_or_else(|failure| failure.to_json());
    add(&mut archive, "records.json", redaction.apply(&text_of(&records)).as_bytes())?;
    let config = arguments.peer.config.clone().unwrap_or_else(|| home.config());
    // Names of columns and classes, and means of columns, are confidential.
    if let Some(card) = TaskFile::last(&home)? {
        add(&mut archive, "task.json", text_of(&serde_json::json!({ "task": card.describe() })).as_bytes())?;
    }
    let files = [config, home.plan(), home.summary(), home.older_events(), home.events()];
    let names = ["config.toml", "plan.json", "summary.json", "events.1.jsonl", "events.jsonl"];
    for (name, path) in names.into_iter().zip(files) {
        if path.is_file() {
            let text = read_end(&path).context(ErrorKind::BadInput, format!("cannot read {}", path.display()))?;
            add(&mut archive, name, redaction.apply(&text).as_bytes())?;
        }
    }
    let (bytes, entries) = archive.finish().context(ErrorKind::Unexpected, CANNOT_PACK)?;
    output.write_private(&bytes)?;
    tell(&arguments.output, &entries, json);
    Ok(())
}

fn add(archive: &mut Archive, name: &str, content: &[u8]) -> Result {
    archive.add(name, content).context(ErrorKind::Unexpected, CANNOT_PACK)
}

fn tell(output: &Path, entries: &[Entry], json: bool) {
    if json {
        let entries: Vec<_> =
            entries.iter().map(|entry| serde_json::json!({ "name": entry.name, "bytes": entry.bytes })).collect();
        out::line(serde_json::json!({ "schema": "mingle.bugreport/1", "file": output, "entries": entries }));
        return;
    }
    entries.iter().for_each(|entry| out::line(format!("{:>9}  {}", entry.bytes, entry.name)));
    remark!("wrote {}: no key, model, record or data; look through it before you give it away", output.display());
}

fn version() -> serde_json::Value {
    serde_json::json!({
        "schema": "mingle.version/1",
        "version": env!("CARGO_PKG_VERSION"),
        "os": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "debug_assertions": cfg!(debug_assertions),
        "features": { "ndarray": cfg!(feature = "ndarray"), "wgpu": cfg!(feature = "wgpu") },
        "threads": std::thread::available_parallelism().map_or(1, usize::from),
    })
}

fn text_of(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

/// The end of a text file, from the beginning of a line.
fn read_end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(MAX_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, rest)) if start > 0 => rest.to_owned(),
        _ => text,
    })
}
