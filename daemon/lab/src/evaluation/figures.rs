//! The curves of a comparison, as SVG.

use mingle_plot::{Band, Horizontal, LineWeight, Panel, ReferenceLine, Scale, Series, line_chart};

use super::summary::{Comparison, Outcomes};
use crate::simulation::{MetricTarget, SwarmProgress};

/// Test error and loss against slots: a line is the mean over seeds, as far as all of them go; the area behind it reaches
/// from the lowest seed to the highest.
pub(super) fn against_slots(comparison: &Comparison<'_>) -> String {
    chart(comparison, "slots", |progress| progress.slots as f64)
}

/// Test error and loss against passes over the data, with means and ranges over seeds.
pub(super) fn against_epochs(comparison: &Comparison<'_>) -> String {
    chart(comparison, "epochs", |progress| progress.epochs)
}

fn chart(comparison: &Comparison<'_>, x_label: &str, at: fn(&SwarmProgress) -> f64) -> String {
    let panel = |y_label: &str, of: &dyn Fn(&SwarmProgress) -> Option<f64>, references| Panel {
        y_label: y_label.to_owned(),
        scale: Scale::Log,
        bands: comparison.designs.iter().map(|outcomes| band(outcomes, at, of)).collect(),
        series: comparison.designs.iter().map(|outcomes| mean(outcomes, at, of)).collect(),
        references,
    };
    let curves = || comparison.designs.iter().flat_map(|outcomes| &outcomes.records).flat_map(|record| &record.curve);
    let is_regression = curves().next().is_some_and(|progress| progress.measured.score() == "r2");
    let (score, loss) = if is_regression { ("1 - r2", "loss") } else { ("test error", "loss (nats)") };
    // A target score that is reached from below is drawn as its distance from 1. A target metric that has to fall
    // replaces the loss.
    let reference = |target: &MetricTarget| {
        let value = if target.is_from_below() { 1.0 - target.value() } else { target.value() };
        vec![ReferenceLine { value, label: target.to_string() }]
    };
    let (of_scores, of_others) = match &comparison.target {
        Some(target) if target.is_from_below() => (reference(target), Vec::new()),
        Some(target) => (Vec::new(), reference(target)),
        None => (Vec::new(), Vec::new()),
    };
    let falling = comparison.target.filter(|target| !target.is_from_below()).map_or("loss", |target| target.metric());
    let label = if falling == "loss" { loss } else { falling };
    let panels = [
        panel(score, &|progress| progress.measured.mean_score().map(|score| 1.0 - score), of_scores),
        panel(label, &|progress| progress.measured.mean(falling), of_others),
    ];
    let title = format!("{}, {}", comparison.topology, comparison.split);
    line_chart(&title, Horizontal { label: x_label, scale: Scale::Log }, &panels, &[])
}

fn mean(outcomes: &Outcomes<'_>, at: fn(&SwarmProgress) -> f64, of: &dyn Fn(&SwarmProgress) -> Option<f64>) -> Series {
    Series { name: outcomes.design.to_owned(), points: outcomes.mean_curve(at, of), weight: LineWeight::Bold }
}

fn band(outcomes: &Outcomes<'_>, at: fn(&SwarmProgress) -> f64, of: &dyn Fn(&SwarmProgress) -> Option<f64>) -> Band {
    Band { name: outcomes.design.to_owned(), points: outcomes.spread(at, of) }
}
