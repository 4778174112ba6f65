//! The places and sizes of nodes.

use std::f64::consts::{PI, TAU};

use mingle_plot::document::Point;

use super::{NodePlacement, circle_order::circle_order, union::Union};

/// The least radius of the circle; it grows with the number of nodes.
const LEAST_RADIUS: f64 = 290.0;
const MOST_RADIUS: f64 = 720.0;

/// Room along the circle for a node with a name beside it.
const NODE_SPACING: f64 = 11.0;

/// The longer side of a picture with given places.
const PLACES_SIDE: f64 = 640.0;

/// Radius of the node with most receivers.
const LARGEST_NODE: f64 = 15.0;

/// Least gap between two nodes at given places.
const NODE_GAP: f64 = 5.0;

/// Turns of moving nodes apart.
const SEPARATION_TURNS: usize = 80;

/// The nodes in the plane, in a box from (0, 0) to `size`.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) places: Vec<Point>,
    /// Radius of each node.
    pub(super) radii: Vec<f64>,
    pub(super) size: [f64; 2],
    /// The angle of each node, if they stand on a circle.
    pub(super) angles: Option<Vec<f64>>,
}

impl Placement {
    pub(super) fn new(layout: &NodePlacement<'_>, union: &Union, nodes: usize) -> Self {
        match layout {
            NodePlacement::Circle => Self::on_circle(union, nodes),
            NodePlacement::Positions(places) => Self::at(places, union),
        }
    }

    fn on_circle(union: &Union, nodes: usize) -> Self {
        let around = nodes as f64;
        let radius = (around * NODE_SPACING / TAU).clamp(LEAST_RADIUS, MOST_RADIUS);
        let order = circle_order(nodes, &union.edges());
        let mut angles = vec![0.0; nodes];
        for (at, &node) in order.iter().enumerate() {
            // Node 0 at the top, on clockwise.
            angles[node] = TAU * at as f64 / around - PI / 2.0;
        }
        let places = angles.iter().map(|angle| [radius * (1.0 + angle.cos()), radius * (1.0 + angle.sin())]).collect();
        let largest = LARGEST_NODE.min(0.42 * TAU * radius / around).max(1.5);
        let radii = radii(&union.out_degrees(nodes), largest);
        Self { places, radii, size: [2.0 * radius; 2], angles: Some(angles) }
    }

    fn at(given: &[[f64; 2]], union: &Union) -> Self {
        let (places, size) = scaled(given);
        let room = (size[0] * size[1] / places.len() as f64).sqrt();
        let radii = radii(&union.out_degrees(given.len()), LARGEST_NODE.min(0.16 * room).max(1.5));
        let mut placement = Self { places, radii, size, angles: None };
        placement.separate();
        placement
    }

    /// Moves nodes apart that cover each other, a little at a time and in the order of their numbers.
    fn separate(&mut self) {
        for _ in 0..SEPARATION_TURNS {
            let mut moved = false;
            for u in 0..self.places.len() {
                for v in u + 1..self.places.len() {
                    moved |= self.push_apart(u, v);
                }
            }
            if !moved {
                break;
            }
        }
    }

    fn push_apart(&mut self, u: usize, v: usize) -> bool {
        let least = self.radii[u] + self.radii[v] + NODE_GAP;
        let [dx, dy] = difference(self.places[v], self.places[u]);
        let distance = dx.hypot(dy);
        if distance >= least {
            return false;
        }
        // Nodes at one place part in a direction of their own.
        let direction = match distance {
            d if d > 1e-6 => [dx / d, dy / d],
            _ => [(v as f64 * 2.4).cos(), (v as f64 * 2.4).sin()],
        };
        let by = (least - distance) / 2.0 + 0.05;
        for (node, sign) in [(u, -1.0), (v, 1.0)] {
            for ((place, toward), size) in self.places[node].iter_mut().zip(direction).zip(self.size) {
                *place = (*place + sign * by * toward).clamp(0.0, size);
            }
        }
        true
    }
}

/// The radii of the nodes. The area of a node shows its out-degree; nodes without receivers are still visible.
fn radii(out_degrees: &[usize], largest: f64) -> Vec<f64> {
    let most = out_degrees.iter().copied().max().unwrap_or(0).max(1) as f64;
    let share = |degree: usize| 0.58 + 0.42 * (degree as f64 / most).sqrt();
    out_degrees.iter().map(|&degree| largest * share(degree)).collect()
}

/// The places in a box whose longer side is [`PLACES_SIDE`], not distorted, `y` turned downwards.
fn scaled(given: &[[f64; 2]]) -> (Vec<Point>, [f64; 2]) {
    // Halves, since the difference of two large numbers may not be finite.
    let [low, high] = [f64::min, f64::max].map(|pick: fn(f64, f64) -> f64| {
        let half = |axis: usize| given.iter().map(|place| place[axis] / 2.0).reduce(pick).unwrap_or(0.0);
        [half(0), half(1)]
    });
    let span = difference(high, low);
    let longer = span[0].max(span[1]);
    let share = |x: f64| if longer > 0.0 { (x / longer).clamp(0.0, 1.0) } else { 0.0 };
    let size =
        [(PLACES_SIDE * share(span[0])).max(0.5 * PLACES_SIDE), (PLACES_SIDE * share(span[1])).max(0.35 * PLACES_SIDE)];
    // A dimension narrower than the box is centred in it.
    let margin = [0, 1].map(|axis| (size[axis] - PLACES_SIDE * share(span[axis])) / 2.0);
    let place = |place: &[f64; 2]| {
        let x = margin[0] + PLACES_SIDE * share(place[0] / 2.0 - low[0]);
        let y = margin[1] + PLACES_SIDE * share(high[1] - place[1] / 2.0);
        [x, y]
    };
    (given.iter().map(place).collect(), size)
}

pub(super) fn difference(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_keep_their_proportions_and_point_upwards() {
        let (places, size) = scaled(&[[0.0, 0.0], [10.0, 5.0]]);
        assert_eq!((places, size), (vec![[0.0, 320.0], [640.0, 0.0]], [640.0, 320.0]));
    }

    #[test]
    fn places_beyond_all_measure_stay_in_the_box() {
        for extreme in [f64::MAX, 1e-320, 0.0] {
            let (places, size) = scaled(&[[-extreme, extreme], [extreme, -extreme], [0.0, 0.0]]);
            for place in places {
                assert!((0.0..=size[0]).contains(&place[0]) && (0.0..=size[1]).contains(&place[1]), "{place:?}");
            }
        }
    }
}
