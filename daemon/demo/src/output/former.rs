//! The files of an earlier demo in the folder of a new one. They are set aside until peers of the new one have begun,
//! and put back where it comes to nothing before. Every step can be interrupted: [`put_back`] repairs what is left.
//!
//! ```text
//!   set_aside:  files -> .former-moves/   .former-moves -> .former
//!   put_back:   new files -> .former/failed/   .former -> .former-moves   .former-moves/ -> files
//!   let_go:     .former -> .former-gone   (removed)
//! ```

use std::fs;
use std::io;
use std::path::Path;

/// The earlier files, all of them.
const FORMER: &str = ".former";
/// The earlier files, some of them: the others are in the demo's folder.
const MOVES: &str = ".former-moves";
/// Earlier files that are no longer needed.
const GONE: &str = ".former-gone";
/// The folder of what a demo left that came to nothing, such as its peers' logs.
pub(super) const FAILED: &str = "failed";

/// Returns `true` if earlier files are set aside.
pub(super) fn is_there(root: &Path) -> bool {
    [FORMER, MOVES].iter().any(|name| root.join(name).exists())
}

/// Sets all files aside, if there are any.
pub(super) fn set_aside(root: &Path) -> io::Result<()> {
    if fs::read_dir(root)?.next().is_none() {
        return Ok(());
    }
    let moves = root.join(MOVES);
    fs::create_dir(&moves)?;
    move_all(root, &moves)?;
    fs::rename(moves, root.join(FORMER))
}

/// Puts earlier files back, if any are set aside; what has been written since goes to [`FAILED`].
pub(super) fn put_back(root: &Path) -> io::Result<()> {
    let former = root.join(FORMER);
    let moves = root.join(MOVES);
    if former.exists() {
        let failed = former.join(FAILED);
        if failed.exists() {
            fs::remove_dir_all(&failed)?;
        }
        fs::create_dir(&failed)?;
        move_all(root, &failed)?;
        fs::rename(&former, &moves)?;
    }
    if moves.exists() {
        move_all(&moves, root)?;
        fs::remove_dir(moves)?;
    }
    remove_gone(root)
}

/// Removes earlier files for good.
pub(super) fn let_go(root: &Path) -> io::Result<()> {
    if root.join(FORMER).exists() {
        fs::rename(root.join(FORMER), root.join(GONE))?;
    }
    remove_gone(root)
}

fn remove_gone(root: &Path) -> io::Result<()> {
    let gone = root.join(GONE);
    if gone.exists() { fs::remove_dir_all(gone) } else { Ok(()) }
}

/// Moves what is in a folder, and not set aside. The folder itself stays: it may be reached by a link, or be a mount
/// point.
fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        if [FORMER, MOVES, GONE].iter().all(|own| name != **own) {
            fs::rename(from.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    fn names(folder: &Path) -> BTreeSet<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn of<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
        names.map(str::to_owned).into()
    }

    fn earlier() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("peers")).unwrap();
        ["peers/model", "report"].iter().for_each(|name| fs::write(folder.path().join(name), "earlier").unwrap());
        folder
    }

    fn assert_is_back(root: &Path) {
        for name in ["peers/model", "report"] {
            assert_eq!(fs::read_to_string(root.join(name)).unwrap(), "earlier", "{name}");
        }
    }

    #[test]
    fn files_come_back_and_what_was_written_since_is_kept_apart() {
        let folder = earlier();
        let root = folder.path();
        for time in ["first", "second"] {
            set_aside(root).unwrap();
            assert_eq!(names(root), of([FORMER]));
            fs::write(root.join("report"), time).unwrap();
            put_back(root).unwrap();
            assert_is_back(root);
            assert_eq!(names(root), of([FAILED, "peers", "report"]));
            assert_eq!(fs::read_to_string(root.join(FAILED).join("report")).unwrap(), time);
        }
        set_aside(root).unwrap();
        let_go(root).unwrap();
        assert_eq!(names(root), of([]));
        put_back(root).unwrap();
        assert_eq!(names(root), of([]));
    }

    #[test]
    fn whatever_step_was_interrupted_all_files_come_back() {
        let (half_away, half_back, half_failed) = (earlier(), earlier(), earlier());
        fs::create_dir(half_away.path().join(MOVES)).unwrap();
        fs::rename(half_away.path().join("report"), half_away.path().join(MOVES).join("report")).unwrap();
        // Interrupted between two files that are put back: the same, seen from the other side.
        fs::create_dir(half_back.path().join(MOVES)).unwrap();
        fs::rename(half_back.path().join("peers"), half_back.path().join(MOVES).join("peers")).unwrap();
        // Interrupted while the new files are moved.
        let root = half_failed.path();
        set_aside(root).unwrap();
        fs::create_dir(root.join(FORMER).join(FAILED)).unwrap();
        fs::write(root.join(FORMER).join(FAILED).join("report"), "new").unwrap();
        fs::write(root.join("peers"), "new").unwrap();
        for folder in [half_away, half_back, half_failed] {
            put_back(folder.path()).unwrap();
            assert_is_back(folder.path());
            assert!(!folder.path().join(MOVES).exists() && !folder.path().join(FORMER).exists());
        }
    }
}
