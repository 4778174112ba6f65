//! The peers to audit, and the contents of their records.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use mingle_protocol::Books;
use mingle_protocol::record::{RecoveryError, SlotContent, Survey, survey};

use crate::error::{Context, Error, ErrorKind, Result};
use crate::home::{Home, HomeLock};
use crate::records::{Contents, RecordFolder, folder_of};

/// The records of one stopped peer.
#[derive(Debug)]
pub(super) struct PeerRecords {
    /// The folder to show: the home, or that of the records alone.
    pub(super) folder: PathBuf,
    /// The home, if the records lie in one.
    pub(super) home: Option<Home>,
    /// The books of the newest record, if it is reliable.
    pub(super) books: Option<Books>,
    /// The fault of the records.
    pub(super) damage: Option<String>,
    /// The slot that a crash left unreadable; its contents were never sent to another peer.
    pub(super) torn: Option<usize>,
    _lock: Option<HomeLock>,
}

/// The location of one peer's records.
struct Location {
    home: Option<Home>,
    records: PathBuf,
}

impl PeerRecords {
    /// Reads the records in these folders. A folder that is named twice is read once.
    pub(super) fn read_all(folders: &[PathBuf]) -> Result<Vec<Self>> {
        let mut peers = Vec::new();
        let mut seen = BTreeSet::new();
        for folder in folders {
            for location in locate(folder)? {
                let place = fs::canonicalize(&location.records).unwrap_or_else(|_| location.records.clone());
                if seen.insert(place) {
                    peers.push(Self::read(location)?);
                }
            }
        }
        Ok(peers)
    }

    fn read(location: Location) -> Result<Self> {
        let Location { home, records } = location;
        let lock = home.as_ref().map(Home::hold_still).transpose()?.flatten();
        let folder = home.as_ref().map_or(records.clone(), |home| home.root().to_path_buf());
        let nothing = Self { folder, home, books: None, damage: None, torn: None, _lock: lock };
        if !records.is_dir() {
            return Ok(nothing);
        }
        let contents = RecordFolder::at(&records)
            .read()
            .context(ErrorKind::BadInput, format!("cannot read the records in {}", records.display()))?;
        Ok(match survey(&contents.slots) {
            Ok(None) => nothing,
            Ok(Some(Survey { newest, torn, .. })) => Self { books: books_in(&contents, newest), torn, ..nothing },
            Err(error) => {
                let damage = Some(describe(&error, &contents));
                // Lost payloads are missing from the models, but the books still contain their weights.
                let RecoveryError::PayloadsLost { books, .. } = error else {
                    return Ok(Self { damage, ..nothing });
                };
                Self { books: Some(*books), damage, ..nothing }
            }
        })
    }
}

fn books_in(contents: &Contents, slot: usize) -> Option<Books> {
    match contents.slots.get(slot) {
        Some(SlotContent::Holds(outline)) => Some(outline.books.clone()),
        _ => None,
    }
}

fn describe(error: &RecoveryError, contents: &Contents) -> String {
    let faults: Vec<String> = contents.faults.iter().map(|(slot, fault)| format!("slot {slot}: {fault}")).collect();
    if faults.is_empty() { error.to_string() } else { format!("{error} ({})", faults.join("; ")) }
}

/// The peers whose records lie in a folder: a home, a folder of records, or a folder of homes.
fn locate(folder: &Path) -> Result<Vec<Location>> {
    let doing = format!("cannot look for records in {}", folder.display());
    fs::read_dir(folder).context(ErrorKind::BadInput, &doing)?;
    if is_home(folder) {
        return Ok(vec![in_home(folder)?]);
    }
    if RecordFolder::at(folder).slots().context(ErrorKind::BadInput, &doing)? > 0 {
        let is_in_home = folder.file_name().is_some_and(|name| name == "records");
        let above = folder.parent().filter(|above| is_in_home && !above.as_os_str().is_empty());
        let home = above.map(|home| Home::at(Some(home))).transpose()?;
        return Ok(vec![Location { home, records: folder.to_path_buf() }]);
    }
    // The folder of `mingle demo` has its homes one level further down.
    let peers = folder.join("peers");
    let homes = homes_in(if peers.is_dir() { &peers } else { folder }).context(ErrorKind::BadInput, doing)?;
    if homes.is_empty() {
        return Err(Error::new(
            ErrorKind::BadInput,
            format!("{} is neither the home of a peer, nor its records, nor a folder of such homes", folder.display()),
        )
        .hint("name the folders that the peers were given with --home DIR"));
    }
    homes.iter().map(|home| in_home(home)).collect()
}

fn in_home(folder: &Path) -> Result<Location> {
    let home = Home::at(Some(folder))?;
    let records = folder_of(&home);
    Ok(Location { home: Some(home), records })
}

/// Returns `true` if the folder is a peer's home, even one without any record yet.
fn is_home(folder: &Path) -> bool {
    folder.join("records").is_dir() || folder.join("identity.key").is_file()
}

fn homes_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut homes = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && is_home(&path) {
            homes.push(path);
        }
    }
    homes.sort();
    Ok(homes)
}
