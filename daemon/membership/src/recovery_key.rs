//! The recovery key, which may name another operator, in a file to be kept in a safe. It is made when the swarm is
//! founded, and used when the operator's key is lost or stolen.
//!
//! The file also describes the swarm, so that no other file is needed.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use libp2p::PeerId;
use libp2p::identity::Keypair;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::identity::{refuse_if_new_files_are_open, refuse_if_others_can_read};
use mingle_plaintext::InputFile;
use serde::{Deserialize, Serialize};

use crate::authority::Authority;
use crate::swarm::SwarmIdentity;

const SCHEMA: &str = "mingle.recovery-key/1";
/// Largest size of such a file.
const MAX_BYTES: u64 = 64 << 10;

/// The recovery key, with its swarm.
pub struct RecoveryKey {
    swarm: SwarmIdentity,
    key: Keypair,
}

#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    swarm: SwarmIdentity,
    /// In hexadecimal.
    secret: String,
}

impl RecoveryKey {
    /// Founds a swarm with a recovery key of its own, which is written to a new file that only its owner may read.
    ///
    /// # Errors
    /// The name is not valid, the system gives no random numbers, or the file exists or cannot be written.
    pub fn found(name: &str, operator: PeerId, path: &Path) -> Result<SwarmIdentity> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).context(ErrorKind::Unexpected, "the operating system gives no random numbers")?;
        let text = hex::encode(secret);
        let key = Keypair::ed25519_from_bytes(secret).context(ErrorKind::Unexpected, "cannot make a recovery key")?;
        let swarm = SwarmIdentity::found(name, operator)?.recoverable_by(&key.public().to_peer_id())?;
        let file = File { schema: SCHEMA.to_owned(), swarm: swarm.clone(), secret: text };
        let text = serde_json::to_string_pretty(&file).context(ErrorKind::Unexpected, "cannot encode the key")?;
        write_new(path, format!("{text}\n").as_bytes())?;
        Ok(swarm)
    }

    /// Reads a recovery key.
    ///
    /// # Errors
    /// The file cannot be read, others can read it, or it holds no such key.
    pub fn load(path: &Path) -> Result<Self> {
        let doing = format!("cannot read the recovery key {}", path.display());
        let metadata = fs::metadata(path).context(ErrorKind::BadInput, &doing)?;
        refuse_if_others_can_read(path).map_err(|failure| {
            let copy = "chmod 600 it; where that changes nothing, as on a stick with vfat, copy it to a local disk and chmod 600 the copy";
            failure.hint(copy)
        })?;
        if metadata.len() > MAX_BYTES {
            return Err(Error::new(ErrorKind::Integrity, format!("{doing}: it is too long")));
        }
        let mut text = String::new();
        let file = InputFile::open(path).context(ErrorKind::BadInput, &doing)?;
        file.take(MAX_BYTES).read_to_string(&mut text).context(ErrorKind::BadInput, &doing)?;
        Self::parse(&text, &doing)
    }

    /// Parses the text of a file; errors begin with `doing`.
    pub(crate) fn parse(text: &str, doing: &str) -> Result<Self> {
        let file: File = serde_json::from_str(text).context(ErrorKind::Integrity, doing)?;
        if file.schema != SCHEMA {
            return Err(Error::new(ErrorKind::Integrity, format!("{doing} in the form {SCHEMA}")));
        }
        let swarm = file.swarm.checked()?;
        let mut secret = [0; 32];
        hex::decode_to_slice(&file.secret, &mut secret).context(ErrorKind::Integrity, doing)?;
        let key = Keypair::ed25519_from_bytes(secret).context(ErrorKind::Integrity, doing)?;
        if swarm.recovery() != Some(key.public().to_peer_id()) {
            let message = format!("{doing}: it is not the recovery key of the swarm {}", swarm.name);
            return Err(Error::new(ErrorKind::Integrity, message));
        }
        Ok(Self { swarm, key })
    }

    /// The swarm; of its signing keys only the founder's is known here.
    pub fn swarm(&self) -> &SwarmIdentity {
        &self.swarm
    }

    /// The certificate that names another operator, after all that is in `known`; without a `number`, with the next
    /// one.
    ///
    /// # Errors
    /// The number is not after the last one, no further one exists, or the operator's PeerId names no ed25519 key.
    pub fn succeed(&self, known: &Authority, number: Option<u16>, operator: &PeerId) -> Result<Authority> {
        let next = || {
            known.recovery_number().checked_add(1).ok_or_else(|| {
                Error::new(ErrorKind::Integrity, "the recovery key has named the last operator that there can be")
                    .hint("found a new swarm")
            })
        };
        let number = number.map_or_else(next, Ok)?;
        known.succeed(&self.swarm.id(), number, operator, &self.key)
    }
}

/// Writes a new file that only its owner may read; never replaces a file.
fn write_new(path: &Path, bytes: &[u8]) -> Result {
    let doing = format!("cannot write the recovery key {}", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).context(ErrorKind::BadInput, &doing)?;
    refuse_if_new_files_are_open(file.path(), path).map_err(|failure| {
        failure.hint("write it to a local disk, and move it from there to a medium that is kept in a safe place: there the place alone protects it")
    })?;
    file.write_all(bytes).context(ErrorKind::BadInput, &doing)?;
    file.as_file().sync_all().context(ErrorKind::BadInput, &doing)?;
    file.persist_noclobber(path).context(ErrorKind::BadInput, &doing)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_recovery_key_is_for_its_owner_alone_and_enough_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ward7.recovery");
        let (founder, next) = (PeerId::from(Keypair::generate_ed25519().public()), Keypair::generate_ed25519());
        let mut swarm = RecoveryKey::found("ward7", founder, &path).unwrap();
        assert!(RecoveryKey::found("ward7", founder, &path).is_err(), "there is one already");
        let key = RecoveryKey::load(&path).unwrap();
        assert!(key.swarm().is(&swarm));
        let authority = key.succeed(&Authority::default(), None, &next.public().to_peer_id()).unwrap();
        assert!(swarm.learn(&authority));
        assert_eq!(swarm.operator().unwrap(), next.public().to_peer_id());
        assert!(key.succeed(&authority, Some(1), &founder).unwrap_err().to_string().contains("would not count"));
        assert_eq!(key.succeed(&authority, Some(9), &founder).unwrap().recovery_number(), 9);

        let text = fs::read_to_string(&path).unwrap();
        for damaged in ["", "{}", &text.replace("recovery-key/1", "recovery-key/9"), &text.replace("ward7", "w\\n")] {
            fs::write(&path, damaged).unwrap();
            assert!(RecoveryKey::load(&path).is_err(), "{damaged}");
        }
        fs::write(&path, &text).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let refusal = RecoveryKey::load(&path).err().unwrap().to_string();
            assert!(refusal.contains("can be read by others") && refusal.contains("ward7.recovery"), "{refusal}");
        }
    }
}
