//! A peer's metrics as an event file of TensorBoard: scalars by round.
//!
//! The file is a sequence of records, each `length: u64, crc(length): u32, data, crc(data): u32`, little-endian, with masked CRC-32C; the
//! data are protocol buffers, `tensorflow.Event`:
//!
//! ```text
//! Event    1 wall_time: double    2 step: int64    3 file_version: string    5 summary: Summary
//! Summary  1 value: repeated Value
//! Value    1 tag: string    2 simple_value: float
//! ```

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use mingle_peer::error::Context;
use mingle_peer::events::Event;
use mingle_peer::{ErrorKind, Result, units};

/// The version of the format, in the first record.
const FILE_VERSION: &str = "brain.Event:2";
/// Added to a rotated checksum, so that the checksum of data that contain checksums is still useful.
const CRC_MASK: u32 = 0xa282_ead8;

/// An event file that is written while a peer runs.
pub struct TensorBoardFile(File);

impl TensorBoardFile {
    /// Creates a file in `folder`, and the folder if it is missing. TensorBoard shows each folder as a run, and all
    /// files in it as one.
    ///
    /// # Errors
    /// They cannot be created.
    pub fn create(folder: &Path) -> Result<Self> {
        let doing = || format!("cannot write an event file in {}", folder.display());
        std::fs::create_dir_all(folder).context(ErrorKind::BadInput, doing())?;
        let seconds = since_epoch().as_secs();
        let path = folder.join(format!("events.out.tfevents.{seconds}.mingle.{}", std::process::id()));
        let file = OpenOptions::new().create_new(true).write(true).open(path).context(ErrorKind::BadInput, doing())?;
        let mut events = Self(file);
        let mut version = wall_time();
        put_bytes(&mut version, 3, FILE_VERSION.as_bytes());
        events.write(&version).context(ErrorKind::BadInput, doing())?;
        Ok(events)
    }

    /// Writes the numbers of an event; most events have none.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note(&mut self, event: &Event) -> std::io::Result<()> {
        let (round, scalars) = scalars(event);
        if scalars.is_empty() {
            return Ok(());
        }
        let mut summary = Vec::new();
        for (tag, value) in scalars {
            let mut scalar = Vec::new();
            put_bytes(&mut scalar, 1, tag.as_bytes());
            scalar.push(2 << 3 | 5);
            scalar.extend((value as f32).to_le_bytes());
            put_bytes(&mut summary, 1, &scalar);
        }
        let mut event = wall_time();
        event.push(2 << 3);
        put_varint(&mut event, round);
        put_bytes(&mut event, 5, &summary);
        self.write(&event)
    }

    /// Writes a record in one call, so that concurrent readers see whole records.
    fn write(&mut self, data: &[u8]) -> std::io::Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        let record = [&length[..], &checksum(&length), data, &checksum(data)].concat();
        self.0.write_all(&record)
    }
}

/// The round of an event, and its numbers by tag.
fn scalars(event: &Event) -> (u64, Vec<(String, f64)>) {
    match event {
        Event::Evaluated { round, metrics, train_loss, weight_units, disagreement, sent_bytes } => {
            let measured = metrics.iter().map(|(name, value)| (format!("evaluation/{name}"), value));
            let training = train_loss.map(|loss| ("train/loss".to_owned(), loss));
            let swarm = [
                Some(("swarm/weight".to_owned(), units::weight(*weight_units))),
                disagreement.map(|disagreement| ("swarm/disagreement".to_owned(), disagreement)),
                Some(("swarm/sent_megabytes".to_owned(), units::megabytes(*sent_bytes))),
            ];
            (*round, measured.chain(training).chain(swarm.into_iter().flatten()).collect())
        }
        Event::Done { round, metrics, .. } => {
            (*round, metrics.iter().map(|(name, value)| (format!("evaluation/{name}"), value)).collect())
        }
        Event::Best { best } => (best.round, vec![(format!("best/{}", best.metric), best.value)]),
        _ => (0, Vec::new()),
    }
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(CRC_MASK).to_le_bytes()
}

/// An `Event` that begins with the present time.
fn wall_time() -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend(since_epoch().as_secs_f64().to_le_bytes());
    event
}

fn since_epoch() -> std::time::Duration {
    // A clock before 1970 counts as 1970.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Appends a field of bytes, a string or a message.
fn put_bytes(message: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    message.push(field << 3 | 2);
    put_varint(message, bytes.len() as u64);
    message.extend(bytes);
}

fn put_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The data of all records; checks their checksums.
    fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
            let size = u64::from_le_bytes(*length) as usize;
            let (sum, rest) = rest.split_at(4);
            assert_eq!(sum, checksum(length));
            let (data, rest) = rest.split_at(size);
            let (sum, rest) = rest.split_at(4);
            assert_eq!(sum, checksum(data));
            records.push(data.to_vec());
            bytes = rest;
        }
        records
    }

    #[test]
    fn an_evaluation_is_a_record_of_scalars_at_its_round() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = TensorBoardFile::create(&folder.path().join("run")).unwrap();
        file.note(&Event::Round { round: 7, weight_units: 1, clipped: None }).unwrap();
        file.note(&Event::Evaluated {
            round: 300,
            metrics: [("accuracy", 0.5)].into_iter().collect(),
            train_loss: None,
            weight_units: 1 << 40,
            disagreement: None,
            sent_bytes: 0,
        })
        .unwrap();
        let path = std::fs::read_dir(folder.path().join("run")).unwrap().next().unwrap().unwrap().path();
        let records = records(&std::fs::read(path).unwrap());
        assert_eq!(records.len(), 2, "a round is not worth a record");
        assert_eq!(&records[0][9..], b"\x1a\x0dbrain.Event:2");
        let scalar = b"\x0a\x1a\x0a\x13evaluation/accuracy\x15\x00\x00\x00\x3f";
        assert_eq!(&records[1][9..12], b"\x10\xac\x02", "step 300");
        assert!(records[1].windows(scalar.len()).any(|bytes| bytes == scalar), "{:?}", records[1]);
    }

    #[test]
    fn the_checksum_is_the_masked_castagnoli_polynomial() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        let masked = 0xe306_9283_u32.rotate_right(15).wrapping_add(CRC_MASK);
        assert_eq!(checksum(b"123456789"), masked.to_le_bytes());
    }
}
