//! Framing of values on a stream: postcard, preceded by its length in four bytes, little-endian.

use std::io;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes one value, and flushes.
pub async fn write<S: AsyncWrite + Unpin>(stream: &mut S, value: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_stdvec(value).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(&bytes).await?;
    stream.flush().await
}

/// Reads one value of at most `most_bytes`.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if the bytes are not such a value or the length exceeds `most_bytes`.
pub async fn read<T: DeserializeOwned, S: AsyncRead + Unpin>(stream: &mut S, most_bytes: usize) -> io::Result<T> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let length = u32::from_le_bytes(length) as usize;
    if length > most_bytes {
        return Err(invalid(format!("{length} bytes are too long")));
    }
    // Grows as bytes arrive: a peer that only claims a length gets nothing allocated.
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes).await?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&bytes).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use futures::executor::block_on;
    use futures::io::Cursor;

    #[test]
    fn a_value_comes_back_as_it_went_and_half_of_one_does_not() {
        let value = (7_u64, String::from("ward7"));
        let mut wire = Cursor::new(Vec::new());
        block_on(write(&mut wire, &value)).unwrap();
        let bytes = wire.into_inner();
        assert_eq!(block_on(read::<(u64, String), _>(&mut Cursor::new(&bytes), 64)).unwrap(), value);
        for end in 0..bytes.len() {
            let half = block_on(read::<(u64, String), _>(&mut Cursor::new(&bytes[..end]), 64));
            assert_eq!(half.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{end}");
        }
    }

    #[test]
    fn a_claimed_length_beyond_the_limit_is_refused_before_anything_is_read() {
        let mut wire = Cursor::new(vec![0xff; 8]);
        let error = block_on(read::<u64, _>(&mut wire, 1024)).unwrap_err();
        assert!(error.kind() == io::ErrorKind::InvalidData && error.to_string().contains("too long"), "{error}");
    }
}
