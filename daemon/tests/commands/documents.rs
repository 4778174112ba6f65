//! Documents that the program prints about itself: help, completions, manual pages.

use std::fs;
use std::process::Command;

use crate::support::{assert_fails, run, stderr, stdout, text};

#[test]
fn every_shell_gets_completions_that_know_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success(), "{}", stderr(&output));
        let script = stdout(&output);
        for word in ["fault-test", "topology", "learning-rate", "completions"] {
            assert!(script.contains(word), "{shell} does not complete {word}");
        }
    }
    assert_fails(&run(&["completions", "cmd"]), 2, &["bash"]);
}

#[test]
fn bash_can_read_its_completions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mingle.bash");
    fs::write(&path, stdout(&run(&["completions", "bash"]))).unwrap();
    let Ok(output) = Command::new("bash").arg("-n").arg(&path).output() else {
        eprintln!("skipped: there is no bash here");
        return;
    };
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn there_is_a_manual_page_for_every_command_that_help_names() {
    let folder = tempfile::tempdir().unwrap();
    let pages = run(&["man", "--out", text(folder.path())]);
    assert!(pages.status.success(), "{}", stderr(&pages));
    let help = stdout(&run(&["--help"]));
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 10, "{help}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let page = fs::read_to_string(folder.path().join(format!("mingle-{command}.1"))).unwrap();
        assert!(page.contains(".SH \"EXIT STATUS\""), "{command}");
        assert!(page.contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(help.contains("Exit codes:"), "{help}");
    let run_page = fs::read_to_string(folder.path().join("mingle-run.1")).unwrap();
    assert!(run_page.contains("MINGLE_LEARNING_RATE"), "{run_page}");
    let Ok(output) = Command::new("man").arg("-l").arg(folder.path().join("mingle-run.1")).output() else {
        eprintln!("skipped: there is no man here");
        return;
    };
    assert!(output.status.success() && stdout(&output).contains("EXIT STATUS"), "{}", stderr(&output));
}
