//! The home of a peer, the folder with all its files, and the errors of this program.
//!
//! | module | contents |
//! | --- | --- |
//! | [`home`] | the folder of one peer: where each file lies, who may use it |
//! | [`identity`] | the private key |
//! | [`records`] | the peer's durable side of the mass ledger |
//! | [`timeline`] | times of a peer's activities |
//! | [`audit`] | checks that the weights on the disks of stopped peers add up |
//! | [`output_file`] | files that a user names, anywhere |
//! | [`error`] | errors, each with a kind, a cause and a hint |
//! | [`units`] | numbers for people: weights, megabytes, time spans |

pub mod audit;
pub mod error;
pub mod home;
pub mod identity;
pub mod output_file;
pub mod records;
pub mod timeline;
pub mod units;

pub use error::{Error, ErrorKind, Result};
pub use home::Home;
pub use identity::Identity;
