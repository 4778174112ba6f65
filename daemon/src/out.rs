//! What is printed: data on standard output, remarks on standard error, both without characters that a terminal would obey
//! or hide. A reader that stops early, such as `head`, ends the program quietly.

use std::fmt;
use std::io::Write;

use mingle_net::printable::printable;

/// Writes one line to standard output.
pub(crate) fn line(text: impl fmt::Display) {
    let text = text.to_string();
    let written = writeln!(std::io::stdout().lock(), "{}", printable(&text));
    if let Err(error) = written
        && error.kind() == std::io::ErrorKind::BrokenPipe
    {
        std::process::exit(0);
    }
}

/// Writes one line to standard error, for a person.
pub(crate) fn remark(text: impl fmt::Display) {
    eprintln!("{}", printable(&text.to_string()));
}
