//! Reading timelines.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::{MOST_SPANS, Span, TimelineHead};
use crate::error::{Context, Error, ErrorKind, Result};

/// Latest time in a file, in microseconds: 285 years, far from where sums of times overflow.
const LATEST_US: u64 = 1 << 53;
/// Longest line that a peer writes, in bytes.
const LONGEST_LINE: u64 = 1024;

/// The timeline of one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTimeline {
    /// Its node in the plan.
    pub node: u32,
    /// Time at which it began, in microseconds since 1970.
    pub began_unix_us: u64,
    /// The spans, ordered by their ends.
    pub spans: Vec<Span>,
}

/// Reads the timeline of a peer. Half a line at the end, of a peer that was killed or still runs, is ignored.
///
/// # Errors
/// The file is missing, or is no timeline; the message names the file and the line.
pub fn read(path: &Path) -> Result<PeerTimeline> {
    let file = File::open(path).map_err(|error| {
        Error::new(ErrorKind::BadInput, format!("cannot read {}: {error}", path.display()))
            .hint("a peer keeps a timeline when it is started with --timeline on")
    })?;
    read_from(BufReader::new(file), path)
}

/// Reads a timeline from the contents of the file at `path`.
fn read_from(mut reader: impl BufRead, path: &Path) -> Result<PeerTimeline> {
    let mut timeline = None;
    for number in 1..=MOST_SPANS + 1 {
        let mut line = String::new();
        let read = reader.by_ref().take(LONGEST_LINE).read_line(&mut line);
        read.context(ErrorKind::BadInput, format!("cannot read {}", path.display()))?;
        if !line.ends_with('\n') && (line.len() as u64) < LONGEST_LINE {
            break;
        }
        let doing = || format!("{}, line {number}, is not of a timeline", path.display());
        match &mut timeline {
            None => {
                let head: TimelineHead = serde_json::from_str(&line).context(ErrorKind::BadInput, doing())?;
                if head.began_unix_us > LATEST_US {
                    return Err(Error::new(ErrorKind::BadInput, doing()));
                }
                if head.schema != TimelineHead::SCHEMA {
                    let message =
                        format!("{} has the schema {}, not {}", path.display(), head.schema, TimelineHead::SCHEMA);
                    return Err(Error::new(ErrorKind::BadInput, message));
                }
                timeline = Some(PeerTimeline { node: head.node, began_unix_us: head.began_unix_us, spans: Vec::new() });
            }
            Some(timeline) => {
                let span: Span = serde_json::from_str(&line).context(ErrorKind::BadInput, doing())?;
                if span.to_us > LATEST_US {
                    return Err(Error::new(ErrorKind::BadInput, format!("{}: centuries after it began", doing())));
                }
                if span.to_us < span.from_us {
                    return Err(Error::new(ErrorKind::BadInput, format!("{}: it ends before it begins", doing())));
                }
                timeline.spans.push(span);
            }
        }
    }
    timeline.ok_or_else(|| Error::new(ErrorKind::BadInput, format!("{} is empty", path.display())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use super::*;
    use crate::home::Home;
    use crate::timeline::{Shares, SpanKind, Timeline, Window};

    #[test]
    fn what_was_noted_is_read_and_half_a_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let timeline = Timeline::create(&home, 3).unwrap();
        let deeds = [SpanKind::Train, SpanKind::Send { node: 5 }, SpanKind::Wait, SpanKind::Round { round: 1 }];
        deeds.iter().for_each(|deed| timeline.note(*deed, Instant::now()));
        drop(timeline);
        let whole = read(&home.timeline()).unwrap();
        assert_eq!(whole.node, 3);
        assert_eq!(whole.spans.iter().map(|span| span.deed).collect::<Vec<_>>(), deeds);

        let text = std::fs::read_to_string(home.timeline()).unwrap();
        std::fs::write(home.timeline(), &text[..text.len() - 5]).unwrap();
        assert_eq!(read(&home.timeline()).unwrap().spans, whole.spans[..3]);
    }

    #[test]
    fn what_is_no_timeline_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timeline.jsonl");
        let head = r#"{"schema":"mingle.timeline/1","node":0,"began_unix_us":1}"#;
        let cases = [
            (String::new(), "is empty"),
            (format!("{}\n", head.replace("timeline/1", "summary/1")), "has the schema"),
            (format!("{head}\n{{\"what\":\"dance\",\"from_us\":1,\"to_us\":2}}\n"), "line 2"),
            (format!("{head}\n{{\"what\":\"train\",\"from_us\":3,\"to_us\":2}}\n"), "ends before"),
            (format!("{head}\n{}\n", "x".repeat(5000)), "line 2"),
            (format!("{head}\n{{\"what\":\"wait\",\"from_us\":0,\"to_us\":{}}}\n", u64::MAX), "centuries"),
            (format!("{}\n", head.replace("us\":1", &format!("us\":{}", u64::MAX))), "line 1"),
        ];
        for (text, why) in cases {
            std::fs::write(&path, text).unwrap();
            let failure = read(&path).unwrap_err();
            assert!(failure.is(ErrorKind::BadInput) && format!("{failure:#}").contains(why), "{failure:#}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("cannot read"));
    }
    #[test]
    fn mutated_timelines_are_refused_or_add_up() {
        let sound = "{\"schema\":\"mingle.timeline/1\",\"node\":3,\"began_unix_us\":1}\n{\"what\":\"train\",\"from_us\":3,\"to_us\":20}\n\
                     {\"what\":\"send\",\"node\":5,\"from_us\":4,\"to_us\":9}\n{\"what\":\"round\",\"round\":1,\"from_us\":0,\"to_us\":30}\n";
        let read = |bytes: &[u8]| read_from(bytes, Path::new("timeline.jsonl"));
        assert_eq!(read(sound.as_bytes()).unwrap().spans.len(), 3);
        mingle_mutations::for_each_input("timeline", &[sound.as_bytes().to_vec()], |input| {
            let Ok(timeline) = read(input) else { return };
            assert!(timeline.spans.iter().all(|span| span.from_us <= span.to_us && span.to_us <= LATEST_US));
            let Some(window) = Window::of_rounds(&timeline, 0, u64::MAX) else { return };
            let shares = Shares::of(&timeline, window);
            let parts = [shares.training_us, shares.moving_us, shares.waiting_us];
            assert!(parts.into_iter().all(|part| part <= shares.whole_us) && shares.hidden_us <= shares.moving_us);
        });
    }
}
