//! The beginning of the records of another run, beside those of the one before.

use super::replacement::{Replacement, put_back};
use super::store::{RecordStore, Room, StoreError};
use crate::error::{Context, ErrorKind, Result};
use crate::home::Home;

/// Makes room for the records of a new run beside the existing ones. These are replaced once the first record of the
/// new run is on the disk, and stay if it comes to none.
///
/// # Errors
/// Those of [`RecordStore::make_room`].
pub fn begin_anew(home: &Home, room: Room) -> Result<RecordStore> {
    begin_anew_by(home, |store| store.make_room(room))
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
    match made {
        Ok(store) => Ok(store.in_place_of(replacement)),
        Err(error) => {
            replacement.remove_next().context(ErrorKind::BadInput, &doing)?;
            Err(error.into())
        }
    }
}

#[cfg(test)]
mod tests;
