//! Warnings: the number that a person gets from each source. A neighbour that causes many hides none of the others.

use std::collections::BTreeMap;

use mingle_protocol::NodeId;

/// Warnings of one source that a person gets; further ones are only in the log. Of alarms each doubling comes after that.
const MOST_OF_A_SOURCE: u32 = 20;

/// The cause of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A finding of this peer about its own weight or model, or about a neighbour's part in them. It is never hidden for
    /// good, and never a flood: who can raise it again and again must not push everything else out of the event file.
    Alarm(Option<NodeId>),
    /// A neighbour, by its messages.
    Neighbour(NodeId),
    /// A member that is no neighbour, or a stranger.
    Others,
    /// This peer itself.
    Own,
}

/// Numbers of warnings by source.
#[derive(Debug, Default)]
pub struct Warnings {
    counts: BTreeMap<Source, u32>,
}

impl Warnings {
    /// Returns the warning that a person gets.
    ///
    /// # Errors
    /// The unchanged warning, if its source has caused too many.
    pub fn admit(&mut self, source: Source, message: String) -> Result<String, String> {
        let count = self.counts.entry(source).or_default();
        *count = count.saturating_add(1);
        match *count {
            ..MOST_OF_A_SOURCE => Ok(message),
            MOST_OF_A_SOURCE => Ok(format!("{message} (more warnings {} are in the log alone)", source.in_words())),
            _ if matches!(source, Source::Alarm(_)) && count.is_power_of_two() => {
                Ok(format!("{message} ({count} times)"))
            }
            _ => Err(message),
        }
    }
}

impl Source {
    fn in_words(self) -> String {
        match self {
            Self::Neighbour(node) | Self::Alarm(Some(node)) => format!("about node {node}"),
            Self::Others => "about others".to_owned(),
            Self::Alarm(None) | Self::Own => "about this peer".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_that_causes_a_thousand_warnings_hides_no_alarm_and_none_of_another() {
        let mut warnings = Warnings::default();
        let odd = || "odd".to_owned();
        let [liar, other] = [1, 2].map(|node| Source::Neighbour(NodeId(node)));
        let told: Vec<String> = (0..1_000).filter_map(|_| warnings.admit(liar, odd()).ok()).collect();
        assert_eq!(told.len(), 20);
        assert_eq!(told[0], "odd");
        assert_eq!(told[19], "odd (more warnings about node 1 are in the log alone)");
        for source in [other, Source::Others, Source::Own] {
            assert!(warnings.admit(source, odd()).is_ok(), "{source:?}");
        }
        assert!(warnings.admit(Source::Alarm(None), odd()).is_ok());
    }

    #[test]
    fn an_alarm_that_is_raised_for_an_hour_comes_ever_more_seldom_and_hides_no_other() {
        let mut warnings = Warnings::default();
        let mut raise = |about: Option<u32>| warnings.admit(Source::Alarm(about.map(NodeId)), "low".to_owned()).ok();
        let told: Vec<String> = (0..10_000).filter_map(|_| raise(Some(1))).collect();
        // Twenty, and 32, 64, ... 8,192.
        assert_eq!(told.len(), 20 + 9);
        assert_eq!(told[20], "low (32 times)");
        assert!(raise(Some(2)).is_some() && raise(None).is_some());
    }
}
