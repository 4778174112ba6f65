//! A comparison as Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use super::{AirtimeComparison, AirtimeRow};

const HEAD: &str = "\
| graph | design | slots | forecast, s | in slots, s | multicast, no slots, s | unicast, least slots | unicast streams, s |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

pub(super) fn markdown(comparison: &AirtimeComparison) -> String {
    let mut text = HEAD.to_owned();
    for row in &comparison.rows {
        write_row(&mut text, row);
    }
    let correlation = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.3}"));
    let _ = write!(
        text,
        "\nRank correlation (Spearman) with the forecast, over {} rows: in slots {}, multicast {}, unicast streams {}.\n",
        comparison.rows.len(),
        correlation(comparison.slotted_correlation),
        correlation(comparison.multicast_correlation),
        correlation(comparison.streams_correlation),
    );
    text
}

fn write_row(text: &mut String, row: &AirtimeRow) {
    let times =
        |time: Duration| format!("{:.2} ({:.2}x)", time.as_secs_f64(), time.as_secs_f64() / row.forecast.as_secs_f64());
    let undelivered = match row.slotted_undelivered {
        0 => String::new(),
        count => format!(", {count} payloads lost"),
    };
    // Writing to a text does not fail.
    let _ = writeln!(
        text,
        "| `{}` | {} | {} | {:.2} | {}{undelivered} | {} | {} ({:.2}x) | {} |",
        row.graph,
        row.design,
        decimal(row.slots),
        row.forecast.as_secs_f64(),
        times(row.slotted),
        times(row.multicast),
        decimal(row.unicast_slots),
        row.unicast_slotted.as_secs_f64() / row.forecast.as_secs_f64(),
        times(row.streams),
    );
}

/// A number with at most two decimals.
fn decimal(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
