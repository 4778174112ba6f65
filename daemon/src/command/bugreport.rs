//! `mingle bugreport`: packs the information needed to diagnose a failure, and nothing secret.
//!
//! Only files of a fixed list go in. The key, models, records and data are not on it. Addresses in the texts become
//! `host-1`, `host-2` and so on, the same one everywhere, and paths `path-1`. The user's home folder becomes `~`, that
//! of the peer `<home>`. Tickets, users in URLs, and values named as secrets become `***`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use mingle_builtin::task_file::TaskFile;
use mingle_doctor::{Archive, ArchiveEntry, Redaction};
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

Not inside: the key, models, records, data.

Replaced: addresses by host-1, host-2 and so on, paths by path-1.py, path-2.csv and so on. <home> is the home of the peer, ~ the
folder of the user. *** stands for who asks in addresses of the web (https://***@host), for tickets, and for values of options,
variables, settings and headers with names such as key, token, password, secret or auth. Secrets that nothing names as such are
not found. What a trainer printed is in events.jsonl, line by line.

";

/// Writes the archive and lists its contents.
pub(super) fn execute(arguments: &BugreportArgs, json: bool) -> Result {
    let output = OutputFile::at(&arguments.output)?;
    let home = Home::at(arguments.peer.home.home.as_deref())?;
    let mut redaction = Redaction::new(home.root());
    let contents = contents(&home, arguments, &mut redaction)?;
    let mut archive = Archive::new("mingle-report");
    let readme = format!("{README}{}\n", redaction.describe());
    let mut all = std::iter::once(("README.txt", readme)).chain(contents);
    let added = all.try_for_each(|(name, text)| archive.add(name, text.as_bytes()));
    let finished = added.and_then(|()| archive.finish());
    let (bytes, entries) = finished.context(ErrorKind::Unexpected, "cannot pack the report")?;
    output.write_private(&bytes)?;
    tell(&arguments.output, &entries, json);
    Ok(())
}

/// The files of the report but for the first one, without addresses, paths and secrets.
fn contents(home: &Home, arguments: &BugreportArgs, redaction: &mut Redaction) -> Result<Vec<(&'static str, String)>> {
    let mut contents = vec![("version.json", text_of(&version()))];
    // A report that fails is replaced by its error.
    let doctor = doctor::report(&arguments.peer).unwrap_or_else(|failure| failure.to_json());
    contents.push(("doctor.json", redaction.apply(&text_of(&doctor))));
    let records = ckpt::report(home).unwrap_or_else(|failure| failure.to_json());
    contents.push(("records.json", redaction.apply(&text_of(&records))));
    // Names of columns and classes, and means of columns, are not for strangers.
    if let Some(card) = TaskFile::last(home)? {
        let task = text_of(&serde_json::json!({ "task": card.describe() }));
        contents.push(("task.json", redaction.apply(&task)));
    }
    let config = arguments.peer.config.clone().unwrap_or_else(|| home.config());
    let files = [config, home.plan(), home.summary(), home.older_events(), home.events()];
    let names = ["config.toml", "plan.json", "summary.json", "events.1.jsonl", "events.jsonl"];
    for (name, path) in names.into_iter().zip(files) {
        if path.is_file() {
            let text = read_end(&path).context(ErrorKind::BadInput, format!("cannot read {}", path.display()))?;
            contents.push((name, redaction.apply(&text)));
        }
    }
    Ok(contents)
}

fn tell(output: &Path, entries: &[ArchiveEntry], json: bool) {
    if json {
        let entries: Vec<_> =
            entries.iter().map(|entry| serde_json::json!({ "name": entry.name, "bytes": entry.bytes })).collect();
        out::line(serde_json::json!({ "schema": "mingle.bugreport/1", "file": output, "entries": entries }));
        return;
    }
    entries.iter().for_each(|entry| out::line(format!("{:>9}  {}", entry.bytes, entry.name)));
    remark!(
        "wrote {}: no key, model, record or data, and addresses, paths and named secrets replaced; look through it before you give it away",
        output.display()
    );
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
