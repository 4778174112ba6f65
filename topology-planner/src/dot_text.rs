//! Text of DOT files.

/// A quoted identifier: quotes and backslashes are escaped, line ends become blanks.
pub(crate) fn quoted(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 2);
    safe.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => safe.extend(['\\', character]),
            _ if character.is_control() => safe.push(' '),
            _ => safe.push(character),
        }
    }
    safe.push('"');
    safe
}
