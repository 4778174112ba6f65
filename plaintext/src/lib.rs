//! Text from files as programs write them.
//!
//! [`InputFile`] opens a file or a pipe that a user names. [`open`] decompresses gzip, leaves byte order marks out and
//! converts UTF-16 to UTF-8. It refuses other formats, such as a workbook of Excel, and names them in the error.
//! [`open_table`] also detects the separator of cells, and [`class_name`] normalises different spellings of one class.
//! No file is trusted: memory grows as bytes arrive, and lines, records and whole texts have limits.

mod cell;
mod input_file;
mod separator;
mod signature;
mod utf16;

use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;

pub use cell::{class_name, is_missing, number, truth, way_out};
pub use input_file::{InputFile, report_long_waits_with};
pub use separator::{CellTable, open_table};
use utf16::{ByteOrder, Utf16};

/// The most bytes of a text, decompressed.
pub const TEXT_MAX: u64 = 16 << 30;
/// The most bytes of a line.
pub const LINE_MAX: u64 = 64 << 20;
/// The most bytes of a record of several lines, held together by quotes.
pub const RECORD_MAX: u64 = 1 << 30;

/// The text of a file as UTF-8 without a byte order mark. Bytes that are not UTF-8 are left to the reader, which knows
/// the line.
///
/// # Errors
///
/// The file cannot be read, or has the signature of another format: a workbook, an archive, a column file.
///
/// ```
/// use std::io::Read;
///
/// let mut text = String::new();
/// mingle_plaintext::open(&b"\xff\xfea\x00,\x00b\x00"[..])?.read_to_string(&mut text)?;
/// assert_eq!(text, "a,b");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn open<'a>(file: impl Read + Send + 'a) -> io::Result<Box<dyn BufRead + Send + 'a>> {
    let (start, file) = peek(file)?;
    if !start.starts_with(&[0x1f, 0x8b]) {
        return decoded(&start, file);
    }
    let (start, text) = peek(MultiGzDecoder::new(BufReader::new(file)))?;
    decoded(&start, text)
}

/// The number of bytes read to detect the format.
const LOOKED_AT: u64 = 8;

/// Returns the first bytes, and a reader that begins with them.
fn peek<'a>(mut file: impl Read + Send + 'a) -> io::Result<(Vec<u8>, impl Read + Send + 'a)> {
    let mut start = Vec::new();
    file.by_ref().take(LOOKED_AT).read_to_end(&mut start)?;
    Ok((start.clone(), io::Cursor::new(start).chain(file)))
}

fn decoded<'a>(start: &[u8], mut text: impl Read + Send + 'a) -> io::Result<Box<dyn BufRead + Send + 'a>> {
    if let Some(looks_like) = signature::of(start) {
        return Err(Error::new(ErrorKind::InvalidData, looks_like));
    }
    let mark = |bytes: u64, text: &mut dyn Read| io::copy(&mut text.take(bytes), &mut io::sink()).map(drop);
    match start {
        [0xef, 0xbb, 0xbf, ..] => mark(3, &mut text)?,
        [0xff, 0xfe, ..] => {
            mark(2, &mut text)?;
            return Ok(bounded(Utf16::new(text, ByteOrder::Little)));
        }
        [0xfe, 0xff, ..] => {
            mark(2, &mut text)?;
            return Ok(bounded(Utf16::new(text, ByteOrder::Big)));
        }
        // UTF-16 without a mark begins with ASCII characters in two bytes each.
        [a, 0, b, 0, ..] if *a != 0 && *b != 0 => return Ok(bounded(Utf16::new(text, ByteOrder::Little))),
        [0, a, 0, b, ..] if *a != 0 && *b != 0 => return Ok(bounded(Utf16::new(text, ByteOrder::Big))),
        _ => {}
    }
    Ok(bounded(text))
}

fn bounded<'a>(text: impl Read + Send + 'a) -> Box<dyn BufRead + Send + 'a> {
    Box::new(BufReader::new(Bounded { text, read: 0, line: 0, record: 0, is_quoted: false }))
}

/// A text that ends with an error where it exceeds a limit.
struct Bounded<R> {
    text: R,
    read: u64,
    /// Bytes since the last end of a line.
    line: u64,
    /// Bytes since the last end of a line outside of quotes.
    record: u64,
    is_quoted: bool,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.text.read(buffer)?;
        for byte in &buffer[..length] {
            self.line += 1;
            self.record += 1;
            match byte {
                b'"' => self.is_quoted = !self.is_quoted,
                b'\n' => {
                    self.line = 0;
                    self.record = if self.is_quoted { self.record } else { 0 };
                }
                _ => {}
            }
        }
        self.read += length as u64;
        let too_long = [
            (self.line, LINE_MAX, "a line"),
            (self.record, RECORD_MAX, "a record in quotes"),
            (self.read, TEXT_MAX, "the text"),
        ];
        match too_long.into_iter().find(|(found, most, _)| found > most) {
            Some((_, most, what)) => Err(Error::new(
                ErrorKind::InvalidData,
                format!("{what} is longer than the {} MiB accepted", most >> 20),
            )),
            None => Ok(length),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn text(bytes: &[u8]) -> io::Result<String> {
        let mut text = Vec::new();
        open(bytes)?.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn one_text_is_read_from_all_that_programs_make_of_it() {
        let plain = "größe,art\n1,東京 😀\n";
        let marked = format!("\u{feff}{plain}");
        let mut forms = vec![plain.as_bytes().to_vec(), marked.as_bytes().to_vec()];
        forms.extend([utf16(&marked, u16::to_le_bytes), utf16(&marked, u16::to_be_bytes)]);
        forms.extend(forms.clone().iter().map(|form| gzipped(form)));
        for form in forms {
            assert_eq!(text(&form).unwrap(), plain, "{:02x?}", &form[..4]);
        }
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            assert_eq!(text(&utf16("a,b\n1,2\n", bytes)).unwrap(), "a,b\n1,2\n");
        }
        assert_eq!((text(b"").unwrap(), text(b"a").unwrap()), (String::new(), "a".to_owned()));
    }

    #[test]
    fn what_is_no_text_is_refused_by_the_name_of_what_it_is() {
        let refused = |bytes: &[u8]| text(bytes).unwrap_err().to_string();
        assert!(refused(b"PK\x03\x04\x14\0\0\0").contains("Excel"), "{}", refused(b"PK\x03\x04"));
        assert!(refused(b"PAR1\x15\x04").contains("Parquet"));
        assert!(refused(&gzipped(b"PAR1\x15\x04")).contains("Parquet"));
        assert!(refused(b"\xff\xfe\0\0a\0\0\0").contains("UTF-32"));
    }

    #[test]
    fn a_line_without_end_is_cut_off_with_an_error() {
        let endless = gzipped(&vec![b'7'; LINE_MAX as usize + 9]);
        assert!(text(&endless).unwrap_err().to_string().contains("a line is longer than the 64 MiB accepted"));
    }

    #[test]
    fn mutated_files_are_refused_or_read() {
        let plain = b"a;b\n1;\"x;y\"\n".to_vec();
        let seeds =
            [plain.clone(), gzipped(&plain), utf16("\u{feff}a,b\n1,2\n", u16::to_le_bytes), b"sep=;\na;b\n".to_vec()];
        mingle_mutations::for_each_input("plaintext", &seeds, |input| {
            let mut bytes = Vec::new();
            let _ = open(input).and_then(|mut text| text.read_to_end(&mut bytes));
            let _ = open_table(input).and_then(|mut table| table.text.read_to_end(&mut bytes));
        });
    }
}
