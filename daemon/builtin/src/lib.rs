//! The models that Mingle has built in, as what peers and the lab train.
//!
//! A peer with a built-in model settles with its swarm what the columns and classes of its data mean ([`data_task`]); a home and a model
//! file keep that ([`task_file`], [`meaning`]). What somebody wants is [`options::TrainingOptions`]: names and numbers as people
//! write them. What is wrong with them is an [`Error`](mingle_peer::Error) that names the option of the command line.

pub mod alone;
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
pub mod task;
pub mod task_card;
pub mod task_file;
mod training;
pub mod verification;
