//! Masks for sums of all members' vectors: pairwise masks that cancel in the whole sum (Bonawitz et al., CCS 2017;
//! neighbours of a random graph for larger groups, Bell et al., CCS 2020).
//!
//! ```text
//!   y_i = q(x_i) + sum_{j > i} PRG(s_ij) - sum_{j < i} PRG(s_ij)   mod 2^64,       sum_i y_i = sum_i q(x_i)
//! ```
//!
//! `q` is a [`FixedPoint`] encoding of which no sum of all members can overflow. `s_ij` is agreed by X25519 between keys
//! that live as long as one attempt: each member draws one, signs it with its identity key together with the digest of
//! the [`Roster`], and forgets it with the process. So a restarted member has other keys and other masks, and cannot
//! send two different inputs under the same ones; two attempts share nothing either.
//!
//! Every pair derives its mask from the digest of the roster and of all announced keys ([`SumKey::agree`]). A member that
//! was given another list of members, or another key of anybody, therefore derives another mask: the sum is spoiled, and
//! reveals nothing.
//!
//! **Proven** (under CDH in X25519 and AES-256 as a PRP): whoever sees all that is sent, and colludes with all members
//! but two or more honest ones that are connected in the graph of neighbours, learns of their inputs nothing beyond their
//! sum. All pairs are neighbours up to [`MOST_PAIRED`] + 1 members; above, [`exposure`] bounds the probability that
//! colluders cut the graph. **Not promised**: a member that sends rubbish spoils the sum; whoever is alone with colluders
//! has no cover; sums over two sets of members reveal their difference.

mod error;
mod fixed_point;
mod key;
mod lasting_secret;
mod masks;
mod neighbours;
mod policy;
mod roster;
mod signer;

pub use error::MaskingError;
pub use fixed_point::{FixedPoint, LARGEST_EXPONENT, LEAST_EXPONENT, Width};
pub use key::{Announcement, SumKey};
pub use lasting_secret::lasting_secret;
pub use masks::Masks;
pub use neighbours::{MOST_PAIRED, exposure};
pub use policy::{LEAST_MEMBERS, SumPolicy, SumProtection, TooFewMembers};
pub use roster::Roster;
pub use signer::{SeededSigner, SignerError, SumMember, SumSigner};
