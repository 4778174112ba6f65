//! Labels: the names of the nodes are written in the nodes if they are short, otherwise outwards on a circle, otherwise
//! where they cover least.

use mingle_plot::document::{Anchor, Point, shortened, text_width};

use super::{layout::Placement, union::Union};

/// Names are cut to this many characters; the full one is in the tooltip.
const LONGEST_NAME: usize = 22;

/// The least spacing of names along a circle at which they can be read.
const LEAST_ROW: f64 = 6.5;

const LARGEST_INSCRIPTION: f64 = 10.5;
const SMALLEST_INSCRIPTION: f64 = 6.4;

/// Number of samples along each link that count against a place for a name.
const SAMPLES: usize = 24;

/// The names of the nodes in a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Names {
    /// In the nodes, without the prefix of all names.
    Inside { prefix: String, texts: Vec<Inscription> },
    /// Beside the nodes: one label each, or none at all where there is no room.
    Beside(Vec<NodeLabel>),
}

/// A name within a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Inscription {
    pub(super) text: String,
    pub(super) font_size: f64,
}

/// A name beside a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeLabel {
    pub(super) text: String,
    pub(super) at: Point,
    pub(super) anchor: Anchor,
    /// Degrees, clockwise.
    pub(super) turn: f64,
    pub(super) font_size: f64,
}

/// Places all names.
pub(super) fn place(names: &[String], placement: &Placement, union: &Union) -> Names {
    let prefix = common_prefix(names);
    if let Some(texts) = inside(names, prefix, &placement.radii) {
        return Names::Inside { prefix: prefix.to_owned(), texts };
    }
    let texts: Vec<String> = names.iter().map(|name| shortened(name, LONGEST_NAME)).collect();
    Names::Beside(match &placement.angles {
        Some(angles) => around(texts, angles, placement),
        None => beside(texts, placement, union),
    })
}

/// The common prefix of all names; numbers are not taken apart, and something is left of every name.
fn common_prefix(names: &[String]) -> &str {
    let Some((first, rest)) = names.split_first() else {
        return "";
    };
    let shared = |length: usize, name: &String| {
        let pairs = first[..length].char_indices().zip(name.chars());
        let same = pairs.take_while(|((_, a), b)| a == b).last();
        same.map_or(0, |((at, character), _)| at + character.len_utf8())
    };
    let length = rest.iter().fold(first.len(), shared);
    let prefix = first[..length].trim_end_matches(|character: char| character.is_ascii_digit());
    if names.iter().any(|name| name.len() == prefix.len()) { "" } else { prefix }
}

/// The names in the nodes, if all of them can be read there.
fn inside(names: &[String], prefix: &str, radii: &[f64]) -> Option<Vec<Inscription>> {
    let inscribed = names.iter().zip(radii).map(|(name, &radius)| {
        let text = &name[prefix.len()..];
        let room = 1.7 * radius / text_width(text, 1.0);
        let font_size = room.min(1.2 * radius).min(LARGEST_INSCRIPTION);
        (font_size >= SMALLEST_INSCRIPTION).then(|| Inscription { text: text.to_owned(), font_size })
    });
    inscribed.collect()
}

/// Labels around a circle: level where names fit next to each other, otherwise along the rays.
fn around(texts: Vec<String>, angles: &[f64], placement: &Placement) -> Vec<NodeLabel> {
    let spacing = std::f64::consts::PI * placement.size[0] / texts.len() as f64;
    if spacing < LEAST_ROW {
        return Vec::new();
    }
    let font_size = (spacing * 0.8).clamp(6.0, 11.5);
    let widest = texts.iter().map(|text| text_width(text, font_size)).fold(0.0, f64::max);
    let level = texts.len() <= 8 || widest + 8.0 <= spacing;
    let nodes = texts.into_iter().zip(angles).enumerate();
    nodes
        .map(|(node, (text, &angle))| {
            let out = placement.radii[node] + 5.0;
            let [x, y] = placement.places[node];
            let dx = angle.cos();
            let dy = angle.sin();
            let at = [x + out * dx, y + out * dy];
            if level {
                let anchor = if dx > 0.3 {
                    Anchor::Start
                } else if dx < -0.3 {
                    Anchor::End
                } else {
                    Anchor::Middle
                };
                return NodeLabel {
                    text,
                    at: [at[0], at[1] + font_size * (0.36 + 0.4 * dy)],
                    anchor,
                    turn: 0.0,
                    font_size,
                };
            }
            let degrees = angle.to_degrees();
            let (anchor, turn) = if dx >= -1e-9 { (Anchor::Start, degrees) } else { (Anchor::End, degrees + 180.0) };
            // The baseline is below the middle of the letters, whichever way they are turned.
            let (sin, cos) = turn.to_radians().sin_cos();
            let down = 0.36 * font_size;
            NodeLabel { text, at: [at[0] - down * sin, at[1] + down * cos], anchor, turn, font_size }
        })
        .collect()
}

