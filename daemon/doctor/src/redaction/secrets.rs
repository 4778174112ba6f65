//! Hides secrets: users in URLs, tickets, and values whose names mark them as secret, in options of a command,
//! variables, settings or headers.
//!
//! ```text
//!   https://ana:word@host/x      https://***@host/x
//!   --api-key=abc --token 'a b'  --api-key=*** --token '***'
//!   WANDB_API_KEY=abc python     WANDB_API_KEY=*** python
//!   "password": "abc"            "password": "***"
//!   Authorization: Bearer abc    Authorization: Bearer ***
//! ```
//!
//! A secret without such a name stays: its letters alone do not distinguish it from other words.

/// The text that replaces a secret.
pub(super) const HIDDEN: &str = "***";

/// Parts of names of secrets, in small letters.
const SECRET_WORDS: [&str; 7] = ["key", "token", "secret", "pass", "pwd", "credential", "auth"];
/// Schemes of the header `Authorization`, which precede the secret.
const SCHEMES: [&str; 2] = ["bearer", "basic"];
/// Prefixes of tickets.
const TICKETS: [&str; 2] = ["mingle1", "mingle2"];
/// Fewest letters of a secret after a scheme, and of a ticket: shorter ones may be words of a sentence.
const LONG_WORD: usize = 16;

/// The line without its secrets, and the number of them.
pub(super) fn hide(line: &str) -> (String, usize) {
    let (line, users) = hide_users(line);
    let (line, values) = hide_values(&line);
    (line, users + values)
}

/// Hides users and their passwords in URLs.
fn hide_users(line: &str) -> (String, usize) {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    let mut hidden = 0;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|letter: char| letter.is_whitespace() || "/?#\"'`\\<>".contains(letter));
        let (authority, after) = after.split_at(end.unwrap_or(after.len()));
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                hidden += 1;
                shown.extend([HIDDEN, "@", host]);
            }
            None => shown.push_str(authority),
        }
        rest = after;
    }
    shown.push_str(rest);
    (shown, hidden)
}

/// Hides tickets, and values after names of secrets.
fn hide_values(line: &str) -> (String, usize) {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    let mut hidden = 0;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !is_name_letter(letter)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if is_ticket(name) {
            hidden += 1;
            shown.push_str(HIDDEN);
            rest = after;
            continue;
        }
        shown.push_str(name);
        if let Some(between) = length_before_value(name, after) {
            let (before, value) = after.split_at(between);
            let (quote, length) = measure(value);
            hidden += 1;
            shown.extend([before, quote, HIDDEN]);
            rest = &value[quote.len() + length..];
            continue;
        }
        // The text between this name and the next one.
        let next = after.find(is_name_letter).unwrap_or(after.len());
        let (between, after) = after.split_at(next);
        shown.push_str(between);
        rest = after;
    }
    (shown, hidden)
}

/// Number of bytes between a name and the secret that it names; `None` if there is no secret.
fn length_before_value(name: &str, after: &str) -> Option<usize> {
    let small = name.to_ascii_lowercase();
    let word = after.trim_start_matches([' ', '\t']);
    let spaces = after.len() - word.len();
    if SCHEMES.contains(&small.as_str()) {
        let letters = word.find(char::is_whitespace).unwrap_or(word.len());
        return (spaces > 0 && letters >= LONG_WORD).then_some(spaces);
    }
    if !SECRET_WORDS.iter().any(|secret| small.contains(secret)) {
        return None;
    }
    if let Some(value) = after.strip_prefix('=') {
        return has_begun(value).then_some(1);
    }
    // An option and its value as two words.
    if name.starts_with('-') && spaces > 0 {
        return (has_begun(word) && !word.starts_with('-')).then_some(spaces);
    }
    // A setting: `name = "value"`, `"name": "value"`.
    let closed = ["\\\"", "\"", "'"].into_iter().find_map(|quote| after.strip_prefix(quote)).unwrap_or(after);
    let assigned = closed.trim_start_matches(' ').strip_prefix(['=', ':'])?.trim_start_matches(' ');
    opening_quote(assigned).map(|_| after.len() - assigned.len())
}

