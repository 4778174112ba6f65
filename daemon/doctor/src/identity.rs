//! Checks of the key of a peer, and of the access that other users have to its home.

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
            let advice = failure.next_step().unwrap_or("restore it from a backup").to_owned();
            Check::fail("identity", format!("{failure:#}"), advice)
        }
    }
}

/// A warning for each access that other users of the machine have to the home.
pub fn exposures(home: &Home) -> impl Iterator<Item = Check> {
    home.exposures().into_iter().map(|exposure| Check::warn("home", exposure.finding, exposure.advice))
}
