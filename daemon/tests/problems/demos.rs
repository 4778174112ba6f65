//! Demos of problems: the commands that they print, and what a seed changes.

use std::fs;

use crate::support::{run, stderr, stdout, text};

/// The words of a demo of four peers in this folder.
fn demo(kind: &str, root: &std::path::Path, seed: &str) -> String {
    let output = run(&["demo", "--problem", kind, "--peers", "4", "--seed", seed, "-o", text(root)]);
    assert!(output.status.success(), "{kind}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

#[test]
fn the_command_that_a_convex_demo_prints_solves_its_problem_again() {
    let folder = tempfile::tempdir().unwrap();
    // A folder with a name of its own for each: the command has to lead there.
    for kind in ["sparse-regression", "resource-allocation", "robust-classification"] {
        let root = folder.path().join(kind);
        let told = demo(kind, &root, "3");
        let command = told.lines().find(|line| line.trim_start().starts_with("mingle solve ")).unwrap().trim();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let out = root.join("again");
        let again = run(&[&words[..], &["-o", text(&out)]].concat());
        assert!(again.status.success(), "{command}: {}", stderr(&again));
        assert!(run(&words).status.success(), "{command}");
        // What one process finds is what the peers found.
        let of = |path: std::path::PathBuf| -> serde_json::Value {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            serde_json::from_str(&text).unwrap()
        };
        let peers: Vec<_> = (0..4).map(|node| of(root.join(format!("peers/{node}/solution.json")))).collect();
        assert_eq!(of(out.join("solution.json")), serde_json::json!(peers), "{kind}");
    }
}

#[test]
fn another_seed_gives_the_robust_demo_another_table_and_the_same_seed_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let table = |seed: &str| {
        let told = demo("robust-classification", &folder.path().join("demo"), seed);
        let rows: Vec<String> =
            told.lines().skip_while(|line| !line.starts_with("off by")).map(str::to_owned).collect();
        let rows: Vec<String> = rows.into_iter().take_while(|line| !line.is_empty()).collect();
        assert!(rows.len() > 3, "{told}");
        rows
    };
    let (first, second) = (table("1"), table("2"));
    assert_eq!((first.len(), &first[0]), (second.len(), &second[0]));
    assert_ne!(first, second);
    assert_eq!(first, table("1"));
}
