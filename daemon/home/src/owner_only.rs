//! Access to a home for its owner alone: to its folder, and to the files in it.
//!
//! A user who can write to the folder of a home can put links and pipes where files are expected. This process would
//! then write where it should not, or wait for ever. A folder that others can write to is refused. As a second line of
//! defence, files are made for their owner alone, and none is written through a symbolic link.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// Description of what is found in the place of a regular file.
const NO_FILE: &str = "it is a folder, a pipe or a device";

/// Creates a folder, and those above it, that only its owner may enter.
pub fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Refuses the folder of a home that others than its owner can write to. A missing folder is accepted, as is one of
/// which the system reports no permissions.
///
/// # Errors
/// Others can write to the folder.
pub fn refuse_if_others_can_write(folder: &Path) -> Result {
    let Some(mode) = mode_of(folder).filter(|mode| mode & 0o022 != 0) else { return Ok(()) };
    let within = folder.join("peer");
    let folder = folder.display();
    Err(Error::new(
        ErrorKind::BadInput,
        format!("others can write to the folder {folder} (mode {mode:04o}), and so to the key and the files of this peer"),
    )
    .hint(format!(
        "chmod go-w {folder}; or a folder within it that mingle makes: --home {}; where chmod changes nothing, the file system knows no \
         owners (vfat, exFAT, some network drives)",
        within.display()
    )))
}

/// A warning of access that others have to a home; the home is used all the same. Prints as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// The access that others have.
    pub finding: String,
    /// The command that ends it.
    pub advice: String,
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.finding, self.advice)
    }
}

/// The access that others have to the home in this folder; empty if it is missing, or the system reports no
/// permissions.
pub(crate) fn exposures(folder: &Path) -> Vec<Exposure> {
    let can_read = mode_of(folder).filter(|mode| mode & 0o055 != 0).map(|mode| Exposure {
        finding: format!("others can look into the home {} (mode {mode:04o})", folder.display()),
        advice: format!("chmod 700 {}", folder.display()),
    });
    let real = fs::canonicalize(folder).unwrap_or_default();
    // In a folder with the sticky bit, as /tmp has it, others can move nothing that is not theirs.
    let is_open = |above: &&Path| mode_of(above).is_some_and(|mode| mode & 0o1002 == 0o002);
    let can_replace = real.ancestors().skip(1).find(is_open).map(|above| Exposure {
        finding: format!("others can put another folder in the place of the home {}", folder.display()),
        advice: format!("chmod o-w {}", above.display()),
    });
    can_read.into_iter().chain(can_replace).collect()
}

/// Opens a file in a home for writing. The file becomes private to its owner, whether new or not. A symbolic link is
/// not followed, and anything but a regular file is refused without waiting for it.
///
/// # Errors
/// There is no regular file at `path`, or it cannot be opened with `options`.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = without_following(options).open(path).map_err(|error| match fs::symlink_metadata(path) {
        _ if error.kind() == io::ErrorKind::AlreadyExists => error,
        Ok(found) if found.is_symlink() => no_file("it is a symbolic link"),
        Ok(found) if !found.is_file() => no_file(NO_FILE),
        _ => error,
    })?;
    if !file.metadata()?.is_file() {
        return Err(no_file(NO_FILE));
    }
    close_to_others(&file);
    Ok(file)
}

/// Opens a file for reading. Anything but a regular file is refused without waiting for it.
///
/// # Errors
/// There is no regular file at `path`, or it cannot be read.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(flags(rustix::fs::OFlags::NONBLOCK));
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file(NO_FILE)) }
}

/// Writes a file that its owner alone can read, whole or not at all: to a temporary file in the same folder, synced,
/// then renamed over `path`.
///
/// # Errors
/// The file cannot be written; the error names it, with a hint for a full disk.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result {
    replace(path, bytes).map_err(|error| Error::cannot_write(path, &error))
}

/// Replaces a file by a temporary one, which is private to its owner and stays so.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync_folder(folder)
}

/// Waits until additions to a folder, and removals from it, are on the disk.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Nothing: Windows opens no folder as a file, and NTFS keeps a journal of names.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

fn no_file(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what}, and no file"))
}

/// Permission bits of a folder; `None` if it is missing, or the system reports none.
#[cfg(unix)]
fn mode_of(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(folder).ok().map(|found| found.permissions().mode() & 0o7777)
}

