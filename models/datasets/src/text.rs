//! Texts: a file, or the embedded one.
//!
//! The last tenth is held out for evaluation, as in nanoGPT. The embedded text is part of Shakespeare's *Coriolanus*;
//! see `data/README.md`.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use mingle_plaintext::InputFile;

use crate::vocabulary::UnknownCharacter;
use crate::{CardDifference, DataCard, DataError, DataSet, SampleShape, Samples, Tokens, Vocabulary};

const EMBEDDED: &[u8] = include_bytes!("../../data/coriolanus.txt.gz");
/// The name of the embedded text in messages.
const EMBEDDED_NAME: &str = "the embedded text";

/// The most bytes of a text, after decompression.
const BYTES_MAX: usize = 1 << 26;
/// The inverse of the share held out.
const HELD_OUT: usize = 10;
/// The least tokens of a text: two of them are then held out.
const TOKENS_MIN: usize = 2 * HELD_OUT;

/// A choice of text, and of its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSource {
    /// The file; `None` for the embedded text.
    pub path: Option<PathBuf>,
    /// The kind of token, if the user chose one; else that of the swarm, and characters where there is none.
    pub tokens: Option<Tokens>,
}

impl TextSource {
    /// Returns `true` if all peers that name this source have the same vocabulary.
    pub(crate) fn means_the_same_everywhere(&self) -> bool {
        self.path.is_none() || self.tokens == Some(Tokens::Bytes)
    }
}

/// A text in memory.
#[derive(Debug)]
pub(crate) struct Text {
    path: PathBuf,
    tokens: Option<Tokens>,
    bytes: Vec<u8>,
}

impl Text {
    /// Reads a text; a file whose name ends in `.gz` is decompressed.
    pub(crate) fn read(source: &TextSource) -> Result<Self, DataError> {
        let path = source.path.clone().unwrap_or_else(|| EMBEDDED_NAME.into());
        let bytes = match &source.path {
            None => read_bounded(GzDecoder::new(EMBEDDED), &path)?,
            Some(file) => {
                let opened = InputFile::open(file).map_err(|error| DataError::Read { path: path.clone(), error })?;
                if file.extension().is_some_and(|extension| extension == "gz") {
                    read_bounded(GzDecoder::new(BufReader::new(opened)), &path)?
                } else {
                    read_bounded(opened, &path)?
                }
            }
        };
        Ok(Self { path, tokens: source.tokens, bytes })
    }

    /// The shape of the samples, by this source's own choice of tokens.
    pub(crate) fn shape(&self) -> SampleShape {
        SampleShape::Text { tokens: self.tokens.unwrap_or(Tokens::Characters) }
    }

    /// The number of training tokens, by this source's own choice of tokens.
    pub(crate) fn training_tokens(&self) -> usize {
        let tokens = match self.tokens {
            Some(Tokens::Bytes) => self.bytes.len(),
            // For bytes that are not UTF-8, one token each.
            _ => self.characters().map_or(self.bytes.len(), |text| text.chars().count()),
        };
        tokens - tokens.div_ceil(HELD_OUT)
    }

    /// The text's own card.
    pub(crate) fn card(&self) -> Result<DataCard, DataError> {
        let vocabulary = match self.tokens {
            Some(Tokens::Bytes) => Vocabulary::of_bytes(),
            _ => {
                let text = self.characters()?;
                self.check_length(text.chars().count())?;
                Vocabulary::of_text(&text).ok_or_else(|| DataError::Vocabulary { path: self.path.clone() })?
            }
        };
        DataCard::of_text(&vocabulary).map_err(|reason| DataError::Card { path: self.path.clone(), reason })
    }

    /// The tokens, numbered by `card`, with the last tenth held out.
    pub(crate) fn data_set(self, card: &DataCard) -> Result<DataSet, DataError> {
        let foreign = |difference| DataError::Foreign { data: self.path.display().to_string(), difference };
        let wanted = SampleShape::Text { tokens: self.tokens.unwrap_or(Tokens::Characters) };
        let Some(vocabulary) = Vocabulary::of_card(card) else {
            return Err(foreign(CardDifference::Shape { here: wanted, there: card.shape() }));
        };
        if self.tokens.is_some() && wanted != card.shape() {
            return Err(foreign(CardDifference::Shape { here: wanted, there: card.shape() }));
        }
        let tokens = match vocabulary.tokens() {
            Tokens::Bytes => self.bytes.iter().copied().map(u16::from).collect(),
            Tokens::Characters => {
                let unknown = |error: UnknownCharacter| DataError::UnknownCharacter {
                    path: self.path.clone(),
                    known: vocabulary.len(),
                    error,
                };
                vocabulary.encode(&self.characters()?).map_err(unknown)?
            }
        };
        self.check_length(tokens.len())?;
        let mut train = tokens;
        // As in nanoGPT, which trains on the first int(0.9 n).
        let test = train.split_off(train.len() - train.len().div_ceil(HELD_OUT));
        let samples = |tokens| Samples::of_text(vocabulary.tokens(), vocabulary.len(), tokens);
        Ok(DataSet { train: samples(train)?, test: samples(test)?, card: card.clone() })
    }

