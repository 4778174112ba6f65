//! The home of a peer: the folder with its key, its plan, its model and its books.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libp2p::{Multiaddr, PeerId};
use tempfile::TempDir;

use crate::error::{Context, Error, ErrorKind, Result, write_hint};
use crate::identity::Identity;
pub use crate::owner_only::write_file;
use crate::owner_only::{self, Exposure, create_private};
use crate::small_file;

/// Largest file that names a socket, in bytes; no system has room for a longer path of one.
const LONGEST_SOCKET_PATH: u64 = 256;

/// A peer's home. Everything that a peer reads or writes between starts lies below it.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
    /// Set for a temporary home, which is removed with its last user.
    _temporary: Option<Arc<TempDir>>,
}

/// A lock held while a peer runs: no second process can use the same home.
#[derive(Debug)]
pub struct HomeLock {
    _file: File,
}

impl Home {
    /// The home at `root`, which need not exist. Without `root`: the user's state folder.
    pub fn at(root: Option<&Path>) -> Result<Self> {
        let root = match root {
            Some(root) => root.to_path_buf(),
            None => default_root()?,
        };
        Ok(Self { root, _temporary: None })
    }

    /// A home that is removed with its last user, for a peer that no other program needs later.
    ///
    /// # Errors
    /// The system's folder for temporary files cannot be written.
    pub fn temporary() -> Result<Self> {
        let folder = TempDir::with_prefix("mingle-").context(ErrorKind::BadInput, "cannot create a temporary home")?;
        Ok(Self { root: folder.path().to_path_buf(), _temporary: Some(Arc::new(folder)) })
    }

    /// The PeerId of this home; its key is created if there is none.
    ///
    /// # Errors
    /// The key cannot be read or written.
    pub fn peer_id(&self) -> Result<PeerId> {
        Ok(Identity::load_or_create(&self.identity())?.peer_id())
    }

    /// The home at `root`, created where it is missing, for its owner only.
    ///
    /// # Errors
    /// It cannot be created, or others than its owner can write to it.
    pub fn create(root: Option<&Path>) -> Result<Self> {
        let home = Self::at(root)?;
        create_private(&home.root).map_err(|error| {
            let hint = write_hint(&error).map(|hint| format!("{hint}: --home DIR"));
            Error::new(ErrorKind::BadInput, format!("cannot create the home {}", home.root.display()))
                .caused_by(error)
                .hint_if_any(hint)
        })?;
        owner_only::refuse_if_others_can_write(&home.root)?;
        Ok(home)
    }

