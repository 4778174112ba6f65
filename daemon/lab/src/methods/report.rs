//! The tables of a comparison of methods: for a terminal, for a document, for a browser.

use mingle_plot::{Horizontal, LineWeight, Panel, Scale, Series, line_chart};

use super::runs::MethodRecord;
use super::summary::{Difference, MethodComparison, MethodRow, MetricTable, Moments};
use crate::report::{ReportTable, escaped, number, page_head};

/// The tables for a terminal.
pub fn text(comparison: &MethodComparison) -> String {
    let tables = comparison.metrics.iter().map(|metric| table(metric).text() + "\n");
    tables.collect::<String>() + &legend(comparison) + "\n"
}

/// The tables in Markdown.
pub fn markdown(comparison: &MethodComparison) -> String {
    let tables = comparison.metrics.iter().map(|metric| table(metric).markdown() + "\n");
    format!("# {}\n\n{}{}\n", comparison.title, tables.collect::<String>(), legend(comparison))
}

/// One self-contained HTML file: the tables, and the curve of each metric over rounds as means over seeds.
pub fn html(comparison: &MethodComparison, records: &[&MethodRecord], command: &str) -> String {
    let section = |metric: &MetricTable| {
        format!("<h2>{}</h2>{}{}", escaped(&metric.metric), table(metric).html(), curves(metric, records))
    };
    let sections: String = comparison.metrics.iter().map(section).collect();
    page_head(&comparison.title, &legend(comparison), command) + &sections + "</html>\n"
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

fn table(of: &MetricTable) -> ReportTable {
    let heading = [of.metric.as_str(), "mean", "SD", "beyond", "t"].map(str::to_owned);
    let rows = std::iter::once(heading).chain(of.methods.iter().map(cells));
    ReportTable(rows.map(Vec::from).collect())
}

fn cells(row: &MethodRow) -> [String; 5] {
    let beyond = |difference: Difference| {
        let Moments { mean, deviation } = difference.moments;
        let spread = deviation.map(|deviation| format!(" ± {deviation:.4}")).unwrap_or_default();
        format!("{mean:+.4}{spread}")
    };
    [
        row.method.clone(),
        number(row.moments.map(|moments| moments.mean), 4),
        number(row.moments.and_then(|moments| moments.deviation), 4),
        row.difference.map_or_else(|| "-".to_owned(), beyond),
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