/// Labels beside the nodes: for each node, in the order of the numbers, the best of eight places.
fn beside(texts: Vec<String>, placement: &Placement, union: &Union) -> Vec<NodeLabel> {
    let font_size = if texts.len() <= 60 {
        11.0
    } else if texts.len() <= 150 {
        9.0
    } else {
        7.0
    };
    if texts.len() > 400 {
        return Vec::new();
    }
    let lines = samples(placement, union);
    let mut taken: Vec<LabelBox> = Vec::new();
    let mut labels = Vec::with_capacity(texts.len());
    for (node, text) in texts.into_iter().enumerate() {
        let candidates = candidates(placement.places[node], placement.radii[node], &text, font_size);
        let cost = |frame: &LabelBox| {
            let names = taken.iter().filter(|other| frame.meets(other)).count();
            let nodes = placement.places.iter().zip(&placement.radii).enumerate();
            let covered =
                nodes.filter(|&(other, (&place, &radius))| other != node && frame.is_near(place, radius)).count();
            let crossed = lines.iter().filter(|&&point| frame.is_near(point, 0.0)).count();
            let outside = usize::from(!frame.is_inside(placement.size));
            400 * names + 200 * covered + crossed + 30 * outside
        };
        // The first among equals: to the right.
        let best = candidates.into_iter().min_by_key(|(frame, _)| cost(frame));
        if let Some((frame, anchor)) = best {
            let x = match anchor {
                Anchor::Start => frame.left,
                Anchor::Middle => 0.5 * (frame.left + frame.right),
                Anchor::End => frame.right,
            };
            labels.push(NodeLabel { text, at: [x, frame.bottom - 0.22 * font_size], anchor, turn: 0.0, font_size });
            taken.push(frame);
        }
    }
    labels
}

/// A name's box.
#[derive(Debug, Clone, Copy)]
struct LabelBox {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl LabelBox {
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn is_near(&self, [x, y]: Point, by: f64) -> bool {
        self.left - by < x && x < self.right + by && self.top - by < y && y < self.bottom + by
    }

    fn is_inside(&self, size: [f64; 2]) -> bool {
        self.left > -40.0 && self.right < size[0] + 40.0 && self.top > -16.0 && self.bottom < size[1] + 16.0
    }
}

fn candidates([x, y]: Point, radius: f64, text: &str, font_size: f64) -> Vec<(LabelBox, Anchor)> {
    let (width, height) = (text_width(text, font_size), font_size);
    let frame = |dx: f64, dy: f64| {
        let out = radius + 3.0;
        let cx = x + dx * out;
        let cy = y + dy * out;
        let (left, anchor) = match dx {
            d if d > 0.1 => (cx, Anchor::Start),
            d if d < -0.1 => (cx - width, Anchor::End),
            _ => (cx - 0.5 * width, Anchor::Middle),
        };
        let top = cy - 0.5 * height * (1.0 - dy);
        (LabelBox { left, right: left + width, top, bottom: top + height }, anchor)
    };
    let slant = 0.75;
    [
        (1.0, 0.0),
        (-1.0, 0.0),
        (0.0, 1.0),
        (0.0, -1.0),
        (slant, -slant),
        (slant, slant),
        (-slant, -slant),
        (-slant, slant),
    ]
    .map(|(dx, dy)| frame(dx, dy))
    .to_vec()
}

/// Points along the links, as straight lines.
fn samples(placement: &Placement, union: &Union) -> Vec<Point> {
    let mut points = Vec::new();
    // With more links than this, no place is better than another.
    for (u, v) in union.edges().into_iter().take(1_500) {
        let ([ax, ay], [bx, by]) = (placement.places[u], placement.places[v]);
        for step in 1..SAMPLES {
            let share = step as f64 / SAMPLES as f64;
            points.push([ax + share * (bx - ax), ay + share * (by - ay)]);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(names: &[&str]) -> String {
        common_prefix(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).to_owned()
    }

    #[test]
    fn a_common_prefix_leaves_numbers_whole_and_no_name_empty() {
        assert_eq!(prefix(&["node-10", "node-11", "node-19"]), "node-");
        assert_eq!(prefix(&["10", "11"]), "");
        assert_eq!(prefix(&["é-a", "é-b"]), "é-");
        assert_eq!(prefix(&["ward", "ward 7"]), "");
        assert_eq!(prefix(&["ana", "ben"]), "");
    }
}
