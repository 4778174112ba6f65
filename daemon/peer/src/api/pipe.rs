//! The named pipe of a peer on Windows, where Rust has no Unix sockets: for its owner only, gone with its process.
//!
//! The name comes from the path of the home. The descriptor that Windows gives a new pipe lets its creator,
//! administrators and the system write to it. A request has to write, so no other user can ask anything. Connections
//! from other machines are refused.

use std::fs;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use tokio::sync::Mutex;

use super::serve::{Caller, Listener};
use crate::error::{Error, ErrorKind, Result};
use crate::home::Home;

/// The code of Windows for a pipe of which all instances are taken: the next one is about to be made.
const ERROR_PIPE_BUSY: i32 = 231;
/// Pause before a pipe that was busy is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// The result of opening the pipe.
pub(super) enum Opened {
    /// The open pipe.
    Listening(SocketFile, PipeListener),
    /// The reason for which no pipe is possible here; the peer runs without one.
    Impossible(String),
}

/// The name of an open pipe. The pipe itself ends with its listener.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
}

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The instance of the pipe that waits for the next connection.
pub(super) struct PipeListener {
    name: PathBuf,
    waiting: Mutex<NamedPipeServer>,
}

impl Listener for PipeListener {
    type Stream = NamedPipeServer;

    async fn next(&self) -> io::Result<NamedPipeServer> {
        let mut waiting = self.waiting.lock().await;
        waiting.connect().await?;
        let next = ServerOptions::new().create(&self.name)?;
        Ok(mem::replace(&mut waiting, next))
    }

    fn caller(_stream: &NamedPipeServer) -> Caller {
        Caller::default()
    }

    fn address(_stream: &NamedPipeServer) -> Option<IpAddr> {
        None
    }
}

/// Opens the pipe of the peer in `home`.
///
/// # Errors
/// Another process has the pipe.
pub(super) fn open(home: &Home) -> Result<Opened> {
    let name = name(home);
    match ServerOptions::new().first_pipe_instance(true).create(&name) {
        Ok(first) => {
            let listener = PipeListener { name: name.clone(), waiting: Mutex::new(first) };
            Ok(Opened::Listening(SocketFile { path: name }, listener))
        }
        // Windows says so of a name that is taken.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let message = format!("a peer is already running in {}: it has its pipe", home.root().display());
            Err(Error::new(ErrorKind::Refused, message)
                .hint("mingle stop ends it; --home DIR gives this peer a home of its own"))
        }
        Err(error) => Ok(Opened::Impossible(format!(
            "the pipe {} cannot be opened ({error}): this peer runs without its local interface, and mingle status, watch and stop \
             cannot reach it",
            name.display()
        ))),
    }
}

/// Connects to the peer in `home`.
pub(super) async fn connect(home: &Home) -> io::Result<NamedPipeClient> {
    let name = name(home);
    loop {
        match ClientOptions::new().open(&name) {
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY) => tokio::time::sleep(BUSY_PAUSE).await,
            done => return done,
        }
    }
}

/// The name of the pipe of the peer in `home`. Names of pipes are those of the whole machine, and short.
fn name(home: &Home) -> PathBuf {
    let root = home.root();
    let whole = fs::canonicalize(root).or_else(|_| std::path::absolute(root)).unwrap_or_else(|_| root.to_path_buf());
    let hash = blake3::hash(whole.to_string_lossy().to_lowercase().as_bytes());
    PathBuf::from(format!(r"\\.\pipe\mingle-{}", &hash.to_hex()[..32]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_pipe_serves_one_connection_after_another_and_belongs_to_one_peer() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        assert_eq!(connect(&home).await.unwrap_err().kind(), io::ErrorKind::NotFound, "nobody is there");
        let Ok(Opened::Listening(_file, listener)) = open(&home) else { panic!("it opens") };
        assert!(open(&home).err().unwrap().is(ErrorKind::Refused), "one peer for a home");
        for word in [b"one", b"two"] {
            let (client, served) = tokio::join!(connect(&home), listener.next());
            let (mut client, mut served) = (client.unwrap(), served.unwrap());
            client.write_all(word).await.unwrap();
            let mut read = [0; 3];
            served.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, word);
        }
    }
}
