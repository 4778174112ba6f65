//! The legend: the colour of each name, and the layout of the names above the panels.

use std::collections::{BTreeMap, BTreeSet};

use super::svg::text_width;
use super::{LineWeight, Panel, Series};

/// With more thin lines than this, colours no longer distinguish them: they share one that stays in the background.
const TOLD_APART: usize = 8;

const BOLD_COLOURS: [&str; 10] =
    ["#14304f", "#b3261e", "#1b6e53", "#6b2fa0", "#c77700", "#0e7c9b", "#8a4b2a", "#c2418c", "#5f6b00", "#6b7280"];
const THIN_COLOURS: [&str; TOLD_APART] =
    ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#3fa7a3", "#c9a227", "#b07aa1", "#9c755f"];
const CROWD_COLOUR: &str = "#9db2c9";

const FONT_SIZE: f64 = 12.0;
/// Distance from the left end of a line's sample to its name.
pub(super) const NAME_OFFSET: f64 = 28.0;
const GAP: f64 = 18.0;

/// The names of all panels, each once.
#[derive(Debug)]
pub(super) struct Legend<'a> {
    colours: BTreeMap<&'a str, &'static str>,
    pub(super) entries: Vec<LegendEntry>,
}

/// A name and its place in the legend.
#[derive(Debug)]
pub(super) struct LegendEntry {
    pub(super) label: String,
    pub(super) colour: &'static str,
    pub(super) weight: LineWeight,
    pub(super) x: f64,
    /// The row, counted from the top.
    pub(super) row: usize,
}

impl<'a> Legend<'a> {
    /// Lays out the legend. Bold lines come first. A crowd of thin ones is one entry, named after its first and last.
    /// Thin lines with the name of a bold one have no entry.
    pub(super) fn new(panels: &'a [Panel], left: f64, right: f64) -> Self {
        let bold = named_once(panels, LineWeight::Bold);
        let mut thin = named_once(panels, LineWeight::Thin);
        thin.retain(|series| bold.iter().all(|bold| bold.name != series.name));
        let crowded = thin.len() > TOLD_APART;
        let mut legend = Self { colours: colours(&bold, &thin), entries: Vec::new() };

        let mut labels: Vec<(String, &Series)> = Vec::new();
        labels.extend(bold.iter().map(|series| (series.name.clone(), *series)));
        match (thin.first(), thin.last()) {
            (Some(first), Some(last)) if crowded => {
                labels.push((format!("{} … {}", first.name, last.name), first));
            }
            _ => labels.extend(thin.iter().map(|series| (series.name.clone(), *series))),
        }

        let mut x = left;
        let mut row = 0;
        for (label, series) in labels {
            let width = NAME_OFFSET + text_width(&label, FONT_SIZE) + GAP;
            if x > left && x + width > right {
                x = left;
                row += 1;
            }
            let colour = legend.colour(&series.name);
            legend.entries.push(LegendEntry { label, colour, weight: series.weight, x, row });
            x += width;
        }
        legend
    }

    /// The number of rows that the entries fill.
    pub(super) fn rows(&self) -> usize {
        self.entries.last().map_or(0, |entry| entry.row + 1)
    }

    /// The colour of the line called `name`.
    pub(super) fn colour(&self, name: &str) -> &'static str {
        self.colours.get(name).copied().unwrap_or(CROWD_COLOUR)
    }
}

/// The first series of each name among those of `weight`, in the order they appear.
fn named_once(panels: &[Panel], weight: LineWeight) -> Vec<&Series> {
    let mut seen = BTreeSet::new();
    let all = panels.iter().flat_map(|panel| &panel.series);
    all.filter(|series| series.weight == weight && seen.insert(&*series.name)).collect()
}

fn colours<'a>(bold: &[&'a Series], thin: &[&'a Series]) -> BTreeMap<&'a str, &'static str> {
    let mut colours = BTreeMap::new();
    if thin.len() <= TOLD_APART {
        let named = thin.iter().zip(THIN_COLOURS);
        colours.extend(named.map(|(series, colour)| (&*series.name, colour)));
    }
    let named = bold.iter().zip(BOLD_COLOURS.into_iter().cycle());
    colours.extend(named.map(|(series, colour)| (&*series.name, colour)));
    colours
}
