//! What clients have learned, as a table and as files.

use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result, output_file};
use mingle_recommend::METRICS;
use mingle_solving::Learned;

use super::RECOMMENDER;
use crate::out;

/// Prints how good the kept model of each client is.
pub(crate) fn print_learned(names: &[String], learned: &[Learned]) {
    let Some(first) = learned.first() else { return };
    let columns: Vec<String> = METRICS[1..].iter().map(|name| format!("{:>18}", name.replace('_', " "))).collect();
    out::line(format!("{:<16}{}", "client", columns.concat()));
    for one in learned {
        let name = names.get(one.node).map_or("", String::as_str);
        print_row(name, one.best().map_or(&[][..], |best| &best.own));
    }
    print_row("mean", first.best().map_or(&[][..], |best| &best.mean));
    let early = if first.stopped_early { ", stopped early" } else { "" };
    out::line(format!("{} rounds{early}; the model after round {} is kept", first.rounds, first.best_round));
}

fn print_row(name: &str, values: &[Option<f64>]) {
    let number = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
    let cells: Vec<String> = values.iter().skip(1).map(|value| format!("{:>18}", number(value))).collect();
    out::line(format!("{name:<16}{}", cells.concat()));
}

/// Writes what was learned into a folder, and the recommender of each client into a folder of its own.
pub(crate) fn write_learned(folder: &Path, names: &[String], learned: &[Learned]) -> Result {
    let text =
        serde_json::to_string_pretty(learned).context(ErrorKind::Unexpected, "cannot encode what was learned")?;
    output_file::write(&folder.join("learned.json"), format!("{text}\n").as_bytes())?;
    for one in learned {
        let client = folder.join(names.get(one.node).map_or("", String::as_str).replace('/', "-"));
        output_file::make_folder(&client)?;
        for (_, bytes) in one.files.iter().filter(|(name, _)| name == RECOMMENDER) {
            output_file::write(&client.join(RECOMMENDER), bytes)?;
        }
    }
    Ok(())
}
