//! The table of a comparison, as text and as HTML.

use std::fmt::Write as _;

use super::summary::{Comparison, Outcomes};

/// A row of cells; the first is the name of the design.
type Row = Vec<String>;

/// The table for a terminal.
pub(super) fn text(comparison: &Comparison<'_>, baselines: &[String]) -> String {
    let rows = rows(comparison, baselines);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut table = String::new();
    for row in &rows {
        let first = format!("{:<width$}", row[0], width = widths[0]);
        let cells = row[1..].iter().zip(&widths[1..]).map(|(cell, width)| format!("  {cell:>width$}"));
        let line = first + &cells.collect::<String>();
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

/// The table for a browser.
pub(super) fn html(comparison: &Comparison<'_>, baselines: &[String]) -> String {
    let mut table = String::from("<table>");
    for (number, row) in rows(comparison, baselines).iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        let cells: String = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        // Writing to a string cannot fail.
        let _ = write!(table, "<tr>{cells}</tr>");
    }
    table + "</table>"
}

fn rows(comparison: &Comparison<'_>, baselines: &[String]) -> Vec<Row> {
    let mut heading: Row = ["design", "slots/round", "slots to target", "seeds"].map(str::to_owned).to_vec();
    heading.extend(baselines.iter().map(|name| format!("of {name}")));
    heading.extend(["rounds", "epochs", "MB on links"].map(str::to_owned));
    let mut rows = vec![heading];
    for outcomes in &comparison.designs {
        rows.push(row(outcomes, comparison, baselines));
    }
    rows
}

fn row(outcomes: &Outcomes<'_>, comparison: &Comparison<'_>, baselines: &[String]) -> Row {
    let number = |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"));
    let last = |of: fn(&crate::simulation::SwarmProgress) -> f64| outcomes.mean(|record| record.curve.last().map(of));
    let slots_per_round =
        outcomes.records.first().map(|record| record.slots_per_period as f64 / record.rounds_per_period.max(1) as f64);
    let seeds = format!("{} of {}", outcomes.reached(), outcomes.records.len());
    let mut row = vec![outcomes.design.to_owned(), number(slots_per_round, 1), number(outcomes.slots(), 0), seeds];
    for name in baselines {
        let ratio = comparison.of(name).and_then(|baseline| outcomes.ratio_to(baseline));
        row.push(number(ratio, 2));
    }
    row.push(number(last(|end| end.round as f64), 0));
    row.push(number(last(|end| end.epochs), 1));
    row.push(number(last(|end| end.link_bytes as f64 / 1e6), 1));
    row
}

/// Text with its special characters escaped for HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
