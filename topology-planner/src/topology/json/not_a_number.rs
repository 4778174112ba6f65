//! Numbers that Python writes and JSON does not have.

/// Words that Python writes for numbers that JSON lacks, the longest first.
const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The text with `null` for numbers that are none, outside of strings; `None` if there are none.
pub(super) fn replaced(text: &str) -> Option<String> {
    let mut replaced = String::new();
    let mut rest = text;
    let mut is_string = false;
    let mut is_changed = false;
    while let Some(at) = rest.find(['"', '\\', 'N', 'I', '-']) {
        let (before, found) = rest.split_at(at);
        replaced.push_str(before);
        let word = WORDS.into_iter().find(|word| !is_string && found.starts_with(word));
        let length = match (word, found.as_bytes()[0]) {
            (Some(word), _) => word.len(),
            (None, b'\\') => 1 + found[1..].chars().next().map_or(0, char::len_utf8),
            _ => 1,
        };
        is_string ^= found.starts_with('"');
        is_changed |= word.is_some();
        replaced.push_str(if word.is_some() { "null" } else { &found[..length] });
        rest = &found[length..];
    }
    replaced.push_str(rest);
    is_changed.then_some(replaced)
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn numbers_that_are_none_become_null_outside_of_strings() {
        let text = r#"{"NaN": [NaN, -Infinity, -1, Infinity], "a\"NaN": "\\", "b": NaN}"#;
        let expected = r#"{"NaN": [null, null, -1, null], "a\"NaN": "\\", "b": null}"#;
        assert_eq!(replaced(text).as_deref(), Some(expected));
        assert_eq!(replaced(r#"{"NaN": "Infinity\\é", "x": -1}"#), None);
    }
}
