//! Output files that a user names.
//!
//! The file type at a name decides how it is written. A regular or missing file is replaced whole or not at all, by
//! renaming a temporary neighbour. A symbolic link stays, and its target is written. Devices and pipes are written
//! through: to rename a file over `/dev/full` would remove the device. Folders, sockets, and files that this user may
//! not write are refused, by [`OutputFile::at`] before a command begins its work.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, ErrorKind, Result};

/// As many symbolic links in a row as Linux follows.
const MOST_LINKS: usize = 40;

/// A name that can be written to, as far as is known beforehand.
#[derive(Debug)]
pub struct OutputFile {
    /// The path as the user wrote it, for messages.
    named: PathBuf,
    target: OutputKind,
}

/// The kind of file at a name.
#[derive(Debug, PartialEq, Eq)]
enum OutputKind {
    /// No file yet; the path behind all symbolic links.
    Absent(PathBuf),
    /// A regular file; the path behind all symbolic links.
    File(PathBuf),
    /// A device or a pipe, opened by the name given, since the target of `/dev/fd/3` has no other.
    Stream(PathBuf),
    /// The standard output, through a link such as `/dev/stdout`.
    StandardOutput,
}

impl OutputFile {
    /// Inspects `path`, and changes nothing.
    ///
    /// # Errors
    /// The path is a folder or a socket, its folder does not exist, or this user may not write there.
    pub fn at(path: &Path) -> Result<Self> {
        let target = find(path).map_err(|reason| cannot_use(path, &reason))?;
        Ok(Self { named: path.to_path_buf(), target })
    }

    /// Writes all of `bytes`. Former contents of a file are gone after success, and untouched after a failure.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, bytes: &[u8]) -> Result {
        let written = match &self.target {
            OutputKind::Absent(path) => replace(path, None, bytes),
            OutputKind::File(path) => rewrite(path, bytes),
            OutputKind::Stream(path) => OpenOptions::new().write(true).open(path).and_then(|file| pour(file, bytes)),
            OutputKind::StandardOutput => pour(io::stdout().lock(), bytes),
        };
        written.map_err(|error| Error::cannot_write(&self.named, &error))
    }

    /// Writes a file that only its owner can read; devices and pipes are written through.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn write_private(&self, bytes: &[u8]) -> Result {
        let path = match &self.target {
            OutputKind::Absent(path) => path,
            OutputKind::File(_) => return Err(cannot_use(&self.named, "it exists already")),
            OutputKind::Stream(_) | OutputKind::StandardOutput => return self.write(bytes),
        };
        let written = private().open(path).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(|error| Error::cannot_write(&self.named, &error))
    }
}

/// Writes a file that a user named, without checking it beforehand.
///
/// # Errors
/// Those of [`OutputFile::at`], and of the writing.
pub fn write(path: &Path, bytes: &[u8]) -> Result {
    OutputFile::at(path)?.write(bytes)
}

/// Creates a folder that a user named, if it is missing.
///
/// # Errors
/// Another kind of file has the name, or the folder cannot be created or written to.
pub fn make_folder(path: &Path) -> Result {
    check_folder(path)?;
    fs::create_dir_all(path).context(ErrorKind::BadInput, format!("cannot make the folder {}", path.display()))
}

/// Checks a folder that a user named and that may be needed later, without creating it.
///
/// # Errors
/// Another kind of file has the name, or the folder cannot be written to.
pub fn check_folder(path: &Path) -> Result {
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => Err(cannot_use(path, "it is no folder")),
        Ok(_) if !may_write(path) => Err(cannot_use(path, "this user may not write into that folder")),
        _ => Ok(()),
    }
}

fn cannot_use(path: &Path, reason: &str) -> Error {
    Error::new(ErrorKind::BadInput, format!("cannot write {}: {reason}", path.display()))
}

fn find(path: &Path) -> Result<OutputKind, String> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err("it is a folder".to_owned()),
        Ok(found) if is_socket(&found) => Err("it is a socket".to_owned()),
        Ok(found) if is_standard_output(path, &found) => Ok(OutputKind::StandardOutput),
        Ok(found) if found.is_file() => existing(path),
        Ok(_) => Ok(OutputKind::Stream(path.to_path_buf())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => absent(path),
        Err(error) => Err(error.to_string()),
    }
}

fn existing(path: &Path) -> Result<OutputKind, String> {
    // A file that was removed while it is open has no path, but can be opened.
    let Ok(real) = fs::canonicalize(path) else { return Ok(OutputKind::Stream(path.to_path_buf())) };
    if may_write(folder_of(&real)) || may_write(&real) {
        return Ok(OutputKind::File(real));
    }
    Err("this user may not write it".to_owned())
}

