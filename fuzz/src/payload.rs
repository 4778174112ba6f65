//! Encoded vectors, through `Payload::from_bytes`.

use mingle_protocol::bench::absorb;
use mingle_protocol::{Codec, MAX_MAGNITUDE, Payload};

/// Checks bytes as an encoded vector. They are preceded by the codec and, in two bytes, the dimension.
///
/// Bytes whose length does not fit the dimension are refused. Accepted bytes are a vector of usable numbers. Encoding
/// it gives the same bytes, unless the codec rounds at random, and an absorption adds exactly these numbers.
///
/// # Panics
/// If any of that does not hold.
pub fn check(input: &[u8]) {
    let &[codec, low, high, ref bytes @ ..] = input else {
        return;
    };
    let codec = Codec::ALL[usize::from(codec) % Codec::ALL.len()];
    let dimension = usize::from(u16::from_le_bytes([low, high]));
    let payload = match Payload::from_bytes(codec, dimension, bytes.into()) {
        Ok(payload) => payload,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(bytes.len(), codec.encoded_len(dimension));
    let values = payload.values();
    assert_eq!(values.len(), dimension);
    assert!(values.iter().all(|value| value.abs() <= MAX_MAGNITUDE));
    // Integers round at random, or have a code that no sender writes.
    if !codec.sends_differences() {
        let again = Payload::encoded(codec, &values, 0).expect("the values are usable");
        // Numbers so large that rounding could leave the range are sent as f32.
        assert!(again.codec() != codec || again.bytes() == bytes);
    }
    let mut numerator = vec![0.0; dimension];
    absorb(codec, &mut numerator, bytes, 1.0);
    assert_eq!(numerator, *values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn every_seed_is_a_vector() {
        for (name, seed) in seeds::payload() {
            let codec = Codec::ALL[usize::from(seed[0])];
            let dimension = usize::from(u16::from_le_bytes([seed[1], seed[2]]));
            assert!(Payload::from_bytes(codec, dimension, seed[3..].into()).is_ok(), "{name}");
            check(&seed);
        }
    }
}
