//! A secret of two members that lasts as long as their identities, and that no message is needed for.

use ed25519_dalek::{SigningKey, VerifyingKey};
use hkdf::Hkdf;
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

/// The secret that the member with the Ed25519 seed `own` shares with the member with the public key `other`, for this
/// purpose alone; `None` if `other` is no Ed25519 key, or one with which no secret can be shared.
///
/// X25519 between the Montgomery forms of the two identity keys, as in the NaCl libraries; that a key may both sign and
/// agree so was proven by Thormarker (On using the same key pair for Ed25519 and an X25519 based KEM, ePrint 2021/509).
/// HKDF binds the result to both identities and the purpose.
pub fn lasting_secret(own: &[u8; 32], other: &[u8; 32], purpose: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let own = SigningKey::from_bytes(own);
    let public = VerifyingKey::from_bytes(other).ok()?;
    let scalar = Zeroizing::new(own.to_scalar_bytes());
    let shared = StaticSecret::from(*scalar).diffie_hellman(&PublicKey::from(public.to_montgomery().to_bytes()));
    if !shared.was_contributory() {
        return None;
    }
    let mut identities = [own.verifying_key().to_bytes(), *other];
    identities.sort_unstable();
    let mut secret = Zeroizing::new([0; 32]);
    let hkdf = Hkdf::<Sha256>::new(Some(b"mingle lasting secret 1"), shared.as_bytes());
    hkdf.expand_multi_info(&[&identities[0], &identities[1], purpose], secret.as_mut()).ok()?;
    Some(secret)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn public(seed: u8) -> [u8; 32] {
        SigningKey::from_bytes(&[seed; 32]).verifying_key().to_bytes()
    }

    fn secret(own: u8, other: u8, purpose: &[u8]) -> [u8; 32] {
        *lasting_secret(&[own; 32], &public(other), purpose).unwrap()
    }

    #[test]
    fn two_members_have_the_same_secret_and_others_another() {
        let of_pair = secret(1, 2, b"noise");
        assert_eq!(of_pair, secret(2, 1, b"noise"));
        for other in [secret(1, 3, b"noise"), secret(3, 2, b"noise"), secret(1, 2, b"else"), secret(1, 1, b"noise")] {
            assert_ne!(of_pair, other);
        }
    }

    #[test]
    fn a_key_with_which_no_secret_can_be_shared_gives_none() {
        // The neutral element, a point of order two, and bytes that are no point.
        let mut neutral = [0; 32];
        neutral[0] = 1;
        let mut order_two = [0xff; 32];
        (order_two[0], order_two[31]) = (0xec, 0x7f);
        let mut no_point = [0; 32];
        no_point[0] = 2;
        for bad in [neutral, order_two, no_point] {
            assert!(lasting_secret(&[1; 32], &bad, b"noise").is_none(), "{bad:?}");
        }
    }
}
