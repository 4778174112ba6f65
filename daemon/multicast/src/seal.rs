//! Sealing of packets: ChaCha20-Poly1305 (RFC 8439) with a key of the sender, which its out-neighbours have.

use std::fmt;

use chacha20poly1305::{AeadInPlace, ChaCha20Poly1305, KeyInit, Nonce, Tag};

use crate::packet::{HEAD_BYTES, PacketHead, TAG_BYTES};

/// Bytes of a secret.
pub const SECRET_BYTES: usize = 32;
/// The use of a secret from which the number of its key is derived.
const NUMBER_CONTEXT: &str = "mingle 2026 number of a multicast key";

/// A sender's key.
///
/// The nonce of a packet is the number of its object and that of its symbol. A sender gives each object a number of its
/// own, and a symbol of an object has the same bytes each time: no nonce seals two texts.
#[derive(Clone)]
pub struct SenderKey {
    number: u32,
    cipher: ChaCha20Poly1305,
}

impl fmt::Debug for SenderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SenderKey({:08x})", self.number)
    }
}

impl SenderKey {
    /// The key of a secret.
    pub fn new(secret: &[u8; SECRET_BYTES]) -> Self {
        let [a, b, c, d, ..] = blake3::derive_key(NUMBER_CONTEXT, secret);
        Self { number: u32::from_le_bytes([a, b, c, d]), cipher: ChaCha20Poly1305::new(secret.into()) }
    }

    /// The number in the packets that it seals.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Writes a sealed packet to `packet`, whose present content is discarded.
    pub fn seal(&self, head: PacketHead, symbol: &[u8], packet: &mut Vec<u8>) {
        let head_bytes = head.encode();
        packet.clear();
        packet.extend_from_slice(&head_bytes);
        packet.extend_from_slice(symbol);
        // It fails for texts of 256 GiB alone. A packet without its tag would be refused.
        let sealed = self.cipher.encrypt_in_place_detached(&nonce(head), &head_bytes, &mut packet[HEAD_BYTES..]);
        sealed.iter().for_each(|tag| packet.extend_from_slice(tag));
    }

    /// Opens a packet in place. Returns the symbol, or `None` if the packet was not sealed with this key.
    pub fn open<'a>(&self, packet: &'a mut [u8]) -> Option<&'a [u8]> {
        let head = PacketHead::decode(packet)?;
        let (text, tag) = packet.split_at_mut(packet.len() - TAG_BYTES);
        let (head_bytes, text) = text.split_at_mut(HEAD_BYTES);
        self.cipher.decrypt_in_place_detached(&nonce(head), head_bytes, text, Tag::from_slice(tag)).ok()?;
        Some(text)
    }
}

fn nonce(head: PacketHead) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&head.object.to_le_bytes());
    nonce[4..8].copy_from_slice(&head.symbol.to_le_bytes());
    nonce.into()
}
