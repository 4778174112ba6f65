//! What is printed: data on standard output, remarks on standard error, both without characters that a terminal would obey
//! or hide. A reader that stops early, such as `head`, ends the program quietly.

use std::fmt;
use std::io::Write;

use mingle_net::printable::printable;

/// Writes one line to standard output.
pub(crate) fn line(text: impl fmt::Display) {
    let text = text.to_string();
    let written = writeln!(std::io::stdout().lock(), "{}", printable(&text));
    end_if_nobody_reads(written);
}

fn end_if_nobody_reads(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() == std::io::ErrorKind::BrokenPipe
    {
        std::process::exit(0);
    }
}

/// Writes a piece of text to standard output, at once.
pub(crate) fn piece(text: &str) {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(printable(text).as_bytes()).and_then(|()| output.flush());
    end_if_nobody_reads(written);
}

/// Writes one line to standard error, for a person.
pub(crate) fn remark(text: impl fmt::Display) {
    eprintln!("{}", printable(&text.to_string()));
}
