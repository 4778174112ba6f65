//! The file of a home with the plan that the peer follows.

use std::path::PathBuf;
use std::{fs, io};

use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::{Home, write_file};

use super::{CheckedPlan, MAX_OFFER_BYTES, PlanOffer};
use crate::swarm::SwarmIdentity;

/// First bytes of the file; each form has its own number.
pub(super) const FILE_HEAD: &[u8] = b"mingle.plan-signed/6\n";

impl CheckedPlan {
    /// Stores the plan in the home, for the next start and for other peers.
    pub fn keep(&self, home: &Home) -> Result {
        let path = path(home);
        let bytes = postcard::to_stdvec(&self.offer).context(ErrorKind::Unexpected, "cannot encode the plan")?;
        write_file(&path, &[FILE_HEAD, &bytes].concat())
    }

    /// Removes the plan stored in the home, if there is one.
    pub fn forget(home: &Home) -> Result {
        match fs::remove_file(path(home)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).context(ErrorKind::BadInput, format!("cannot remove {}", path(home).display()))
            }
            _ => Ok(()),
        }
    }

    /// The plan stored in the home, checked again.
    pub fn kept(home: &Home, swarm: &SwarmIdentity) -> Result<Option<Self>> {
        let path = path(home);
        let doing = format!("cannot read {}", path.display());
        let bytes = match fs::metadata(&path) {
            Ok(metadata) if metadata.len() > (FILE_HEAD.len() + MAX_OFFER_BYTES) as u64 => {
                return Err(Error::new(ErrorKind::Integrity, format!("{doing}: it is too long")));
            }
            Ok(_) => fs::read(&path).context(ErrorKind::BadInput, &doing)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(ErrorKind::BadInput, doing),
        };
        Self::parse(&bytes, swarm, doing).map(Some)
    }

    /// Parses the bytes of such a file; errors begin with `doing`.
    pub(crate) fn parse(bytes: &[u8], swarm: &SwarmIdentity, doing: String) -> Result<Self> {
        let Some(bytes) = bytes.strip_prefix(FILE_HEAD) else {
            let message = format!("{doing}: it is damaged, or another release of Mingle wrote it");
            return Err(Error::new(ErrorKind::Integrity, message).hint(
                "remove the file: a member gets the plan from others, and the operator signs one with mingle plan apply",
            ));
        };
        let offer: PlanOffer = postcard::from_bytes(bytes).context(ErrorKind::Integrity, doing)?;
        // It was valid when it was stored, whichever keys may sign now.
        offer.check_past(swarm)
    }
}

pub(super) fn path(home: &Home) -> PathBuf {
    home.root().join("plan.signed")
}
