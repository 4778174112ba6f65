//! The report of a demo, for people.

use mingle_demo::{BitsPerToken, DemoReport};
use mingle_peer::audit::weight_or_unknown;
use mingle_peer::training::PrivacySpending;
use mingle_peer::units::{self, exact_weight as weight};

use crate::command::audit;
use crate::out;

/// Prints the table, or one object.
pub(super) fn print(report: &DemoReport, json: bool) {
    if json {
        if let Ok(text) = report.to_json() {
            out::line(text);
        }
        return;
    }
    out::line(table(report));
    out::line(report.disks.as_ref().map_or_else(|| weights(report), audit::sum));
    let mut files = vec!["plan.json", "curves.svg", "events.jsonl", "summary.json", "peers/*/model.safetensors"];
    if let Some(hidden) = report.communication_hidden {
        out::line(format!("while parcels moved, peers trained for {:.0} % of the time", 100.0 * hidden));
        files.insert(2, "timeline.svg");
    }
    let root = report.output.display();
    out::line(format!("\nwrote {root}/: {}", files.join(", ")));
    let audit = if report.disks.is_some() { format!("mingle audit {root}   ") } else { String::new() };
    out::line(format!("next  {audit}mingle plan show {root}/plan.json   or three machines: mingle run --help"));
}

fn table(report: &DemoReport) -> String {
    let DemoReport { swarm, without_swarm, .. } = report;
    let memory = report
        .peak_resident_bytes_per_peer
        .map_or_else(String::new, |bytes| format!(", {:.0} MB of memory per peer at most", units::megabytes(bytes)));
    let mut lines = vec![format!("\n{:<24}{:>8}{:>8}{:>8}", report.measured(), "mean", "best", "worst")];
    if let Some(alone) = without_swarm {
        lines.push(row("each peer alone", alone.mean_alone(), alone.best_alone(), alone.worst_alone()));
    }
    lines.push(row("this swarm", swarm.mean_accuracy, swarm.best_accuracy, swarm.worst_accuracy));
    if let Some(BitsPerToken { token, mean, best, worst }) = &report.bits_per_token {
        lines.push(row(&format!("  in bits per {token}"), *mean, *best, *worst));
    }
    if let Some(together) = without_swarm {
        lines.push(format!("{:<24}{:>8.3}", "all data in one place", together.central));
    }
    let encoding = report.encoding.words(report.sent_bytes).map(|words| format!(" ({words})")).unwrap_or_default();
    lines.push(format!(
        "\n{:.1} s, {:.1} MB moved{encoding}{memory}; the final models differ by {:.1e}",
        report.seconds,
        units::megabytes(report.sent_bytes),
        swarm.disagreement
    ));
    lines.extend(report.multicast.map(|multicast| format!("by multicast: {}", multicast.words())));
    if let Some(PrivacySpending { settings, changes, epsilon, .. }) = &report.privacy {
        let most = settings.epsilon_max();
        let delta = settings.delta();
        lines.push(format!(
            "privacy: each peer spent epsilon {epsilon:.3} of {most} at delta {delta:e} at most, for {changes} changes"
        ));
    }
    lines.join("\n")
}

/// The ledger as a sum that a person can check.
fn weights(report: &DemoReport) -> String {
    let audit = &report.audit;
    let mut parts = vec![format!("{} held by the living", weight(audit.held))];
    if audit.in_flight > 0 {
        parts.push(format!("{} in flight between them", weight(audit.in_flight)));
    }
    if audit.in_doubt > 0 {
        parts.push(format!("{} on its way to the dead", weight(audit.in_doubt)));
    }
    for peer in &audit.absent {
        parts.push(format!("{} gone with peer {}", weight_or_unknown(peer.held, report.peers), peer.id));
    }
    if audit.written_off > 0 {
        parts.push(format!("{} written off", weight(audit.written_off)));
    }
    let verdict = if audit.is_exact() { "exactly" } else { "NOT" };
    format!("sum of weights: {verdict} {} = {}", report.peers, parts.join(" + "))
}

fn row(name: &str, mean: f64, best: f64, worst: f64) -> String {
    format!("{name:<24}{mean:>8.3}{best:>8.3}{worst:>8.3}")
}
