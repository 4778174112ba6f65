//! The report: one self-contained HTML file.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mingle_planner::Plan;
use mingle_planner::draw::{self, NodePlacement};

use super::figures;
use super::records::RunRecord;
use super::suite::Suite;
use super::summary::{Comparison, comparisons};
use super::table::table;
use crate::report::{escaped, page_head};

/// The report of a suite: tables, curves, and the plans that were compared.
pub fn page(suite: &Suite, records: &[&RunRecord], plan_files: &Path, command: &str) -> String {
    let mut page = page_head(&suite.title, &about(suite), command);
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
    let tables = comparisons.iter().map(|comparison| heading(comparison) + &table(comparison, &suite.baselines).text());
    tables.collect::<Vec<_>>().join("\n")
}

fn about(suite: &Suite) -> String {
    let training = &suite.training;
    format!(
        "Model {}, data {}, batches of {}, learning rate {}; seeds {:?}. A run ends when its target, on test samples and as the mean \
         over nodes and over three evaluations {} rounds apart, is reached, or after {} slots. Slots to the target are \
         means over seeds, and given where all seeds reached it.",
        training.model,
        training.data.rsplit('/').next().unwrap_or_default(),
        training.batch_size,
        training.learning_rate,
        suite.seeds,
        suite.evaluate_every,
        suite.max_slots,
    )
}

fn section(comparison: &Comparison<'_>, baselines: &[String]) -> String {
    format!(
        "<h2>{}</h2>{}{}{}",
        escaped(&comparison.heading()),
        table(comparison, baselines).html(),
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