/// The target of a file to be created: behind all links, in a folder that exists.
fn absent(path: &Path) -> Result<OutputKind, String> {
    let mut real = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&real) else {
            return absent_in(folder_of(&real)).map(|()| OutputKind::Absent(real.clone()));
        };
        real = folder_of(&real).join(next);
    }
    Err("its symbolic links lead nowhere".to_owned())
}

fn absent_in(folder: &Path) -> Result<(), String> {
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => Err(format!("{} is no folder", folder.display())),
        Ok(_) if !may_write(folder) => Err(format!("this user may not write into {}", folder.display())),
        Ok(_) => Ok(()),
        Err(_) => Err(format!("there is no folder {}", folder.display())),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Replaces a file; if only the file itself, and not its folder, may be written, overwrites it in place.
fn rewrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let before = fs::metadata(path)?.permissions();
    match replace(path, Some(before), bytes) {
        // Busy: the file itself is a mount point, as in containers.
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ResourceBusy) => {
            let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        }
        result => result,
    }
}

/// Writes a temporary neighbour, syncs it and renames it over `path`: whole or not at all.
fn replace(path: &Path, permissions: Option<fs::Permissions>, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    let mut file = neighbour().tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The file is whole either way: a file system that cannot sync a folder is no reason to report a failure.
    if let Ok(folder) = File::open(folder) {
        folder.sync_all().ok();
    }
    Ok(())
}

fn pour(mut sink: impl Write, bytes: &[u8]) -> io::Result<()> {
    sink.write_all(bytes)?;
    sink.flush()
}

/// A temporary file with the permissions of any new one, by the user's umask.
fn neighbour() -> tempfile::Builder<'static, 'static> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mut builder = tempfile::Builder::new();
        builder.permissions(fs::Permissions::from_mode(0o666));
        builder
    }
    #[cfg(not(unix))]
    {
        tempfile::Builder::new()
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

#[cfg(unix)]
fn may_write(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(path, Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn may_write(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.permissions().readonly())
}

#[cfg(unix)]
fn is_socket(found: &fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_socket(&found.file_type())
}

#[cfg(not(unix))]
fn is_socket(_found: &fs::Metadata) -> bool {
    false
}

/// Returns `true` if `path` is a link to the standard output of this process, be it a pipe, a terminal or a file.
#[cfg(unix)]
fn is_standard_output(path: &Path, found: &fs::Metadata) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    if !fs::symlink_metadata(path).is_ok_and(|link| link.is_symlink()) {
        return false;
    }
    let stdout = io::stdout().as_fd().try_clone_to_owned().and_then(|stdout| File::from(stdout).metadata());
    stdout.is_ok_and(|stdout| (stdout.dev(), stdout.ino()) == (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn is_standard_output(_path: &Path, _found: &fs::Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_link_stays_a_link_and_what_it_points_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("far")).unwrap();
        fs::write(at("far/real"), "before").unwrap();
        fs::set_permissions(at("far/real"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("far/real", at("second")).unwrap();
        symlink("second", at("first")).unwrap();
        write(&at("first"), b"after").unwrap();
        assert_eq!(fs::read_link(at("first")).unwrap(), Path::new("second"));
        assert_eq!(fs::read_link(at("second")).unwrap(), Path::new("far/real"));
        assert_eq!(fs::read_to_string(at("far/real")).unwrap(), "after");
        assert_eq!(fs::metadata(at("far/real")).unwrap().permissions().mode() & 0o777, 0o640, "its mode is kept");
        assert_eq!(fs::read_dir(at("far")).unwrap().count(), 1, "nothing temporary is left");
    }

    #[test]
    fn a_link_to_nothing_yet_makes_what_it_points_to() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("new", at("link")).unwrap();
        write(&at("link"), b"made").unwrap();
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "made");
        assert!(at("link").is_symlink());
        symlink("nowhere/new", at("lost")).unwrap();
        assert!(OutputFile::at(&at("lost")).unwrap_err().to_string().contains("there is no folder"));
        symlink("circle", at("circle")).unwrap();
        assert!(OutputFile::at(&at("circle")).is_err());
    }

    #[test]
    fn what_cannot_be_a_file_is_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let _listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        fs::write(at("file"), "kept").unwrap();
        for (path, words) in [
            (folder.path().to_path_buf(), "it is a folder"),
            (at("socket"), "it is a socket"),
            (at("missing/file"), "there is no folder"),
            (at("file/below"), "Not a directory"),
        ] {
            let refused = OutputFile::at(&path).unwrap_err();
            assert!(refused.is(ErrorKind::BadInput) && refused.to_string().contains(words), "{refused}");
        }
        assert!(make_folder(&at("file")).unwrap_err().to_string().contains("it is no folder"));
        assert!(OutputFile::at(&at("file")).unwrap().write_private(b"other").is_err());
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "kept");
    }
}
