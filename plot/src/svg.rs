//! A page of charts that grows line by line: paths and labels on white.

use std::fmt::Arguments;

pub(super) use crate::document::Anchor;
use crate::document::{self, Coordinate, SvgDocument, escaped};

/// Labels longer than this are cut.
const LONGEST_LABEL: usize = 36;

/// A page that grows one element a line. Coordinates are user units (CSS pixels at natural size).
#[derive(Debug)]
pub(super) struct Svg(SvgDocument);

impl Svg {
    /// An empty white page.
    pub(super) fn page(width: f64, height: f64, title: &str, style: &str) -> Self {
        let title = escaped(title);
        let mut page = SvgDocument::default();
        page.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
             <title>{title}</title>\n<style>{style}</style>\n\
             <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>"
        ));
        Self(page)
    }

    pub(super) fn path(&mut self, class: &str, d: Arguments<'_>) {
        self.0.put(format_args!("<path class=\"{class}\" d=\"{d}\"/>"));
    }

    pub(super) fn coloured_path(&mut self, class: &str, colour: &str, d: Arguments<'_>) {
        self.0.put(format_args!("<path class=\"{class}\" stroke=\"{colour}\" d=\"{d}\"/>"));
    }

    pub(super) fn filled_path(&mut self, class: &str, colour: &str, d: Arguments<'_>) {
        // The fill is a style, because the style of all paths sets no fill.
        self.0.put(format_args!("<path class=\"{class}\" style=\"fill:{colour}\" d=\"{d}\"/>"));
    }

    /// Writes `label`, cut where it is very long.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, label: &str) {
        self.0.text(class, [x, y], anchor, &shortened(label));
    }

    /// Writes `label` upwards, centred at `(x, y)`.
    pub(super) fn upright_text(&mut self, class: &str, (x, y): (f64, f64), label: &str) {
        let label = escaped(&shortened(label));
        self.0.put(format_args!(
            "<text class=\"{class}\" transform=\"translate({},{}) rotate(-90)\" text-anchor=\"middle\">{label}</text>",
            Coordinate(x),
            Coordinate(y)
        ));
    }

    pub(super) fn finish(mut self) -> String {
        self.0.put(format_args!("</svg>"));
        self.0.finish()
    }
}

/// The approximate width of `label` as it is written.
pub(super) fn text_width(label: &str, font_size: f64) -> f64 {
    document::text_width(&shortened(label), font_size)
}

fn shortened(label: &str) -> String {
    document::shortened(label, LONGEST_LABEL)
}
