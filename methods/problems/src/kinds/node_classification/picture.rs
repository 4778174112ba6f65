//! A picture of the collaboration weights.

use std::f64::consts::TAU;

use mingle_plot::document::{Anchor, At, Coordinate, Point, SvgDocument, escaped, shortened};

/// Weights below this are not drawn as arrows.
const LEAST: f64 = 0.01;
/// The side of the whole matrix.
const SIDE: f64 = 360.0;
const MARGIN: f64 = 100.0;
const GAP: f64 = 90.0;
/// The longest name, in characters.
const LONGEST_NAME: usize = 10;
/// The least distance between names.
const LINE: f64 = 13.0;
/// The widest arrow, and the largest tip.
const WIDEST: f64 = 5.0;
const LARGEST_TIP: f64 = 14.0;
/// The number of arrows beyond which all become thinner.
const FEW_ARROWS: f64 = 30.0;
/// The largest radius of a client's circle.
const LARGEST_CIRCLE: f64 = 13.0;

/// Draws the weights twice. On the left is the matrix: a row for each taker, a column for each giver. On the right are
/// arrows from giver to taker, thicker and darker where the weight is larger.
pub(super) fn collaboration_svg(names: &[String], weights: &[Vec<f64>]) -> String {
    let mut document = SvgDocument::default();
    let width = 2.0 * SIDE + 2.0 * MARGIN + GAP;
    let height = SIDE + 1.7 * MARGIN;
    document.put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">",
        Coordinate(width),
        Coordinate(height)
    ));
    document.put(format_args!(
        "<style>text{{font:12px sans-serif;fill:#222}}.title{{font-size:15px;font-weight:bold}}.cell{{font-size:10px}}.light{{fill:#fff;font-size:10px}}</style>"
    ));
    document.put(format_args!("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"));
    matrix(&mut document, names, weights);
    arrows(&mut document, names, weights, [MARGIN + SIDE + GAP + SIDE / 2.0, MARGIN + SIDE / 2.0]);
    document.put(format_args!("</svg>"));
    document.finish()
}

/// The step between the names that are written, where each entry has this room.
fn stride(room: f64) -> usize {
    (LINE / room).ceil().max(1.0) as usize
}

fn matrix(document: &mut SvgDocument, names: &[String], weights: &[Vec<f64>]) {
    document.text("title", [MARGIN, 28.0], Anchor::Start, "What the client of a row takes of each column");
    let cell = SIDE / names.len().max(1) as f64;
    let middle = |at: usize| MARGIN + (at as f64 + 0.5) * cell;
    for (at, name) in names.iter().enumerate().step_by(stride(cell)) {
        let name = shortened(name, LONGEST_NAME);
        document.text("", [MARGIN - 6.0, middle(at) + 4.0], Anchor::End, &name);
        let [x, y] = [middle(at) + 3.0, MARGIN - 6.0].map(Coordinate);
        document.put(format_args!("<text transform=\"translate({x} {y}) rotate(-40)\">{}</text>", escaped(&name)));
    }
    for (row, weights) in weights.iter().enumerate() {
        for (column, &weight) in weights.iter().enumerate() {
            square(document, [MARGIN + column as f64 * cell, MARGIN + row as f64 * cell], cell, weight);
            if weight >= LEAST && cell >= 26.0 {
                let class = if weight > 0.7 { "light" } else { "cell" };
                document.text(class, [middle(column), middle(row) + 4.0], Anchor::Middle, &format!("{weight:.2}"));
            }
        }
    }
}

/// A cell of the matrix, the darker the larger its weight.
fn square(document: &mut SvgDocument, corner: Point, side: f64, weight: f64) {
    let [x, y] = corner.map(Coordinate);
    document.put(format_args!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"#2b6cb0\" fill-opacity=\"{weight:.3}\" stroke=\"#ccc\"/>",
        side = Coordinate(side)
    ));
}

/// An arrow from a giver to a taker.
struct Arrow {
    giver: usize,
    taker: usize,
    /// Its weight, relative to the largest of all arrows.
    share: f64,
}

/// The arrows in ascending order of weight, so that none hides a thicker one.
fn sorted_arrows(weights: &[Vec<f64>]) -> Vec<Arrow> {
    let mut arrows = Vec::new();
    for (taker, row) in weights.iter().enumerate() {
        let others = row.iter().enumerate().filter(|&(giver, &weight)| giver != taker && weight >= LEAST);
        arrows.extend(others.map(|(giver, &share)| Arrow { giver, taker, share }));
    }
    let largest = arrows.iter().map(|arrow| arrow.share).fold(LEAST, f64::max);
    arrows.iter_mut().for_each(|arrow| arrow.share /= largest);
    arrows.sort_by(|one, other| one.share.total_cmp(&other.share));
    arrows
}

