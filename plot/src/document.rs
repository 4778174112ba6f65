//! An SVG document that grows line by line, and escaping of texts for it.

use std::fmt::{self, Arguments, Write as _};

/// A point or a direction in user units, `y` downwards.
pub type Point = [f64; 2];

/// A document that grows one element a line.
#[derive(Debug, Default)]
pub struct SvgDocument(String);

/// The part of a text that is placed at its coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The beginning of the text.
    Start,
    /// The middle of the text.
    Middle,
    /// The end of the text.
    End,
}

/// A coordinate with one decimal and without a sign on zero. Coordinates are finite: others are written as 0.
#[derive(Debug, Clone, Copy)]
pub struct Coordinate(pub f64);

impl Coordinate {
    /// The length in tenths of a unit, as it is written. Decisions about order may use it.
    pub fn tenths(self) -> i64 {
        let tenths = (self.0 * 10.0).round();
        if tenths.is_finite() { tenths as i64 } else { 0 }
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.tenths();
        let sign = if tenths < 0 { "-" } else { "" };
        let whole = tenths.unsigned_abs() / 10;
        let rest = tenths.unsigned_abs() % 10;
        if rest == 0 { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{rest}") }
    }
}

/// A point of a path, written as `x,y`.
#[derive(Debug, Clone, Copy)]
pub struct At(pub Point);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", Coordinate(self.0[0]), Coordinate(self.0[1]))
    }
}

impl SvgDocument {
    /// Appends one line. Writing to a `String` cannot fail.
    pub fn put(&mut self, line: Arguments<'_>) {
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }

    /// Writes a text. The caller keeps it short enough for its place.
    pub fn text(&mut self, class: &str, [x, y]: Point, anchor: Anchor, label: &str) {
        let anchor = anchor.attribute();
        let label = escaped(label);
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\"{anchor}>{label}</text>",
            Coordinate(x),
            Coordinate(y)
        ));
    }

    /// The document as text.
    pub fn finish(self) -> String {
        self.0
    }
}

impl Anchor {
    /// The `text-anchor` attribute with a blank before it; the default is left out.
    pub const fn attribute(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Middle => " text-anchor=\"middle\"",
            Self::End => " text-anchor=\"end\"",
        }
    }
}

/// The approximate width of a text in a proportional sans-serif font; fonts differ by some percent.
pub fn text_width(text: &str, font_size: f64) -> f64 {
    0.58 * font_size * text.chars().count() as f64
}

/// The text, cut to at most `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// The text made safe between tags and in quoted attributes. Characters that XML does not allow at all become spaces.
pub fn escaped(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_no_sign_on_zero_and_one_decimal_at_most() {
        let written = [-0.04, 0.0, -1.25, 3.0, 2.96, f64::NAN, f64::INFINITY].map(|x| Coordinate(x).to_string());
        assert_eq!(written, ["0", "0", "-1.3", "3", "3", "0", "0"]);
    }

    #[test]
    fn text_that_is_xml_becomes_text() {
        assert_eq!(escaped("</svg>&\"'\u{ffff}\u{1}"), "&lt;/svg&gt;&amp;&quot;&#39;  ");
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(shortened("überlingen", 4), "übe…");
        assert_eq!(shortened("ulm", 4), "ulm");
    }
}
