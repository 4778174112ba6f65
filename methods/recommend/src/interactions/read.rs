//! Reading of interactions from files, in the usual forms of data sets; gzipped or not.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, ErrorKind, Read};
use std::path::Path;
use std::str::FromStr;

use mingle_plaintext::{InputFile, open_table};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Interactions;
use super::spelling::check_spellings;
use crate::error::RecommendError;

/// The most bytes of a file, unpacked.
const MOST_BYTES: u64 = 8 << 30;
/// The most interactions, and the longest line.
const MOST_INTERACTIONS: u64 = 200_000_000;
const LONGEST_LINE: u64 = 64 << 20;
/// The most distinct values of ratings; a column of item numbers usually has more.
const MOST_RATINGS: usize = 20;
/// Names of columns with the same meaning, without regard to case and to the type that RecBole writes after a colon.
const USER: [&str; 6] = ["user", "userid", "user_id", "uid", "reviewerid", "customer_id"];
const ITEM: [&str; 14] = [
    "item",
    "itemid",
    "item_id",
    "iid",
    "movieid",
    "movie_id",
    "asin",
    "parent_asin",
    "business_id",
    "product_id",
    "productid",
    "isbn",
    "artistid",
    "book_id",
];
const RATING: [&str; 5] = ["rating", "ratings", "score", "stars", "overall"];
const TIME: [&str; 3] = ["time", "timestamp", "unixreviewtime"];

/// The form of a file of interactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Guessed from the lines.
    #[default]
    Auto,
    /// A table with a header: `user,item` and perhaps `rating` and `time`, in any order and among others; `userId`,
    /// `movieId`, `timestamp` and similar names are accepted. Commas, tabs or semicolons separate the cells.
    Csv,
    /// MovieLens: `user::item`, then perhaps `::rating::time`.
    Movielens,
    /// LightGCN: a user and all its items in a line, with spaces between.
    Lists,
    /// A user and an item in a line, separated by spaces or tabs; two numbers may follow, and the rest is ignored.
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

/// Reads interactions from a file, which may be gzipped.
///
/// Ratings and times must be numbers where there are any, and have no other effect: an interaction counts whatever its
/// rating, and the order of lines does not matter. Ids are any text without the separator.
///
/// # Errors
/// The file cannot be read, is empty or too long, or a line is malformed; the error names the line.
pub fn read_interactions(path: &Path, form: Form) -> Result<Interactions, RecommendError> {
    let file = InputFile::open(path).map_err(|source| RecommendError::Io { path: path.to_owned(), source })?;
    read_from(file, path, form)
}

/// Reads interactions from `file`; `path` names it in errors.
fn read_from(file: impl Read + Send, path: &Path, form: Form) -> Result<Interactions, RecommendError> {
    let failed = |source| RecommendError::Io { path: path.to_owned(), source };
    let at_line = |(line, reason): (u64, String)| RecommendError::Line { path: path.to_owned(), line, reason };
    let table = open_table(file).map_err(|error| match error.kind() {
        // These errors are about the content, not the disk, and only the beginning has been read.
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => at_line((1, error.to_string())),
        _ => failed(error),
    })?;
    let mut lines = lines(table.text).map_err(at_line)?;
    let separator = char::from(table.separator);
    let head = head_without_separator(&lines, separator).map_err(at_line)?;
    if head.is_some() {
        lines.remove(0);
    }
    let form = match (form, head) {
        (Form::Auto, Some(form)) => form,
        (Form::Auto, None) => guess(&lines, separator).map_err(at_line)?,
        (form, _) => form,
    };
    if form == Form::Csv {
        let pairs = csv(&lines, separator).map_err(at_line)?;
        check_spellings(&lines, &pairs).map_err(at_line)?;
        return finish(&pairs, path);
    }
    let pairs = match form {
        Form::Movielens => each(&lines, |line| pair_of(line.split("::").map(str::trim))),
        Form::Pairs => each(&lines, |line| pair_of(line.split_ascii_whitespace())),
        Form::Csv | Form::Lists | Form::Auto => lists(&lines),
    };
    let pairs = pairs.map_err(at_line)?;
    check_spellings(&lines, &pairs).map_err(at_line)?;
    finish(&pairs, path)
}

