//! The files of a solution: numbers, and the residuals as a picture.

use mingle_plot::{Horizontal, LineWeight, Panel, Scale, Series, line_chart};

use crate::solution::Solution;

/// The files that belong to solutions, by name: the solutions (JSON), the residuals (a JSON line for each iteration) and
/// their picture (SVG).
///
/// # Errors
/// The solutions cannot be encoded.
pub fn files(
    title: &str,
    solutions: &[Solution],
    residuals: &[f64],
) -> Result<[(&'static str, String); 3], serde_json::Error> {
    let text = match solutions {
        [one] => serde_json::to_string_pretty(one),
        all => serde_json::to_string_pretty(all),
    }?;
    let line = |(at, residual): (usize, &f64)| format!("{{\"iteration\":{},\"residual\":{residual:e}}}\n", at + 1);
    Ok([
        ("solution.json", format!("{text}\n")),
        ("residuals.jsonl", residuals.iter().enumerate().map(line).collect()),
        ("residuals.svg", picture(title, residuals)),
    ])
}

/// The residuals over the iterations, as an SVG line chart.
fn picture(title: &str, residuals: &[f64]) -> String {
    let points = residuals.iter().enumerate().map(|(at, residual)| ((at + 1) as f64, *residual)).collect();
    let panel = Panel {
        y_label: "residual".to_owned(),
        scale: Scale::Log,
        bands: Vec::new(),
        series: vec![Series { name: "worst node".to_owned(), points, weight: LineWeight::Bold }],
        references: Vec::new(),
    };
    line_chart(title, Horizontal { label: "iteration", scale: Scale::Linear }, &[panel], &[])
}
