//! Which of the words that exist was meant by one that does not.

/// How many letters have to be changed, added or left out to turn one word into the other (Levenshtein 1966).
///
/// Time is the product of both lengths.
pub(super) fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

/// The nearest of `words`, the first of those that are equally near; `None` if there are none.
pub(super) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    words.into_iter().min_by_key(|known| edit_distance(word, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (from, to, distance) in
            [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0), ("rouns", "rounds", 1)]
        {
            assert_eq!(edit_distance(from, to), distance, "{from} {to}");
            assert_eq!(edit_distance(to, from), distance, "{to} {from}");
        }
    }

    #[test]
    fn the_nearest_word_is_the_one_that_was_meant() {
        assert_eq!(nearest("learning-rate", ["rounds", "learning_rate", "listen"]), Some("learning_rate"));
        assert_eq!(nearest("x", []), None);
    }
}
