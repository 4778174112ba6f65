//! Line charts as self-contained SVG: panels under each other on one horizontal axis, with reference lines and events.
//!
//! Pure text, with nothing but the standard library. The picture has its own white background, so that it reads the
//! same in a viewer with a dark page.
//!
//! ```text
//!   title
//!   -- mean  -- node-0  -- node-1             legend: a name has one colour in all panels
//!              node-3 killed                  marks: events, drawn through all panels
//!   1.0 |         :      ______
//!       |    __---:-----         - - - - all data in one place 0.96
//!   0.0 |___------:--------------
//!   1   |--.__    :
//!  10^-3|     ----:______________
//!       1        20            60   round
//! ```

mod axis;
pub mod document;
mod lanes;
mod legend;
mod marks;
mod runs;
mod svg;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use axis::{Axis, Ends, Tick};
use legend::{Legend, NAME_OFFSET};
use marks::PlacedMark;
use runs::runs;
use svg::{Anchor, Svg, text_width};

pub use axis::Scale;
pub use lanes::{Bar, Group, lane_chart};

/// One diagram of a chart.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Label along the vertical axis.
    pub y_label: String,
    /// The spread of the vertical axis; its range follows from the data and the references.
    pub scale: Scale,
    /// Areas behind the lines.
    pub bands: Vec<Band>,
    /// The lines, thin ones behind.
    pub series: Vec<Series>,
    /// Horizontal lines to compare with.
    pub references: Vec<ReferenceLine>,
}

/// One line of a panel. The same name has the same colour in every panel of the chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// `(x, y)` in the order they are joined. A point without a place (not finite, or not above zero on a logarithmic
    /// scale) leaves a gap.
    pub points: Vec<(f64, f64)>,
    /// The prominence of the line.
    pub weight: LineWeight,
}

/// The area between two lines, in the colour of the series of its name.
#[derive(Clone, Debug)]
pub struct Band {
    /// Name of the series whose spread the band shows.
    pub name: String,
    /// `(x, lowest, highest)` in the order they are joined. The area ends where one of them has no place.
    pub points: Vec<(f64, f64, f64)>,
}

/// The prominence of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineWeight {
    /// A main line of the chart: a mean, a total.
    Bold,
    /// One line of many: a peer.
    Thin,
}

/// A horizontal line with a label in the right margin.
#[derive(Clone, Debug)]
pub struct ReferenceLine {
    /// Position on the vertical axis.
    pub value: f64,
    /// Label next to the line, so it should contain the value where that matters.
    pub label: String,
}

/// An event at one place of the horizontal axis.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Label above the first panel.
    pub label: String,
}

/// The horizontal axis, which all panels of a chart share.
#[derive(Clone, Copy, Debug)]
pub struct Horizontal<'a> {
    /// Label below the last panel.
    pub label: &'a str,
    /// The spread of the axis; its range follows from the data and the marks.
    pub scale: Scale,
}

