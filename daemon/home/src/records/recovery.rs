//! Recovery at a start: the state that an earlier process left in the home, and whether the node may resume from it.

use mingle_protocol::record::{HostState, Recovered};
use mingle_protocol::{Durability, NodeConfig, Record};

use super::ending::Ending;
use super::replacement::put_back;
use super::store::RecordStore;
use crate::error::{Error, ErrorKind, Result};
use crate::home::Home;

/// The meaning of a home's records for a node that is about to start.
#[derive(Debug)]
pub enum Past {
    /// No earlier run: the node begins.
    None,
    /// An interrupted run: the node resumes.
    Unfinished(Box<Recovered>),
    /// A training under a plan that was replaced, or an earlier run that another one continues. The node begins with
    /// the ratio of that run, in its first incarnation there.
    Replaced {
        /// The ratio of the earlier run, `[dimension]`.
        belief: Vec<f32>,
        /// The state of its training, opaque to the protocol.
        host: HostState,
    },
    /// The run is over.
    Finished(Ending),
}

/// The state found in a home, and the treatment of its records.
#[derive(Debug)]
pub struct Found {
    /// The way in which the node begins.
    pub past: Past,
    /// The records.
    pub store: RecordStore,
    /// Set when the records are to be replaced by [`begin_anew`](super::begin_anew), once there is an initial model.
    pub is_superseded: bool,
    /// Set when the records are of a run that ended, and are to be made those of a longer one by
    /// [`prolong`](super::prolong).
    pub is_prolonged: bool,
}

impl Found {
    /// The state for a run that begins whatever there is in the home.
    ///
    /// # Errors
    /// The records of a start that was interrupted cannot be put back.
    pub fn fresh(home: &Home) -> Result<Self> {
        put_back(home)?;
        let store = RecordStore::look(&home.records())?;
        Ok(Self { past: Past::None, store, is_superseded: true, is_prolonged: false })
    }
}

impl Past {
    /// Reads the home without changing it, except that records are put back which an interrupted start has set aside.
    /// `task_of` returns the hash of the task with another number of rounds: a run that ended in good order resumes if
    /// only that has changed, and there are rounds left. With `continues`, any other run begins with the model of the
    /// earlier one.
    ///
    /// # Errors
    /// The records are unreliable, they hold the weight of another unfinished run or of an ended one that has done as many
    /// rounds, or the model to be continued is missing or has another number of parameters.
    pub fn find(home: &Home, config: &NodeConfig, task_of: impl Fn(u64) -> [u8; 32], continues: bool) -> Result<Found> {
        put_back(home)?;
        let store = RecordStore::look(&home.records())?;
        let Some(mut recovered) = store.load()? else {
            if continues {
                return Err(nothing_to_continue(home));
            }
            return Ok(Found { past: Self::None, store, is_superseded: false, is_prolonged: false });
        };
        let ending = Ending::find(home, recovered.record.books.number)?;
        let is_durable = config.durability == Durability::On;
        let ended_as_a_member = ending.as_ref().filter(|ending| !ending.left && is_durable);
        if let Some(ending) = ended_as_a_member
            && is_of_other_rounds(&recovered.record, config, task_of(ending.rounds_of_task()))
        {
            if recovered.record.books.step / config.schedule.round_length() < config.rounds {
                // The mark of the end belongs to this record; it does not apply to the next one, with a larger number.
                recovered.record.books.task = config.task.hash;
                let past = Self::Unfinished(Box::new(recovered));
                return Ok(Found { past, store, is_superseded: false, is_prolonged: true });
            }
            if !continues {
                return Err(too_few_rounds(home, ending.rounds));
            }
        }
        let continues = continues && difference(&recovered.record, config).is_some();
        if continues && recovered.record.numerator.len() != config.initial.len() {
            return Err(another_size(home, &recovered.record, config.initial.len()));
        }
        if continues || (ending.is_none() && is_replaced(&recovered.record, config)) {
            let Record { books, .. } = &recovered.record;
            let past = Self::Replaced { belief: recovered.record.believed_ratio().to_vec(), host: books.host.clone() };
            // A crash before the first record of the new plan leaves these records.
            return Ok(Found { past, store, is_superseded: true, is_prolonged: false });
        }
        let (past, is_superseded) = match (ending, difference(&recovered.record, config)) {
            (Some(ending), None) if is_durable => (Self::Finished(ending), false),
            (Some(_), _) => (Self::None, true),
            (None, Some(difference)) => return Err(foreign(home, &recovered.record, &difference)),
            (None, None) if !is_durable => return Err(volatile(home, &recovered.record)),
            (None, None) => (Self::Unfinished(Box::new(recovered)), false),
        };
        Ok(Found { past, store, is_superseded, is_prolonged: false })
    }
}

