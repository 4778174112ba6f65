//! What a peer keeps on disk, and how its errors are told.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`home`] | the folder of one peer: where each file lies, who may use it |
//! | [`identity`] | the private key |
//! | [`records`] | the peer's durable side of the mass ledger |
//! | [`timeline`] | what the peer did when |
//! | [`output_file`] | files that a user names, wherever they lie |
//! | [`error`] | what went wrong, of which kind, why, and what to do |

pub mod error;
pub mod home;
pub mod identity;
pub mod output_file;
pub mod records;
pub mod timeline;

pub use error::{Error, ErrorKind, Result};
pub use home::Home;
pub use identity::Identity;