fn arrows(document: &mut SvgDocument, names: &[String], weights: &[Vec<f64>], [x, y]: Point) {
    document.text("title", [x, 28.0], Anchor::Middle, "Who learns from whom");
    let place = |at: usize, radius: f64| {
        let angle = TAU * at as f64 / names.len().max(1) as f64 - TAU / 4.0;
        [x + radius * angle.cos(), y + radius * angle.sin()]
    };
    let radius = SIDE / 2.0 - 10.0;
    let room = TAU * radius / names.len().max(1) as f64;
    let circle = LARGEST_CIRCLE.min(0.4 * room);
    let arrows = sorted_arrows(weights);
    let scale = (FEW_ARROWS / arrows.len() as f64).sqrt().min(1.0);
    for Arrow { giver, taker, share } in arrows {
        arrow(document, [place(giver, radius), place(taker, radius)], circle, share, scale);
    }
    for at in 0..names.len() {
        let [cx, cy] = place(at, radius).map(Coordinate);
        let circle = Coordinate(circle);
        document.put(format_args!("<circle cx=\"{cx}\" cy=\"{cy}\" r=\"{circle}\" fill=\"#fff\" stroke=\"#222\"/>"));
    }
    for (at, name) in names.iter().enumerate().step_by(stride(room)) {
        let [cx, cy] = place(at, radius);
        if circle >= 0.6 * LARGEST_CIRCLE {
            document.text("cell", [cx, cy + 4.0], Anchor::Middle, &at.to_string());
        }
        let [lx, ly] = place(at, radius + circle + 9.0);
        let anchor = match (lx - x) / radius {
            side if side > 0.2 => Anchor::Start,
            side if side < -0.2 => Anchor::End,
            _ => Anchor::Middle,
        };
        // Names above the highest circle and below the lowest, beside the others.
        document.text("", [lx, ly + 4.0 + 5.0 * (ly - y) / radius], anchor, &shortened(name, LONGEST_NAME));
    }
}

/// Draws a bent arrow between two circles, so that the arrows of both directions do not overlap.
fn arrow(document: &mut SvgDocument, [from, to]: [Point; 2], circle: f64, share: f64, scale: f64) {
    let length = (to[0] - from[0]).hypot(to[1] - from[1]);
    let along = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
    let bend = [(from[0] + to[0]) / 2.0 - 0.12 * length * along[1], (from[1] + to[1]) / 2.0 + 0.12 * length * along[0]];
    let toward = |point: Point, by: f64| {
        let distance = (bend[0] - point[0]).hypot(bend[1] - point[1]);
        [point[0] + by * (bend[0] - point[0]) / distance, point[1] + by * (bend[1] - point[1]) / distance]
    };
    let tip = scale * LARGEST_TIP * (0.4 + 0.6 * share);
    let start = toward(from, circle);
    let end = toward(to, circle + 1.0);
    let back = toward(to, circle + 1.0 + tip);
    let across = [0.35 * (end[1] - back[1]), 0.35 * (back[0] - end[0])];
    let opacity = 0.15 + 0.75 * share;
    let width = (scale * WIDEST * share).max(0.4);
    document.put(format_args!(
        "<path d=\"M{} Q{} {}\" fill=\"none\" stroke=\"#2b6cb0\" stroke-opacity=\"{opacity:.2}\" stroke-width=\"{}\"/>",
        At(start),
        At(bend),
        At(back),
        Coordinate(width)
    ));
    document.put(format_args!(
        "<path d=\"M{} L{} L{}z\" fill=\"#2b6cb0\" fill-opacity=\"{opacity:.2}\"/>",
        At(end),
        At([back[0] + across[0], back[1] + across[1]]),
        At([back[0] - across[0], back[1] - across[1]])
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(clients: usize, weight: impl Fn(usize, usize) -> f64) -> String {
        let names: Vec<String> = (0..clients).map(|at| format!("a<{at}")).collect();
        let weights: Vec<Vec<f64>> =
            (0..clients).map(|row| (0..clients).map(|column| weight(row, column)).collect()).collect();
        collaboration_svg(&names, &weights)
    }

    #[test]
    fn each_weight_has_a_cell_and_each_but_the_own_and_the_smallest_an_arrow() {
        let svg = picture(3, |row, column| if row == column { 0.8 } else { 0.2 * f64::from(u8::from(row == 0)) });
        assert_eq!(svg.matches("<rect x=").count(), 9);
        assert_eq!(svg.matches("fill=\"none\" stroke=").count(), 2, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a&lt;2") && !svg.contains("a<2"));
    }

    #[test]
    fn many_clients_and_none_are_drawn_without_places_that_are_not_numbers() {
        for svg in [picture(0, |_, _| 0.0), picture(1, |_, _| 1.0), picture(80, |_, _| 1.0 / 80.0)] {
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{}", svg.len());
        }
        let names = picture(80, |_, _| 1.0 / 80.0).matches(">a&lt;").count();
        assert!(names < 2 * 80, "names do not lie on each other: {names}");
    }
}
