//! The table of campaigns, for people: a row for each profile, and its failing seeds.

use super::{FailingSeed, ProfileReport, ShrunkRun};

const COLUMNS: [&str; 10] = [
    "seeds",
    "kills",
    "partitions",
    "link cuts",
    "disk faults",
    "rollbacks",
    "false suspicions",
    "checks",
    "failures",
    "seeds/s",
];

/// The names of the columns.
pub fn heading() -> String {
    row("profile", &COLUMNS.map(ToOwned::to_owned))
}

/// The progress so far, in a few words.
pub fn progress(report: &ProfileReport) -> String {
    let failed = if report.failed > 0 { format!(", {} FAILED", report.failed) } else { String::new() };
    format!("{} kills, {} checks{failed}", grouped(report.kills), grouped(report.checks))
}

/// A row of the table, and the failing seeds.
pub fn lines(report: &ProfileReport) -> Vec<String> {
    let counts = [
        report.seeds,
        report.kills,
        report.partitions,
        report.link_cuts,
        report.disk_faults,
        report.rollbacks,
        report.false_suspicions,
        report.checks,
        report.failed,
    ];
    let mut cells = counts.map(grouped).to_vec();
    cells.push(format!("{:.1}", report.seeds_per_s));
    let mut lines = vec![row(report.profile, &cells)];
    lines.extend(report.failures.iter().flat_map(failing_seed));
    let unlisted = report.failed - report.failures.len() as u64;
    if unlisted > 0 {
        lines.push(format!("  and {unlisted} more"));
    }
    lines
}

fn failing_seed(failing: &FailingSeed) -> Vec<String> {
    let mut lines = vec![format!("  seed {}, {} nodes: {}", failing.seed, failing.nodes, failing.message)];
    if let Some(ShrunkRun { faults_before, faults, runs, message, .. }) = &failing.shrunk {
        lines.push(format!("    with {faults} of its {faults_before} faults, found in {runs} runs: {message}"));
    }
    lines.push(format!("    {}", failing.replay));
    lines
}

fn row(name: &str, cells: &[String]) -> String {
    let cell = |(cell, heading): (&String, &&str)| format!("  {cell:>0$}", heading.len().max(9));
    format!("{name:10}{}", cells.iter().zip(&COLUMNS).map(cell).collect::<String>())
}

/// A number with commas between its thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let numbers = [0, 999, 1_000, 65_536, 1_234_567];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "65,536", "1,234,567"]);
    }
}