/// Returns `true` if the record belongs to the same training, under a plan that the present one replaces.
fn is_replaced(record: &Record, config: &NodeConfig) -> bool {
    config.generation.replaces(&record.books.generation)
        && record.books.task == config.task.hash
        && record.numerator.len() == config.initial.len()
}

/// Returns `true` if nothing but the number of rounds of the task has changed since a run that ended; `ended` is the
/// hash of its task.
fn is_of_other_rounds(record: &Record, config: &NodeConfig, ended: [u8; 32]) -> bool {
    let books = &record.books;
    books.task == ended
        && books.task != config.task.hash
        && record.numerator.len() == config.initial.len()
        && another_place(record, config).is_none()
}

/// The reason why the node cannot resume from a record; `None` if it can.
fn difference(record: &Record, config: &NodeConfig) -> Option<String> {
    let is_other = record.books.task != config.task.hash || record.numerator.len() != config.initial.len();
    let another_task =
        || is_other.then(|| "trains something else: another model, number of rounds, seed or kind of data".to_owned());
    another_place(record, config).or_else(another_task)
}

/// The plan, generation or node of a record, where it is another one.
fn another_place(record: &Record, config: &NodeConfig) -> Option<String> {
    let books = &record.books;
    if books.generation.plan_hash != config.generation.plan_hash {
        return Some(format!("follows the plan blake3:{}", hex::encode(books.generation.plan_hash)));
    }
    if books.generation != config.generation {
        return Some(format!("is generation {} of this plan", books.generation.counter));
    }
    if books.id != config.id {
        return Some(format!("has this peer as node {}", books.id));
    }
    None
}

fn too_few_rounds(home: &Home, done: u64) -> Error {
    let message =
        format!("the run in {} ended after {done} rounds, and --rounds asks for no more", home.root().display());
    Error::new(ErrorKind::Refused, message).hint(
        "to go on, start all peers with more rounds than that; with --continue they begin another run with its model, \
             and with --fresh without it",
    )
}

fn foreign(home: &Home, record: &Record, difference: &str) -> Error {
    Error::new(ErrorKind::Refused, format!("{}, and that run {difference}", holds(home, record)))
        .hint(
            "start this peer as it was started then, and it goes on; or begin another run with --continue, which takes the model along, \
             or with --fresh, which gives it up: all peers alike",
        )
}

fn nothing_to_continue(home: &Home) -> Error {
    let folder = home.records();
    Error::new(ErrorKind::Refused, format!("--continue: there is no model of an earlier run in {}", folder.display()))
        .hint("leave --continue away, on all peers: a run begins with the model of its founder or its seed")
}

fn another_size(home: &Home, record: &Record, wanted: usize) -> Error {
    let folder = home.records();
    let there = record.numerator.len();
    Error::new(
        ErrorKind::Refused,
        format!(
            "--continue: the model in {} has {there} numbers, and the one to be trained {wanted}",
            folder.display()
        ),
    )
    .hint("train the same model, or begin anew with --fresh")
}

fn volatile(home: &Home, record: &Record) -> Error {
    Error::new(ErrorKind::Refused, format!("{}, and --durability off would forget it", holds(home, record)))
        .hint("start this peer with --durability on, and it goes on; or give that weight up with --fresh")
}

fn holds(home: &Home, record: &Record) -> String {
    let books = &record.books;
    format!(
        "the records in {} hold weight {} of a run that is not over (step {})",
        home.records().display(),
        books.mass,
        books.step
    )
}

#[cfg(test)]
mod tests;