/// The form of lines below a head such as `user item rating`, whose names are separated by blanks or `::`; none where
/// there is no such head.
///
/// # Errors
/// The head has the user and the item in other places than the form.
fn head_without_separator(lines: &Lines, separator: char) -> Result<Option<Form>, (u64, String)> {
    let Some((number, first)) = lines.first() else { return Ok(None) };
    let (form, names): (Form, Vec<String>) = if first.contains("::") {
        (Form::Movielens, first.split("::").map(column).collect())
    } else {
        (Form::Pairs, first.split_ascii_whitespace().map(column).collect())
    };
    let has = |known: &[&str]| names.iter().any(|name| known.contains(&name.as_str()));
    if cells(first, separator).is_some_and(|cells| cells.len() > 1) || !(has(&USER) && has(&ITEM)) {
        return Ok(None);
    }
    if !(USER.contains(&names[0].as_str()) && ITEM.contains(&names[1].as_str())) {
        let reason = "the user and the item come first in this form: change the order of the columns, or separate them by commas";
        return Err((*number, reason.to_owned()));
    }
    Ok(Some(form))
}

/// The interactions of all pairs.
fn finish<T: AsRef<str>>(pairs: &[(T, T)], path: &Path) -> Result<Interactions, RecommendError> {
    if pairs.is_empty() {
        return Err(RecommendError::Empty { path: path.to_owned() });
    }
    if pairs.len() as u64 > MOST_INTERACTIONS {
        let count = pairs.len() as u64;
        return Err(RecommendError::TooMany { what: "interactions", count, most: MOST_INTERACTIONS });
    }
    Ok(Interactions::from_pairs(pairs.iter().map(|(user, item)| (user.as_ref(), item.as_ref()))))
}

type Lines = Vec<(u64, String)>;
type UserItemPairs<'a> = Result<Vec<(&'a str, &'a str)>, (u64, String)>;

/// The lines that are not empty, with their numbers.
fn lines(plain: impl BufRead) -> Result<Lines, (u64, String)> {
    let mut reader = plain.take(MOST_BYTES);
    let mut lines = Vec::new();
    let mut bytes = 0;
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
        let text = String::from_utf8(line)
            .map_err(|_| (number, "it is no text in UTF-8: save the file as UTF-8".to_owned()))?;
        let text = text.trim_end();
        if !text.trim().is_empty() {
            lines.push((number, text.to_owned()));
        }
    }
    Ok(lines)
}

/// The form that the lines have.
///
/// # Errors
/// The lines could be of two forms with different meanings.
fn guess(lines: &Lines, separator: char) -> Result<Form, (u64, String)> {
    let Some((number, first)) = lines.first() else { return Ok(Form::Lists) };
    if first.contains("::") {
        return Ok(Form::Movielens);
    }
    let names = cells(first, separator).unwrap_or_default();
    let has_head = names.iter().any(|cell| USER.contains(&column(cell).as_str()));
    if has_head || first.contains(',') {
        return Ok(Form::Csv);
    }
    let counts = || lines.iter().map(|(_, line)| line.split_ascii_whitespace().count());
    let least = counts().min().unwrap_or(0);
    let most = counts().max().unwrap_or(0);
    if (least, most) == (2, 2) {
        return Ok(Form::Pairs);
    }
    let mut users = BTreeSet::new();
    let is_repeated = !lines.iter().all(|(_, line)| users.insert(line.split_ascii_whitespace().next()));
    if least < 2 || most > 4 {
        return Ok(Form::Lists);
    }
    if is_repeated && (least == most || lines.iter().all(|(_, line)| line.contains('\t'))) {
        return Ok(Form::Pairs);
    }
    let thirds: BTreeSet<&str> = lines.iter().filter_map(|(_, line)| line.split_ascii_whitespace().nth(2)).collect();
    let is_few_numbers = thirds.len() <= MOST_RATINGS && thirds.iter().all(|third| check_number(third).is_ok());
    let has_ratings = is_few_numbers && least == most;
    if !is_repeated && !has_ratings {
        return Ok(Form::Lists);
    }
    let reason = "it can be a user and all its items (lists), or a user, an item and a rating (pairs): say which, with form = \"lists\" \
                  or form = \"pairs\"";
    Err((*number, reason.to_owned()))
}