/// Draws `panels` under each other and returns the SVG document.
///
/// All lengths are in SVG user units (CSS pixels at natural size). The same input gives the same text. Time and size
/// are linear in the number of points up to a few per horizontal pixel, then only what can be seen is written.
pub fn line_chart(title: &str, x: Horizontal<'_>, panels: &[Panel], marks: &[Mark]) -> String {
    let chart = Chart::new(x.scale, panels, marks);
    let mut svg = Svg::page(WIDTH, chart.bottom() + BOTTOM, title, STYLE);
    svg.text("title", (LEFT, 28.0), Anchor::Start, title);
    chart.legend(&mut svg);
    for (index, panel) in panels.iter().enumerate() {
        chart.panel(&mut svg, chart.panel_top(index), panel);
    }
    chart.marks(&mut svg);
    chart.x_labels(&mut svg, x.label);
    svg.finish()
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 26.0;
const TITLE_HEIGHT: f64 = 44.0;
const LEGEND_ROW: f64 = 20.0;
const MARK_ROW: f64 = 15.0;
const PANEL_HEIGHT: f64 = 230.0;
const PANEL_GAP: f64 = 26.0;
const BOTTOM: f64 = 54.0;
const SMALL_TEXT: f64 = 11.0;
/// Least distance between labels of references.
const LABEL_DISTANCE: f64 = 13.0;

const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#374151}\
path{fill:none;stroke-width:1}\
.title{font-size:17px;font-weight:600;fill:#111827}.legend,.axis{font-size:12px}.small{font-size:11px}\
.event{font-size:11px;fill:#92400e}.mark{stroke:#b45309;stroke-dasharray:2 3}\
.grid{stroke:#e5e7eb}.minor{stroke:#f1f3f5}.frame{stroke:#9ca3af}.reference{stroke:#374151;stroke-dasharray:5 3}\
.line{stroke-linejoin:round;stroke-linecap:round}.bold{stroke-width:2.6}\
.thin{stroke-width:1.2;stroke-opacity:.75}.band{stroke:none;fill-opacity:.16}\
.bar{stroke:none;fill-opacity:.85}";

/// The decisions made before drawing: axis, colours, and places of the panels.
struct Chart<'a> {
    x_axis: Axis,
    legend: Legend<'a>,
    marks: Vec<PlacedMark<'a>>,
    panels: usize,
    right: f64,
    /// Top of the first panel.
    top: f64,
}

impl<'a> Chart<'a> {
    fn new(x_scale: Scale, panels: &'a [Panel], marks: &'a [Mark]) -> Self {
        let points = panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
        let spreads = panels.iter().flat_map(|panel| &panel.bands).flat_map(|band| &band.points);
        let xs = points.map(|point| point.0).chain(spreads.map(|point| point.0)).chain(marks.iter().map(|mark| mark.x));
        let widest = panels.iter().flat_map(|panel| &panel.references).map(|line| text_width(&line.label, SMALL_TEXT));
        let margin = widest.fold(0.0, f64::max);
        let mut chart = Self {
            x_axis: Axis::covering(x_scale, Ends::AtData, xs),
            legend: Legend::new(panels, LEFT, WIDTH - RIGHT),
            marks: Vec::new(),
            panels: panels.len(),
            right: WIDTH - RIGHT.max(margin + 14.0),
            top: 0.0,
        };
        let on_axis = marks.iter().filter_map(|mark| Some((chart.x(mark.x)?, mark)));
        chart.marks = marks::place(on_axis, SMALL_TEXT, WIDTH);
        let mark_rows = chart.marks.iter().map(|mark| mark.row + 1).max().unwrap_or(0);
        chart.top = TITLE_HEIGHT + LEGEND_ROW * chart.legend.rows() as f64 + MARK_ROW * mark_rows as f64 + 8.0;
        chart
    }

    fn x(&self, value: f64) -> Option<f64> {
        self.x_axis.position(value).map(|position| self.x_at(position))
    }

    fn x_at(&self, position: f64) -> f64 {
        LEFT + position * (self.right - LEFT)
    }

    fn panel_top(&self, index: usize) -> f64 {
        self.top + index as f64 * (PANEL_HEIGHT + PANEL_GAP)
    }

    fn bottom(&self) -> f64 {
        self.panel_top(self.panels.max(1) - 1) + PANEL_HEIGHT
    }

    fn legend(&self, svg: &mut Svg) {
        for entry in &self.legend.entries {
            let x = entry.x;
            let y = TITLE_HEIGHT + LEGEND_ROW * entry.row as f64 + 6.0;
            svg.coloured_path(line_class(entry.weight), entry.colour, format_args!("M{x:.1},{y:.1}h22"));
            svg.text("legend", (x + NAME_OFFSET, y + 4.0), Anchor::Start, &entry.label);
        }
    }

    fn marks(&self, svg: &mut Svg) {
        for PlacedMark { mark, x, row, left, .. } in &self.marks {
            // Row 0 is the lowest, next to the panel.
            let y = self.top - 6.0 - MARK_ROW * *row as f64;
            let top = y - 9.0;
            let bottom = self.bottom();
            svg.path("mark", format_args!("M{x:.1},{top:.1}V{bottom:.1}"));
            let (text_x, anchor) = if *left { (x - 4.0, Anchor::End) } else { (x + 4.0, Anchor::Start) };
            svg.text("event", (text_x, y), anchor, &mark.label);
        }
    }

    fn panel(&self, svg: &mut Svg, top: f64, panel: &Panel) {
        let points = panel.series.iter().flat_map(|series| &series.points);
        let references = panel.references.iter().map(|reference| reference.value);
        let spreads = panel.bands.iter().flat_map(|band| &band.points).flat_map(|point| [point.1, point.2]);
        let values = points.map(|point| point.1).chain(references).chain(spreads);
        let axis = Axis::covering(panel.scale, Ends::AtTicks, values);
        let y = |value: f64| Some(top + (1.0 - axis.position(value)?) * PANEL_HEIGHT);

        self.grid(svg, &axis.ticks, top);
        let placed = panel.references.iter().filter_map(|reference| Some((y(reference.value)?, &*reference.label)));
        self.references(svg, placed.collect(), top);
        for band in &panel.bands {
            self.band(svg, band, y);
        }
        for weight in [LineWeight::Thin, LineWeight::Bold] {
            for series in panel.series.iter().filter(|series| series.weight == weight) {
                self.series(svg, series, y);
            }
        }
        let bottom = top + PANEL_HEIGHT;
        let right = self.right;
        svg.path("frame", format_args!("M{LEFT},{top:.1}V{bottom:.1}H{right:.1}"));
        svg.upright_text("axis", (20.0, top + PANEL_HEIGHT / 2.0), &panel.y_label);
    }

    fn grid(&self, svg: &mut Svg, y_ticks: &[Tick], top: f64) {
        let right = self.right;
        let bottom = top + PANEL_HEIGHT;
        for tick in y_ticks {
            let y = top + (1.0 - tick.position) * PANEL_HEIGHT;
            let class = if tick.label.is_some() { "grid" } else { "minor" };
            svg.path(class, format_args!("M{LEFT},{y:.1}H{right:.1}"));
            if let Some(label) = &tick.label {
                svg.text("small", (LEFT - 8.0, y + 4.0), Anchor::End, label);
            }
        }
        for tick in &self.x_axis.ticks {
            let x = self.x_at(tick.position);
            svg.path("grid", format_args!("M{x:.1},{top:.1}V{bottom:.1}"));
        }
    }

    fn band(&self, svg: &mut Svg, band: &Band, y: impl Fn(f64) -> Option<f64>) {
        let placed: Vec<Option<(f64, f64, f64)>> =
            band.points.iter().map(|&(x, low, high)| Some((self.x(x)?, y(low)?, y(high)?))).collect();
        let mut d = String::new();
        for run in placed.split(Option::is_none) {
            let there = run.iter().flatten().map(|&(x, low, _)| (x, low));
            let back = run.iter().flatten().rev().map(|&(x, _, high)| (x, high));
            for (index, (x, y)) in there.chain(back).enumerate() {
                let _ = write!(d, "{}{x:.1},{y:.1}", if index == 0 { "M" } else { "L" });
            }
            if !run.is_empty() {
                d.push('Z');
            }
        }
        if !d.is_empty() {
            svg.filled_path("band", self.legend.colour(&band.name), format_args!("{d}"));
        }
    }

    fn series(&self, svg: &mut Svg, series: &Series, y: impl Fn(f64) -> Option<f64>) {
        let place = |&(x, value): &(f64, f64)| Some((self.x(x)?, y(value)?));
        let mut d = String::new();
        for run in runs(series.points.iter().map(place)) {
            for (index, (x, y)) in run.iter().enumerate() {
                let _ = write!(d, "{}{x:.1},{y:.1}", if index == 0 { "M" } else { "L" });
            }
            if run.len() == 1 {
                d.push_str("h0"); // round caps make a dot of it
            }
        }
        if !d.is_empty() {
            let colour = self.legend.colour(&series.name);
            svg.coloured_path(line_class(series.weight), colour, format_args!("{d}"));
        }
    }

    /// Draws dashed lines, with their labels in the right margin: in the order of the lines, moved apart where they
    /// would cover each other.
    fn references(&self, svg: &mut Svg, mut lines: Vec<(f64, &str)>, top: f64) {
        lines.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut label_ys = Vec::with_capacity(lines.len());
        let mut least = f64::NEG_INFINITY;
        for (y, _) in &lines {
            label_ys.push(y.max(least));
            least = y.max(least) + LABEL_DISTANCE;
        }
        let mut most = top + PANEL_HEIGHT;
        for label_y in label_ys.iter_mut().rev() {
            *label_y = label_y.min(most);
            most = *label_y - LABEL_DISTANCE;
        }
        let right = self.right;
        let x = self.right + 8.0;
        for ((y, label), label_y) in lines.into_iter().zip(label_ys) {
            svg.path("reference", format_args!("M{LEFT},{y:.1}H{right:.1}L{x:.1},{label_y:.1}"));
            svg.text("small", (x + 3.0, label_y + 4.0), Anchor::Start, label);
        }
    }

    fn x_labels(&self, svg: &mut Svg, x_label: &str) {
        let y = self.bottom() + 17.0;
        for tick in &self.x_axis.ticks {
            let label = tick.label.as_deref().unwrap_or_default();
            svg.text("small", (self.x_at(tick.position), y), Anchor::Middle, label);
        }
        svg.text("axis", (self.x_at(0.5), y + 22.0), Anchor::Middle, x_label);
    }
}

fn line_class(weight: LineWeight) -> &'static str {
    match weight {
        LineWeight::Bold => "line bold",
        LineWeight::Thin => "line thin",
    }
}
