//! The table of a comparison.

use super::summary::{Comparison, Outcomes};
use crate::report::{ReportTable, number};

/// A row for each design, with its slots as a share of those of each baseline.
pub(super) fn table(comparison: &Comparison<'_>, baselines: &[String]) -> ReportTable {
    let mut heading = ["design", "slots/round", "slots to target", "seeds"].map(str::to_owned).to_vec();
    heading.extend(baselines.iter().map(|name| format!("of {name}")));
    heading.extend(["rounds", "epochs", "MB on links"].map(str::to_owned));
    let rows = comparison.designs.iter().map(|outcomes| row(outcomes, comparison, baselines));
    ReportTable(std::iter::once(heading).chain(rows).collect())
}

fn row(outcomes: &Outcomes<'_>, comparison: &Comparison<'_>, baselines: &[String]) -> Vec<String> {
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
