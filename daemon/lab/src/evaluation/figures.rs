//! The curves of a comparison, as SVG.

use mingle_plot::{Band, Horizontal, Panel, Reference, Scale, Series, Weight, line_chart};

use super::summary::{Comparison, Outcomes};
use crate::simulation::Progress;

/// Test error and loss against slots: a line is the mean over seeds, as far as all of them go; the area behind it reaches
/// from the lowest seed to the highest.
pub(super) fn against_slots(comparison: &Comparison<'_>) -> String {
    chart(comparison, "slots", |progress| progress.slots as f64)
}

/// The same against passes over the data.
pub(super) fn against_epochs(comparison: &Comparison<'_>) -> String {
    chart(comparison, "epochs", |progress| progress.epochs)
}

fn chart(comparison: &Comparison<'_>, x_label: &str, at: fn(&Progress) -> f64) -> String {
    let panel = |y_label: &str, of: fn(&Progress) -> Option<f64>, references| Panel {
        y_label: y_label.to_owned(),
        scale: Scale::Log,
        bands: comparison.designs.iter().map(|outcomes| band(outcomes, at, of)).collect(),
        series: comparison.designs.iter().map(|outcomes| mean(outcomes, at, of)).collect(),
        references,
    };
    let target = Reference {
        value: 1.0 - comparison.target_accuracy,
        label: format!("accuracy {}", comparison.target_accuracy),
    };
    let panels = [
        panel("test error", |progress| Some(1.0 - progress.mean_accuracy), vec![target]),
        panel("loss (nats)", |progress| progress.loss, Vec::new()),
    ];
    let title = format!("{}, {}", comparison.topology, comparison.split);
    line_chart(&title, Horizontal { label: x_label, scale: Scale::Log }, &panels, &[])
}

fn mean(outcomes: &Outcomes<'_>, at: fn(&Progress) -> f64, of: fn(&Progress) -> Option<f64>) -> Series {
    Series { name: outcomes.design.to_owned(), points: outcomes.mean_curve(at, of), weight: Weight::Bold }
}

fn band(outcomes: &Outcomes<'_>, at: fn(&Progress) -> f64, of: fn(&Progress) -> Option<f64>) -> Band {
    Band { name: outcomes.design.to_owned(), points: outcomes.spread(at, of) }
}
