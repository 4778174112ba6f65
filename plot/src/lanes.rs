//! Lane charts: activities over time as bars, in groups of lanes under each other on one axis of time.
//!
//! ```text
//!   title
//!   [] training  [] sending  [] receiving
//!   node 0  |███████    ████████   |
//!           |      ▄▄▄         ▄▄▄ |
//!   node 1  |  ██████     ███████  |
//!           0      100     200     300   ms
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::axis::{Axis, Ends, Scale};
use super::svg::{Anchor, Svg, text_width};
use super::{LEFT, LEGEND_ROW, RIGHT, STYLE, TITLE_HEIGHT, WIDTH};

const LANE_HEIGHT: f64 = 11.0;
const LANE_GAP: f64 = 2.0;
const GROUP_GAP: f64 = 12.0;
const BOTTOM: f64 = 54.0;
const FONT_SIZE: f64 = 12.0;
/// Least width of a bar, so that it can be seen.
const LEAST_WIDTH: f64 = 0.6;
const COLOURS: [&str; 8] = ["#14304f", "#8a96a6", "#c77700", "#1b6e53", "#6b2fa0", "#d7dce3", "#b3261e", "#0e7c9b"];

/// Lanes with a common name.
#[derive(Clone, Debug)]
pub struct Group {
    /// Label to the left of the lanes.
    pub name: String,
    /// The lanes from top to bottom.
    pub lanes: Vec<Vec<Bar>>,
    /// Positions of lines through all lanes of the group, in units of the horizontal axis.
    pub ticks: Vec<f64>,
}

/// A stretch of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// Index into the kinds of the chart.
    pub kind: usize,
    /// Begin, in units of the horizontal axis.
    pub from: f64,
    /// End, in units of the horizontal axis.
    pub to: f64,
}

/// Draws `groups` under each other and returns the SVG document. `kinds` name the bars; there are at most eight.
///
/// Bars beyond `range` are cut. The same input gives the same text; size and time are linear in the bars.
pub fn lane_chart(title: &str, x_label: &str, range: (f64, f64), kinds: &[&str], groups: &[Group]) -> String {
    let axis = Axis::covering(Scale::Linear, Ends::AtData, [range.0, range.1].into_iter());
    let heights: Vec<f64> = groups.iter().map(height_of).collect();
    let top = TITLE_HEIGHT + LEGEND_ROW + 8.0;
    let bottom = top + heights.iter().sum::<f64>();
    let mut svg = Svg::page(WIDTH, bottom + BOTTOM, title, STYLE);
    svg.text("title", (LEFT, 28.0), Anchor::Start, title);
    legend(&mut svg, kinds);
    for tick in &axis.ticks {
        let x = x_at(tick.position);
        svg.path("grid", format_args!("M{x:.1},{top:.1}V{bottom:.1}"));
        let label = tick.label.as_deref().unwrap_or_default();
        svg.text("small", (x, bottom + 17.0), Anchor::Middle, label);
    }
    svg.text("axis", (x_at(0.5), bottom + 39.0), Anchor::Middle, x_label);
    let mut y = top;
    for (group, height) in groups.iter().zip(heights) {
        draw(&mut svg, group, y, |value| axis.position(value.clamp(range.0, range.1)).map(x_at));
        y += height;
    }
    svg.path("frame", format_args!("M{LEFT},{top:.1}V{bottom:.1}H{:.1}", WIDTH - RIGHT));
    svg.finish()
}

fn height_of(group: &Group) -> f64 {
    group.lanes.len() as f64 * (LANE_HEIGHT + LANE_GAP) + GROUP_GAP
}

fn x_at(position: f64) -> f64 {
    LEFT + position * (WIDTH - RIGHT - LEFT)
}

fn legend(svg: &mut Svg, kinds: &[&str]) {
    let mut x = LEFT;
    let y = TITLE_HEIGHT + 2.0;
    for (kind, colour) in kinds.iter().zip(COLOURS) {
        svg.filled_path("bar", colour, format_args!("M{x:.1},{y:.1}h14v10h-14Z"));
        svg.text("legend", (x + 20.0, y + 9.0), Anchor::Start, kind);
        x += 20.0 + text_width(kind, FONT_SIZE) + 18.0;
    }
}

fn draw(svg: &mut Svg, group: &Group, top: f64, x: impl Fn(f64) -> Option<f64>) {
    let lanes = group.lanes.len() as f64;
    let middle = top + lanes * (LANE_HEIGHT + LANE_GAP) / 2.0;
    svg.text("legend", (LEFT - 10.0, middle + 4.0), Anchor::End, &group.name);
    for (index, lane) in group.lanes.iter().enumerate() {
        let y = top + index as f64 * (LANE_HEIGHT + LANE_GAP);
        let mut paths: BTreeMap<usize, String> = BTreeMap::new();
        for bar in lane {
            let (Some(from), Some(to)) = (x(bar.from), x(bar.to)) else { continue };
            let width = (to - from).max(LEAST_WIDTH);
            // Writing to a `String` cannot fail.
            let _ =
                write!(paths.entry(bar.kind).or_default(), "M{from:.1},{y:.1}h{width:.1}v{LANE_HEIGHT}h-{width:.1}Z");
        }
        for (kind, d) in paths {
            let colour = COLOURS[kind % COLOURS.len()];
            svg.filled_path("bar", colour, format_args!("{d}"));
        }
    }
    let bottom = top + lanes * (LANE_HEIGHT + LANE_GAP);
    for tick in group.ticks.iter().filter_map(|tick| x(*tick)) {
        svg.path("mark", format_args!("M{tick:.1},{top:.1}V{bottom:.1}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_where_their_times_are_and_are_cut_at_the_ends() {
        let bar = |kind, from, to| Bar { kind, from, to };
        let group = Group {
            name: "node <0>".to_owned(),
            lanes: vec![vec![bar(0, 0.0, 50.0), bar(0, 90.0, 500.0)], vec![bar(1, 25.0, 25.0)]],
            ticks: vec![50.0],
        };
        let svg = lane_chart("what", "ms", (0.0, 100.0), &["training", "sending"], &[group]);
        let width = WIDTH - RIGHT - LEFT;
        let (first, last) = (format!("M{LEFT:.1}"), format!("h{:.1}v", 0.1 * width));
        assert!(svg.contains(&first) && svg.contains(&format!("h{:.1}v", 0.5 * width)), "{svg}");
        assert!(svg.contains(&last), "a bar ends where the picture does: {svg}");
        assert!(svg.contains(&format!("h{LEAST_WIDTH:.1}v")), "an instant is seen: {svg}");
        assert!(svg.contains("node &lt;0&gt;") && svg.contains(">training</text>"));
    }
}