    /// The access that other users of the machine have to the home: they can read its folder, or replace it.
    pub fn exposures(&self) -> Vec<Exposure> {
        owner_only::exposures(&self.root)
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The private key of this peer.
    pub fn identity(&self) -> PathBuf {
        self.root.join("identity.key")
    }

    /// The settings of this peer.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The plan that this peer last ran.
    pub fn plan(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// Addresses of this peer while it runs; empty if none are stored.
    pub fn addresses(&self) -> Result<Vec<Multiaddr>> {
        Ok(small_file::read_json(&self.addresses_file(), "holds no addresses")?.unwrap_or_default())
    }

    /// Stores the addresses of this peer, for invitations and for commands beside it.
    pub fn keep_addresses(&self, addresses: &[Multiaddr]) -> Result {
        small_file::write_json(&self.addresses_file(), addresses, "the addresses")
    }

    fn addresses_file(&self) -> PathBuf {
        self.root.join("addresses.json")
    }

    /// The file that describes the task of the records and the model.
    pub fn task(&self) -> PathBuf {
        self.root.join("task.json")
    }

    /// The event file: one JSON object a line, over all starts.
    pub fn events(&self) -> PathBuf {
        self.root.join("events.jsonl")
    }

    /// The event file before the present one, which had become full.
    pub fn older_events(&self) -> PathBuf {
        self.root.join("events.1.jsonl")
    }

    /// The timeline of this peer, one JSON object per line; for `mingle timeline`.
    pub fn timeline(&self) -> PathBuf {
        self.root.join("timeline.jsonl")
    }

    /// The socket in the home, for watching and controlling a running peer.
    pub fn socket(&self) -> PathBuf {
        self.root.join("mingle.sock")
    }

    /// The file that names the socket if there can be none in the home.
    pub fn socket_elsewhere(&self) -> PathBuf {
        self.root.join("mingle.sock.path")
    }

    /// The socket outside the home that this file names, whether or not a process listens there.
    pub fn socket_named_elsewhere(&self) -> Option<PathBuf> {
        let mut text = String::new();
        let file = File::open(self.socket_elsewhere()).ok()?;
        file.take(LONGEST_SOCKET_PATH).read_to_string(&mut text).ok()?;
        Some(PathBuf::from(text.strip_suffix('\n')?))
    }

    /// The socket of a peer that runs in this home, in it or elsewhere.
    pub fn present_socket(&self) -> PathBuf {
        self.socket_named_elsewhere().unwrap_or_else(|| self.socket())
    }

    /// The de-biased model, in PyTorch's names and shapes.
    pub fn model(&self) -> PathBuf {
        self.root.join("model.safetensors")
    }

    /// The model that a run in this home begins with, if `mingle init` was given one.
    pub fn first_model(&self) -> PathBuf {
        self.root.join("first.safetensors")
    }

    /// The best model of the run by a metric, if that is enabled.
    pub fn best_model(&self) -> PathBuf {
        self.root.join("best.safetensors")
    }

    /// The summary of the run, with this peer's side of the mass ledger.
    pub fn summary(&self) -> PathBuf {
        self.root.join("summary.json")
    }

    /// The last rounds of this peer, if it learns in rounds over collectives.
    pub fn rounds(&self) -> PathBuf {
        self.root.join("rounds")
    }

    /// The number of noised changes that ever left this home, for differential privacy.
    pub fn privacy(&self) -> PathBuf {
        self.root.join("privacy.json")
    }

    /// The model that another program trains for this peer.
    pub fn trainer(&self) -> PathBuf {
        self.root.join("trainer.json")
    }

    /// The TCP address for trainers, and the token that they must show.
    pub fn trainer_tcp(&self) -> PathBuf {
        self.root.join("trainer-tcp.json")
    }

    /// The crashes of the trainer that this peer starts.
    pub fn trainer_crashes(&self) -> PathBuf {
        self.root.join("trainer-crashes.json")
    }

    /// Output of the trainer that this peer started.
    pub fn trainer_log(&self) -> PathBuf {
        self.root.join("trainer.log")
    }

    /// The durable side of the mass ledger: the weight of this peer, and the parcels it owes.
    pub fn records(&self) -> PathBuf {
        self.root.join("records")
    }

    /// Records of a run whose first record is not on the disk yet.
    pub fn next_records(&self) -> PathBuf {
        self.root.join("records.next")
    }

    /// Records of the run before, while those of the next one are put in their place, and until they are removed.
    pub fn discarded_records(&self) -> PathBuf {
        self.root.join("records.discarded")
    }

    /// Records that were given up, until they are removed.
    pub fn removed_records(&self) -> PathBuf {
        self.root.join("records.removed")
    }

    /// Returns `true` if the home holds a model, or the records of a run.
    pub fn holds_work(&self) -> bool {
        let is_record = |entry: std::io::Result<fs::DirEntry>| {
            let named = entry.ok().filter(|entry| entry.path().extension().is_some_and(|end| end == "record"));
            named.is_some_and(|entry| entry.path().is_file())
        };
        self.model().exists() || fs::read_dir(self.records()).is_ok_and(|mut entries| entries.any(is_record))
    }

    /// Locks the home for this process.
    pub fn lock(&self) -> Result<HomeLock> {
        let path = self.root.join("lock");
        let doing = format!("cannot lock {}", path.display());
        let mut options = OpenOptions::new();
        let opened = owner_only::open(&path, options.write(true).create(true).truncate(true));
        let file = opened.context(ErrorKind::BadInput, &doing)?;
        match file.try_lock() {
            Ok(()) => Ok(HomeLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                ErrorKind::Refused,
                format!("another mingle process already runs in {}", self.root.display()),
            )
            .hint("if it is just being stopped, try again in some seconds: mingle status shows what it does. Else stop it, or give this peer a home of its own with --home DIR")),
            Err(TryLockError::Error(error)) => Err(no_lock(&path, &error)),
        }
    }

    /// Keeps processes from starting in the home while its files are read. `None` if none ever ran there.
    pub fn hold_still(&self) -> Result<Option<HomeLock>> {
        let path = self.root.join("lock");
        let doing = format!("cannot lock {}", path.display());
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::new(ErrorKind::BadInput, format!("{doing}: {error}"))),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(HomeLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                ErrorKind::Refused,
                format!("a mingle process runs in {}: its records change while they are read", self.root.display()),
            )
            .hint("stop it first; it goes on where it was when it is started again")),
            Err(TryLockError::Error(error)) => Err(no_lock(&path, &error)),
        }
    }

    /// The incarnation of this process in the swarm with the plan `plan_hash`: one more than the last that took part.
    ///
    /// A peer that restarts after a crash must not claim a second starting weight; by its number its neighbours detect
    /// that.
    pub fn next_incarnation(&self, plan_hash: &str) -> Result<u64> {
        let last: Option<u64> = small_file::read_json(&self.incarnation_file(plan_hash), "should hold one number")?;
        Ok(last.unwrap_or(0).saturating_add(1))
    }

    /// Records that an incarnation takes part from now on; on disk before this returns.
    pub fn spend_incarnation(&self, plan_hash: &str, incarnation: u64) -> Result {
        let path = self.incarnation_file(plan_hash);
        create_private(&self.root.join("incarnations")).map_err(|error| Error::cannot_write(&path, &error))?;
        write_file(&path, format!("{incarnation}\n").as_bytes())
    }

    /// Forgets the incarnations of this plan, after a regular end or for a new run: the next start may begin with
    /// weight again.
    pub fn forget_incarnations(&self, plan_hash: &str) -> Result {
        small_file::remove(&self.incarnation_file(plan_hash))
    }

    fn incarnation_file(&self, plan_hash: &str) -> PathBuf {
        self.root.join("incarnations").join(plan_hash)
    }
}

