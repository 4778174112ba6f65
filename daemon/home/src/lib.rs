//! The home of a peer, the folder with all its files, and the errors of this program.
//!
//! | module | contents |
//! | --- | --- |
//! | [`home`] | the folder of one peer: where each file lies, who may use it |
//! | [`identity`] | the private key |
//! | [`records`] | the peer's durable side of the mass ledger |
//! | [`skipped_rounds`] | the rounds that the peer skipped in its run |
//! | [`timeline`] | what the peer did when |
//! | [`audit`] | whether the weights on the disks of stopped peers add up |
//! | [`small_file`] | small files that may be missing, in JSON |
//! | [`owner_only`] | folders and files for their owner alone, never written through links |
//! | [`provisional`] | files of a command that failed, taken back |
//! | [`output_file`] | files that a user names, wherever they lie |
//! | [`error`] | what went wrong, of which kind, why, and what to do |
//! | [`units`] | numbers for people: weights, megabytes, time spans |

pub mod audit;
pub mod error;
pub mod home;
pub mod identity;
pub mod output_file;
pub mod owner_only;
pub mod provisional;
pub mod records;
pub mod skipped_rounds;
pub mod small_file;
pub mod timeline;
pub mod units;

pub use error::{Error, ErrorKind, Result};
pub use home::Home;
pub use identity::Identity;
