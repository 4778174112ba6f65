//! Removes host addresses, file paths and secrets from text.

mod paths;
mod secrets;

use std::collections::BTreeMap;
use std::path::Path;

use paths::Paths;

/// Parts of a multiaddress that precede the name or address of a host.
const HOST_PROTOCOLS: [&str; 6] = ["/ip4/", "/ip6/", "/dns/", "/dns4/", "/dns6/", "/dnsaddr/"];

/// A redaction of texts: it gives each host and each path a number, the same in all texts, and hides secrets.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    hosts: BTreeMap<String, usize>,
    paths: Paths,
    secrets: usize,
    /// Folders and the names that replace them, in this order: the peer's home, which may lie in the user's, first.
    folders: Vec<(String, &'static str)>,
}

impl Redaction {
    /// A redaction that names the home folder of this user `~`, and that of the peer at `peer_home` `<home>`.
    pub fn new(peer_home: &Path) -> Self {
        let absolute = std::path::absolute(peer_home).ok();
        let real = std::fs::canonicalize(peer_home).ok();
        let peer_homes = absolute.into_iter().chain(real).map(|path| (path.display().to_string(), "<home>"));
        let user_home = std::env::var("HOME").ok().map(|home| (home, "~"));
        let folders = peer_homes.chain(user_home).filter(|(folder, _)| folder.len() > 1).collect();
        Self { folders, ..Self::default() }
    }

    /// A sentence with the numbers of different addresses and paths, and of secrets, replaced so far.
    pub fn describe(&self) -> String {
        let Self { hosts, paths, secrets, .. } = self;
        format!("Taken out here: {} addresses, {} paths, {secrets} secrets.", hosts.len(), paths.count())
    }

    /// The text with hosts and paths replaced, and secrets hidden.
    pub fn apply(&mut self, text: &str) -> String {
        // Line by line: the time for a line is the square of its length at worst.
        text.split_inclusive('\n').map(|line| self.apply_to_line(line)).collect()
    }

    fn apply_to_line(&mut self, line: &str) -> String {
        let (mut line, secrets) = secrets::hide(line);
        self.secrets += secrets;
        for (folder, name) in &self.folders {
            line = replace_folder(&line, folder, name);
        }
        let line = self.paths.replace(&line);
        let line = self.replace_hosts(&line);
        self.replace_bare_addresses(&line)
    }

    /// Replaces hosts in multiaddresses.
    fn replace_hosts(&mut self, text: &str) -> String {
        let mut redacted = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, protocol)) = first_of(rest) {
            let (before, after) = rest.split_at(at + protocol.len());
            redacted.push_str(before);
            let end = after.find(|letter: char| !is_host_letter(letter)).unwrap_or(after.len());
            let (host, after) = after.split_at(end);
            redacted.push_str(&self.name_of(host));
            rest = after;
        }
        redacted.push_str(rest);
        redacted
    }

    /// Replaces addresses outside multiaddresses, such as in messages of the operating system.
    fn replace_bare_addresses(&mut self, text: &str) -> String {
        let mut redacted = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|letter: char| !is_address_letter(letter)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            redacted.push_str(&self.redact_word(word));
            let next = after.find(is_address_letter).unwrap_or(after.len());
            let (between, after) = after.split_at(next);
            redacted.push_str(between);
            rest = after;
        }
        redacted
    }

    fn redact_word(&mut self, word: &str) -> String {
        let trimmed = word.trim_end_matches(['.', ':']);
        let bare = trimmed.parse::<std::net::IpAddr>().is_ok_and(|ip| !ip.is_loopback() && !ip.is_unspecified());
        if bare {
            return format!("{}{}", self.name_of(trimmed), &word[trimmed.len()..]);
        }
        // An address and a port.
        match trimmed.rsplit_once(':') {
            Some((host, port)) if host.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| !ip.is_loopback()) => {
                format!("{}:{port}{}", self.name_of(host), &word[trimmed.len()..])
            }
            _ => word.to_owned(),
        }
    }

    fn name_of(&mut self, host: &str) -> String {
        // These are the same everywhere, and show whether a peer listens to the outside.
        if matches!(host, "" | "0.0.0.0" | "::" | "127.0.0.1" | "::1" | "localhost") {
            return host.to_owned();
        }
        let next = self.hosts.len() + 1;
        format!("host-{}", self.hosts.entry(host.to_owned()).or_insert(next))
    }
}

/// Replaces a folder by a name, except where a longer name begins like it: `/home/anabel` does not lie in `/home/ana`.
fn replace_folder(text: &str, folder: &str, name: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(folder) {
        let before = &rest[..at];
        let after = &rest[at + folder.len()..];
        let goes_on = after.starts_with(|letter: char| letter.is_alphanumeric() || "_-.".contains(letter));
        replaced.extend([before, if goes_on { folder } else { name }]);
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

fn first_of(text: &str) -> Option<(usize, &'static str)> {
    HOST_PROTOCOLS.iter().filter_map(|protocol| Some((text.find(protocol)?, *protocol))).min()
}

fn is_host_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '.' | ':' | '-' | '_' | '%')
}

fn is_address_letter(letter: char) -> bool {
    letter.is_ascii_hexdigit() || matches!(letter, '.' | ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_become_numbers_that_are_the_same_everywhere() {
        let folders = vec![("/home/ana".to_owned(), "~")];
        let mut redaction = Redaction { folders, ..Redaction::default() };
        let text =
            "\"/ip4/10.0.1.5/udp/4717/quic-v1/p2p/12D3Koo\" and /dns4/ward7.example.org/tcp/1, /ip6/fe80::1/tcp/2";
        let wanted = "\"/ip4/host-1/udp/4717/quic-v1/p2p/12D3Koo\" and /dns4/host-2/tcp/1, /ip6/host-3/tcp/2";
        assert_eq!(redaction.apply(text), wanted);
        assert_eq!(
            redaction.apply("others can try 10.0.1.5 (eth0); 10.0.1.5:4717."),
            "others can try host-1 (eth0); host-1:4717."
        );
        assert_eq!(redaction.apply("/home/ana/.local/state/mingle"), "~/.local/state/mingle");
        assert_eq!(redaction.apply("2001:db8::7 or fe80::1"), "host-4 or host-3");
    }

    #[test]
    fn a_command_keeps_its_words_and_loses_its_secrets_paths_and_machines() {
        let folders = vec![("/srv/peers/ana".to_owned(), "<home>"), ("/home/ana".to_owned(), "~")];
        let mut redaction = Redaction { folders, ..Redaction::default() };
        let text = "KEY=k1 python /opt/hiv/train.py --url https://ana:pw@10.0.0.7/x --token t1 -o /srv/peers/ana/out /home/anabel/x";
        let shown = "KEY=*** python path-1.py --url https://***@host-1/x --token *** -o <home>/out path-2";
        assert_eq!(redaction.apply(text), shown);
        assert_eq!(redaction.describe(), "Taken out here: 1 addresses, 2 paths, 3 secrets.");
    }

    #[test]
    fn what_names_no_machine_stays_as_it_is() {
        let mut redaction = Redaction::default();
        for text in [
            "/ip4/0.0.0.0/tcp/0 and /ip4/127.0.0.1/tcp/9",
            "accuracy 0.974, round 600, at_ms 12, 1.2.3",
            "blake3:1c48d756, sum of weights: exactly 8 = 8",
            "äöü → 7:3",
            "",
        ] {
            assert_eq!(redaction.apply(text), text);
        }
    }
}
