//! The Unix socket of a peer: for its owner only, replaced if a dead process left it, removed at the end.
//!
//! It is in the home. If the path of the home is too long for a socket, or its file system has none (vfat, some network
//! file systems), it is in a private folder under `$XDG_RUNTIME_DIR` or the folder for temporary files, and a file in
//! the home contains its path.

use std::env;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::net::UnixListener;

use super::serve::{Caller, Listener};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::home::{Home, write_file};

/// Mode of the socket: only the owner may connect.
const MODE: u32 = 0o600;
/// Mode of the folder: only the owner may enter.
const FOLDER_MODE: u32 = 0o700;

/// The result of opening the socket.
pub(super) enum Opened {
    /// The open socket.
    Listening(SocketFile, UnixListener),
    /// The reason for which no socket is possible here; the peer runs without one.
    Impossible(String),
}

/// The file of an open socket; dropping it removes the file.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    elsewhere: Option<Elsewhere>,
}

/// The parts of a socket outside the home.
#[derive(Debug)]
struct Elsewhere {
    /// The file in the home that contains the path of the socket.
    pointer: PathBuf,
    /// The folder of the socket, removed with it.
    _folder: TempDir,
}

impl Listener for UnixListener {
    type Stream = tokio::net::UnixStream;

    async fn next(&self) -> io::Result<Self::Stream> {
        self.accept().await.map(|(stream, _)| stream)
    }

    fn caller(stream: &Self::Stream) -> Caller {
        let process = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
        Caller { process: process.filter(|process| *process > 0) }
    }

    fn address(_stream: &Self::Stream) -> Option<IpAddr> {
        None
    }
}

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The files may be gone, with the whole home.
        let _ = fs::remove_file(&self.path);
        if let Some(elsewhere) = &self.elsewhere {
            let _ = fs::remove_file(&elsewhere.pointer);
        }
    }
}

/// Opens the socket of the peer in `home`.
///
/// # Errors
/// Another process answers on the socket, a file that is no socket lies there, or the home cannot be written.
pub(super) fn open(home: &Home) -> Result<Opened> {
    clear_elsewhere(home)?;
    let why = match open_in_home(&home.socket())? {
        Opened::Impossible(why) => why,
        opened => return Ok(opened),
    };
    let folders = [env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), Some(env::temp_dir()), Some("/tmp".into())];
    open_elsewhere(home, folders.into_iter().flatten(), &why)
}

/// Connects to the peer in `home`.
pub(super) async fn connect(home: &Home) -> io::Result<tokio::net::UnixStream> {
    tokio::net::UnixStream::connect(home.present_socket()).await
}

/// Opens the socket at `path`.
///
/// The socket is made in a folder that only its owner may enter, and moved into place once its mode is set: no other
/// user can connect at any time.
fn open_in_home(path: &Path) -> Result<Opened> {
    if SocketAddr::from_pathname(path).is_err() {
        return Ok(Opened::Impossible(format!("the path {} is too long for a socket", path.display())));
    }
    make_way(path)?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    // The name of this folder is shorter than that of the socket itself, so the path is never too long.
    let private = tempfile::Builder::new().prefix(".s").rand_bytes(5).tempdir_in(folder);
    let private = private.context(ErrorKind::BadInput, format!("cannot open the socket {}", path.display()))?;
    let first = private.path().join("s");
    let moved = bind_private(&first).and_then(|listener| fs::rename(&first, path).map(|()| listener));
    Ok(match moved {
        Ok(listener) => Opened::Listening(SocketFile { path: path.to_path_buf(), elsewhere: None }, listener),
        Err(error) => Opened::Impossible(format!("the file system of {} takes no socket ({error})", folder.display())),
    })
}

fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
    Ok(listener)
}

/// Opens the socket in the first of these folders that allows one, and writes its path to a file in the home.
fn open_elsewhere(home: &Home, folders: impl Iterator<Item = PathBuf>, why: &str) -> Result<Opened> {
    for folder in folders.filter(|folder| folder.is_absolute()) {
        let mut builder = tempfile::Builder::new();
        builder.prefix("mingle-").permissions(fs::Permissions::from_mode(FOLDER_MODE));
        let Ok(private) = builder.tempdir_in(&folder) else { continue };
        let path = private.path().join("mingle.sock");
        let (Some(text), Ok(listener)) = (path.to_str(), bind_private(&path)) else { continue };
        let pointer = home.socket_elsewhere();
        write_file(&pointer, format!("{text}\n").as_bytes())?;
        let elsewhere = Some(Elsewhere { pointer, _folder: private });
        return Ok(Opened::Listening(SocketFile { path, elsewhere }, listener));
    }
    Ok(Opened::Impossible(format!(
        "{why}, and neither does XDG_RUNTIME_DIR or the folder for temporary files: this peer runs without its local interface, \
         and mingle status, watch and stop cannot reach it; a home with a short path on a local disk has one"
    )))
}

