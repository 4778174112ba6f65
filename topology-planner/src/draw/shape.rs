//! The shape of a directed link: a band that is wide at the transmitter and narrow at the receiver, with a head.
//!
//! Readers follow tapered links with fewer errors than plain ones with heads (Holten and van Wijk, "A User Study on
//! Visualizing Directed Edges in Graphs", 2009). The head is for readers who do not know the convention.

use mingle_plot::document::{At, Point};

use super::layout::difference;

/// The shape of a band.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandShape {
    /// Width at the transmitter.
    pub(super) wide: f64,
    /// Width at the receiver.
    pub(super) narrow: f64,
    /// Length of the head; 0 for none.
    pub(super) head: f64,
}

/// The control point of a link whose middle lies to the right of the straight line by `bow` times its length.
pub(super) fn bowed(from: Point, to: Point, bow: f64) -> Point {
    let [dx, dy] = difference(to, from);
    // A quadratic curve passes its control point at half the distance.
    [from[0] + 0.5 * dx - 2.0 * bow * dy, from[1] + 0.5 * dy + 2.0 * bow * dx]
}

/// The outline of a link between two nodes of these places and radii, closed; its middle line is a quadratic curve with
/// this control point.
pub(super) fn outline(from: (Point, f64), to: (Point, f64), control: Point, band: BandShape) -> String {
    let along = difference(to.0, from.0);
    let length = along[0].hypot(along[1]).max(1e-3);
    let unit = [along[0] / length, along[1] / length];
    let right = [-unit[1], unit[0]];
    let gap = (length - from.1 - to.1).max(0.0);
    let leave = direction(from.0, control, unit);
    let arrive = direction(control, to.0, unit);
    let head = band.head.min(0.5 * gap);
    let start = moved(from.0, leave, from.1 * 0.9);
    let tip = moved(to.0, arrive, -(to.1 + 0.8).min(to.1 + gap));
    let neck = moved(tip, arrive, -head);
    let side = |[x, y]: Point| [-y, x];
    let [left_start, right_start] = edges(start, side(leave), band.wide);
    let [left_control, right_control] = edges(control, right, 0.5 * (band.wide + band.narrow));
    let [left_neck, right_neck] = edges(neck, side(arrive), band.narrow);
    let [left_wing, right_wing] = edges(neck, side(arrive), if head > 0.0 { 0.8 * head } else { band.narrow });
    format!(
        "M{}Q{} {}L{} {} {} {}Q{} {}Z",
        At(left_start),
        At(left_control),
        At(left_neck),
        At(left_wing),
        At(tip),
        At(right_wing),
        At(right_neck),
        At(right_control),
        At(right_start)
    )
}

/// The two points at half a width on either side.
fn edges(at: Point, side: Point, width: f64) -> [Point; 2] {
    [moved(at, side, -0.5 * width), moved(at, side, 0.5 * width)]
}

fn moved(at: Point, direction: Point, by: f64) -> Point {
    [at[0] + by * direction[0], at[1] + by * direction[1]]
}

fn direction(from: Point, to: Point, otherwise: Point) -> Point {
    let [dx, dy] = difference(to, from);
    let length = dx.hypot(dy);
    if length > 1e-6 { [dx / length, dy / length] } else { otherwise }
}
