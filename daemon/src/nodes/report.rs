//! What clients have learned, as a table and as files.

use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result, output_file};
use mingle_solving::Learned;

use super::METRICS;
use crate::out;

/// Prints how good the best model of each client is.
pub(crate) fn print_learned(names: &[String], learned: &[Learned]) {
    out::line(format!("{:<16}{:>12}{:>12}{:>14}", "client", METRICS[0], METRICS[1], "test at best"));
    for one in learned {
        let name = names.get(one.node).map_or("", String::as_str);
        print_row(name, one.history.last().map_or(&[][..], |last| &last.own));
    }
    if let Some(last) = learned.first().and_then(|one| one.history.last()) {
        print_row("mean", &last.mean);
        out::line(format!(
            "after {} rounds; test at best is that of the model each client's own validation nodes chose",
            last.round
        ));
    }
}

fn print_row(name: &str, values: &[Option<f64>]) {
    let number =
        |at: usize| values.get(at).copied().flatten().map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
    out::line(format!("{name:<16}{:>12}{:>12}{:>14}", number(0), number(1), number(2)));
}

/// Writes what was learned into a folder, and the files of each client into a folder of its own; the picture of the weights, which all have
/// the same, beside them.
pub(crate) fn write_learned(folder: &Path, names: &[String], learned: &[Learned]) -> Result {
    let text =
        serde_json::to_string_pretty(learned).context(ErrorKind::Unexpected, "cannot encode what was learned")?;
    output_file::write(&folder.join("learned.json"), format!("{text}\n").as_bytes())?;
    for one in learned {
        let client = folder.join(names.get(one.node).map_or("", String::as_str).replace('/', "-"));
        output_file::make_folder(&client)?;
        for (name, bytes) in &one.files {
            output_file::write(&client.join(name), bytes)?;
            if one.node == 0 && name == "collaboration.svg" {
                output_file::write(&folder.join(name), bytes)?;
            }
        }
    }
    Ok(())
}
