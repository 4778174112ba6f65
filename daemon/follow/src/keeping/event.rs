//! Events of a follower that keeps a file: for programs as JSON, for people as sentences.

use std::fmt;
use std::path::PathBuf;

use mingle_home::units;
use mingle_net::printable::one_line;
use serde::Serialize;

/// An event.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum FollowerEvent {
    /// A member serves this follower.
    Following {
        /// Its PeerId.
        peer: String,
        /// Its task.
        task: String,
    },
    /// The file holds a new model.
    Model {
        /// Rounds over at this model.
        round: u64,
        /// Rounds over when training is done.
        rounds: u64,
        /// Set for the last one.
        #[serde(rename = "final")]
        is_final: bool,
        /// The file.
        file: PathBuf,
        /// Its length.
        bytes: u64,
        /// Bytes in which the model came.
        received_bytes: u64,
        /// Set if it came as patches.
        patch: bool,
        /// BLAKE3 of the file, in hexadecimal.
        blake3: String,
        /// PeerId of the member that it is from.
        peer: String,
    },
    /// The patches of a member did not fit.
    Unfit {
        /// Its PeerId.
        peer: String,
        /// The reason.
        reason: String,
    },
    /// The member that was followed is lost.
    Lost {
        /// Its PeerId.
        peer: String,
        /// The reason.
        reason: String,
    },
    /// The command after a model has ended.
    Exec {
        /// Rounds over at that model.
        round: u64,
        /// The reason if it failed.
        failure: Option<String>,
    },
    /// The user has stopped the follower.
    Stopped {
        /// The reason.
        reason: String,
    },
    /// The follower is done.
    Done {
        /// Rounds over at its last model.
        round: u64,
        /// Set if that is the final one.
        #[serde(rename = "final")]
        is_final: bool,
    },
}

impl fmt::Display for FollowerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Following { peer, task } => write!(f, "following  {peer}, which trains {}", one_line(task)),
            Self::Model { round, rounds, file, received_bytes, patch, .. } => {
                let form = if *patch { "a patch" } else { "a whole file" };
                let received = units::megabytes(*received_bytes);
                write!(f, "model      round {round} of {rounds}, {form} of {received:.3} MB, in {}", file.display())
            }
            Self::Unfit { peer, reason } => write!(f, "unfit      {peer}: {reason}; the whole model is asked for"),
            Self::Lost { peer, reason } => write!(f, "lost       {peer}: {reason}; another member is tried"),
            Self::Exec { round, failure: None } => write!(f, "exec       done for round {round}"),
            Self::Exec { round, failure: Some(failure) } => {
                write!(f, "warning    the command after round {round} failed: {failure}")
            }
            Self::Stopped { reason } => write!(f, "stopped    {reason}"),
            Self::Done { is_final: true, .. } => f.write_str("done       this is the final model"),
            Self::Done { round, .. } => write!(f, "done       the model of round {round}"),
        }
    }
}
