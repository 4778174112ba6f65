//! `-o`: the kind of file that exists under the given name decides how output is written, for every command with this
//! option.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, run, stderr, stdout, text};

/// A command that writes one file.
struct Writer {
    /// Its manual page, by which it is identified.
    page: &'static str,
    /// A name whose ending it understands.
    file: &'static str,
    arguments: Vec<String>,
    /// Set when it refuses to write over a file.
    only_new: bool,
}

impl Writer {
    fn new(page: &'static str, file: &'static str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { page, file, arguments, only_new: false }
    }

    fn write_to(&self, path: &Path) -> Output {
        let mut arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        arguments.extend(["-o", text(path)]);
        run(&arguments)
    }

    #[track_caller]
    fn succeed(&self, path: &Path) {
        let output = self.write_to(path);
        assert!(output.status.success(), "{} -o {}: {}", self.page, path.display(), stderr(&output));
    }
}

/// The inputs of the commands: two peers that were trained, with timelines, and a swarm of two that runs.
struct Fixture {
    pair: Pair,
    operator: PathBuf,
    _running: [RunningPeer; 2],
}

impl Fixture {
    fn new() -> Self {
        let pair = Pair::new();
        let mut peers = pair.start(&["--model", "softmax", "--rounds", "8", "--timeline", "on"]);
        for peer in &mut peers {
            assert_eq!(peer.wait_for("done")["round"], 8);
            assert_eq!(peer.exit_code(), Some(0));
        }
        let (operator, member) = (pair.file("operator"), pair.file("member"));
        assert!(run(&["init", "--home", text(&operator), "--swarm", "ward7"]).status.success());
        let mut first = RunningPeer::start(&["--home", text(&operator), "--model", "softmax"]);
        first.address();
        let ticket = stdout(&run(&["invite", "--home", text(&operator)]));
        let mut second = RunningPeer::join(ticket.trim(), &["--home", text(&member), "--model", "softmax"]);
        second.wait_for("admitted");
        let waited = run(&["wait", "--home", text(&operator), "--for", "waiting=1"]);
        assert!(waited.status.success(), "{}", stderr(&waited));
        Self { pair, operator, _running: [first, second] }
    }

    fn writers(&self) -> Vec<Writer> {
        let (plan, home) = (self.pair.plan(), self.pair.home(0));
        let peer = stdout(&run(&["id", "--home", text(&home)]));
        let binding = format!("0={}", peer.trim());
        let rows = self.pair.file("rows.csv");
        fs::write(&rows, "height,kind\n1,x\n2,y\n3,x\n4,y\n5,x\n").unwrap();
        let table = format!("csv:{}", rows.display());
        let mut bugreport = Writer::new("mingle-bugreport.1", "report.tar", &["bugreport", "--home", text(&home)]);
        bugreport.only_new = true;
        vec![
            Writer::new("mingle-plan-make.1", "plan.json", &["plan", "make", "--topology", "ring:n=4"]),
            Writer::new("mingle-plan-bind.1", "plan.json", &["plan", "bind", text(&plan), "--peer", &binding]),
            Writer::new("mingle-plan-draw.1", "plan.svg", &["plan", "draw", text(&plan)]),
            Writer::new("mingle-topology-convert.1", "ring.json", &["topology", "convert", "ring:n=4"]),
            Writer::new("mingle-topology-generate.1", "ring.graphml", &["topology", "generate", "ring:n=4"]),
            Writer::new("mingle-timeline.1", "timeline.svg", &["timeline", text(&home)]),
            Writer::new("mingle-data-card.1", "card.json", &["data", "card"]),
            Writer::new("mingle-data-sums.1", "sums.json", &["data", "sums", "--data", &table]),
            Writer::new("mingle-export.1", "model.safetensors", &["export", "--home", text(&home)]),
            Writer::new("mingle-predict.1", "digits.csv", &["predict", "--home", text(&home), "--data", "digits"]),
            Writer::new("mingle-probe.1", "links.toml", &["probe", "--home", text(&self.operator)]),
            bugreport,
        ]
    }
}

