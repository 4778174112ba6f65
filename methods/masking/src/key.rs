//! A member's key of one attempt, its announcement, and the agreement on masks with the others.

use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::error::MaskingError;
use crate::masks::{Masks, Pair};
use crate::neighbours::{MOST_PAIRED, neighbours};
use crate::roster::Roster;
use crate::signer::SumSigner;

/// A public X25519 key with the signature that makes it its member's for one roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The public key.
    pub key: [u8; 32],
    /// The Ed25519 signature of the member's identity.
    pub signature: [u8; 64],
}

impl Announcement {
    /// Its length in bytes.
    pub const BYTES: usize = 96;

    /// Key and signature, one after the other.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..32].copy_from_slice(&self.key);
        bytes[32..].copy_from_slice(&self.signature);
        bytes
    }

    /// The announcement that these bytes are of.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let mut key = [0; 32];
        let mut signature = [0; 64];
        key.copy_from_slice(&bytes[..32]);
        signature.copy_from_slice(&bytes[32..]);
        Self { key, signature }
    }

    /// A commitment to it, which hides it until it is announced.
    fn commitment(&self, roster: &Roster, member: usize) -> [u8; 32] {
        Sha256::new_with_prefix(b"mingle masked sums commitment 1")
            .chain_update(roster.digest())
            .chain_update((member as u64).to_le_bytes())
            .chain_update(self.to_bytes())
            .finalize()
            .into()
    }
}

/// One member's secret key of one attempt. It is never written anywhere.
pub struct SumKey {
    me: usize,
    secret: StaticSecret,
    roster: Roster,
    announcement: Announcement,
}

impl SumKey {
    /// Draws a key for this member of the roster, and signs it.
    ///
    /// # Errors
    /// The member is not in the roster, or its signer fails.
    pub fn draw(roster: Roster, me: usize, signer: &dyn SumSigner) -> Result<Self, MaskingError> {
        if me >= roster.members() {
            return Err(MaskingError::NotListed { me, members: roster.members() });
        }
        let drawn = Zeroizing::new(signer.fresh_secret().map_err(MaskingError::Signer)?);
        let secret = StaticSecret::from(*drawn);
        let key = PublicKey::from(&secret).to_bytes();
        let signature = signer.sign(&roster.statement(me, &key)).map_err(MaskingError::Signer)?;
        Ok(Self { me, secret, roster, announcement: Announcement { key, signature } })
    }

    /// The public key, to be given to all members.
    pub fn announcement(&self) -> Announcement {
        self.announcement
    }

    /// Returns `true` if the graph of neighbours is drawn, so that all members have to commit to their keys before
    /// any of them is announced: who announces last could choose the graph otherwise.
    pub fn needs_commitments(&self) -> bool {
        self.roster.members() > MOST_PAIRED + 1
    }

    /// The commitment to the announcement.
    pub fn commitment(&self) -> [u8; 32] {
        self.announcement.commitment(&self.roster, self.me)
    }

    /// Agrees on masks, from the announcements of all members, by number. With
    /// [`needs_commitments`](Self::needs_commitments) also from all commitments, which arrived before this member
    /// announced its key.
    ///
    /// # Errors
    /// An announcement is missing, forged, not the one committed to, or of a key that hides nothing.
    pub fn agree(
        self,
        announcements: &[Announcement],
        commitments: Option<&[[u8; 32]]>,
    ) -> Result<Masks, MaskingError> {
        let members = self.roster.members();
        let counts = [Some(announcements.len()), commitments.map(<[_]>::len)];
        if let Some(got) = counts.into_iter().flatten().find(|got| *got != members) {
            return Err(MaskingError::Announcements { got, members });
        }
        if self.needs_commitments() && commitments.is_none() {
            return Err(MaskingError::Announcements { got: 0, members });
        }
        if announcements[self.me] != self.announcement {
            return Err(MaskingError::OwnKey { me: self.me });
        }
        for (member, announced) in announcements.iter().enumerate() {
            if !self.roster.is_signed(member, &announced.key, &announced.signature)? {
                return Err(MaskingError::Forged { member });
            }
            if commitments.is_some_and(|all| all[member] != announced.commitment(&self.roster, member)) {
                return Err(MaskingError::Commitment { member });
            }
        }
        let transcript = self.transcript(announcements);
        let others = neighbours(members, self.me, transcript);
        let pairs = others.into_iter().map(|other| self.pair(other, &announcements[other].key, &transcript));
        Ok(Masks::new(pairs.collect::<Result<_, _>>()?))
    }

    /// SHA-256 of the roster and of all keys: what all members have to agree on before their masks cancel.
    fn transcript(&self, announcements: &[Announcement]) -> [u8; 32] {
        let mut hasher = Sha256::new_with_prefix(b"mingle masked sums transcript 1");
        hasher.update(self.roster.digest());
        announcements.iter().for_each(|announced| hasher.update(announced.key));
        hasher.finalize().into()
    }

    fn pair(&self, other: usize, key: &[u8; 32], transcript: &[u8; 32]) -> Result<Pair, MaskingError> {
        let shared = self.secret.diffie_hellman(&PublicKey::from(*key));
        if !shared.was_contributory() {
            return Err(MaskingError::SmallOrder { member: other });
        }
        let (low, high) = (self.me.min(other) as u64, self.me.max(other) as u64);
        let info = [&transcript[..], &low.to_le_bytes(), &high.to_le_bytes()];
        let mut seed = Zeroizing::new([0; 32]);
        let hkdf = Hkdf::<Sha256>::new(Some(b"mingle masked sums pair 2"), shared.as_bytes());
        // 32 bytes are far below the most that HKDF expands to.
        hkdf.expand_multi_info(&info, seed.as_mut()).map_err(|_| MaskingError::SmallOrder { member: other })?;
        Ok(Pair { adds: self.me == low as usize, seed })
    }
}

impl std::fmt::Debug for SumKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SumKey").field("me", &self.me).finish_non_exhaustive()
    }
}
