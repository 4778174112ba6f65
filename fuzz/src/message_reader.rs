//! Bytes of a stream, through `MessageReader`.

use mingle_protocol::wire::{FRAME_HEAD_BYTES, MessageReader, WireError, encode};
use mingle_protocol::{Codec, MAX_DESCRIPTION, Message, Payload};

const PARCEL: u8 = 3;
const CHUNK: u8 = 4;
const HASH_BYTES: usize = 32;

/// Checks one stream. It is preceded by three bytes: the dimension that the reader expects, the length of the pieces in
/// which it arrives, less one, and a byte whose lowest bit asks for correct hashes.
///
/// Pieces of any length give the same messages and the same refusals. A message that is read is sound, and encoding it
/// gives bytes that decode to it.
///
/// # Panics
/// If any of that does not hold.
pub fn check(input: &[u8]) {
    let &[dimension, piece, seal, ref stream @ ..] = input else {
        return;
    };
    let mut stream = stream.to_vec();
    if seal & 1 == 1 {
        seal_bulk(&mut stream);
    }
    let dimension = usize::from(dimension);
    let (messages, refusal) = read(dimension, &stream, 1);
    let (in_pieces, refusal_in_pieces) = read(dimension, &stream, 1 + usize::from(piece));
    assert_eq!(refusal.is_some(), refusal_in_pieces.is_some(), "{refusal:?} is not {refusal_in_pieces:?}");
    // The messages of the call that fails are lost with it.
    assert!(messages.starts_with(&in_pieces), "{in_pieces:?} is no beginning of {messages:?}");
    assert!(refusal.is_some() || messages.len() == in_pieces.len());
    for message in &messages {
        check_content(message, dimension);
        check_encoding(message, dimension);
    }
}

/// The messages that complete before the stream ends or is refused, and the refusal.
fn read(dimension: usize, stream: &[u8], piece: usize) -> (Vec<Message>, Option<WireError>) {
    let mut reader = MessageReader::new(dimension);
    let mut messages = Vec::new();
    for piece in stream.chunks(piece) {
        match reader.feed(piece) {
            Ok(more) => messages.extend(more),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return (messages, Some(error));
            }
        }
    }
    (messages, None)
}

fn check_content(message: &Message, dimension: usize) {
    match message {
        Message::Hello(hello) => assert!(hello.task.description.len() <= MAX_DESCRIPTION),
        Message::Parcel(parcel) => {
            let payload = &parcel.payload;
            assert_eq!(payload.dimension(), dimension);
            let again = Payload::from_bytes(payload.codec(), dimension, payload.shared().clone());
            let again = again.map(|again| match payload.reference() {
                Some(reference) => again.against_named(reference),
                None => again,
            });
            assert_eq!(again.as_ref(), Ok(payload));
        }
        Message::Ack(_) | Message::Left(_) | Message::Process(_) | Message::Collective(_) => {}
    }
}

fn check_encoding(message: &Message, dimension: usize) {
    let bytes = bytes_of(message);
    let (again, refusal) = read(dimension, &bytes, bytes.len());
    assert_eq!(refusal, None);
    assert_eq!(again.as_slice(), std::slice::from_ref(message));
    assert_eq!(bytes_of(&again[0]), bytes);
}

/// The bytes of a message on the wire.
pub fn bytes_of(message: &Message) -> Vec<u8> {
    let encoded = encode(message.clone());
    let bytes = encoded.slices().collect::<Vec<_>>().concat();
    assert_eq!(bytes.len(), encoded.total_bytes());
    bytes
}

/// Writes the hash of the chunks that follow into every header of a parcel, as its last field. Blind mutation would
/// never find a hash, and so never reach the code after its check.
fn seal_bulk(stream: &mut [u8]) {
    let mut announced = None;
    let mut at = 0;
    while let Some(&[a, b, c, d, kind]) = stream.get(at..).and_then(|rest| rest.first_chunk::<FRAME_HEAD_BYTES>()) {
        let body = at + FRAME_HEAD_BYTES;
        let end = body.saturating_add(u32::from_le_bytes([a, b, c, d]) as usize);
        if end > stream.len() {
            return;
        }
        match (kind, &mut announced) {
            (PARCEL, _) if end - body >= HASH_BYTES => {
                let suffix = hashed_before(&stream[body..end - HASH_BYTES]);
                announced = Some((end, blake3::Hasher::new(), suffix));
            }
            (CHUNK, Some((header_end, hasher, suffix))) => {
                hasher.update(&stream[body..end]);
                let mut sealed = hasher.clone();
                sealed.update(suffix.as_slice());
                stream[*header_end - HASH_BYTES..*header_end].copy_from_slice(sealed.finalize().as_bytes());
            }
            _ => {}
        }
        at = end;
    }
}

/// The part of a parcel's header that is hashed after its chunks: the codec, and the name of the reference if there is
/// one. It ends before the length of the payload, whose bytes but the last have their highest bit set.
fn hashed_before(header: &[u8]) -> Vec<u8> {
    const NAME_BYTES: usize = 16;
    let Some(end) = header.len().checked_sub(1) else { return Vec::new() };
    let end = header[..end].iter().rposition(|byte| *byte < 0x80).map_or(0, |last| last + 1);
    let at = |back: usize| end.checked_sub(back).and_then(|at| header.get(at));
    // Codec and a mark: 0 before nothing, 1 before a name.
    match (at(NAME_BYTES + 2), at(NAME_BYTES + 1), at(2), at(1)) {
        (Some(&codec), Some(1), ..) if usize::from(codec) < Codec::ALL.len() => {
            [&[codec][..], &header[end - NAME_BYTES..end]].concat()
        }
        (.., Some(&codec), Some(0)) => vec![codec],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    /// The messages of a seed, after sealing as by [`check`].
    fn messages(seed: &[u8]) -> (Vec<Message>, Option<WireError>) {
        let mut stream = seed[3..].to_vec();
        seal_bulk(&mut stream);
        read(usize::from(seed[0]), &stream, stream.len())
    }

    #[test]
    fn every_seed_is_a_stream_that_is_read_to_its_end() {
        for (name, seed) in seeds::message_reader() {
            let (messages, refusal) = messages(&seed);
            assert_eq!((refusal, messages.is_empty()), (None, false), "{name}");
            check(&seed);
        }
    }

    #[test]
    fn sealing_repairs_what_a_changed_payload_breaks() {
        let (_, mut seed) = seeds::message_reader().into_iter().find(|(name, _)| *name == "parcel").unwrap();
        let last = seed.len() - 1;
        seed[last] ^= 1;
        assert!(matches!(read(usize::from(seed[0]), &seed[3..], 7), (_, Some(WireError::HashMismatch { .. }))));
        assert!(matches!(messages(&seed), (messages, None) if matches!(messages[..], [Message::Parcel(_)])));
    }
}