/// The error of a file that can be opened but not locked.
fn no_lock(path: &Path, error: &std::io::Error) -> Error {
    let message = format!(
        "cannot lock {}: {error}. Without locks nothing keeps two processes from training with one key",
        path.display()
    );
    Error::new(ErrorKind::BadInput, message).hint(
        "the file system of this home has none, as a network file system without its lock service: --home DIR names a folder on a \
         local disk",
    )
}

/// `$XDG_STATE_HOME/mingle`, or `~/.local/state/mingle`.
fn default_root() -> Result<PathBuf> {
    use etcetera::BaseStrategy;
    let dirs = etcetera::base_strategy::Xdg::new()
        .context(ErrorKind::BadInput, "cannot find the user's home folder")
        .map_err(|failure| failure.hint("name a folder with --home DIR"))?;
    let state = dirs.state_dir().unwrap_or_else(|| dirs.home_dir().join(".local/state"));
    Ok(state.join("mingle"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_home_without_locks_is_said_to_need_another_file_system() {
        let failure = no_lock(Path::new("home/lock"), &std::io::Error::from(std::io::ErrorKind::Unsupported));
        assert!(failure.is(ErrorKind::BadInput) && failure.to_string().contains("home/lock"), "{failure:#}");
        assert!(failure.next_step().unwrap().contains("local disk"));
    }

    #[test]
    fn an_incarnation_that_took_part_is_not_used_again_and_each_plan_counts_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        assert_eq!(home.next_incarnation("a").unwrap(), 1);
        assert_eq!(home.next_incarnation("a").unwrap(), 1, "it never took part");
        home.spend_incarnation("a", 1).unwrap();
        assert_eq!(home.next_incarnation("a").unwrap(), 2);
        assert_eq!(home.next_incarnation("b").unwrap(), 1);
    }

    #[test]
    fn a_damaged_incarnation_counter_is_an_error_not_a_fresh_start() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        home.spend_incarnation("a", 1).unwrap();
        fs::write(home.root().join("incarnations/a"), "not a number").unwrap();
        let error = home.next_incarnation("a").unwrap_err();
        assert!(error.to_string().contains("incarnations/a"), "{error}");
    }

    #[test]
    fn only_files_of_records_are_work_that_a_home_holds() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let record = home.records().join("0000.record");
        fs::create_dir_all(&record).unwrap();
        assert!(!home.holds_work(), "a folder is no record");
        fs::remove_dir(&record).unwrap();
        fs::write(&record, "").unwrap();
        assert!(home.holds_work());
    }

    #[test]
    fn a_home_in_use_refuses_a_second_process() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let _held = home.lock().unwrap();
        assert!(home.lock().unwrap_err().to_string().contains("already runs"));
        assert!(home.hold_still().unwrap_err().is(ErrorKind::Refused));
    }

    #[test]
    fn a_home_that_is_looked_at_can_be_looked_at_twice_but_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        assert!(home.hold_still().unwrap().is_none(), "no process ever ran here, and no file is made");
        drop(home.lock().unwrap());
        let _looks = [home.hold_still().unwrap().unwrap(), home.hold_still().unwrap().unwrap()];
        assert!(home.lock().is_err());
    }
}
