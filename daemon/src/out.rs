//! Output: data on standard output, remarks on standard error, both without characters that a terminal would obey or
//! hide. A reader that stops early, such as `head`, ends the program quietly. A full disk behind standard output ends
//! it like bad input, as the requested output is missing. A remark that cannot be written is dropped: no remark ends a
//! peer.

use std::fmt;
use std::io::{self, ErrorKind, Write};

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
    let mut output = io::stdout().lock();
    writeln!(output, "{}", printable(&text.to_string()))?;
    output.flush()
}

/// Writes a piece of text to standard output, and flushes.
pub(crate) fn piece(text: &str) {
    let mut output = io::stdout().lock();
    end_if_not_written(output.write_all(printable(text).as_bytes()).and_then(|()| output.flush()));
}

/// Writes one line to standard error, for a person.
pub(crate) fn remark(text: impl fmt::Display) {
    let line = format!("{}\n", printable(&text.to_string()));
    // A failure cannot be reported anywhere.
    let _ = io::stderr().lock().write_all(line.as_bytes());
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
