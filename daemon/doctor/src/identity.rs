//! The key of a peer.

use mingle_peer::{Home, Identity};

use crate::check::Check;

/// Checks that the key exists, and that only its owner can read it.
pub fn examine(home: &Home) -> Check {
    let path = home.identity();
    if !path.exists() {
        let finding = format!("no key yet at {}", path.display());
        return Check::warn("identity", finding, format!("`mingle init --home {}` makes one", home.root().display()));
    }
    match Identity::load(&path) {
        Ok(identity) => {
            Check::ok("identity", format!("{}, readable by its owner only at {}", identity.peer_id(), path.display()))
        }
        Err(failure) => {
            let advice = format!("`chmod 600 {}` if others can read it; else restore it from a backup", path.display());
            Check::fail("identity", format!("{failure:#}"), advice)
        }
    }
}
