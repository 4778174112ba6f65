//! The tables of a comparison of methods: for a terminal, for a document, for a browser.

use std::fmt::Write as _;

use mingle_plot::{Horizontal, LineWeight, Panel, Scale, Series, line_chart};

use super::runs::MethodRecord;
use super::summary::{Difference, MethodComparison, MethodRow, MetricTable, Moments};
use crate::evaluation::{STYLE, escaped};

/// The columns beside the name of the method.
const COLUMNS: [&str; 4] = ["mean", "SD", "beyond", "t"];

/// The tables for a terminal.
pub fn text(comparison: &MethodComparison) -> String {
    let mut text = String::new();
    for table in &comparison.metrics {
        let rows: Vec<[String; 5]> = std::iter::once(heading(table)).chain(table.methods.iter().map(cells)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..5).map(width).collect();
        for row in &rows {
            let mut line = format!("{:<width$}", row[0], width = widths[0]);
            for (cell, width) in row[1..].iter().zip(&widths[1..]) {
                // Writing to a string cannot fail.
                let _ = write!(line, "  {cell:>width$}");
            }
            text += line.trim_end();
            text.push('\n');
        }
        text.push('\n');
    }
    text + &legend(comparison) + "\n"
}

/// The tables in Markdown.
pub fn markdown(comparison: &MethodComparison) -> String {
    let mut text = format!("# {}\n\n", comparison.title);
    for table in &comparison.metrics {
        let rows = std::iter::once(heading(table)).chain(table.methods.iter().map(cells));
        for (at, row) in rows.enumerate() {
            text += &format!("| {} |\n", row.join(" | "));
            if at == 0 {
                text += "| --- | ---: | ---: | ---: | ---: |\n";
            }
        }
        text.push('\n');
    }
    text + &legend(comparison) + "\n"
}

/// One self-contained HTML file: the tables, and the curve of each metric over rounds as means over seeds.
pub fn html(comparison: &MethodComparison, records: &[&MethodRecord], command: &str) -> String {
    let title = escaped(&comparison.title);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>\
         <p>{}</p><p>Made by {} with <code>{}</code></p>",
        escaped(&legend(comparison)),
        concat!("mingle ", env!("CARGO_PKG_VERSION")),
        escaped(command)
    );
    for table in &comparison.metrics {
        page += &format!("<h2>{}</h2><table>", escaped(&table.metric));
        let rows = std::iter::once(heading(table)).chain(table.methods.iter().map(cells));
        for (at, row) in rows.enumerate() {
            let tag = if at == 0 { "th" } else { "td" };
            let cells: String = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
            page += &format!("<tr>{cells}</tr>");
        }
        page += "</table>";
        page += &curves(table, records);
    }
    page + "</html>\n"
}

/// The curves of a metric: for each method, the mean over seeds after each round that all of them had.
fn curves(table: &MetricTable, records: &[&MethodRecord]) -> String {
    let series = |row: &MethodRow| {
        let own: Vec<&&MethodRecord> = records.iter().filter(|record| record.method == row.method).collect();
        let rounds = own.iter().map(|record| record.curve.len()).min().unwrap_or_default();
        let value = |record: &MethodRecord, round: usize| {
            let at = record.metrics.iter().position(|metric| *metric == table.metric)?;
            record.curve[round].get(at).copied().flatten()
        };
        let point = |round: usize| {
            let values: Vec<f64> = own.iter().filter_map(|record| value(record, round)).collect();
            Moments::of(&values).map(|moments| (round as f64 + 1.0, moments.mean))
        };
        Series { name: row.method.clone(), points: (0..rounds).filter_map(point).collect(), weight: LineWeight::Bold }
    };
    let panel = Panel {
        y_label: table.metric.clone(),
        scale: Scale::Linear,
        bands: Vec::new(),
        series: table.methods.iter().map(series).collect(),
        references: Vec::new(),
    };
    line_chart(&table.metric, Horizontal { label: "round", scale: Scale::Linear }, &[panel], &[])
}

fn heading(table: &MetricTable) -> [String; 5] {
    let [mean, deviation, beyond, t] = COLUMNS.map(str::to_owned);
    [table.metric.clone(), mean, deviation, beyond, t]
}

fn cells(row: &MethodRow) -> [String; 5] {
    let none = || "-".to_owned();
    let number = |value: Option<f64>, digits: usize| value.map_or_else(none, |value| format!("{value:.digits$}"));
    let beyond = |difference: Difference| {
        let Moments { mean, deviation } = difference.moments;
        let spread = deviation.map(|deviation| format!(" ± {deviation:.4}")).unwrap_or_default();
        format!("{mean:+.4}{spread}")
    };
    [
        row.method.clone(),
        number(row.moments.map(|moments| moments.mean), 4),
        number(row.moments.and_then(|moments| moments.deviation), 4),
        row.difference.map_or_else(none, beyond),
        number(row.difference.and_then(|difference| difference.t), 2),
    ]
}

fn legend(comparison: &MethodComparison) -> String {
    let seeds: Vec<String> = comparison.seeds.iter().map(ToString::to_string).collect();
    format!(
        "Seeds {}. Values are means over clients of the model that each run keeps; mean and standard deviation (SD) are over seeds. Beyond: \
         the difference from {} with the same seed, mean ± SD, and its paired t with one degree of freedom less than seeds.",
        seeds.join(", "),
        comparison.baseline
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_what_is_known_and_dashes_for_the_rest() {
        let row = MethodRow {
            method: "one".to_owned(),
            values: vec![(0, 0.5)],
            moments: Moments::of(&[0.5]),
            difference: Difference::of(&[0.25]),
        };
        assert_eq!(cells(&row), ["one", "0.5000", "-", "+0.2500", "-"]);
        let row = MethodRow { difference: Difference::of(&[0.1, 0.3]), ..row };
        assert_eq!(cells(&row)[3..], ["+0.2000 ± 0.1414", "2.00"]);
        let nothing = MethodRow { method: "none".to_owned(), values: Vec::new(), moments: None, difference: None };
        assert_eq!(cells(&nothing), ["none", "-", "-", "-", "-"]);
        let table = MetricTable { metric: "m".to_owned(), methods: vec![row, nothing] };
        let suite: super::super::MethodSuite =
            toml::from_str("title = \"T\"\nproblem = \"p\"\nseeds = [0]").unwrap_or_else(|_| panic!());
        let mut comparison = super::super::compare_methods(&suite, &[]);
        comparison.metrics.push(table);
        assert!(markdown(&comparison).contains("| one | 0.5000 | - | +0.2000 ± 0.1414 | 2.00 |"));
        let lines: Vec<usize> = text(&comparison).lines().take(2).map(|line| line.chars().count()).collect();
        assert_eq!(lines[0], lines[1], "columns stand below their heads");
    }
}
