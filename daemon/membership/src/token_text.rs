//! Text tokens to paste: bytes in base32, with a checksum.
//!
//! ```text
//!   prefix + base32( bytes + first 4 bytes of their BLAKE3 )
//! ```

use data_encoding::BASE32_NOPAD;

const CHECKSUM_BYTES: usize = 4;
/// Longest token; a longer text is refused unread.
const MAX_CHARACTERS: usize = 8192;

pub(crate) fn write(prefix: &str, bytes: &[u8]) -> String {
    let checksum = blake3::hash(bytes);
    let all = [bytes, &checksum.as_bytes()[..CHECKSUM_BYTES]].concat();
    format!("{prefix}{}", BASE32_NOPAD.encode(&all).to_lowercase())
}

/// Decodes a token without its prefix.
///
/// # Errors
/// The defect, as the end of a sentence.
pub(crate) fn read(body: &str) -> Result<Vec<u8>, &'static str> {
    const CHANGED: &str = "some of it is missing, or changed on the way";
    if body.len() > MAX_CHARACTERS {
        return Err("it is too long");
    }
    let mut bytes = BASE32_NOPAD.decode(body.to_uppercase().as_bytes()).map_err(|_| CHANGED)?;
    let split = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or("it is too short")?;
    let checksum = bytes.split_off(split);
    if blake3::hash(&bytes).as_bytes()[..CHECKSUM_BYTES] != checksum {
        return Err(CHANGED);
    }
    Ok(bytes)
}