    /// The text as characters: decompressed whatever its name, from UTF-8 or UTF-16, without a byte order mark.
    fn characters(&self) -> Result<String, DataError> {
        let text = mingle_plaintext::open(&self.bytes[..])
            .map_err(|error| DataError::Read { path: self.path.clone(), error })?;
        String::from_utf8(read_bounded(text, &self.path)?).map_err(|error| {
            let byte = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..byte].iter().filter(|&&byte| byte == b'\n').count();
            DataError::NotUtf8 { path: self.path.clone(), line, byte }
        })
    }

    fn check_length(&self, tokens: usize) -> Result<(), DataError> {
        if tokens >= TOKENS_MIN {
            return Ok(());
        }
        Err(DataError::ShortText { path: self.path.clone(), tokens, least: TOKENS_MIN })
    }
}

/// Reads to the end, or to the most that is accepted. Memory grows as bytes arrive.
fn read_bounded(reader: impl Read, path: &Path) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::new();
    let read = reader.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| DataError::Read { path: path.to_owned(), error })?;
    if bytes.len() > BYTES_MAX {
        return Err(DataError::LongText { path: path.to_owned(), max: BYTES_MAX });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use mingle_mutations::for_each_input;

    use super::*;

    /// Loads a text from a file; its tokens follow `card`, where there is one.
    fn load(file: &[u8], tokens: Option<Tokens>, card: Option<&DataCard>) -> Result<DataSet, DataError> {
        let path = PathBuf::from("text");
        let bytes = match file.starts_with(&[0x1f, 0x8b]) {
            true => read_bounded(GzDecoder::new(file), &path)?,
            false => read_bounded(file, &path)?,
        };
        let text = Text { path, tokens, bytes };
        let left = text.training_tokens();
        let card = card.cloned().map_or_else(|| text.card(), Ok)?;
        let data = text.data_set(&card)?;
        assert!(tokens.is_none() || data.train.len() == left);
        Ok(data)
    }

    #[test]
    fn characters_are_those_of_the_text_whatever_program_wrote_it() {
        let plain = "To be,\r\nor não\r\nto 東京, that is.";
        let load = |bytes: &[u8]| load(bytes, Some(Tokens::Characters), None);
        let expected = load(plain.as_bytes()).unwrap();
        let marked = format!("\u{feff}{plain}");
        let utf16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [marked.into_bytes(), utf16] {
            let read = load(&bytes).unwrap();
            assert_eq!(
                (read.card, read.train.len()),
                (expected.card.clone(), expected.train.len()),
                "{:02x?}",
                &bytes[..4]
            );
        }
        let latin = load(b"to be or\nn\xe3o to be or not").unwrap_err().to_string();
        assert!(latin.contains("line 2: the byte at 10 is not UTF-8"), "{latin}");
        let archive = load(b"PK\x03\x04 a book in an archive").unwrap_err();
        assert!(matches!(archive, DataError::Read { .. }), "{archive}");
        // Bytes are taken as they are.
        let bytes = self::load(b"\xef\xbb\xbfto be or not to be, it is", Some(Tokens::Bytes), None).unwrap();
        assert_eq!(bytes.train.len() + bytes.test.len(), 28);
    }

    #[test]
    fn mutated_texts_are_refused_or_read() {
        let plain = "To be,\nor não\tto 東京, that is.".as_bytes().to_vec();
        let mut gzipped = GzEncoder::new(Vec::new(), Compression::fast());
        gzipped.write_all(&plain).unwrap();
        let seeds = [plain, gzipped.finish().unwrap()];
        let cards = [Tokens::Characters, Tokens::Bytes].map(|tokens| load(&seeds[0], Some(tokens), None).unwrap().card);
        assert_eq!(load(&seeds[1], None, Some(&cards[0])).unwrap().train.len(), 26);
        let mut turn = 0;
        for_each_input("text", &seeds, |input| {
            turn += 1;
            let sets = match turn % 32 {
                // The names of all bytes take most of the time.
                0 => [load(input, None, Some(&cards[1])), load(input, Some(Tokens::Bytes), None)],
                _ => [load(input, Some(Tokens::Characters), None), load(input, None, Some(&cards[0]))],
            };
            for data in sets.into_iter().flatten() {
                assert!(data.train.len() + data.test.len() >= TOKENS_MIN && !data.test.is_empty());
            }
        });
    }
}
