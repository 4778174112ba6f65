//! Output: data on standard output, remarks on standard error, both without characters that a terminal would obey or
//! hide. A reader that stops early, such as `head`, ends the program quietly. A full disk behind standard output ends
//! it like bad input, as the requested output is missing. A remark that cannot be written is dropped: no remark ends a
//! peer.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use mingle_net::printable::printable;

/// Writes one line to standard error, or an empty one, from the arguments of [`format!`].
macro_rules! remark {
    () => { $crate::out::remark("") };
    ($($words:tt)*) => { $crate::out::remark(format_args!($($words)*)) };
}

/// Writes one line to standard output.
pub(crate) fn line(text: impl fmt::Display) {
    end_if_not_written(try_line(text));
}

/// Writes one line to standard output; the caller decides what to do on failure.
pub(crate) fn try_line(text: impl fmt::Display) -> io::Result<()> {
    write_line(Stream::Output, &text.to_string())
}

/// Writes a piece of text to standard output, and flushes.
pub(crate) fn piece(text: &str) {
    let mut output = io::stdout().lock();
    end_if_not_written(output.write_all(printable(text).as_bytes()).and_then(|()| output.flush()));
}

/// Writes one line to standard error, for a person.
pub(crate) fn remark(text: impl fmt::Display) {
    // A failure cannot be reported anywhere.
    let _ = write_line(Stream::Remarks, &text.to_string());
}

/// A standard stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Remarks,
}

/// Streams to which nothing more is written, since their readers stand still: output, then remarks.
static GIVEN_UP: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

/// Writes nothing more to this stream: another thread waits for its reader, perhaps for ever.
pub(crate) fn give_up(stream: Stream) {
    GIVEN_UP[stream as usize].store(true, Ordering::Relaxed);
}

/// Writes one line to a stream, which may wait for its reader.
pub(crate) fn write_line(stream: Stream, line: &str) -> io::Result<()> {
    if GIVEN_UP[stream as usize].load(Ordering::Relaxed) {
        return Err(ErrorKind::TimedOut.into());
    }
    let line = format!("{}\n", printable(line));
    match stream {
        Stream::Output => {
            let mut output = io::stdout().lock();
            output.write_all(line.as_bytes())?;
            output.flush()
        }
        Stream::Remarks => io::stderr().lock().write_all(line.as_bytes()),
    }
}

/// Overwrites the last line of a terminal.
pub(crate) fn progress(text: impl fmt::Display) {
    let _ = write!(io::stderr().lock(), "\r{}", printable(&text.to_string()));
}

/// The exit code if requested output could not be written, after a message; `None` on success, or if its reader has
/// gone.
pub(crate) fn code_if_not_written(written: io::Result<()>) -> Option<u8> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            remark(format_args!("error: cannot write to standard output: {error}"));
            Some(mingle_peer::ErrorKind::BadInput.code())
        }
        _ => None,
    }
}

fn end_if_not_written(written: io::Result<()>) {
    if let Err(error) = written {
        std::process::exit(code_if_not_written(Err(error)).unwrap_or(0).into());
    }
}