/// Removes a socket outside the home that a dead process has left.
fn clear_elsewhere(home: &Home) -> Result {
    let Some(path) = home.socket_named_elsewhere() else { return Ok(()) };
    if UnixStream::connect(&path).is_ok() {
        return Err(already_running(home.root()));
    }
    // Leftovers are harmless.
    let _ = fs::remove_file(&path);
    if let Some(folder) = path.parent() {
        let _ = fs::remove_dir(folder);
    }
    let _ = fs::remove_file(home.socket_elsewhere());
    Ok(())
}

fn already_running(home: &Path) -> Error {
    let message = format!("a peer is already running in {}: it answers on its socket", home.display());
    Error::new(ErrorKind::Refused, message).hint("mingle stop ends it; --home DIR gives this peer a home of its own")
}

/// Checks that a file at `path`, if there is one, may be replaced.
fn make_way(path: &Path) -> Result {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::new(ErrorKind::BadInput, format!("cannot look at {}: {error}", path.display()))),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            Err(Error::new(ErrorKind::BadInput, format!("{} is not a socket, and is left alone", path.display()))
                .hint("move it away, or give this peer a home of its own with --home DIR"))
        }
        // The process that made a socket on which no connection succeeds is gone.
        Ok(_) if UnixStream::connect(path).is_err() => Ok(()),
        Ok(_) => Err(already_running(path.parent().unwrap_or(path))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_socket_is_its_owners_alone_and_is_gone_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let path = home.socket();
        let Ok(Opened::Listening(file, _listener)) = open(&home) else { panic!("it opens") };
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        UnixStream::connect(&path).unwrap();
        drop(file);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn the_socket_of_a_dead_process_is_replaced_and_that_of_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let path = home.socket();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists() && UnixStream::connect(&path).is_err(), "left over");
        let Ok(Opened::Listening(_file, _listener)) = open(&home) else { panic!("it opens") };
        let refusal = open(&home).err().unwrap();
        assert!(refusal.is(ErrorKind::Refused) && format!("{refusal:#}").contains("already running"), "{refusal:#}");
        UnixStream::connect(&path).unwrap();
    }

    #[tokio::test]
    async fn what_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let path = home.socket();
        fs::write(&path, "precious").unwrap();
        assert!(open(&home).err().unwrap().is(ErrorKind::BadInput));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_home_that_can_have_no_socket_has_one_elsewhere_that_is_found_through_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("long".repeat(40));
        let home = Home::create(Some(&root)).unwrap();
        let Ok(Opened::Listening(file, _listener)) = open(&home) else { panic!("it opens") };
        let path = home.present_socket();
        assert_eq!(path, file.path());
        assert!(!path.starts_with(&root), "{}", path.display());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        UnixStream::connect(&path).unwrap();
        assert!(open(&home).err().unwrap().is(ErrorKind::Refused), "a second one is refused");
        drop(file);
        assert!(!path.parent().unwrap().exists() && home.present_socket() == home.socket());
    }

    #[tokio::test]
    async fn what_a_killed_process_left_elsewhere_is_removed_and_where_nothing_takes_a_socket_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(&folder.path().join("home"))).unwrap();
        let left = folder.path().join("mingle-killed");
        fs::create_dir(&left).unwrap();
        drop(std::os::unix::net::UnixListener::bind(left.join("mingle.sock")).unwrap());
        fs::write(home.socket_elsewhere(), format!("{}\n", left.join("mingle.sock").display())).unwrap();
        let Ok(Opened::Listening(file, _listener)) = open(&home) else { panic!("it opens") };
        assert_eq!((file.path(), home.present_socket()), (&*home.socket(), home.socket()));
        assert!(!left.exists() && !home.socket_elsewhere().exists());

        let folders = [folder.path().join("nowhere"), folder.path().join("long".repeat(40))];
        fs::create_dir(&folders[1]).unwrap();
        let opened = open_elsewhere(&home, folders.into_iter(), "no room").unwrap();
        let Opened::Impossible(why) = opened else { panic!("neither takes one") };
        assert!(why.starts_with("no room, and neither does XDG_RUNTIME_DIR"), "{why}");
    }
}
