//! What a peer that starts finds of its own past, and whether it may go on from there.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use mingle_protocol::record::Recovered;
use mingle_protocol::{Durability, NodeConfig, Record};

use super::ending::Ending;
use super::store::RecordStore;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::home::Home;

/// What the records in a home mean for a node that is about to start.
#[derive(Debug)]
pub enum Past {
    /// There is none: the node begins.
    None,
    /// The run was cut off or interrupted: the node goes on.
    Unfinished(Box<Recovered>),
    /// The same, with a plan that another one has replaced: the node begins the new one with what it believed, as the first
    /// of its lives there.
    Replaced {
        /// The de-biased model that it had, `[dimension]`.
        belief: Vec<f32>,
    },
    /// The run is over.
    Finished(Ending),
}

impl Past {
    /// Looks into the home. Records of another run that is over make room for this one.
    ///
    /// # Errors
    /// The records cannot be relied on, or they hold the weight of another run that is not over.
    pub fn find(home: &Home, config: &NodeConfig) -> Result<(Self, RecordStore)> {
        remove_discarded(home)?;
        let store = RecordStore::look(&home.records())?;
        let Some(recovered) = store.load()? else {
            return Ok((Self::None, store));
        };
        let ending = Ending::find(home, recovered.record.books.number)?;
        if ending.is_none() && is_replaced(&recovered.record, config) {
            let replaced = Self::Replaced { belief: recovered.record.believed_ratio().to_vec() };
            // Until the new plan has its first record, a crash leaves a newcomer, and newcomers bring the same weight.
            discard(home)?;
            return Ok((replaced, RecordStore::look(&home.records())?));
        }
        let difference = difference(&recovered.record, config);
        match ending {
            Some(ending) if difference.is_none() && config.durability == Durability::On => {
                Ok((Self::Finished(ending), store))
            }
            Some(_) => {
                discard(home)?;
                Ok((Self::None, RecordStore::look(&home.records())?))
            }
            None => match difference {
                Some(difference) => Err(foreign(home, &recovered.record, &difference)),
                None if config.durability == Durability::Off => Err(volatile(home, &recovered.record)),
                None => Ok((Self::Unfinished(Box::new(recovered)), store)),
            },
        }
    }
}

/// Gives up all records in a home, and with them the weight they hold. A crash leaves all of them or none.
pub fn discard(home: &Home) -> Result {
    let (records, discarded) = (home.records(), home.discarded_records());
    remove_discarded(home)?;
    let renamed = match fs::rename(&records, &discarded) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        renamed => renamed.and_then(|()| sync(home.root())),
    };
    renamed.context(ErrorKind::BadInput, format!("cannot give up the records in {}", records.display()))?;
    remove_discarded(home)
}

fn remove_discarded(home: &Home) -> Result {
    let discarded = home.discarded_records();
    match fs::remove_dir_all(&discarded) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(ErrorKind::BadInput, format!("cannot remove {}", discarded.display()))
        }
        _ => Ok(()),
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether a record is of the same training, under a plan that the present one has replaced.
fn is_replaced(record: &Record, config: &NodeConfig) -> bool {
    config.generation.replaces(&record.books.generation)
        && record.books.task == config.task.hash
        && record.numerator.len() == config.initial.len()
}

/// What keeps the node from going on with a record, if anything does.
fn difference(record: &Record, config: &NodeConfig) -> Option<String> {
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
    if books.task != config.task.hash || record.numerator.len() != config.initial.len() {
        return Some("trains something else: another model, number of rounds, seed or kind of data".to_owned());
    }
    None
}

fn foreign(home: &Home, record: &Record, difference: &str) -> Error {
    Error::new(ErrorKind::Refused, format!("{}, and that run {difference}", holds(home, record)))
        .hint("start this peer as it was started then, and it goes on; or give that weight up with --fresh")
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
