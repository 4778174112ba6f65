//! The beginning of the records of another run, beside those of the one before.

use mingle_protocol::record::Recovered;

use super::former_start;
use super::replacement::{Replacement, put_back};
use super::store::{RecordStore, Room, StoreError};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::home::Home;

/// Makes room for the records of a new run beside the existing ones. These are replaced once the first record of the
/// new run is on the disk, and stay if it comes to none, and with them the task, the options and the best model.
///
/// # Errors
/// Those of [`RecordStore::make_room`], or the other files cannot be kept.
pub fn begin_anew(home: &Home, room: Room) -> Result<RecordStore> {
    begin_anew_by(home, |store| store.make_room(room))
}

/// Makes the records of a run that ended those of a longer run, of which `recovered` is the newest one.
///
/// A payload that is owed counts only in a record of the task of the newest record. So all that the run goes on from is
/// written anew under the new task beside the records that are there, and then put in their place: a crash leaves the one
/// or the other. The number of the newest is raised by one, since the mark of the end belongs to the former number.
///
/// # Errors
/// Those of [`begin_anew`] and [`RecordStore::load`].
pub fn prolong(home: &Home, room: Room, ended: &RecordStore, recovered: &mut Recovered) -> Result<RecordStore> {
    let newest = &mut recovered.record;
    let mut records = ended.owed()?;
    records.iter_mut().for_each(|record| record.books.task = newest.books.task);
    newest.books.number += 1;
    newest.payload = None;
    records.push(newest.clone());
    Ok(begin_anew(home, room)?.adopt(&records)?)
}

pub(super) fn begin_anew_by(
    home: &Home,
    make_room: impl FnOnce(&mut RecordStore) -> std::result::Result<(), StoreError>,
) -> Result<RecordStore> {
    put_back(home)?;
    let replacement = Replacement::of(home);
    let doing = format!("cannot remove {}", replacement.next().display());
    replacement.remove_next().context(ErrorKind::BadInput, &doing)?;
    let made = RecordStore::look(replacement.next()).and_then(|mut store| make_room(&mut store).map(|()| store));
    let kept = made.map_err(Error::from).and_then(|store| {
        former_start::keep(home)
            .context(ErrorKind::BadInput, "cannot keep the task and the options of the run before")?;
        Ok(store)
    });
    match kept {
        Ok(store) => Ok(store.in_place_of(replacement)),
        Err(error) => {
            replacement.remove_next().context(ErrorKind::BadInput, &doing)?;
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
