//! Escapes text from other peers (names, reasons, addresses, descriptions), so that it is safe to print.
//!
//! A terminal obeys control characters, reverses the direction of a line on request, and shows nothing for characters
//! without width, so that two names can look alike. Everything that this program prints goes through [`printable`], and
//! names that people are to recognise must not have such characters at all.

use std::borrow::Cow;
use std::fmt::Write;

/// Longest quotation of another peer's text, in characters.
const MOST_QUOTED: usize = 200;

/// Returns `true` if a character cannot be seen as itself: controls, marks of direction, separators of lines and
/// paragraphs, and characters without width (the property `Default_Ignorable_Code_Point` of Unicode 17).
pub fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Writes every character that cannot be seen as `\u202e`; lines and tabs stay. JSON and TOML read the result as the
/// same text.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_unseen(character) && !matches!(character, '\n' | '\t'))
}

/// Joins the text into one line, and escapes every character that cannot be seen.
pub fn one_line(text: &str) -> String {
    escaped(&text.split_whitespace().collect::<Vec<_>>().join(" "), is_unseen).into_owned()
}

/// Text of another peer, to be put into a sentence: on one line, of at most 200 characters before an ellipsis.
pub fn quoted(text: &str) -> String {
    let line = one_line(text);
    let end = line.char_indices().nth(MOST_QUOTED).map_or(line.len(), |(end, _)| end);
    let ellipsis = if end < line.len() { "..." } else { "" };
    line[..end].to_owned() + ellipsis
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_or_hide_is_written_out() {
        for (text, shown) in [
            ("plain text, größer: 東京", "plain text, größer: 東京"),
            ("lines\n\tstay", "lines\n\tstay"),
            ("\x1b]52;c;Zm9v\x07", r"\u001b]52;c;Zm9v\u0007"),
            ("\r\x7f\u{9b}2J", r"\u000d\u007f\u009b2J"),
            ("ana\u{202e}nimda", r"ana\u202enimda"),
            ("a\u{200b}na\u{2066}\u{feff}", r"a\u200bna\u2066\ufeff"),
            ("tag\u{e0041}", r"tag\udb40\udc41"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let value = serde_json::json!({ "name": "a\u{202e}b\u{e0041}\u{7f}\n" });
        let text = printable(&value.to_string()).into_owned();
        assert!(!text.chars().any(is_unseen));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn what_a_peer_says_is_one_short_line() {
        assert_eq!(quoted("no\nwarning    all is lost\x1b[2J"), r"no warning all is lost\u001b[2J");
        assert_eq!(quoted(&"é".repeat(300)), format!("{}...", "é".repeat(200)));
    }
}
