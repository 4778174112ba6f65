//! Reports of suites: tables for a terminal, a document and a browser, and the head of a page.

/// The style sheet of a page.
const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem;color:#1f2937}\
table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .75rem;text-align:right;border-bottom:1px solid #e5e7eb}\
th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}\
figure{display:inline-block;width:46%;min-width:300px;margin:1%;vertical-align:top}figcaption{font-size:.9rem}\
code{background:#f3f4f6;padding:.1rem .3rem}@media(max-width:700px){figure{width:98%}}";

/// A table: rows of equal length, the heading first. The first column has names, the others have numbers.
pub(crate) struct ReportTable(pub(crate) Vec<Vec<String>>);

impl ReportTable {
    /// The table for a terminal.
    pub(crate) fn text(&self) -> String {
        let columns = self.0.first().map_or(0, Vec::len);
        let width = |column: usize| self.0.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns).map(width).collect();
        self.0.iter().map(|row| line(row, &widths)).collect()
    }

    /// The table in Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut lines = self.0.iter().map(|row| format!("| {} |\n", row.join(" | ")));
        let heading = lines.next().unwrap_or_default();
        let columns = self.0.first().map_or(0, Vec::len);
        let rule = format!("| --- |{}\n", " ---: |".repeat(columns.saturating_sub(1)));
        heading + &rule + &lines.collect::<String>()
    }

    /// The table for a browser.
    pub(crate) fn html(&self) -> String {
        let row = |(number, row): (usize, &Vec<String>)| {
            let tag = if number == 0 { "th" } else { "td" };
            let cells: String = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
            format!("<tr>{cells}</tr>")
        };
        format!("<table>{}</table>", self.0.iter().enumerate().map(row).collect::<String>())
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let first = format!("{:<width$}", row[0], width = widths[0]);
    let cells = row[1..].iter().zip(&widths[1..]).map(|(cell, width)| format!("  {cell:>width$}"));
    format!("{}\n", (first + &cells.collect::<String>()).trim_end())
}

/// A number with this many digits after the point, or a dash.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// The beginning of a self-contained page: its title, a paragraph about it, and the command that made it.
pub(crate) fn page_head(title: &str, about: &str, command: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>\
         <p>{}</p><p>Made by {} with <code>{}</code></p>",
        escaped(about),
        concat!("mingle ", env!("CARGO_PKG_VERSION")),
        escaped(command),
        title = escaped(title),
    )
}

/// Text with its special characters escaped for HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
