//! The file of a home with the plan that the peer follows, in the forms of this release and of earlier ones.

use std::path::PathBuf;
use std::{fs, io};

use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::{Home, write_file};
use serde::Deserialize;

use super::{CheckedPlan, MAX_OFFER_BYTES, PlanOffer, PlannedBy};
use crate::authority::Authority;
use crate::revocations::Revocations;
use crate::swarm::SwarmIdentity;

/// First bytes of the file; each form has its own number.
pub(crate) const FILE_HEAD: &[u8] = b"mingle.plan-signed/5\n";
/// The former form, without the length in local steps and the author of the plan.
pub(crate) const FOURTH_FILE_HEAD: &[u8] = b"mingle.plan-signed/4\n";
/// The form before the fourth, without the authority certificate, which was the founder alone.
pub(crate) const THIRD_FILE_HEAD: &[u8] = b"mingle.plan-signed/3\n";

impl CheckedPlan {
    /// Stores the plan in the home, for the next start and for other peers.
    pub fn keep(&self, home: &Home) -> Result {
        let path = path(home);
        let bytes = postcard::to_stdvec(&self.offer).context(ErrorKind::Unexpected, "cannot encode the plan")?;
        write_file(&path, &[FILE_HEAD, &bytes].concat())
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
        let read = if let Some(bytes) = bytes.strip_prefix(FILE_HEAD) {
            postcard::from_bytes(bytes)
        } else if let Some(bytes) = bytes.strip_prefix(FOURTH_FILE_HEAD) {
            postcard::from_bytes(bytes).map(FourthForm::offer)
        } else if let Some(bytes) = bytes.strip_prefix(THIRD_FILE_HEAD) {
            postcard::from_bytes(bytes).map(ThirdForm::offer)
        } else {
            let message = format!("{doing}: it is damaged, or another release of Mingle wrote it");
            return Err(Error::new(ErrorKind::Integrity, message).hint(
                "remove the file: a member gets the plan from others, and the operator signs one with mingle plan apply",
            ));
        };
        let offer = read.context(ErrorKind::Integrity, doing)?;
        // It was valid when it was stored, whichever keys may sign now.
        offer.check_past(swarm)
    }
}

/// An offer in the fourth form.
#[derive(Deserialize)]
struct FourthForm {
    third: ThirdForm,
    authority: Authority,
}

impl FourthForm {
    fn offer(self) -> PlanOffer {
        PlanOffer { authority: self.authority, ..self.third.offer() }
    }
}

/// An offer in the third form.
#[derive(Deserialize)]
struct ThirdForm {
    counter: u64,
    first_round: u64,
    plan: Vec<u8>,
    revoked: Revocations,
    previous: [u8; 32],
    signature: Vec<u8>,
}

impl ThirdForm {
    fn offer(self) -> PlanOffer {
        let Self { counter, first_round, plan, revoked, previous, signature } = self;
        PlanOffer {
            counter,
            first_round,
            plan,
            revoked,
            previous,
            signature,
            authority: Authority::default(),
            length: None,
            planner: PlannedBy::Peer,
        }
    }
}

pub(super) fn path(home: &Home) -> PathBuf {
    home.root().join("plan.signed")
}
