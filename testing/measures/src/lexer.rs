//! Tokens of Rust source.
//!
//! A lexer of its own, not `syn`: measures need words, brackets and lines, also inside of macros, and a crate without
//! dependencies builds in a second.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or a keyword.
    Word,
    /// A number, string or character.
    Literal,
    /// A lifetime or a label.
    Lifetime,
    /// An operator, a bracket or other punctuation.
    Mark,
}

/// A token with its place. Comments are no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    pub(crate) text: &'t str,
    /// The line where it begins, from 1.
    pub(crate) line: usize,
}

/// Marks of several characters, the longest first.
///
/// Angle brackets stay single: `Vec<Vec<u8>>` closes twice.
const LONG_MARKS: [&str; 20] = [
    "..=", "...", "::", "->", "=>", "..", "&&", "||", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "%=", "^=", "&=",
    "|=",
];

/// The tokens of a source text, in order.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while at < text.len() {
        let rest = &text[at..];
        let (kind, length) = next(rest);
        let taken = &rest[..length];
        if let Some(kind) = kind {
            found.push(Token { kind, text: taken, line });
        }
        line += taken.matches('\n').count();
        at += length;
    }
    found
}

/// The kind and the bytes of the token that a text begins with; none for white space and comments.
fn next(rest: &str) -> (Option<Kind>, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    if first.is_whitespace() {
        return (None, first.len_utf8());
    }
    if rest.starts_with("//") {
        return (None, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (None, block_comment(rest));
    }
    if let Some(length) = string(rest) {
        return (Some(Kind::Literal), length);
    }
    if first == '\'' {
        return match character(rest) {
            Some(length) => (Some(Kind::Literal), length),
            None => (Some(Kind::Lifetime), 1 + word(&rest[1..])),
        };
    }
    if first.is_ascii_digit() {
        return (Some(Kind::Literal), number(rest));
    }
    if first == '_' || first.is_alphabetic() {
        return (Some(Kind::Word), word(rest));
    }
    let long = LONG_MARKS.iter().find(|mark| rest.starts_with(**mark));
    (Some(Kind::Mark), long.map_or(first.len_utf8(), |mark| mark.len()))
}

fn word(rest: &str) -> usize {
    rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
}

/// The bytes of a number. The dots of a range, a method call or a field do not belong to it.
fn number(rest: &str) -> usize {
    let mut length = word(rest);
    let bytes = rest.as_bytes();
    if bytes.get(length) == Some(&b'.') && bytes.get(length + 1).is_some_and(u8::is_ascii_digit) {
        length += 1 + word(&rest[length + 1..]);
    }
    let has_exponent = rest[..length].ends_with(['e', 'E']) && !rest.starts_with("0x");
    if has_exponent && bytes.get(length).is_some_and(|byte| matches!(byte, b'+' | b'-')) {
        length += 1 + word(&rest[length + 1..]);
    }
    length
}

/// The bytes of a comment between `/*` and `*/`, which may hold others.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The bytes of a string with its prefix and quotes, if the text begins with one.
fn string(rest: &str) -> Option<usize> {
    let prefix = rest.find(|c: char| !matches!(c, 'b' | 'c' | 'r'))?;
    let quoted = &rest[prefix..];
    if prefix > 2 || !quoted.starts_with(['"', '#']) {
        return None;
    }
    if rest[..prefix].ends_with('r') {
        let hashes = quoted.find(|c: char| c != '#')?;
        if !quoted[hashes..].starts_with('"') {
            return None; // a raw identifier
        }
        let close = format!("\"{}", "#".repeat(hashes));
        let begin = prefix + hashes + 1;
        return Some(rest[begin..].find(&close).map_or(rest.len(), |end| begin + end + close.len()));
    }
    quoted.starts_with('"').then(|| prefix + escaped(quoted, '"').unwrap_or(quoted.len()))
}

/// The bytes of a character with its quotes, if the text begins with one and not with a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut inside = rest[1..].chars();
    let first = inside.next()?;
    if first == '\\' {
        return escaped(rest, '\'');
    }
    (inside.next() == Some('\'')).then(|| 2 + first.len_utf8())
}

/// The bytes from a quote to the closing one, past escapes.
fn escaped(rest: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return Some(at + quote.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_marks_and_numbers_are_told_apart() {
        assert_eq!(texts("a::b(1.5e-3, 0..n)"), ["a", "::", "b", "(", "1.5e-3", ",", "0", "..", "n", ")"]);
        assert_eq!(texts("x.0.y(2.max(3))"), ["x", ".", "0", ".", "y", "(", "2", ".", "max", "(", "3", ")", ")"]);
        assert_eq!(texts("Vec<Vec<u8>>"), ["Vec", "<", "Vec", "<", "u8", ">", ">"]);
    }

    #[test]
    fn brackets_in_strings_characters_and_comments_are_no_tokens() {
        assert_eq!(
            texts(r##"f("{\"", '{', '\'', b"(", r#"")"#) // }"##),
            ["f", "(", r#""{\"""#, ",", "'{'", ",", r"'\''", ",", "b\"(\"", ",", r##"r#"")"#"##, ")"]
        );
        assert_eq!(texts("a /* { /* ( */ } */ b"), ["a", "b"]);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        let found = tokens("fn f<'a>(x: &'a str) -> char { 'a' }");
        let kinds: Vec<Kind> =
            found.iter().filter(|token| token.text.starts_with('\'')).map(|token| token.kind).collect();
        assert_eq!(kinds, [Kind::Lifetime, Kind::Lifetime, Kind::Literal]);
    }

    #[test]
    fn lines_count_through_strings_and_comments() {
        let found = tokens("a\n/* \n */ b \"\n\" c");
        assert_eq!(found.iter().map(|token| token.line).collect::<Vec<_>>(), [1, 3, 3, 4]);
    }
}
