//! What is printed: data on standard output, remarks on standard error, both without characters that a terminal would obey
//! or hide. A reader that stops early, such as `head`, ends the program quietly; a full disk behind standard output ends it as
//! bad input does, for what was asked for is not there. A remark that cannot be written is dropped: no remark ends a peer.

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

/// Writes one line to standard output, for a program that goes on or ends with another code where it cannot be written.
pub(crate) fn try_line(text: impl fmt::Display) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{}", printable(&text.to_string()))?;
    output.flush()
}

/// Writes a piece of text to standard output, at once.
pub(crate) fn piece(text: &str) {
    let mut output = io::stdout().lock();
    end_if_not_written(output.write_all(printable(text).as_bytes()).and_then(|()| output.flush()));
}

/// Writes one line to standard error, for a person.
pub(crate) fn remark(text: impl fmt::Display) {
    let line = format!("{}\n", printable(&text.to_string()));
    // Nobody is left to be told.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Writes over the last line of a terminal.
pub(crate) fn progress(text: impl fmt::Display) {
    let _ = write!(io::stderr().lock(), "\r{}", printable(&text.to_string()));
}

/// The exit code of an output that was asked for and is not there, after saying so; none where it is, or where its reader has gone.
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
