//! Access to the trainer protocol over TCP, by URL and token, for trainers that cannot reach the socket in the home.
//!
//! Both are in `trainer-tcp.json` in the home, which its owner alone can read. The token stays the same from run to
//! run, so that a trainer in another container finds a peer that was restarted.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use mingle_peer::api::{AccessToken, TcpOpening};
use mingle_peer::error::Context;
use mingle_peer::home::write_file;
use mingle_peer::{ErrorKind, Home, Result};
use serde::{Deserialize, Serialize};

const SCHEMA: &str = "mingle.trainer_tcp/1";
/// Bytes of the file at most.
const MAX_BYTES: u64 = 4096;

/// The URL of the peer for trainers over TCP, and the token to show there.
#[derive(Clone, Debug)]
pub(crate) struct TcpAccess {
    pub(crate) url: String,
    pub(crate) token: AccessToken,
}

/// An `TcpAccess` as JSON in the home.
#[derive(Serialize, Deserialize)]
struct AccessFile {
    schema: String,
    url: String,
    token: String,
}

/// The TCP address that the peer of this home opens at `address`, with the token of an earlier run or a new one.
/// `opened` is called with the final address, after the file is written.
///
/// # Errors
/// The operating system gives no random numbers.
pub(crate) fn opening(
    home: &Home,
    address: SocketAddr,
    opened: impl FnOnce(TcpAccess) + Send + 'static,
) -> Result<TcpOpening> {
    let path = home.trainer_tcp();
    let token = match kept(&path) {
        Some(token) => token,
        None => AccessToken::random()?,
    };
    let shown = token.clone();
    let tell = move |address| {
        let access = TcpAccess { url: url(address), token: shown };
        write(&path, &access)?;
        opened(access);
        Ok(())
    };
    Ok(TcpOpening { option: "--trainer-tcp", address, token, opened: Box::new(tell) })
}

/// Removes the file with the token of an earlier run, for a peer that does not serve trainers over TCP.
///
/// # Errors
/// The file cannot be removed.
pub(crate) fn close(home: &Home) -> Result {
    let path = home.trainer_tcp();
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(ErrorKind::BadInput, format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The token of an earlier run; none where the file is missing or malformed, or others may have read it.
fn kept(path: &Path) -> Option<AccessToken> {
    let file = File::open(path).ok()?;
    if !is_private(&file) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    token_in(&bytes)
}

fn token_in(bytes: &[u8]) -> Option<AccessToken> {
    let read: AccessFile = serde_json::from_slice(bytes).ok()?;
    AccessToken::parse(&read.token).filter(|_| read.schema == SCHEMA)
}

#[cfg(unix)]
fn is_private(file: &File) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o077 == 0)
}

#[cfg(not(unix))]
fn is_private(_file: &File) -> bool {
    true
}

fn write(path: &Path, access: &TcpAccess) -> Result {
    let file =
        AccessFile { schema: SCHEMA.to_owned(), url: access.url.clone(), token: access.token.as_str().to_owned() };
    let text = serde_json::to_string(&file).context(ErrorKind::Unexpected, "cannot encode the address for trainers")?;
    write_file(path, format!("{text}\n").as_bytes())
}

/// The URL for a trainer on this machine: the loopback address where the peer listens on all addresses.
fn url(mut address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn written(path: &Path) -> String {
        let access = TcpAccess { url: "http://127.0.0.1:1".to_owned(), token: AccessToken::random().unwrap() };
        write(path, &access).unwrap();
        access.token.as_str().to_owned()
    }

    #[test]
    fn a_token_is_kept_for_the_next_run_unless_others_could_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trainer-tcp.json");
        assert!(kept(&path).is_none());
        let token = written(&path);
        assert_eq!(kept(&path).unwrap().as_str(), token);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            assert!(kept(&path).is_none(), "who has read it might use it");
        }
    }

    #[test]
    fn mutated_files_hold_a_whole_token_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trainer-tcp.json");
        written(&path);
        let sound = fs::read(&path).unwrap();
        mingle_mutations::for_each_input("trainer_tcp", &[sound], |input| {
            assert!(token_in(input).is_none_or(|token| token.as_str().len() == 64));
        });
    }

    #[test]
    fn a_trainer_beside_the_peer_is_told_an_address_that_it_can_call() {
        for (address, expected) in [
            ("127.0.0.1:7718", "http://127.0.0.1:7718"),
            ("0.0.0.0:7718", "http://127.0.0.1:7718"),
            ("[::]:7718", "http://[::1]:7718"),
            ("10.0.1.5:80", "http://10.0.1.5:80"),
        ] {
            assert_eq!(url(address.parse().unwrap()), expected);
        }
    }
}
