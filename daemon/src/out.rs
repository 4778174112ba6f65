//! Standard output for data: a reader that stops early, such as `head`, ends the program quietly.

use std::fmt;
use std::io::Write;

/// Writes one line to standard output.
pub(crate) fn line(text: impl fmt::Display) {
    let written = writeln!(std::io::stdout().lock(), "{text}");
    if let Err(error) = written
        && error.kind() == std::io::ErrorKind::BrokenPipe
    {
        std::process::exit(0);
    }
}