/// Commands whose `-o` is a folder, with all other arguments that they need.
const FOLDER_WRITERS: [(&str, &[&str]); 3] = [
    ("mingle-demo.1", &["demo"]),
    ("mingle-evaluate.1", &["evaluate", concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/evaluation/digits.toml")]),
    ("mingle-solve.1", &["solve", "--problem", "problem.toml", "--plan", "plan.json"]),
];

/// A command that writes a file of a running swarm again and again: `swarms/following.rs` tries it.
const TRIED_ELSEWHERE: &str = "mingle-follow.1";

/// The manual pages, made from the definitions of the command line, that have an option `--output`.
fn pages_with_output() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(&["man", "--out", text(folder.path())]).status.success());
    let pages = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let has_output = |page: &PathBuf| fs::read_to_string(page).unwrap().contains(r"\-\-output");
    pages.filter(has_output).map(|page| page.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn make(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).status().unwrap().success()
}

/// Reads all bytes that a command writes into a pipe.
#[track_caller]
fn read_through_pipe(writer: &Writer, pipe: &Path) -> Vec<u8> {
    assert!(make("mkfifo", &[text(pipe)]));
    let path = pipe.to_path_buf();
    // Bounded: a command that replaces the pipe would leave a reader waiting for ever.
    let reader = thread::spawn(move || Command::new("timeout").args(["60", "cat", text(&path)]).output().unwrap());
    writer.succeed(pipe);
    assert!(fs::symlink_metadata(pipe).unwrap().file_type().is_fifo(), "{}: the pipe is gone", writer.page);
    let read = reader.join().unwrap();
    assert!(read.status.success(), "{}: nothing came through the pipe", writer.page);
    read.stdout
}

/// A device node in a folder of the test: a private /dev/null is number 3, a private /dev/full number 7.
#[track_caller]
fn make_device(path: &Path, minor: &str) {
    assert!(make("mknod", &[text(path), "c", "1", minor]), "only root makes device nodes");
    let opened = fs::OpenOptions::new().write(true).open(path);
    assert!(opened.is_ok(), "this file system lets no devices be used: {opened:?}");
}

#[track_caller]
fn check(writer: &Writer) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(format!("{name}-{}", writer.file));
    let page = writer.page;

    writer.succeed(&at("plain"));
    let plain = fs::read(at("plain")).unwrap();
    assert!(plain.len() > 8, "{page}");
    let starts_alike = |bytes: &[u8]| bytes.get(..8) == plain.get(..8);

    fs::create_dir(folder.path().join("far")).unwrap();
    symlink("far/new", at("to-new")).unwrap();
    writer.succeed(&at("to-new"));
    let far = folder.path().join("far/new");
    assert!(at("to-new").is_symlink() && starts_alike(&fs::read(&far).unwrap()), "{page}");
    if writer.only_new {
        assert_fails(&writer.write_to(&at("to-new")), 4, &["exists already"]);
    } else {
        fs::write(&far, "before").unwrap();
        writer.succeed(&at("to-new"));
        assert!(at("to-new").is_symlink() && starts_alike(&fs::read(&far).unwrap()), "{page}");
    }

    assert!(starts_alike(&read_through_pipe(writer, &at("pipe"))), "{page}");

    fs::create_dir(at("folder")).unwrap();
    assert_fails(&writer.write_to(&at("folder")), 4, &[text(&at("folder")), "it is a folder"]);
    assert_fails(&writer.write_to(&folder.path().join("missing").join(writer.file)), 4, &["there is no folder"]);

    let left: BTreeSet<String> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|name| name == "far" || name.ends_with(writer.file)), "{page} left {left:?}");
}

#[test]
fn every_command_writes_through_links_and_pipes_and_refuses_folders() {
    let fixture = Fixture::new();
    let writers = fixture.writers();
    let pages = writers.iter().map(|writer| writer.page).chain(FOLDER_WRITERS.map(|it| it.0));
    let known: BTreeSet<String> = pages.chain([TRIED_ELSEWHERE]).map(str::to_owned).collect();
    assert_eq!(known, pages_with_output(), "a command with -o is not tried here, or is none any more");
    writers.iter().for_each(check);
}

#[test]
#[ignore = "needs root, to make device nodes"]
fn every_command_writes_to_devices_and_leaves_them_what_they_are() {
    let fixture = Fixture::new();
    for writer in fixture.writers() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(format!("{name}-{}", writer.file));
        make_device(&at("null"), "3");
        make_device(&at("full"), "7");
        writer.succeed(&at("null"));
        assert_fails(&writer.write_to(&at("full")), 4, &[text(&at("full")), "No space left"]);
        for name in ["null", "full"] {
            let kind = fs::symlink_metadata(at(name)).unwrap().file_type();
            assert!(kind.is_char_device(), "{}: the device {name} is gone", writer.page);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{}", writer.page);
    }
}

#[test]
fn what_is_no_folder_is_left_alone_by_commands_that_write_one() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
    assert!(make("mkfifo", &[text(&pipe)]));
    fs::write(&file, "kept").unwrap();
    for (page, arguments) in FOLDER_WRITERS {
        for path in [&pipe, &file] {
            // Refused at once: none of them reads a problem or solves one before.
            let output = run(&[arguments, &["-o", text(path)]].concat());
            assert_fails(&output, 4, &[text(path), "it is no folder"]);
        }
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "{page}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept", "{page}");
    }
}

#[test]
fn a_name_that_cannot_be_written_is_refused_before_anything_is_computed() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(folder.path());
    for arguments in [
        &["plan", "make", "--topology", "no-such-file"][..],
        &["plan", "bind", "no-such-plan", "--peer", "0=x"],
        &["topology", "generate", "no-such-generator"],
        &["timeline", "no-such-home"],
        &["export", "--home", "no-such-home"],
        &["probe", "--home", "no-such-home"],
        &["bugreport", "--home", "no-such-home"],
    ] {
        assert_fails(&run(&[arguments, &["-o", path]].concat()), 4, &[path, "it is a folder"]);
    }
}

#[test]
fn what_goes_to_dev_stdout_goes_where_standard_output_goes() {
    let made = run(&["topology", "generate", "ring:n=4", "-o", "/dev/stdout"]);
    assert_fails(&made, 4, &["the ending of the name"]);
    // Standard output as a pipe, which `run` gives.
    let made = run(&["plan", "make", "--topology", "ring:n=4", "-o", "/dev/stdout"]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(stdout(&made).starts_with('{') && stdout(&made).contains("\nplan       blake3:"), "{}", stdout(&made));
    // A file, by its own name and by that of the standard output.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let script =
        format!("'{}' plan make --topology ring:n=4 -o /dev/stdout > '{}'", env!("CARGO_BIN_EXE_mingle"), text(&path));
    assert!(make("sh", &["-c", &script]));
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.starts_with('{') && written.contains("\nplan       blake3:"), "{written}");
}
