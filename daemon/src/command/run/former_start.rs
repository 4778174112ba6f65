//! The files of a home from which its next start takes the task and the options, as they were before this start. A start
//! that is refused before the peer has joined puts them back: options that were refused decide no later start.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mingle_peer::error::Context;
use mingle_peer::events::Event;
use mingle_peer::home::write_file;
use mingle_peer::records::counting_file;
use mingle_peer::{Error, ErrorKind, Home};

use crate::config::remembered_options_path;

/// The files before this start, each `None` where there was none.
pub(super) struct FormerStart {
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
    has_joined: Arc<AtomicBool>,
}

impl FormerStart {
    /// Reads the files of a home.
    pub(super) fn of(home: &Home) -> Self {
        let files = [remembered_options_path(home), home.task(), home.trainer()];
        let files =
            files.map(|path| (fs::read(counting_file(home, &path)).ok(), path)).map(|(content, path)| (path, content));
        Self { files: files.into(), has_joined: Arc::default() }
    }

    /// A function that looks for the event of joining. If this start solves a problem, members have compared it before a plan
    /// names them.
    pub(super) fn watch(&self, solves: bool) -> impl FnMut(&Event) + Send + use<> {
        let has_joined = Arc::clone(&self.has_joined);
        move |event| {
            if matches!(event, Event::Joined { .. }) || solves && matches!(event, Event::Plan { .. }) {
                has_joined.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Puts the files back if this error refused the start. Failures are ignored: there is another one to report.
    pub(super) fn put_back_after(self, error: &Error) {
        let is_refusal = matches!(error.kind(), ErrorKind::Refused | ErrorKind::BadInput);
        if !is_refusal || self.has_joined.load(Ordering::Relaxed) {
            return;
        }
        for (path, content) in self.files {
            let _ = match content {
                Some(content) => write_file(&path, &content),
                None => fs::remove_file(&path).context(ErrorKind::Unexpected, "cannot remove a file"),
            };
        }
    }
}
