//! An SVG document in the making: lines, texts, and what makes any text safe to write.

use std::fmt::{Arguments, Write as _};

/// Labels longer than this are cut.
const LONGEST_LABEL: usize = 36;

/// A document that grows one element a line. Coordinates are user units (CSS pixels at natural size).
#[derive(Debug)]
pub(super) struct Svg(String);

/// Which part of a text stands at its coordinates.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty white page.
    pub(super) fn page(width: f64, height: f64, title: &str, style: &str) -> Self {
        let title = escaped(title);
        let mut page = Self(String::new());
        page.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
             <title>{title}</title>\n<style>{style}</style>\n\
             <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>"
        ));
        page
    }

    pub(super) fn path(&mut self, class: &str, d: Arguments<'_>) {
        self.put(format_args!("<path class=\"{class}\" d=\"{d}\"/>"));
    }

    pub(super) fn coloured_path(&mut self, class: &str, colour: &str, d: Arguments<'_>) {
        self.put(format_args!("<path class=\"{class}\" stroke=\"{colour}\" d=\"{d}\"/>"));
    }

    pub(super) fn filled_path(&mut self, class: &str, colour: &str, d: Arguments<'_>) {
        // As a style, because that of all paths says that nothing is filled.
        self.put(format_args!("<path class=\"{class}\" style=\"fill:{colour}\" d=\"{d}\"/>"));
    }

    /// Writes `label`, cut where it is very long.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, label: &str) {
        let (anchor, label) = (anchor.name(), escaped(&shortened(label)));
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{label}</text>"
        ));
    }

    /// Writes `label` upwards, centred at `(x, y)`.
    pub(super) fn upright_text(&mut self, class: &str, (x, y): (f64, f64), label: &str) {
        let label = escaped(&shortened(label));
        self.put(format_args!(
            "<text class=\"{class}\" transform=\"translate({x:.1},{y:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{label}</text>"
        ));
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }

    /// Appends one line. Writing to a `String` cannot fail.
    fn put(&mut self, line: Arguments<'_>) {
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// About the width of `label` as it is written; proportional fonts differ by a few percent.
pub(super) fn text_width(label: &str, font_size: f64) -> f64 {
    0.58 * font_size * label.chars().count().min(LONGEST_LABEL) as f64
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= LONGEST_LABEL {
        return label.to_owned();
    }
    label.chars().take(LONGEST_LABEL - 1).chain(['…']).collect()
}

/// Safe between tags. Characters that XML does not allow at all become spaces.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => safe.push(' '),
            _ if character.is_control() => safe.push(' '),
            _ => safe.push(character),
        }
    }
    safe
}