/// Returns `true` if a value begins here: a quotation that is closed, or text that begins with neither white space nor
/// closing punctuation.
fn has_begun(text: &str) -> bool {
    let is_end = |letter: char| letter.is_whitespace() || "`)]},;&".contains(letter);
    match opening_quote(text) {
        Some(quote) => text[quote.len()..].contains(quote),
        None => !text.is_empty() && !text.starts_with(is_end),
    }
}

fn opening_quote(text: &str) -> Option<&'static str> {
    ["\\\"", "\"", "'"].into_iter().find(|quote| text.starts_with(quote))
}

/// The opening quote of a value, empty if there is none, and the length of the value after it, in bytes.
fn measure(value: &str) -> (&'static str, usize) {
    if let Some(quote) = opening_quote(value) {
        let inside = &value[quote.len()..];
        return (quote, inside.find(quote).unwrap_or(inside.trim_end_matches('\n').len()));
    }
    let mut letters = value.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            // In JSON: a backslash of the secret itself, or the quote or the end of line behind it.
            '\\' if value[at + 1..].starts_with('\\') => {
                letters.next();
            }
            '\\' | '"' | '\'' | '`' | '&' => return ("", at),
            _ if letter.is_whitespace() => return ("", at),
            _ => {}
        }
    }
    ("", value.len())
}

fn is_ticket(word: &str) -> bool {
    word.len() >= LONG_WORD && TICKETS.iter().any(|ticket| word.starts_with(ticket))
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lets_somebody_in_is_taken_out() {
        for (text, shown) in [
            ("https://ana:pa55@data.org/x?a=1 and git+ssh://tok@h", "https://***@data.org/x?a=1 and git+ssh://***@h"),
            ("s3://bucket/a@b", "s3://bucket/a@b"),
            ("https://data.org/x?api_token=abc&rows=3", "https://data.org/x?api_token=***&rows=3"),
            ("python t.py --api-key=abc --rows 3", "python t.py --api-key=*** --rows 3"),
            ("--db-password abc --user ana", "--db-password *** --user ana"),
            ("--token 'two words' --x", "--token '***' --x"),
            ("-token abc", "-token ***"),
            (
                "WANDB_API_KEY=abc AWS_SECRET_ACCESS_KEY=\"a b\" python",
                "WANDB_API_KEY=*** AWS_SECRET_ACCESS_KEY=\"***\" python",
            ),
            (r#"{"command":"t.py --token=abc","n":1}"#, r#"{"command":"t.py --token=***","n":1}"#),
            (r#"{"command":"t.py --token \"a b\" -x"}"#, r#"{"command":"t.py --token \"***\" -x"}"#),
            (r#"{"command":"t.py --token=a\\b\n"}"#, r#"{"command":"t.py --token=***\n"}"#),
            (r#"{"password": "abc", "n": 1}"#, r#"{"password": "***", "n": 1}"#),
            ("db_password = \"abc\"\n", "db_password = \"***\"\n"),
            ("Authorization: Bearer abcdefghijklmnop0123", "Authorization: Bearer ***"),
            ("joined with mingle2abcdefghijklmnop234567.", "joined with ***."),
        ] {
            assert_eq!(hide(text).0, shown);
        }
        assert_eq!(hide("https://a:b@c --token=1 --key 2").1, 3);
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        for text in [
            "the bearer of the plan is asked first",
            "no key yet at ~/identity.key",
            "give it with --token, or `--token`",
            "--key --rows 3",
            r#"{"key":{"a":1},"keys":[1],"token":null}"#,
            "learning_rate = 0.1",
            "mingle2",
            "größer --token= 東京",
            "",
        ] {
            assert_eq!(hide(text), (text.to_owned(), 0));
        }
    }
}
