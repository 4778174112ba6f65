//! Files that a user names, to be read from the beginning to the end: regular files, and pipes that have a writer.
//!
//! Opening a pipe blocks until a program opens it to write, and reading it until something is written. Both happen on a
//! thread of its own here, so that the wait has a limit. A long one is reported while it lasts.

use std::fs::{self, File};
use std::io::{self, Error, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// The longest wait for a program that writes to a pipe.
const NO_WRITER: Duration = Duration::from_secs(8);
/// The longest wait for more from a pipe that has a writer.
const SILENT_WRITER: Duration = Duration::from_secs(60);
/// The silence of a pipe after which the wait is reported.
const LONG_SILENCE: Duration = Duration::from_secs(5);
/// Bytes read from a pipe at once, as many as it holds on Linux.
const CHUNK_BYTES: usize = 64 << 10;

static LONG_WAIT_REPORT: OnceLock<fn(&str)> = OnceLock::new();

/// Sets the function that gets a sentence where a pipe has written nothing for 5 s and is waited for on. The first one set
/// stays, for the whole process; without one nothing is reported.
pub fn report_long_waits_with(report: fn(&str)) {
    let _ = LONG_WAIT_REPORT.set(report);
}

/// An open regular file or pipe, a process substitution such as `<(zcat x.gz)` among them.
#[derive(Debug)]
pub struct InputFile(Source);

#[derive(Debug)]
enum Source {
    Regular(File),
    Pipe(PipeReader),
}

impl InputFile {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// There is no such file, or it is a folder, a socket, or a device other than `/dev/null`, which is an empty file. It
    /// is a pipe, and no program opens it to write within 8 s.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_within(path, NO_WRITER)
    }

    fn open_within(path: &Path, limit: Duration) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        let is_empty = || fs::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null"));
        if found.is_file() || is_empty() {
            return File::open(path).map(|file| Self(Source::Regular(file)));
        }
        if is_pipe(&found) {
            return PipeReader::open(path, limit).map(|pipe| Self(Source::Pipe(pipe)));
        }
        let what = if found.is_dir() { "a folder" } else { "a device or a socket" };
        Err(Error::new(ErrorKind::InvalidInput, format!("it is {what}, and no file")))
    }
}

impl Read for InputFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Source::Regular(file) => file.read(buffer),
            Source::Pipe(pipe) => pipe.read(buffer),
        }
    }
}

#[cfg(unix)]
fn is_pipe(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_found: &fs::Metadata) -> bool {
    false
}

/// A pipe that a thread reads. The thread of a pipe that never gets a writer ends with the process.
#[derive(Debug)]
struct PipeReader {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    path: PathBuf,
    /// The silence after which the wait is reported, and that after which it ends.
    limits: (Duration, Duration),
}

impl PipeReader {
    fn open(path: &Path, limit: Duration) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(1);
        let (path, opened_path) = (path.to_owned(), path.to_owned());
        thread::Builder::new().name("pipe".to_owned()).spawn(move || {
            let mut file = match File::open(opened_path) {
                Ok(file) => file,
                Err(error) => return drop(sender.send(Err(error))),
            };
            // The first chunk is empty: the pipe is open.
            let mut chunk = Vec::new();
            while sender.send(Ok(chunk)).is_ok() {
                chunk = vec![0; CHUNK_BYTES];
                match file.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(length) => chunk.truncate(length),
                    Err(error) => return drop(sender.send(Err(error))),
                }
            }
        })?;
        match chunks.recv_timeout(limit) {
            Ok(opened) => {
                let limits = (LONG_SILENCE, SILENT_WRITER);
                opened.map(|_| Self { chunks, chunk: io::Cursor::default(), path, limits })
            }
            Err(_) => Err(Error::new(
                ErrorKind::TimedOut,
                format!(
                    "it is a pipe, and no program has opened it to write within {} s: a pipe can be read once, while its writer runs",
                    limit.as_secs()
                ),
            )),
        }
    }
}

impl PipeReader {
    /// Waits for the next chunk; reports a long wait once.
    fn next_chunk(&self) -> Result<io::Result<Vec<u8>>, RecvTimeoutError> {
        let (long, limit) = self.limits;
        let rest = match self.chunks.recv_timeout(long) {
            Err(RecvTimeoutError::Timeout) => limit.saturating_sub(long),
            received => return received,
        };
        if let Some(report) = LONG_WAIT_REPORT.get() {
            let path = self.path.display();
            let long = long.as_secs();
            let rest = rest.as_secs();
            report(&format!(
                "{path} is a pipe, and its writer has written nothing for {long} s: it is given up in {rest} s unless it writes or ends"
            ));
        }
        self.chunks.recv_timeout(rest)
    }
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.chunk.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        match self.next_chunk() {
            Ok(chunk) => {
                self.chunk = io::Cursor::new(chunk?);
                self.chunk.read(buffer)
            }
            Err(RecvTimeoutError::Disconnected) => Ok(0),
            Err(RecvTimeoutError::Timeout) => Err(Error::new(
                ErrorKind::TimedOut,
                format!("it is a pipe, and its writer has written nothing for {} s", self.limits.1.as_secs()),
            )),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::Mutex;

    use super::*;

    static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

    /// A folder that holds a pipe.
    struct Pipe(tempfile::TempDir);

    impl Pipe {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
            Self(folder)
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("pipe")
        }
    }

    fn refusal(path: &Path) -> Error {
        InputFile::open_within(path, Duration::from_millis(50)).unwrap_err()
    }

    #[test]
    fn what_has_no_end_is_refused_and_a_pipe_without_a_writer_after_a_while() {
        assert_eq!(refusal(Path::new("/dev/zero")).to_string(), "it is a device or a socket, and no file");
        let mut nothing = String::new();
        InputFile::open(Path::new("/dev/null")).unwrap().read_to_string(&mut nothing).unwrap();
        assert_eq!(nothing, "");
        assert_eq!(refusal(Path::new("/dev")).to_string(), "it is a folder, and no file");
        assert_eq!(refusal(Path::new("/nowhere")).kind(), ErrorKind::NotFound);
        let refused = refusal(&Pipe::new().path());
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        assert!(refused.to_string().contains("no program has opened it to write"), "{refused}");
    }

    #[test]
    fn a_pipe_is_read_to_the_end_of_its_writer_and_a_silent_one_is_given_up() {
        let pipe = Pipe::new();
        let path = pipe.path();
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let bytes: Vec<u8> = (0..200_000_u32).map(|index| index.to_le_bytes()[0]).collect();
        let written = bytes.clone();
        let writer = thread::spawn(move || {
            let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.write_all(&written).unwrap();
            finished.recv().unwrap();
        });
        let mut file = InputFile::open(&pipe.path()).unwrap();
        let mut read = vec![0; bytes.len()];
        file.read_exact(&mut read).unwrap();
        assert!(read == bytes, "all of it, in order");
        let Source::Pipe(reader) = &mut file.0 else { panic!("it is a pipe") };
        reader.limits = (Duration::from_millis(20), Duration::from_millis(50));
        report_long_waits_with(|sentence| REPORTED.lock().unwrap().push(sentence.to_owned()));
        let silent = file.read(&mut read).unwrap_err();
        let reported = REPORTED.lock().unwrap();
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].starts_with(pipe.path().to_str().unwrap()), "{reported:?}");
        assert!(silent.to_string().contains("has written nothing"), "{silent}");
        finish.send(()).unwrap();
        writer.join().unwrap();
        assert_eq!(file.read(&mut read).unwrap(), 0, "its writer has ended");
    }
}
