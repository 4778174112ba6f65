//! A picture of the weights: who takes how much of whom.

use std::f64::consts::TAU;

use mingle_plot::document::{Anchor, At, Document, Length, Point, shortened};

/// Weights below are not drawn as arrows.
const LEAST: f64 = 0.01;
/// Of the whole matrix.
const SIDE: f64 = 360.0;
const MARGIN: f64 = 90.0;
const GAP: f64 = 80.0;
/// Of names, in characters.
const LONGEST_NAME: usize = 10;

/// The matrix on the left, row by row what each client takes of whom; on the right the same as arrows from those who give to those
/// who take, thicker where the weight is larger.
pub(super) fn collaboration_svg(names: &[String], weights: &[Vec<f64>]) -> String {
    let mut document = Document::default();
    let (width, height) = (2.0 * SIDE + 2.0 * MARGIN + GAP, SIDE + 2.0 * MARGIN);
    document.put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">",
        Length(width),
        Length(height)
    ));
    document.put(format_args!(
        "<style>text{{font:12px sans-serif;fill:#222}}.title{{font-size:15px;font-weight:bold}}.cell{{font-size:10px}}.light{{fill:#fff;font-size:10px}}</style>"
    ));
    document.put(format_args!("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"));
    document.put(format_args!(
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#2b6cb0\"/></marker></defs>"
    ));
    matrix(&mut document, names, weights);
    arrows(&mut document, names, weights, [MARGIN + SIDE + GAP + SIDE / 2.0, MARGIN + SIDE / 2.0]);
    document.put(format_args!("</svg>"));
    document.finish()
}

fn matrix(document: &mut Document, names: &[String], weights: &[Vec<f64>]) {
    document.text("title", [MARGIN, 28.0], Anchor::Start, "What the client of a row takes of that of a column");
    let cell = SIDE / names.len().max(1) as f64;
    let middle = |at: usize| MARGIN + (at as f64 + 0.5) * cell;
    for (row, weights) in weights.iter().enumerate() {
        document.text("", [MARGIN - 6.0, middle(row) + 4.0], Anchor::End, &shortened(&names[row], LONGEST_NAME));
        document.text(
            "",
            [middle(row), MARGIN - 8.0],
            Anchor::Middle,
            &shortened(&names[row], LONGEST_NAME.min((cell / 7.0) as usize)),
        );
        for (column, &weight) in weights.iter().enumerate() {
            let [x, y] = [MARGIN + column as f64 * cell, MARGIN + row as f64 * cell];
            document.put(format_args!(
                "<rect x=\"{}\" y=\"{}\" width=\"{size}\" height=\"{size}\" fill=\"#2b6cb0\" fill-opacity=\"{weight:.3}\" stroke=\"#ccc\"/>",
                Length(x),
                Length(y),
                size = Length(cell)
            ));
            if weight >= LEAST && cell >= 26.0 {
                let class = if weight > 0.7 { "light" } else { "cell" };
                document.text(class, [middle(column), middle(row) + 4.0], Anchor::Middle, &format!("{weight:.2}"));
            }
        }
    }
}

fn arrows(document: &mut Document, names: &[String], weights: &[Vec<f64>], [x, y]: Point) {
    document.text("title", [x, 28.0], Anchor::Middle, "Who learns from whom");
    let place = |at: usize, radius: f64| {
        let angle = TAU * at as f64 / names.len().max(1) as f64 - TAU / 4.0;
        [x + radius * angle.cos(), y + radius * angle.sin()]
    };
    let radius = SIDE / 2.0 - 10.0;
    for (taker, row) in weights.iter().enumerate() {
        for (giver, &weight) in row.iter().enumerate().filter(|&(giver, &weight)| giver != taker && weight >= LEAST) {
            let (from, to) = (place(giver, radius), place(taker, radius));
            let length = (to[0] - from[0]).hypot(to[1] - from[1]);
            // Ends at the rim of a circle; bent, so that the two directions do not lie on each other.
            let along = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
            let start = [from[0] + 14.0 * along[0], from[1] + 14.0 * along[1]];
            let end = [to[0] - 15.0 * along[0], to[1] - 15.0 * along[1]];
            let bend = [
                (from[0] + to[0]) / 2.0 - 0.12 * length * along[1],
                (from[1] + to[1]) / 2.0 + 0.12 * length * along[0],
            ];
            document.put(format_args!(
                "<path d=\"M{} Q{} {}\" fill=\"none\" stroke=\"#2b6cb0\" stroke-opacity=\"0.75\" stroke-width=\"{}\" marker-end=\"url(#tip)\"/>",
                At(start),
                At(bend),
                At(end),
                Length((8.0 * weight).max(0.4))
            ));
        }
    }
    for (at, name) in names.iter().enumerate() {
        let [cx, cy] = place(at, radius);
        document.put(format_args!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"13\" fill=\"#fff\" stroke=\"#222\"/>",
            Length(cx),
            Length(cy)
        ));
        document.text("cell", [cx, cy + 4.0], Anchor::Middle, &at.to_string());
        let [lx, ly] = place(at, radius + 46.0);
        document.text("", [lx, ly + 4.0], Anchor::Middle, &shortened(name, LONGEST_NAME));
    }
}
