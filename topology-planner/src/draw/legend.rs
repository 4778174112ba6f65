//! The legend: the meaning of the colours, with a bar for the number of links of each, and of the shapes of links and
//! nodes.

use mingle_plot::document::{Anchor, Coordinate, Point, SvgDocument, shortened, text_width};

use super::{
    labels::Names,
    shape::{BandShape, bowed, outline},
    union::{Class, Union},
};

/// Width of the column at the right.
pub(super) const WIDTH: f64 = 190.0;

const TALLEST_ROW: f64 = 17.0;
const READABLE_ROW: f64 = 11.0;
const KEY_HEIGHT: f64 = 130.0;
const LONGEST_BAR: f64 = 66.0;
const NUMBER_WIDTH: f64 = 40.0;

/// Smaller nodes have no number in them.
pub(super) const LEAST_NUMBERED: f64 = 5.5;

/// The appearance of the nodes, for the key.
pub(super) struct LegendKey<'k> {
    pub(super) names: &'k Names,
    pub(super) radii: &'k [f64],
    pub(super) degrees: &'k [usize],
    /// `true` if edges without a link are in the background.
    pub(super) edges: bool,
}

/// Draws the legend downwards from `corner`; the part of `height` it does not need stays free.
pub(super) fn draw(document: &mut SvgDocument, union: &Union, key: &LegendKey<'_>, [x, y]: Point, height: f64) {
    let rows = RowMeasures::new(union, height - KEY_HEIGHT - 34.0);
    document.text("heading", [x, y + 9.0], Anchor::Start, union.heading);
    document.text("heading", [x + rows.bars, y + 9.0], Anchor::Start, "Links");
    rows.draw(document, &union.classes, [x, y + 20.0]);
    let key_top = y + 20.0 + rows.height * union.classes.len() as f64 + 22.0;
    key.draw(document, [x, key_top.max(y)]);
}

/// The least height of the legend.
pub(super) fn least_height(union: &Union) -> f64 {
    34.0 + KEY_HEIGHT + 2.0 * union.classes.len() as f64
}

/// The measures of the rows.
struct RowMeasures {
    height: f64,
    /// One row out of this many shows its numbers.
    labelled: usize,
    /// Left end of the bars.
    bars: f64,
    /// Length of a bar for each link.
    per_link: f64,
}

impl RowMeasures {
    fn new(union: &Union, room: f64) -> Self {
        let height = (room / union.classes.len().max(1) as f64).clamp(2.0, TALLEST_ROW);
        let longest = union.classes.iter().map(|class| class.label.chars().count()).max().unwrap_or(0);
        let most = union.classes.iter().map(|class| class.links).max().unwrap_or(1).max(1);
        let bars = (32.0 + 6.6 * longest as f64).max(text_width(union.heading, 11.5) + 14.0).max(64.0);
        let longest_bar = (WIDTH - NUMBER_WIDTH - bars).clamp(20.0, LONGEST_BAR);
        let labelled = (READABLE_ROW / height).ceil() as usize;
        Self { height, labelled, bars, per_link: longest_bar / most as f64 }
    }

    fn draw(&self, document: &mut SvgDocument, classes: &[Class], [x, y]: Point) {
        let thick = (self.height - 3.0).clamp(1.6, 9.0);
        for (at, class) in classes.iter().enumerate() {
            let middle = y + (at as f64 + 0.5) * self.height;
            let top = middle - 0.5 * thick;
            let colour = &class.colour;
            let bar = self.per_link * class.links as f64;
            document.put(format_args!("<g class=\"key k{at}\">"));
            document.put(format_args!(
                "<rect class=\"hit\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                Coordinate(x - 4.0),
                Coordinate(middle - 0.5 * self.height),
                Coordinate(WIDTH - 8.0),
                Coordinate(self.height)
            ));
            for (left, width) in [(x, 18.0), (x + self.bars, bar.max(0.5))] {
                document.put(format_args!(
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{colour}\"/>",
                    Coordinate(left),
                    Coordinate(top),
                    Coordinate(width),
                    Coordinate(thick)
                ));
            }
            if at % self.labelled == 0 {
                document.text("small", [x + 24.0, middle + 3.6], Anchor::Start, &class.label);
                document.text(
                    "small",
                    [x + self.bars + bar + 4.0, middle + 3.6],
                    Anchor::Start,
                    &class.links.to_string(),
                );
            }
            document.put(format_args!("</g>"));
        }
    }
}

impl LegendKey<'_> {
    fn draw(&self, document: &mut SvgDocument, [x, y]: Point) {
        document.text("heading", [x, y], Anchor::Start, "How to read it");
        let row = |at: usize| y + 20.0 + 21.0 * at as f64;
        let (left, right) = ([x + 3.0, row(0)], [x + 47.0, row(0)]);
        let band = BandShape { wide: 5.0, narrow: 1.2, head: 6.0 };
        let sample = outline((left, 3.0), (right, 3.0), bowed(left, right, 0.0), band);
        document.put(format_args!("<path class=\"sample\" d=\"{sample}\"/>"));
        disc(document, left, 3.0);
        disc(document, right, 3.0);
        document.text("small", [x + 58.0, row(0) + 4.0], Anchor::Start, "from wide to narrow");
        let sizes = self.sizes(document, [x, row(1)]);
        document.text("small", [x + 58.0, row(1) + 4.0], Anchor::Start, &sizes);
        let mut next = 2;
        let numbers = self.numbers();
        if !numbers.is_empty() {
            document.text("small", [x, row(next) + 4.0], Anchor::Start, &numbers);
            next += 1;
        }
        if self.edges {
            document.put(format_args!("<path class=\"edge\" d=\"M{},{}h50\"/>", Coordinate(x), Coordinate(row(next))));
            document.text("small", [x + 58.0, row(next) + 4.0], Anchor::Start, "edge without a link");
        }
    }

    /// Draws the smallest and the largest node at their sizes; returns the text to write beside them.
    fn sizes(&self, document: &mut SvgDocument, [x, y]: Point) -> String {
        let nodes = self.degrees.iter().zip(self.radii);
        let Some((least, most)) = nodes.clone().min_by_key(|node| node.0).zip(nodes.max_by_key(|node| node.0)) else {
            return String::new();
        };
        if least.0 == most.0 {
            disc(document, [x + 25.0, y], most.1.min(9.0));
            return if *most.0 == 1 { "1 receiver each".to_owned() } else { format!("{} receivers each", most.0) };
        }
        let shrink = (9.0 / most.1).min(1.0);
        disc(document, [x + 12.0, y], least.1 * shrink);
        disc(document, [x + 36.0, y], most.1 * shrink);
        format!("{} and {} receivers", least.0, most.0)
    }

    fn numbers(&self) -> String {
        match self.names {
            Names::Inside { prefix, texts } if !prefix.is_empty() => {
                let last = texts.last().map_or("", |inscription| &inscription.text);
                format!("{last} in a node: {}", shortened(&format!("{prefix}{last}"), 20))
            }
            Names::Inside { .. } => "in a node: its name".to_owned(),
            Names::Beside(_) if self.radii.iter().all(|&radius| radius < LEAST_NUMBERED) => String::new(),
            Names::Beside(_) => "in a node: its receivers".to_owned(),
        }
    }
}

fn disc(document: &mut SvgDocument, [x, y]: Point, radius: f64) {
    document.put(format_args!(
        "<circle class=\"node\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
        Coordinate(x),
        Coordinate(y),
        Coordinate(radius)
    ));
}
