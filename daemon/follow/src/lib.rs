//! Followers of a swarm: programs that get its model while it is trained, and take no part in the training.
//!
//! ```text
//!   member                                     follower
//!     event loop: the ratio at the end of a round        no node of the plan, weight 0
//!        |                                       |
//!     a thread of low priority: file, patch      |
//!        |            Ask: have this, after that round
//!     versions  <--------------------------------|
//!        |------------ patch, or the whole file ----->  checked by BLAKE3, then written
//! ```
//!
//! - [`serving`] is the side of a member: versions of its model, shared by all its followers, within bounds.
//! - [`following`] is the side of a follower: it finds members, follows one of them, and goes on at another.
//! - [`keeping`] keeps the newest model in a file, and runs a command after each.
//! - [`messages`] are the requests and answers between the two.
//!
//! A version is a whole model file as the member would write it. The first one that a follower gets is sent whole, and
//! each later one as a [patch](mingle_patch) against the one before.

pub mod following;
pub mod keeping;
pub mod messages;
pub mod serving;

pub use messages::Precision;
