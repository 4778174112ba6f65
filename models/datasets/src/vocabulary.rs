//! The tokens of a text: the number of each character or byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tokens {
    /// A Unicode character that occurs in the founder's text.
    Characters,
    /// A byte: 256 tokens, the same for every text.
    Bytes,
}

impl Tokens {
    /// The noun for one token.
    pub const fn singular(self) -> &'static str {
        match self {
            Self::Characters => "character",
            Self::Bytes => "byte",
        }
    }

    /// The name of the metric of bits per token.
    pub const fn metric(self) -> &'static str {
        match self {
            Self::Characters => "bits_per_character",
            Self::Bytes => "bits_per_byte",
        }
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Characters => "characters",
            Self::Bytes => "bytes",
        })
    }
}

/// The tokens of a text, each with its number.
///
/// ```
/// use mingle_datasets::Vocabulary;
///
/// let vocabulary = Vocabulary::of_text("banana\n").unwrap();
/// assert_eq!(vocabulary.len(), 4);
/// assert_eq!(vocabulary.encode("ban").unwrap(), [2, 1, 3]);
/// assert_eq!(vocabulary.bytes(2), b"b");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    tokens: Tokens,
    /// The characters by number; empty for bytes.
    characters: Vec<char>,
    numbers: BTreeMap<char, u16>,
}

/// A character that is not in a vocabulary, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: the character {} is not in the vocabulary", name_of(*character))]
pub struct UnknownCharacter {
    /// The line, counted from 1.
    pub line: usize,
    /// The place in the line, counted from 1.
    pub column: usize,
    /// The character.
    pub character: char,
}

impl Vocabulary {
    /// The most characters: more are not a text in one script, and the model's last layer grows with them.
    pub const CHARACTERS_MAX: usize = 1 << 14;
    const BYTES: usize = 256;

    /// The characters of a text in the order of their code points; `None` if there are too many.
    pub fn of_text(text: &str) -> Option<Self> {
        let characters: BTreeSet<char> = text.chars().collect();
        Self::of_characters(characters.into_iter().collect())
    }

    /// All bytes.
    pub fn of_bytes() -> Self {
        Self { tokens: Tokens::Bytes, characters: Vec::new(), numbers: BTreeMap::new() }
    }

    /// The tokens with these names.
    pub(crate) fn of_names(tokens: Tokens, names: &[String]) -> Option<Self> {
        match tokens {
            Tokens::Bytes => Some(Self::of_bytes()).filter(|vocabulary| vocabulary.names() == names),
            Tokens::Characters => Self::of_characters(names.iter().map(|name| named(name)).collect::<Option<_>>()?),
        }
    }

    fn of_characters(characters: Vec<char>) -> Option<Self> {
        if characters.len() > Self::CHARACTERS_MAX {
            return None;
        }
        let numbers: BTreeMap<char, u16> = characters.iter().copied().zip(0..).collect();
        (numbers.len() == characters.len()).then_some(Self { tokens: Tokens::Characters, characters, numbers })
    }

    /// The kind of token.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        match self.tokens {
            Tokens::Characters => self.characters.len(),
            Tokens::Bytes => Self::BYTES,
        }
    }

    /// Returns `true` if there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of the tokens on a card: characters as they are, but control characters as `U+000A`; bytes as `0x0a`.
    pub fn names(&self) -> Vec<String> {
        match self.tokens {
            Tokens::Characters => self.characters.iter().copied().map(name_of).collect(),
            Tokens::Bytes => (0..Self::BYTES).map(|byte| format!("{byte:#04x}")).collect(),
        }
    }

    /// The numbers of the tokens of a text.
    ///
    /// # Errors
    ///
    /// The first character that is not in the vocabulary.
    pub fn encode(&self, text: &str) -> Result<Vec<u16>, UnknownCharacter> {
        if self.tokens == Tokens::Bytes {
            return Ok(text.bytes().map(u16::from).collect());
        }
        let mut encoded = Vec::with_capacity(text.len());
        let mut line = 1;
        let mut column = 0;
        for character in text.chars() {
            column += 1;
            let Some(&number) = self.numbers.get(&character) else {
                return Err(UnknownCharacter { line, column, character });
            };
            encoded.push(number);
            if character == '\n' {
                line += 1;
                column = 0;
            }
        }
        Ok(encoded)
    }

    /// The bytes of a token; empty for a number that is none.
    pub fn bytes(&self, token: usize) -> Vec<u8> {
        match self.tokens {
            Tokens::Characters => self.characters.get(token).map(|it| it.to_string().into_bytes()).unwrap_or_default(),
            Tokens::Bytes => u8::try_from(token).into_iter().collect(),
        }
    }
}

/// The name of a character on a card.
pub(crate) fn name_of(character: char) -> String {
    if character.is_control() { format!("U+{:04X}", u32::from(character)) } else { character.to_string() }
}

/// The character with this name.
fn named(name: &str) -> Option<char> {
    let mut characters = name.chars();
    if let (Some(character), None) = (characters.next(), characters.next()) {
        return Some(character).filter(|character| !character.is_control());
    }
    char::from_u32(u32::from_str_radix(name.strip_prefix("U+")?, 16).ok()?).filter(|&it| name_of(it) == name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn text_survives_its_tokens_and_tokens_their_names() {
        let text = "To be,\nor não\tto 東京 U+000A";
        let vocabulary = Vocabulary::of_text(text).unwrap();
        let encoded = vocabulary.encode(text).unwrap();
        let decoded: Vec<u8> = encoded.iter().flat_map(|&token| vocabulary.bytes(token.into())).collect();
        assert_eq!(String::from_utf8(decoded).unwrap(), text);
        assert_eq!(Vocabulary::of_names(Tokens::Characters, &vocabulary.names()), Some(vocabulary));

        let bytes = Vocabulary::of_bytes();
        let decoded: Vec<u8> =
            bytes.encode(text).unwrap().iter().flat_map(|&token| bytes.bytes(token.into())).collect();
        assert_eq!((decoded, bytes.len()), (text.as_bytes().to_vec(), 256));
        assert_eq!(Vocabulary::of_names(Tokens::Bytes, &bytes.names()), Some(bytes));
    }

    #[test]
    fn an_unknown_character_is_found_with_its_line_and_column() {
        let vocabulary = Vocabulary::of_text("abc\n").unwrap();
        let error = vocabulary.encode("abc\ncab\nab\u{7}a").unwrap_err();
        assert_eq!(error, UnknownCharacter { line: 3, column: 3, character: '\u{7}' });
        assert_eq!(error.to_string(), "line 3, column 3: the character U+0007 is not in the vocabulary");
    }

    #[test]
    fn names_that_are_no_vocabulary_are_refused() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Vocabulary::of_names(Tokens::Characters, &names).is_some()
        };
        assert!(of(&["U+000A", "a", "é"]));
        for names in [&["a", "a"][..], &["ab"], &[""], &["U+0061"], &["U+D800"], &["U+a"], &["\n"]] {
            assert!(!of(names), "{names:?}");
        }
        assert!(Vocabulary::of_names(Tokens::Bytes, &["a".to_owned()]).is_none());
        let many: String = ('\u{4e00}'..).take(Vocabulary::CHARACTERS_MAX + 1).collect();
        assert!(Vocabulary::of_text(&many).is_none());
    }
}
