//! The curves of a comparison, as SVG.

use super::summary::{Comparison, Outcomes};
use crate::chart::{Horizontal, Panel, Reference, Scale, Series, Weight, line_chart};
use crate::simulation::Progress;

/// Test error and loss against slots: a bold line is the mean over seeds, as far as all of them go; thin ones are seeds.
pub(super) fn against_slots(comparison: &Comparison<'_>) -> String {
    chart(comparison, "slots", |progress| progress.slots as f64)
}

/// The same against passes over the data.
pub(super) fn against_epochs(comparison: &Comparison<'_>) -> String {
    chart(comparison, "epochs", |progress| progress.epochs)
}

fn chart(comparison: &Comparison<'_>, x_label: &str, at: fn(&Progress) -> f64) -> String {
    let series = |of: fn(&Progress) -> Option<f64>| -> Vec<Series> {
        comparison.designs.iter().flat_map(|outcomes| lines(outcomes, at, of)).collect()
    };
    let target = Reference {
        value: 1.0 - comparison.target_accuracy,
        label: format!("accuracy {}", comparison.target_accuracy),
    };
    let panels = [
        Panel {
            y_label: "test error".to_owned(),
            scale: Scale::Log,
            series: series(|progress| Some(1.0 - progress.mean_accuracy)),
            references: vec![target],
        },
        Panel {
            y_label: "loss (nats)".to_owned(),
            scale: Scale::Log,
            series: series(|progress| progress.loss),
            references: Vec::new(),
        },
    ];
    let title = format!("{}, {}", comparison.topology, comparison.split);
    line_chart(&title, Horizontal { label: x_label, scale: Scale::Log }, &panels, &[])
}

fn lines(outcomes: &Outcomes<'_>, at: fn(&Progress) -> f64, of: fn(&Progress) -> Option<f64>) -> Vec<Series> {
    let name = outcomes.design.to_owned();
    let seeds = outcomes.records.iter().map(|record| Series {
        name: name.clone(),
        points: record.curve.iter().map(|progress| (at(progress), of(progress).unwrap_or(f64::NAN))).collect(),
        weight: Weight::Thin,
    });
    let mean = Series { name: name.clone(), points: outcomes.mean_curve(at, of), weight: Weight::Bold };
    seeds.chain([mean]).collect()
}
