//! Interactions from files, in the forms that data sets come in; gzipped or not.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Interactions;
use crate::error::RecommendError;

/// The most bytes of a file, unpacked.
const MOST_BYTES: u64 = 8 << 30;
/// The most interactions, and the longest line.
const MOST_INTERACTIONS: u64 = 200_000_000;
const LONGEST_LINE: u64 = 64 << 20;
/// Lines that are looked at to find out which form a file has.
const SAMPLE: usize = 100;

/// How a file says who has had to do with what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// As the first lines look.
    #[default]
    Auto,
    /// Commas, and a head with `user,item` and perhaps `rating` and `time`, in any order.
    Csv,
    /// MovieLens: `user::item`, then perhaps `::rating::time`.
    Movielens,
    /// LightGCN: a user and all its items in a line, with spaces between.
    Lists,
    /// A user and an item in a line, with spaces or tabs between; what follows is not looked at.
    Pairs,
}

/// The text names no form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown form {0:?}: write auto, csv, movielens, lists or pairs")]
pub struct UnknownForm(String);

impl FromStr for Form {
    type Err = UnknownForm;

    fn from_str(text: &str) -> Result<Self, UnknownForm> {
        let all = [Self::Auto, Self::Csv, Self::Movielens, Self::Lists, Self::Pairs];
        all.into_iter().find(|form| form.to_string() == text).ok_or_else(|| UnknownForm(text.to_owned()))
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Csv => "csv",
            Self::Movielens => "movielens",
            Self::Lists => "lists",
            Self::Pairs => "pairs",
        })
    }
}

/// Reads interactions from a file; one that begins as gzip does is unpacked.
///
/// Ratings and times have to be numbers where there are any, and have no other meaning: an interaction is one whatever its rating,
/// and the order of lines does not matter. Ids are any text without the separator.
///
/// # Errors
/// The file cannot be read, is empty or too long, or a line cannot be understood; with the line.
pub fn read_interactions(path: &Path, form: Form) -> Result<Interactions, RecommendError> {
    let file = File::open(path).map_err(|source| RecommendError::Io { path: path.to_owned(), source })?;
    read_from(BufReader::new(file), path, form)
}

/// The same of what is in the file at `path`.
fn read_from(mut file: impl BufRead, path: &Path, form: Form) -> Result<Interactions, RecommendError> {
    let failed = |source| RecommendError::Io { path: path.to_owned(), source };
    let is_packed = file.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]);
    let plain: Box<dyn Read + '_> = if is_packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let lines = lines(plain).map_err(|(line, reason)| RecommendError::Line { path: path.to_owned(), line, reason })?;
    let at_line = |(line, reason): (u64, String)| RecommendError::Line { path: path.to_owned(), line, reason };
    let form = if form == Form::Auto { guess(&lines) } else { form };
    let pairs = match form {
        Form::Csv => csv(&lines),
        Form::Movielens => each(&lines, |line| pair_of(line.split("::").map(str::trim))),
        Form::Pairs => each(&lines, |line| pair_of(line.split_ascii_whitespace())),
        Form::Lists | Form::Auto => lists(&lines),
    };
    let pairs = pairs.map_err(at_line)?;
    if pairs.is_empty() {
        return Err(RecommendError::Empty { path: path.to_owned() });
    }
    if pairs.len() as u64 > MOST_INTERACTIONS {
        let count = pairs.len() as u64;
        return Err(RecommendError::TooMany { what: "interactions", count, most: MOST_INTERACTIONS });
    }
    Ok(Interactions::from_pairs(pairs))
}

type Lines = Vec<(u64, String)>;
type Pairs<'a> = Result<Vec<(&'a str, &'a str)>, (u64, String)>;

/// The lines that are not empty, with their numbers.
fn lines(plain: impl Read) -> Result<Lines, (u64, String)> {
    let mut reader = BufReader::new(plain.take(MOST_BYTES));
    let (mut lines, mut bytes) = (Vec::new(), 0);
    for number in 1.. {
        let mut line = Vec::new();
        let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        let read = read.map_err(|error| (number, format!("cannot be read: {error}")))? as u64;
        bytes += read;
        if read == 0 {
            break;
        }
        if read == LONGEST_LINE || bytes == MOST_BYTES {
            return Err((number, format!("longer than {LONGEST_LINE} bytes, or the file than {MOST_BYTES}")));
        }
        let text = String::from_utf8(line).map_err(|_| (number, "no text in UTF-8".to_owned()))?;
        let text = text.trim_end();
        if !text.trim().is_empty() {
            lines.push((number, text.to_owned()));
        }
    }
    Ok(lines)
}

