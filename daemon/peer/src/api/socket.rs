//! The Unix socket in a peer's home: for its owner only, replaced when it is left over from a dead process, removed at the
//! end.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use crate::error::{Context, Error, ErrorKind, Result};

/// Only the owner may connect.
const MODE: u32 = 0o600;

/// What came of opening the socket.
pub(super) enum Opened {
    /// It is open.
    Listening(SocketFile, UnixListener),
    /// There can be none here, and why; the peer runs without.
    Impossible(String),
}

/// The file of an open socket; dropping it removes the file.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may be gone, with the whole home.
        let _ = fs::remove_file(&self.0);
    }
}

/// Opens the socket at `path`.
///
/// It is made in a folder that only its owner may enter, and moved into place when its rights are set: at no time can
/// another user connect.
///
/// # Errors
/// Somebody answers there, something that is no socket lies there, or the file system has no sockets.
pub(super) fn open(path: &Path) -> Result<Opened> {
    if SocketAddr::from_pathname(path).is_err() {
        return Ok(Opened::Impossible(format!(
            "the path {} is too long for a socket: this peer runs without its local interface, and mingle status, watch and \
             stop cannot reach it; a home with a shorter path has one",
            path.display()
        )));
    }
    make_way(path)?;
    let doing = format!("cannot open the socket {}", path.display());
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    // Its name is shorter than that of the socket itself, so the path is never too long.
    let private = tempfile::Builder::new().prefix(".s").rand_bytes(5).tempdir_in(folder);
    let private = private.context(ErrorKind::BadInput, &doing)?;
    let first = private.path().join("s");
    let listener = UnixListener::bind(&first).context(ErrorKind::BadInput, &doing)?;
    let moved = fs::set_permissions(&first, fs::Permissions::from_mode(MODE)).and_then(|()| fs::rename(&first, path));
    moved.context(ErrorKind::BadInput, &doing)?;
    Ok(Opened::Listening(SocketFile(path.to_path_buf()), listener))
}

/// Makes sure that what lies at `path` may be replaced.
fn make_way(path: &Path) -> Result {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::new(ErrorKind::BadInput, format!("cannot look at {}: {error}", path.display()))),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            Err(Error::new(ErrorKind::BadInput, format!("{} is not a socket, and is left alone", path.display()))
                .hint("move it away, or give this peer a home of its own with --home DIR"))
        }
        // Whoever made a socket that nobody answers on is gone.
        Ok(_) if UnixStream::connect(path).is_err() => Ok(()),
        Ok(_) => {
            let home = path.parent().unwrap_or(path).display();
            Err(Error::new(
                ErrorKind::Refused,
                format!("a peer is already running in {home}: it answers on its socket"),
            )
            .hint("mingle stop ends it; --home DIR gives this peer a home of its own"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_socket_is_its_owners_alone_and_is_gone_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mingle.sock");
        let Ok(Opened::Listening(file, _listener)) = open(&path) else { panic!("it opens") };
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        UnixStream::connect(&path).unwrap();
        drop(file);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn the_socket_of_a_dead_process_is_replaced_and_that_of_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mingle.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists() && UnixStream::connect(&path).is_err(), "left over");
        let Ok(Opened::Listening(_file, _listener)) = open(&path) else { panic!("it opens") };
        let refusal = open(&path).err().unwrap();
        assert!(refusal.is(ErrorKind::Refused) && format!("{refusal:#}").contains("already running"), "{refusal:#}");
        UnixStream::connect(&path).unwrap();
    }

    #[tokio::test]
    async fn what_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mingle.sock");
        fs::write(&path, "precious").unwrap();
        assert!(open(&path).err().unwrap().is(ErrorKind::BadInput));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn a_path_that_is_too_long_is_said_to_be() {
        let path = Path::new("/tmp").join("long".repeat(40)).join("mingle.sock");
        let Ok(Opened::Impossible(why)) = open(&path) else { panic!("no system has room for that") };
        assert!(why.contains("too long") && why.contains("shorter"), "{why}");
    }
}
