//! Lines of an edge list, split into cells.

use std::borrow::Cow;

/// Separators of cells beside blanks, in the order in which they are looked for: commas are in numbers too.
const SEPARATORS: [char; 4] = ['\t', ';', '|', ','];
/// Signs behind which a cell begins.
const BEFORE_A_CELL: [char; 5] = [' ', '\t', ';', '|', ','];

/// A line without its comment.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListLine<'t> {
    /// The number of the line, from 1.
    pub(super) number: usize,
    /// The whole line.
    pub(super) text: &'t str,
    /// The text before the braces or the comment.
    pub(super) content: &'t str,
    /// The text in braces.
    pub(super) attributes: &'t str,
}

impl<'t> ListLine<'t> {
    /// A line, or `None` where its braces do not end.
    pub(super) fn of(number: usize, text: &'t str) -> Option<Self> {
        let mut comment = text.len();
        let mut brace = None;
        let mut before = '\n';
        for (at, sign) in outside_quotes(text) {
            match sign {
                '#' => {
                    comment = at;
                    break;
                }
                '{' if BEFORE_A_CELL.contains(&before) => {
                    brace = Some(at);
                    break;
                }
                _ => before = sign,
            }
        }
        let Some(brace) = brace else {
            return Some(Self { number, text, content: &text[..comment], attributes: "" });
        };
        let braced = &text[brace..];
        let end = braced.rfind('}')?;
        let behind = braced[end + 1..].trim_start();
        let content = text[..brace].trim_end_matches(' ');
        let content = content.strip_suffix(SEPARATORS).unwrap_or(content);
        let is_whole = behind.is_empty() || behind.starts_with('#');
        is_whole.then_some(Self { number, text, content, attributes: &braced[1..end] })
    }

    /// The cells between blanks, tabs and commas; `None` where a comma stands beside nothing, or a quote is not closed.
    pub(super) fn words(&self) -> Option<Vec<Cow<'t, str>>> {
        const BLANKS: [char; 3] = [' ', '\t', ','];
        let mut words = Vec::new();
        let mut rest = self.content.trim();
        if rest.starts_with(',') {
            return None;
        }
        while !rest.is_empty() {
            let (word, behind) = next_cell(rest, &BLANKS)?;
            words.push(word);
            rest = behind.trim_start();
            if let Some(next) = rest.strip_prefix(',') {
                rest = next.trim_start();
                if rest.is_empty() || rest.starts_with(',') {
                    return None;
                }
            }
        }
        Some(words)
    }

    /// The cells between separators, without the blanks around them; `None` where a quote is not closed.
    pub(super) fn cells(&self, separator: char) -> Option<Vec<Cow<'t, str>>> {
        let is_blank = |sign: char| sign == ' ' || (sign == '\t' && separator != '\t');
        let mut cells = Vec::new();
        let mut rest = self.content.trim_end_matches(|sign| is_blank(sign) || sign == '\r');
        loop {
            let (cell, behind) = next_cell(rest.trim_start_matches(is_blank), &[separator])?;
            cells.push(cell);
            match behind.strip_prefix(separator) {
                Some(next) => rest = next,
                None => return Some(cells),
            }
        }
    }
}

/// The separator that all lines have, equally often.
pub(super) fn separator(lines: &[ListLine<'_>]) -> Option<char> {
    let count = |line: &ListLine<'_>, separator: char| {
        outside_quotes(line.content.trim_end_matches('\r')).filter(|(_, sign)| *sign == separator).count()
    };
    SEPARATORS.into_iter().find(|&separator| {
        let first = lines.first().map_or(0, |line| count(line, separator));
        first > 0 && lines.iter().all(|line| count(line, separator) == first)
    })
}

/// The first cell of a text, in quotes or up to one of the separators, and the text from the separator on.
fn next_cell<'t>(text: &'t str, separators: &[char]) -> Option<(Cow<'t, str>, &'t str)> {
    if let Some((cell, behind)) = quoted(text) {
        let behind = behind.trim_start_matches(' ');
        if behind.is_empty() || separators.contains(&' ') || behind.starts_with(separators) {
            return Some((cell, behind));
        }
    }
    if text.starts_with('"') {
        return None;
    }
    let (cell, behind) = text.split_at(text.find(separators).unwrap_or(text.len()));
    Some((Cow::Borrowed(cell.trim_end()), behind))
}

/// The text in quotes with which a text begins, and the text behind it. Two double quotes stand for one. Parentheses
/// hold a name together too, as Python writes pairs: `(0, 1)`; they belong to it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mark = text.chars().next()?;
    let end = match mark {
        '"' => closing_quote(text)?,
        '\'' => 1 + text[1..].find('\'')?,
        '(' => text.find(')')?,
        _ => return None,
    };
    let behind = &text[end + 1..];
    if !(behind.is_empty() || behind.starts_with(BEFORE_A_CELL) || behind.starts_with('\r')) {
        return None;
    }
    let inside = if mark == '(' { &text[..=end] } else { &text[1..end] };
    let name = if mark == '"' && inside.contains('"') { inside.replace("\"\"", "\"").into() } else { inside.into() };
    Some((name, behind))
}

/// The place of the double quote that closes the one with which a text begins.
fn closing_quote(text: &str) -> Option<usize> {
    let mut from = 1;
    loop {
        let end = from + text[from..].find('"')?;
        if !text[end + 1..].starts_with('"') {
            return Some(end);
        }
        from = end + 2;
    }
}

/// The characters of a line that are outside of quotes, with their places.
fn outside_quotes(line: &str) -> impl Iterator<Item = (usize, char)> {
    let mut at = 0;
    let mut begins_a_cell = true;
    std::iter::from_fn(move || {
        if begins_a_cell && let Some((_, behind)) = quoted(&line[at..]) {
            at = line.len() - behind.len();
        }
        let sign = line[at..].chars().next()?;
        let place = at;
        at += sign.len_utf8();
        begins_a_cell = BEFORE_A_CELL.contains(&sign);
        Some((place, sign))
    })
}
