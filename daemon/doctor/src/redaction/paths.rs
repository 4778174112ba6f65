//! Replaces file paths by numbers: their names may reveal what is trained, and on whose data.

use std::collections::BTreeMap;

/// First components that are kept: folders with the same contents on every machine, and beginnings of names that are no
/// paths (multiaddresses, protocols, the local interface).
const KEPT: [&str; 20] = [
    "bin", "dev", "etc", "lib", "lib64", "proc", "sys", "usr", "ip4", "ip6", "dns", "dns4", "dns6", "dnsaddr", "p2p",
    "tcp", "udp", "mingle", "libp2p", "v1",
];
/// Most letters of an extension; a longer one counts as part of the name.
const LONGEST_EXTENSION: usize = 5;

/// The paths found so far, each with a number that is the same in all texts.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    numbers: BTreeMap<String, usize>,
}

impl Paths {
    /// Number of different paths found so far.
    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// The line with each path replaced by its number and its file extension.
    pub(super) fn replace(&mut self, line: &str) -> String {
        let mut shown = String::with_capacity(line.len());
        let mut done = 0;
        while let Some(at) = line[done..].find('/').map(|at| done + at) {
            shown.push_str(&line[done..at]);
            let path = path_at(line, at);
            if is_of_somebody(path) && may_begin_after(&line[..at]) {
                shown.push_str(&self.name_of(path));
            } else {
                shown.push_str(path);
            }
            done = at + path.len();
        }
        shown.push_str(&line[done..]);
        shown
    }

    fn name_of(&mut self, path: &str) -> String {
        let next = self.numbers.len() + 1;
        let number = self.numbers.entry(path.to_owned()).or_insert(next);
        let extension = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
        let is_extension = |extension: &&str| {
            (1..=LONGEST_EXTENSION).contains(&extension.len())
                && extension.chars().all(|letter| letter.is_ascii_alphanumeric())
        };
        let extension = extension.filter(is_extension).map(|extension| format!(".{extension}")).unwrap_or_default();
        format!("path-{number}{extension}")
    }
}

/// The path that begins at byte `at`: up to the closing quote if a quote of a shell precedes it, else up to white space
/// or punctuation.
fn path_at(line: &str, at: usize) -> &str {
    let (before, text) = line.split_at(at);
    let quote = before.chars().next_back().filter(|letter| "'`".contains(*letter));
    if let Some(end) = quote.and_then(|quote| text.find(quote)) {
        return &text[..end];
    }
    let is_end = |letter: char| letter.is_whitespace() || "\"'`)]},;:<>|&\\".contains(letter);
    text[..text.find(is_end).unwrap_or(text.len())].trim_end_matches('.')
}

/// Returns `true` if a path can begin after `before`, which does not end within a word. JSON escapes line ends and tabs
/// with a letter: `\n`, `\t`.
fn may_begin_after(before: &str) -> bool {
    let is_boundary = |letter: char| letter.is_whitespace() || "\"'`=:([{,<@".contains(letter);
    before.is_empty() || before.ends_with(is_boundary) || before.ends_with("\\n") || before.ends_with("\\t")
}

/// Returns `true` if the path may be private: it names something in a folder that is not in `KEPT`. A path without a
/// folder, such as `/livez`, reveals nothing.
fn is_of_somebody(path: &str) -> bool {
    let mut names = path.split('/').skip(1);
    match (names.next(), names.next()) {
        (Some(first), Some(second)) => !first.is_empty() && !second.is_empty() && !KEPT.contains(&first),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_numbers_that_are_the_same_everywhere() {
        let mut paths = Paths::default();
        for (text, shown) in [
            (
                "trainer = \"python /srv/ward7/train.py --data=/mnt/hiv/x.csv\"",
                "trainer = \"python path-1.py --data=path-2.csv\"",
            ),
            ("File \"/srv/ward7/train.py\", line 3", "File \"path-1.py\", line 3"),
            ("csv:/mnt/hiv/x.csv:3: bad", "csv:path-2.csv:3: bad"),
            ("cannot read '/mnt/my data/x': no", "cannot read 'path-3': no"),
            ("in /mnt/hiv/.", "in path-4."),
            ("{\"command\":\"/mnt/a\\n/mnt/b\"}", "{\"command\":\"path-5\\npath-6\"}"),
        ] {
            assert_eq!(paths.replace(text), shown);
        }
        assert_eq!(paths.count(), 6);
    }

    #[test]
    fn what_names_no_file_of_the_user_stays_as_it_is() {
        let mut paths = Paths::default();
        for text in [
            "/ip4/10.0.0.1/udp/1/quic-v1/p2p/12D3 and /mingle/swarm/7",
            "/usr/lib/x.so /dev/null /etc/mingle/config.toml /livez",
            "https://data.org/a/b and s3://a/b",
            "3/4 of train/x.csv in ~/data/x.csv",
            "<home>/records/0001.record",
            "//",
            "/",
        ] {
            assert_eq!(paths.replace(text), text);
        }
        assert_eq!(paths.count(), 0);
    }
}