#[cfg(not(unix))]
fn mode_of(_folder: &Path) -> Option<u32> {
    None
}

/// Makes a file private that an earlier release may have left open to others. Failure is ignored: some file systems
/// have no modes.
#[cfg(unix)]
fn close_to_others(file: &File) {
    use std::os::unix::fs::PermissionsExt;
    if file.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 != 0) {
        let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
    }
}

#[cfg(not(unix))]
fn close_to_others(_file: &File) {}

/// Sets mode 0600 for a new file, and flags not to follow a symbolic link nor to wait for the other end of a pipe.
#[cfg(unix)]
fn without_following(options: &mut OpenOptions) -> &OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600).custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
}

#[cfg(not(unix))]
fn without_following(options: &mut OpenOptions) -> &OpenOptions {
    options
}

/// The flags as the standard library takes them.
#[cfg(unix)]
fn flags(flags: rustix::fs::OFlags) -> i32 {
    flags.bits().cast_signed()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;
    use crate::home::Home;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A folder with this mode.
    fn folder(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("home");
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, mode);
        (above, folder)
    }

    #[test]
    fn a_home_that_others_can_write_is_refused_by_name() {
        for mode in [0o777, 0o1777, 0o770, 0o702] {
            let (_above, folder) = folder(mode);
            let refusal = Home::create(Some(&folder)).unwrap_err();
            let named = folder.display().to_string();
            assert!(refusal.is(ErrorKind::BadInput) && refusal.to_string().contains(&named), "{mode:o}: {refusal}");
            assert!(refusal.next_step().unwrap().contains(&format!("chmod go-w {named};")), "{refusal:#}");
            let key = crate::Identity::load_or_create(&folder.join("identity.key"));
            assert!(key.is_err_and(|refusal| refusal.to_string().contains(&named)), "{mode:o}: no key is made there");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
            set_mode(&folder, mode & !0o022);
            Home::create(Some(&folder)).unwrap();
        }
    }

    #[test]
    fn a_home_that_others_can_read_or_replace_is_warned_of() {
        let (above, folder) = folder(0o755);
        let home = Home::create(Some(&folder)).unwrap();
        let told = home.exposures();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].advice, format!("chmod 700 {}", folder.display()));
        set_mode(&folder, 0o700);
        assert!(home.exposures().is_empty());
        set_mode(above.path(), 0o1777);
        assert!(home.exposures().is_empty(), "as in /tmp");
        set_mode(above.path(), 0o777);
        let told = home.exposures();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].advice, format!("chmod o-w {}", above.path().canonicalize().unwrap().display()));
    }

    #[test]
    fn what_is_written_in_a_home_is_for_its_owner_alone() {
        let (_above, folder) = folder(0o700);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let [whole, opened] = ["whole", "opened"].map(|name| folder.join(name));
        write_file(&whole, b"secret").unwrap();
        open(&opened, OpenOptions::new().append(true).create(true)).unwrap();
        assert_eq!((mode(&whole), mode(&opened)), (0o600, 0o600));
        set_mode(&opened, 0o644);
        open(&opened, OpenOptions::new().append(true)).unwrap();
        assert_eq!(mode(&opened), 0o600, "that of an earlier release is closed");
    }

    #[test]
    fn no_file_of_a_home_is_written_through_a_link_and_none_is_waited_for() {
        let (above, folder) = folder(0o700);
        let precious = above.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        let at = |name: &str| folder.join(name);
        symlink(&precious, at("link")).unwrap();
        symlink(above.path().join("missing"), at("dangling")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        fs::create_dir(at("folder")).unwrap();
        for name in ["link", "dangling", "pipe", "folder"] {
            for options in [
                OpenOptions::new().write(true),
                OpenOptions::new().append(true).create(true),
                OpenOptions::new().write(true).create(true).truncate(true),
                OpenOptions::new().read(true).append(true).create(true),
            ] {
                open(&at(name), options).unwrap_err();
            }
        }
        let refusal = |name| open(&at(name), OpenOptions::new().append(true)).unwrap_err().to_string();
        assert!(refusal("link").contains("symbolic link") && refusal("pipe").contains("and no file"));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        assert!(!above.path().join("missing").exists());
        for name in ["pipe", "folder"] {
            assert!(open_to_read(&at(name)).unwrap_err().to_string().contains("and no file"), "{name}");
        }
        // A whole file takes the place of a link.
        write_file(&at("link"), b"new").unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
    }
}
