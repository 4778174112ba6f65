//! The report: one self-contained HTML file.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mingle_planner::Plan;
use mingle_planner::draw::{self, NodePlacement};

use super::records::RunRecord;
use super::suite::Suite;
use super::summary::{Comparison, comparisons};
use super::tables::escaped;
use super::{figures, tables};

/// The style sheet of reports.
pub(crate) const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem;color:#1f2937}\
table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .75rem;text-align:right;border-bottom:1px solid #e5e7eb}\
th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}\
figure{display:inline-block;width:46%;min-width:300px;margin:1%;vertical-align:top}figcaption{font-size:.9rem}\
code{background:#f3f4f6;padding:.1rem .3rem}@media(max-width:700px){figure{width:98%}}";

/// The report of a suite: tables, curves, and the plans that were compared.
pub fn page(suite: &Suite, records: &[&RunRecord], plan_files: &Path, command: &str) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>{about}",
        title = escaped(&suite.title),
        about = about(suite, command)
    );
    for comparison in comparisons(suite, records) {
        // Writing to a string cannot fail.
        let _ = write!(page, "{}", section(&comparison, &suite.baselines));
    }
    page.push_str(&plans(records, plan_files));
    page.push_str("</html>\n");
    page
}

/// The tables alone, for a terminal.
pub fn summary(suite: &Suite, records: &[&RunRecord]) -> String {
    let heading = |comparison: &Comparison<'_>| comparison.heading() + "\n";
    let comparisons = comparisons(suite, records);
    let tables = comparisons.iter().map(|comparison| heading(comparison) + &tables::text(comparison, &suite.baselines));
    tables.collect::<Vec<_>>().join("\n")
}

fn about(suite: &Suite, command: &str) -> String {
    let training = &suite.training;
    format!(
        "<p>Model {}, data {}, batches of {}, learning rate {}; seeds {:?}. A run ends when its target, on test samples and as the mean \
         over nodes and over three evaluations {} rounds apart, is reached, or after {} slots. Slots to the target are \
         means over seeds, and given where all seeds reached it.</p><p>Made by {} with <code>{}</code></p>",
        escaped(&training.model),
        escaped(training.data.rsplit('/').next().unwrap_or_default()),
        training.batch_size,
        training.learning_rate,
        suite.seeds,
        suite.evaluate_every,
        suite.max_slots,
        concat!("mingle ", env!("CARGO_PKG_VERSION")),
        escaped(command)
    )
}

fn section(comparison: &Comparison<'_>, baselines: &[String]) -> String {
    format!(
        "<h2>{}</h2>{}{}{}",
        escaped(&comparison.heading()),
        tables::html(comparison, baselines),
        figures::against_slots(comparison),
        figures::against_epochs(comparison)
    )
}

/// Draws each plan once: it is the same for all splits and seeds.
fn plans(records: &[&RunRecord], plans: &Path) -> String {
    let mut drawn: Vec<(&str, &str)> = Vec::new();
    let mut figures = String::from("<h2>The plans</h2>");
    for record in records {
        let name = (record.topology.as_str(), record.design.as_str());
        if drawn.contains(&name) {
            continue;
        }
        drawn.push(name);
        // A plan that was removed is left out.
        let Ok(text) = fs::read_to_string(record.plan_file(plans)) else { continue };
        let Ok(plan) = Plan::from_json(&text) else { continue };
        let Ok(picture) = draw::svg(&plan, &NodePlacement::Circle) else { continue };
        // Writing to a string cannot fail.
        let _ = write!(
            figures,
            "<figure>{picture}<figcaption>{}, {}: {} links, {} slots a period</figcaption></figure>",
            escaped(name.0),
            escaped(name.1),
            plan.forecast().links,
            plan.forecast().slots_per_period
        );
    }
    figures
}