/// The cells of a line; those in quotes may contain the separator, and `""` for a quote. `None` if a quote is not closed.
fn cells(line: &str, separator: char) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut is_quoted = false;
    let mut rest = line.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '"' if is_quoted && rest.peek() == Some(&'"') => {
                rest.next();
                cell.push('"');
            }
            '"' if is_quoted || cell.trim().is_empty() => is_quoted = !is_quoted,
            _ if character == separator && !is_quoted => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            _ => cell.push(character),
        }
    }
    cells.push(cell.trim().to_owned());
    (!is_quoted).then_some(cells)
}

/// The name of a column for comparison, in lower case, with `_` for blanks and hyphens, and without the type that RecBole
/// writes after a colon.
fn column(cell: &str) -> String {
    let name = cell.split(':').next().unwrap_or_default();
    name.trim().trim_matches('"').to_lowercase().replace([' ', '-'], "_")
}

fn each(lines: &Lines, pair: impl Fn(&str) -> Result<(&str, &str), String>) -> UserItemPairs<'_> {
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

/// Pairs from lines of a user and its items; a user without items is left out.
fn lists(lines: &Lines) -> UserItemPairs<'_> {
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

/// The columns of a table, by the names in its head.
struct TableHead {
    width: usize,
    user: usize,
    item: usize,
    /// The columns that hold numbers: ratings and times.
    numbers: Vec<usize>,
}

impl TableHead {
    fn of(head: &str, separator: char) -> Result<Self, String> {
        if head.starts_with(['{', '[']) {
            return Err(
                "it looks like JSON: write a table, user,item in the first line and one interaction on each other"
                    .to_owned(),
            );
        }
        let cells = cells(head, separator).ok_or_else(not_closed)?;
        let columns: Vec<String> = cells.iter().map(|cell| column(cell)).collect();
        let required = |names: &[&str]| {
            place(&columns, names)?.ok_or_else(|| {
                let name = names[0];
                format!(
                    "the head has no column {name}: user,item[,rating][,time] is expected, or userId,movieId and the like"
                )
            })
        };
        Ok(Self {
            width: columns.len(),
            user: required(&USER)?,
            item: required(&ITEM)?,
            numbers: [place(&columns, &RATING)?, place(&columns, &TIME)?].into_iter().flatten().collect(),
        })
    }

    /// The user and the item in a line.
    fn pair(&self, mut fields: Vec<String>) -> Result<(String, String), String> {
        if fields.len() != self.width {
            return Err(format!("{} fields, and {} columns in the head", fields.len(), self.width));
        }
        pair_of([fields[self.user].as_str(), &fields[self.item]].into_iter())?;
        self.numbers.iter().try_for_each(|at| check_number(&fields[*at]))?;
        Ok((std::mem::take(&mut fields[self.user]), std::mem::take(&mut fields[self.item])))
    }
}

fn not_closed() -> String {
    "a quote is not closed on this line: an interaction is one line".to_owned()
}

/// The place of the column with one of these names; the first name counts before the others. None where no column has
/// any of them.
fn place(columns: &[String], names: &[&str]) -> Result<Option<usize>, String> {
    let found: Vec<usize> = (0..columns.len()).filter(|&at| names.contains(&columns[at].as_str())).collect();
    let exact: Vec<usize> = found.iter().copied().filter(|&at| columns[at] == names[0]).collect();
    match (&exact[..], &found[..]) {
        ([at], _) | ([], [at]) => Ok(Some(*at)),
        ([], []) => Ok(None),
        _ => {
            let named: Vec<&str> = found.iter().map(|&at| columns[at].as_str()).collect();
            Err(format!("the head has several columns for the {}: {}: name one {0} alone", names[0], named.join(", ")))
        }
    }
}

fn csv(lines: &Lines, separator: char) -> Result<Vec<(String, String)>, (u64, String)> {
    let Some((number, head)) = lines.first() else { return Ok(Vec::new()) };
    let head = TableHead::of(head, separator).map_err(|reason| (*number, reason))?;
    let pair = |(number, line): &(u64, String)| {
        let fields = cells(line, separator).ok_or_else(not_closed);
        fields.and_then(|fields| head.pair(fields)).map_err(|reason| (*number, reason))
    };
    lines[1..].iter().map(pair).collect()
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
