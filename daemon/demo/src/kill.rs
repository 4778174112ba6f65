//! The kills of peer processes that a demo has to make.

use std::collections::BTreeMap;

use mingle_peer::{Error, ErrorKind, Result};

/// The kills that are still to be made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Kills {
    rounds: BTreeMap<usize, u64>,
}

impl Kills {
    /// Reads `PEER@ROUND` arguments.
    pub(crate) fn parse(arguments: &[String], peers: usize, rounds: u64) -> Result<Self> {
        let mut kills = BTreeMap::new();
        for argument in arguments {
            let wrong = |why: &str| {
                Error::new(ErrorKind::BadInput, format!("--kill {argument}: {why}"))
                    .hint("for example --kill 3@60: peer 3, when it has done 60 rounds")
            };
            let parsed = argument
                .split_once('@')
                .and_then(|(peer, round)| Some((peer.parse::<usize>().ok()?, round.parse::<u64>().ok()?)));
            let (peer, round) = parsed.ok_or_else(|| wrong("this is not PEER@ROUND"))?;
            if peer >= peers {
                return Err(wrong(&format!("the peers are 0 to {}", peers - 1)));
            }
            if !(1..rounds).contains(&round) {
                return Err(wrong(&format!("the round must lie between 1 and {}", rounds.saturating_sub(1))));
            }
            if kills.insert(peer, round).is_some() {
                return Err(wrong("a peer dies once"));
            }
        }
        if kills.len() >= peers {
            return Err(Error::new(ErrorKind::BadInput, "--kill: at least one peer must live"));
        }
        Ok(Self { rounds: kills })
    }

    /// Returns `true` if `node` is to be killed now that it has done `round` rounds; for each kill only once.
    pub(crate) fn due(&mut self, node: usize, round: u64) -> bool {
        let due = self.rounds.get(&node).is_some_and(|&at| round >= at);
        if due {
            self.rounds.remove(&node);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Kills> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        Kills::parse(&arguments, 4, 100)
    }

    #[test]
    fn a_kill_is_due_once_when_its_peer_reaches_the_round() {
        let mut kills = parse(&["2@10"]).unwrap();
        assert!(!kills.due(2, 9));
        assert!(!kills.due(1, 10));
        assert!(kills.due(2, 11));
        assert!(!kills.due(2, 12));
    }

    #[test]
    fn a_kill_that_cannot_happen_is_refused() {
        for wrong in ["2", "x@3", "4@10", "1@0", "1@100"] {
            let error = parse(&[wrong]).unwrap_err();
            assert!(error.to_string().contains(wrong), "{error}");
        }
        assert!(parse(&["0@1", "1@1", "2@1", "3@1"]).is_err());
        assert!(parse(&["0@1", "0@2"]).is_err());
    }
}