fn guess(lines: &Lines) -> Form {
    let Some((_, first)) = lines.first() else { return Form::Lists };
    if first.contains("::") {
        return Form::Movielens;
    }
    if first.contains(',') {
        return Form::Csv;
    }
    let fields = |line: &str| line.split_ascii_whitespace().count();
    let usual = fields(first);
    let is_table = lines.iter().take(SAMPLE).all(|(_, line)| fields(line) == usual);
    if is_table && (2..=4).contains(&usual) { Form::Pairs } else { Form::Lists }
}

fn each(lines: &Lines, pair: impl Fn(&str) -> Result<(&str, &str), String>) -> Pairs<'_> {
    lines.iter().map(|(number, line)| pair(line).map_err(|reason| (*number, reason))).collect()
}

fn pair_of<'a>(mut fields: impl Iterator<Item = &'a str>) -> Result<(&'a str, &'a str), String> {
    let (Some(user), Some(item)) = (fields.next(), fields.next()) else {
        return Err("a user and an item are expected".to_owned());
    };
    let missing = [(user, "user"), (item, "item")].into_iter().find(|(id, _)| id.is_empty());
    if let Some((_, what)) = missing {
        return Err(format!("no {what}"));
    }
    for field in fields.take(2) {
        check_number(field)?;
    }
    Ok((user, item))
}

fn check_number(field: &str) -> Result<(), String> {
    match field.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(()),
        _ => Err(format!("{field:?} is no number: ratings and times are")),
    }
}

/// A user in front of its items; one with none has no interactions and is left out.
fn lists(lines: &Lines) -> Pairs<'_> {
    let mut pairs = Vec::new();
    for (number, line) in lines {
        let mut ids = line.split_ascii_whitespace();
        let Some(user) = ids.next() else { continue };
        let ids: Vec<&str> = ids.collect();
        let is_wrong = |id: &&&str| id.contains([',', ':', ';']);
        if let Some(id) = std::iter::once(&user).chain(&ids).find(is_wrong) {
            return Err((*number, format!("{id:?} is no id: a user and its items are expected, with spaces between")));
        }
        pairs.extend(ids.into_iter().map(|item| (user, item)));
    }
    Ok(pairs)
}

fn csv(lines: &Lines) -> Pairs<'_> {
    let Some((number, head)) = lines.first() else { return Ok(Vec::new()) };
    let columns: Vec<String> = head.split(',').map(|name| name.trim().trim_matches('"').to_lowercase()).collect();
    let place = |name: &str| columns.iter().position(|column| column == name);
    let missing = |name| (*number, format!("the head has no column {name}: user,item[,rating][,time] is expected"));
    let user = place("user").ok_or_else(|| missing("user"))?;
    let item = place("item").ok_or_else(|| missing("item"))?;
    let numbers: Vec<usize> = ["rating", "time"].into_iter().filter_map(place).collect();
    let mut pairs = Vec::with_capacity(lines.len() - 1);
    for (number, line) in &lines[1..] {
        let fields: Vec<&str> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
        let wrong = |reason: String| (*number, reason);
        if fields.len() != columns.len() {
            return Err(wrong(format!("{} fields, and {} columns in the head", fields.len(), columns.len())));
        }
        pairs.push(pair_of([fields[user], fields[item]].into_iter()).map_err(wrong)?);
        numbers.iter().try_for_each(|at| check_number(fields[*at])).map_err(wrong)?;
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use mingle_mutations::for_each_input;

    use super::*;

    #[test]
    fn mutated_interactions_are_refused_or_read() {
        let read = |file: &[u8], form| read_from(file, Path::new("interactions"), form);
        let texts = [
            "item,\"user\",time, rating\nd,ana,3,4.5\nc,ben,1e3,-2\nd,ana,4,1\n",
            "1::20::5::978300760\n1::3::4\n10::20\n",
            "ana 1 2 x\n\nben 2\ncho\n",
            "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196 302 1 1\n",
        ];
        let mut gzipped = GzEncoder::new(Vec::new(), Compression::fast());
        gzipped.write_all(texts[1].as_bytes()).unwrap();
        let mut seeds: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).into();
        seeds.push(gzipped.finish().unwrap());
        let forms = [Form::Csv, Form::Movielens, Form::Lists, Form::Pairs, Form::Movielens];
        for (seed, form) in seeds.iter().zip(forms) {
            let found = read(seed, form).unwrap();
            assert!(found.count() > 1 && found == read(seed, Form::Auto).unwrap(), "{form}");
        }
        let mut turn = 0;
        for_each_input("interactions", &seeds, |input| {
            turn += 1;
            let form = if turn % 2 == 0 { Form::Auto } else { forms[turn / 2 % 4] };
            let Ok(found) = read(input, form) else { return };
            let items = found.items().len() as u32;
            let is_sound = |user| {
                let of_user = found.of_user(user);
                !of_user.is_empty()
                    && of_user.is_sorted_by(|one, next| one < next)
                    && of_user.iter().all(|it| *it < items)
            };
            assert!(found.count() > 0 && (0..found.users().len()).all(is_sound));
        });
    }
}
