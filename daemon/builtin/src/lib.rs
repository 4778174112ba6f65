//! The built-in models of Mingle, as the training of peers and of the lab.
//!
//! A peer with a built-in model agrees with its swarm on the columns and classes of its data ([`data_task`]); the home
//! and the model file store them ([`task_file`], [`meaning`]). [`options::TrainingOptions`] holds a user's settings,
//! with the names and units of the command line. Faults in them are an [`Error`](mingle_peer::Error) that names the
//! option.

pub mod alone;
mod beginning;
pub mod card_file;
pub mod compare_alone;
pub mod data_task;
pub mod errors;
pub mod learners;
pub mod limits;
pub mod listing;
pub mod meaning;
pub mod model_files;
pub mod options;
pub mod round_count;
pub mod task;
pub mod task_card;
pub mod task_file;
mod training;
pub mod verification;
