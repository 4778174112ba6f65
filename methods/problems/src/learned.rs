//! The result of learning in rounds, as text and as files.

use mingle_solving::{Learned, RoundRecord};

/// The most metrics in a line about a round.
const IN_A_LINE: usize = 3;
/// The most nodes whose data are described.
const DESCRIBED: usize = 8;
/// The narrowest column, in characters.
const NARROWEST: usize = 12;

/// A line about a round: the means of its first metrics.
pub fn round_line(metrics: &[String], record: &RoundRecord) -> String {
    let cell = |(name, value): (&String, &Option<f64>)| Some(format!("  {name} {:.4}", (*value)?));
    let cells: Vec<String> = metrics.iter().zip(&record.mean).take(IN_A_LINE).filter_map(cell).collect();
    format!("round {:>4}{}", record.round, cells.concat())
}

/// A table of the metrics of the kept models: a row for each node, and one of their means.
pub fn learned_table(names: &[String], learned: &[Learned]) -> String {
    let Some(first) = learned.first() else { return String::new() };
    let columns: Vec<String> = first.metrics.iter().map(|metric| metric.replace('_', " ")).collect();
    let widths: Vec<usize> = columns.iter().map(|column| NARROWEST.max(column.len() + 2)).collect();
    let head = columns.iter().zip(&widths).map(|(column, width)| format!("{column:>width$}"));
    let mut text = format!("{:<16}{}\n", "client", head.collect::<String>());
    for one in learned {
        let name = names.get(one.node).map_or("", String::as_str);
        text += &row(name, one.best().map_or(&[][..], |best| &best.own), &widths);
    }
    text += &row("mean", first.best().map_or(&[][..], |best| &best.mean), &widths);
    let early = if first.stopped_early { ", stopped early" } else { "" };
    text += &format!("{} rounds{early}; the model after round {} is kept", first.rounds, first.best_round);
    let described = || learned.iter().filter(|one| !one.found.is_empty());
    for one in described().take(DESCRIBED) {
        let name = names.get(one.node).map_or("", String::as_str);
        text += &format!("\ndata of {name}: {}", one.found);
    }
    match described().count().saturating_sub(DESCRIBED) {
        0 => text,
        more => text + &format!("\nand data of {more} more, in learned.json"),
    }
}

fn row(name: &str, values: &[Option<f64>], widths: &[usize]) -> String {
    let cells = widths.iter().enumerate().map(|(at, width)| {
        let value = values.get(at).copied().flatten();
        format!("{:>width$}", value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}")))
    });
    format!("{name:<16}{}\n", cells.collect::<String>())
}

/// The files of a folder with the results of all nodes: `learned.json`, the files of each node in a folder of its name,
/// and those that are the same at all nodes once more beside the folders.
///
/// # Errors
/// The results cannot be encoded.
pub fn learned_files(names: &[String], learned: &[Learned]) -> Result<Vec<(String, Vec<u8>)>, serde_json::Error> {
    let mut files = vec![("learned.json".to_owned(), format!("{}\n", serde_json::to_string_pretty(learned)?).into())];
    let of_all = |file: &(String, Vec<u8>)| learned.len() > 1 && learned.iter().all(|one| one.files.contains(file));
    files.extend(learned.first().into_iter().flat_map(|first| &first.files).filter(|file| of_all(file)).cloned());
    for one in learned {
        let folder = names.get(one.node).map_or("", String::as_str).replace('/', "-");
        files.extend(one.files.iter().map(|(name, bytes)| (format!("{folder}/{name}"), bytes.clone())));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn learned(node: usize, own: &str) -> Learned {
        serde_json::from_value::<Learned>(serde_json::json!({
            "schema": "mingle.learned/1", "node": node, "task": "", "rounds": 2, "best_round": 1, "stopped_early": false,
            "metrics": ["test_at_best"],
            "history": [{ "round": 1, "mean": [0.75], "own": [0.5] }, { "round": 2, "mean": [0.25], "own": [null] }],
        }))
        .map(|learned| Learned { files: vec![file("own", own), file("all", "same")], ..learned })
        .unwrap()
    }

    fn file(name: &str, text: &str) -> (String, Vec<u8>) {
        (name.to_owned(), text.as_bytes().to_vec())
    }

    #[test]
    fn the_model_that_is_kept_is_told_of_and_files_that_all_have_stand_beside() {
        let names = ["a/x".to_owned(), "b".to_owned()];
        let all = [learned(0, "1"), learned(1, "2")];
        let table = learned_table(&names, &all);
        assert!(table.contains("test at best\n") && table.contains("mean                    0.7500\n"), "{table}");
        assert!(table.ends_with("2 rounds; the model after round 1 is kept"), "{table}");
        let described = all.map(|one| Learned { found: format!("{} users", one.node + 7), ..one });
        assert!(learned_table(&names, &described).ends_with("is kept\ndata of a/x: 7 users\ndata of b: 8 users"));
        let all = described;
        let files = learned_files(&names, &all).unwrap();
        let listed: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(listed, ["learned.json", "all", "a-x/own", "a-x/all", "b/own", "b/all"]);
    }
}
