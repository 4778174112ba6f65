//! Pipes in the place of files: read while they have a writer, given up where none comes.
#![cfg(unix)]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{assert_fails, run, stderr, stdout, text};

/// A pipe in a folder.
fn pipe_in(folder: &Path, name: &str) -> PathBuf {
    let pipe = folder.join(name);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    pipe
}

/// The output of a command while another thread writes into the pipe.
fn run_while_written(arguments: &[&str], pipe: &Path, content: &str) -> String {
    let (path, content) = (pipe.to_owned(), content.to_owned());
    let writer = std::thread::spawn(move || {
        OpenOptions::new().write(true).open(path).unwrap().write_all(content.as_bytes()).unwrap();
    });
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    writer.join().unwrap();
    stdout(&output)
}

#[test]
fn files_that_are_read_once_may_be_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = pipe_in(folder.path(), "pipe");
    let shown = run_while_written(&["topology", "show", text(&pipe)], &pipe, "a b\nb c\nc a\n");
    assert!(shown.contains("nodes      3"), "{shown}");
    let plan = folder.path().join("plan.json");
    let made = run(&["plan", "make", "--topology", "ring:n=4", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let checked = run_while_written(&["plan", "check", text(&pipe)], &pipe, &fs::read_to_string(&plan).unwrap());
    assert!(checked.contains("the plan holds"), "{checked}");
    let rows: String =
        (0..40).map(|row| format!("{row},{},{}\n", row % 7, if row % 2 == 0 { "x" } else { "y" })).collect();
    let data = format!("csv:{}", text(&pipe));
    let sums = run_while_written(&["data", "sums", "--data", &data], &pipe, &format!("width,height,kind\n{rows}"));
    assert!(sums.contains("width"), "{sums}");
}

#[test]
fn a_pipe_that_no_program_writes_to_is_given_up_within_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = pipe_in(folder.path(), "pipe");
    let (path, data) = (text(&pipe), format!("csv:{}", text(&pipe)));
    for arguments in [
        &["topology", "show", path][..],
        &["plan", "check", path],
        &["data", "sums", "--data", &data],
        &["run", "--config", path],
        &["replay", path],
    ] {
        let began = Instant::now();
        assert_fails(&run(arguments), 4, &["no program has opened it to write within 8 s"]);
        assert!(began.elapsed() < Duration::from_secs(20), "{arguments:?}: {:?}", began.elapsed());
    }
    assert_fails(&run(&["topology", "show", "/dev/zero"]), 4, &["it is a device or a socket, and no file"]);
    assert_fails(&run(&["topology", "show", "/dev/null"]), 4, &["the topology is empty"]);
    assert!(run(&["config", "check", "/dev/null"]).status.success());
}
