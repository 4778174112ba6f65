//! Detection of the separator between the cells of a table.

use std::io::{self, BufRead, Cursor, Read};

/// The separators; their places are those of the counts.
const KNOWN: [u8; 4] = [b',', b'\t', b';', b'|'];
/// The most bytes and lines read to find the separator.
const LOOKED_AT: u64 = 1 << 16;
const LINES_LOOKED_AT: usize = 50;

/// A table of cells.
pub struct CellTable<'a> {
    /// The separator between cells.
    pub separator: u8,
    /// Its lines, in UTF-8. A first line `sep=;`, which Excel understands, is empty here.
    pub text: Box<dyn BufRead + Send + 'a>,
}

/// [Opens](crate::open) a table and finds its separator. A first line such as `sep=;` names it. Else it is the one of
/// comma, tab, semicolon and bar that occurs equally often in each of the first lines, outside of quotes. Of several
/// the tab is taken first, then the semicolon, since commas are in numbers too. If there is none, it is the only one of
/// them in the first line, else the comma.
///
/// # Errors
///
/// As [`open`](crate::open).
pub fn open_table<'a>(file: impl Read + Send + 'a) -> io::Result<CellTable<'a>> {
    let mut text = crate::open(file)?;
    let mut start = Vec::new();
    let read = text.by_ref().take(LOOKED_AT).read_to_end(&mut start)?;
    let is_whole = (read as u64) < LOOKED_AT;
    let separator = match named(&mut start) {
        Some(separator) => separator,
        None => found(&start, is_whole),
    };
    Ok(CellTable { separator, text: Box::new(io::BufReader::new(Cursor::new(start).chain(text))) })
}

/// The separator that a first line `sep=;` names; the line is emptied.
fn named(start: &mut Vec<u8>) -> Option<u8> {
    let end = start.iter().position(|&byte| byte == b'\n').unwrap_or(start.len());
    let line = start[..end].strip_suffix(b"\r").unwrap_or(&start[..end]);
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', separator] = *line else { return None };
    KNOWN.contains(&separator).then(|| {
        start.drain(..end);
        separator
    })
}

fn found(start: &[u8], is_whole: bool) -> u8 {
    let counts = counts(start, is_whole);
    let even = |place: &usize| {
        let count = counts.first().map_or(0, |first| first[*place]);
        count > 0 && counts.iter().all(|line| line[*place] == count)
    };
    let places = [1, 2, 0, 3];
    let place = places.into_iter().find(even).or_else(|| {
        // Lines of different length: the separator in the first, if it has one kind only.
        let mut there = (0..KNOWN.len()).filter(|&place| counts.first().is_some_and(|first| first[place] > 0));
        there.next().filter(|_| there.next().is_none())
    });
    KNOWN[place.unwrap_or(0)]
}

/// The number of each separator in each of the first lines, outside of quotes. Empty lines are skipped.
fn counts(start: &[u8], is_whole: bool) -> Vec<[usize; 4]> {
    let mut lines = Vec::new();
    let mut line = [0; 4];
    let mut is_quoted = false;
    let mut is_empty = true;
    for &byte in start {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' if !is_quoted => {
                if !is_empty {
                    lines.push(line);
                }
                line = [0; 4];
                is_empty = true;
                if lines.len() == LINES_LOOKED_AT {
                    return lines;
                }
                continue;
            }
            _ if is_quoted => {}
            _ => KNOWN.iter().zip(&mut line).for_each(|(known, count)| *count += usize::from(byte == *known)),
        }
        is_empty &= byte == b'\r';
    }
    if !is_empty && (is_whole || lines.is_empty()) {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn table(text: &str) -> (char, String) {
        let mut table = open_table(text.as_bytes()).unwrap();
        let mut rest = String::new();
        table.text.read_to_string(&mut rest).unwrap();
        (table.separator.into(), rest)
    }

    #[test]
    fn the_separator_is_the_one_that_all_lines_have() {
        for (text, separator) in [
            ("a,b\n1,2\n", ','),
            ("a;b\n1,5;2,5\n", ';'),
            ("1,5;2,5\n3,5;4,5\n", ';'),
            ("a\tb, c\n1\t2\n", '\t'),
            ("a|b\n1|2", '|'),
            ("\"a;b\",c\n1,2\n", ','),
            ("a;b;c\n1;2\n", ';'),
            ("a\n1\n", ','),
            ("", ','),
            ("name,note;x\na,b\n", ','),
        ] {
            assert_eq!(table(text).0, separator, "{text:?}");
        }
    }

    #[test]
    fn a_line_that_names_the_separator_is_obeyed_and_emptied() {
        assert_eq!(table("sep=;\r\na;b\r\n"), (';', "\na;b\r\n".to_owned()));
        assert_eq!(table("sep=,\na,b\n"), (',', "\na,b\n".to_owned()));
        assert_eq!(table("\"sep=\t\"\na\tb\n").0, '\t');
        assert_eq!(table("sep=x\n"), (',', "sep=x\n".to_owned()));
    }
}
