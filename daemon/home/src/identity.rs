//! The key pair of this peer: created at the first start, readable by its owner only, never replaced silently.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use libp2p::PeerId;
use libp2p::identity::{Keypair, PublicKey};

use crate::error::{Context, Error, ErrorKind, Result};
use crate::owner_only::refuse_if_others_can_write;

/// An ed25519 key pair, which determines the PeerId.
pub struct Identity {
    keypair: Keypair,
    /// `true` if this call created it.
    pub created: bool,
}

impl Identity {
    /// Reads the key at `path`; makes one where there is none.
    ///
    /// # Errors
    /// The file is no key, others can read or replace it, or it cannot be read or written.
    pub fn load_or_create(path: &Path) -> Result<Self> {
        refuse_if_others_can_write(folder_of(path))?;
        match fs::read(path) {
            Ok(bytes) => Self::decode(path, &bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::create(path),
            Err(error) => Err(unreadable(path, &error)),
        }
    }

    /// Reads the key at `path`, which must exist.
    ///
    /// # Errors
    /// The file is no key, others can read or replace it, or it cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        refuse_if_others_can_write(folder_of(path))?;
        let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
        Self::decode(path, &bytes)
    }

    /// The key pair, for the transports.
    pub fn keypair(&self) -> &Keypair {
        &self.keypair
    }

    /// The PeerId of this peer.
    pub fn peer_id(&self) -> PeerId {
        self.keypair.public().to_peer_id()
    }

    fn decode(path: &Path, bytes: &[u8]) -> Result<Self> {
        refuse_if_others_can_read(path)?;
        Self::parse(path, bytes)
    }

    /// Decodes the bytes of the file at `path`.
    fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let keypair = Keypair::from_protobuf_encoding(bytes)
            .context(ErrorKind::Integrity, format!("{} does not hold a key of this program", path.display()))
            .map_err(|failure| {
                failure.hint("restore it from a backup; a peer with a new key needs a plan that names it")
            })?;
        Ok(Self { keypair, created: false })
    }

    fn create(path: &Path) -> Result<Self> {
        // A temporary file is created with mode 0600, and is never visible half-written.
        Self::create_by(path, |folder| tempfile::NamedTempFile::new_in(folder))
    }

    fn create_by(path: &Path, make: impl FnOnce(&Path) -> io::Result<tempfile::NamedTempFile>) -> Result<Self> {
        let doing = format!("cannot write the key {}", path.display());
        let keypair = Keypair::generate_ed25519();
        let bytes = keypair.to_protobuf_encoding().context(ErrorKind::Unexpected, &doing)?;
        let folder = folder_of(path);
        let mut file = make(folder).context(ErrorKind::BadInput, &doing)?;
        // Before the key is in it: where files have no modes, others could read it from now on.
        refuse_if_new_files_are_open(file.path(), path)?;
        file.write_all(&bytes).context(ErrorKind::BadInput, &doing)?;
        file.as_file().sync_all().context(ErrorKind::BadInput, &doing)?;
        file.persist_noclobber(path).context(ErrorKind::BadInput, &doing)?;
        Ok(Self { keypair, created: true })
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::BadInput, format!("cannot read the key {}: {error}", path.display()))
        .hint("`mingle init` creates a key, with --home DIR where you want it")
}

/// Advice for a file system on which every file is open to others.
const NO_OWNERS: &str =
    "the file system knows no owners (vfat, exFAT, some network drives): --home DIR names a home on another";

/// Refuses a key that others than its owner can read.
///
/// # Errors
/// Others can read it, or its permissions are unknown.
pub fn refuse_if_others_can_read(path: &Path) -> Result {
    let Some(mode) = open_mode_of(path)? else { return Ok(()) };
    let key = path.display();
    Err(Error::new(ErrorKind::BadInput, format!("the key {key} can be read by others (mode {mode:04o})"))
        .hint(format!("chmod 600 {key}; where that changes nothing, {NO_OWNERS}")))
}

/// Refuses to make the key at `key`, where the file that was just made for it can be read by others.
///
/// # Errors
/// Others can read the file, or its permissions are unknown.
pub fn refuse_if_new_files_are_open(file: &Path, key: &Path) -> Result {
    let Some(mode) = open_mode_of(file)? else { return Ok(()) };
    let message =
        format!("no key is made at {}: others could read it, as a new file has mode {mode:04o}", key.display());
    Err(Error::new(ErrorKind::BadInput, message).hint(NO_OWNERS))
}

/// The mode of a file that others than its owner can read; `None` if they cannot.
#[cfg(unix)]
fn open_mode_of(path: &Path) -> Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt;
    let found = fs::metadata(path).context(ErrorKind::BadInput, format!("cannot read the key {}", path.display()))?;
    let mode = found.permissions().mode() & 0o7777;
    Ok(Some(mode).filter(|mode| mode & 0o077 != 0))
}

/// No mode: this system has no permissions that show whether others can read a file.
#[cfg(not(unix))]
fn open_mode_of(_path: &Path) -> Result<Option<u32>> {
    Ok(None)
}

/// The public key in a PeerId: ed25519 keys are short enough to be contained in it. `None` for other keys.
pub fn public_key(peer: &PeerId) -> Option<PublicKey> {
    let bytes = peer.to_bytes();
    let [0, length, key @ ..] = &bytes[..] else { return None };
    let key = PublicKey::try_decode_protobuf(key).ok().filter(|_| key.len() == usize::from(*length))?;
    (key.to_peer_id() == *peer).then_some(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_is_made_once_and_read_back_after() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.key");
        let first = Identity::load_or_create(&path).unwrap();
        let second = Identity::load_or_create(&path).unwrap();
        assert!(first.created && !second.created);
        assert_eq!(first.peer_id(), second.peer_id());
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.key");
        Identity::load_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Identity::load(&path).err().unwrap();
        assert!(error.to_string().contains("can be read by others"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn no_key_is_written_where_new_files_are_open_to_others() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.key");
        let without_modes = |folder: &Path| -> io::Result<tempfile::NamedTempFile> {
            let file = tempfile::NamedTempFile::new_in(folder)?;
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o755))?;
            Ok(file)
        };
        let refusal = Identity::create_by(&path, without_modes).err().unwrap();
        assert!(refusal.to_string().contains("mode 0755") && refusal.to_string().contains("identity.key"), "{refusal}");
        assert!(refusal.next_step().unwrap().contains("vfat"), "{refusal:#}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays");
    }

    #[test]
    fn a_damaged_key_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.key");
        Identity::load_or_create(&path).unwrap();
        fs::write(&path, b"garbage").unwrap();
        assert!(Identity::load_or_create(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"garbage");
    }
    #[test]
    fn mutated_keys_are_refused_or_sign_in_their_name() {
        let sound = Keypair::generate_ed25519().to_protobuf_encoding().unwrap();
        let mut turn = 0_u32;
        mingle_mutations::for_each_input("identity_key", &[sound], |input| {
            let Ok(identity) = Identity::parse(Path::new("identity.key"), input) else { return };
            turn += 1;
            // Signing and checking take longer than everything else.
            if turn.is_multiple_of(64) {
                let signature = identity.keypair().sign(input).unwrap();
                assert!(public_key(&identity.peer_id()).unwrap().verify(input, &signature));
            }
        });
    }
}
