//! `mingle simulate --trainer`: the scripts of peers, simulated.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::trainer::SHELL_TRAINER;
use crate::support::{assert_fails, mingle, run, stderr, stdout, text};
use serde_json::{Value, json};

const ANSWER: &str = "head -c 8 /dev/zero | call \"http://localhost/v1/trainer/exchange";
/// First words of the loop in which the shell trainer trains.
const LOOP: &str = "while [";

/// The shell trainer with other words in place of these, which occur once.
fn script(replaced: &[(&str, &str)]) -> String {
    replaced.iter().fold(SHELL_TRAINER.to_owned(), |script, (old, new)| {
        assert_eq!(script.matches(old).count(), 1, "{old}");
        script.replace(old, new)
    })
}

/// The arguments of a simulation of three nodes in which this command trains.
fn simulation(command: &str) -> [&str; 7] {
    ["simulate", "--topology", "complete:n=3", "--rounds", "8", "--trainer", command]
}

fn in_folder(folder: &Path, command: &str) -> String {
    format!("cd '{}' && {command}", text(folder))
}

#[test]
fn each_node_trains_with_a_script_of_its_own_and_the_metrics_are_means() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = r#"call -H "Mingle-Metrics: {\"distance\": [$NODE, 4]}" "http://localhost/v1/trainer/exchange"#;
    let answer = ANSWER.replace("call \"http://localhost/v1/trainer/exchange", metrics);
    let model = "tee model-$MINGLE_NODE-of-$MINGLE_NODES";
    fs::write(folder.path().join("trainer.sh"), script(&[(ANSWER, &answer), ("tee model-$$", model)])).unwrap();
    let command = in_folder(folder.path(), "NODE={node} NODES={nodes} sh trainer.sh");
    let output = run(&[&["--json"], &simulation(&command)[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = lines.iter().map(|line| (&line["round"], &line["distance"])).collect::<Vec<_>>();
    assert_eq!(told, [(&json!(4), &json!(1.0)), (&json!(8), &json!(1.0)), (&json!(8), &json!(1.0))], "{lines:?}");
    let report = &lines[2];
    assert_eq!((&report["nodes"], &report["parameters"], &report["weight"]), (&json!(3), &json!(2), &json!(3.0)));
    for node in 0..3 {
        let words = format!("node {node}: the first order is to train");
        assert!(stderr(&output).contains(&words), "{}", stderr(&output));
        let model = fs::read_to_string(folder.path().join(format!("model-{node}-of-3"))).unwrap();
        assert_eq!(model.split_whitespace().collect::<Vec<_>>(), ["0", "1"], "the model of node 0");
    }
}

#[test]
fn a_script_that_ends_too_early_or_trains_another_model_ends_the_simulation_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let fails = |first: &str, code, words: &[&str]| {
        write("trainer-0.sh", SHELL_TRAINER);
        write("trainer-1.sh", first);
        write("trainer-2.sh", SHELL_TRAINER);
        let command = in_folder(folder.path(), "sh trainer-{node}.sh");
        assert_fails(&run(&simulation(&command)), code, words);
    };
    let crash = "echo no module named torch >&2; exit 3";
    fails(crash, 7, &["node 1:", "exit status: 3", "no module named torch", "start the simulation again"]);
    fails("echo bye", 7, &["node 1:", "without ever attaching", "bye"]);
    let in_the_middle = format!("echo out of memory >&2; exit 4\n{LOOP}");
    fails(&script(&[(LOOP, &in_the_middle)]), 7, &["node 1:", "exit status: 4", "out of memory"]);
    let quietly = format!("exit 0\n{LOOP}");
    fails(&script(&[(LOOP, &quietly)]), 7, &["node 1:", "ended before the last round"]);
    fails(&script(&[(r#"["x", [2]]"#, r#"["y", [2]]"#)]), 6, &["node 0 and node 1 train different models", "`y`"]);
    for other in [["--model", "mlp"], ["--data", "digits"], ["--train-elsewhere", "2"]] {
        assert_fails(&run(&[&simulation("true")[..], &other].concat()), 2, &["--trainer", other[0]]);
    }
    assert_fails(&run(&simulation(" ")), 4, &["--trainer has no command"]);
}

#[test]
fn a_script_that_does_not_attach_is_named_and_an_interrupt_ends_all_scripts() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("trainer.sh"), SHELL_TRAINER).unwrap();
    let hangs = "if [ {node} = 1 ]; then echo $$ > process; exec sleep 1000; fi; sh trainer.sh";
    let command = in_folder(folder.path(), hangs);
    let homes = tempfile::tempdir().unwrap();
    let mut simulating = mingle();
    simulating.args(simulation(&command)).env("TMPDIR", homes.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut simulated = simulating.spawn().unwrap();
    let mut lines = BufReader::new(simulated.stderr.take().unwrap()).lines().map(Result::unwrap);
    // On a busy machine the others may be late too, and are named before.
    assert!(lines.any(|line| line == "waiting for the script of node 1 to attach"));
    let interrupted = Command::new("kill").args(["-INT", &simulated.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(simulated.wait().unwrap().code(), Some(130));
    let process = fs::read_to_string(folder.path().join("process")).unwrap();
    let is_there = Command::new("kill").args(["-0", process.trim()]).stderr(Stdio::null()).status().unwrap();
    assert!(!is_there.success(), "process {process} has not ended");
    assert_eq!(fs::read_dir(homes.path()).unwrap().count(), 0, "the homes are gone");
}

#[test]
fn simulated_scripts_end_with_the_models_of_real_peers_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    // Node 0 doubles its model, node 1 goes by 0.1 in both directions, and node 2 follows its model by another 0.7.
    let call = "call \"http://localhost/v1/trainer/exchange";
    let change = format!("change | {call}");
    let changes = "case $NODE in\n\
         0) change() { cat vector-$$; } ;;\n\
         1) change() { printf '\\315\\314\\314\\075\\315\\314\\314\\075'; } ;;\n\
         2) change() { head -c 4 vector-$$; printf '\\063\\063\\063\\077'; } ;;\n\
         esac\n\
         while [";
    let answer = ANSWER.replace(&format!("head -c 8 /dev/zero | {call}"), &change);
    let model = "od -An -tx4 vector-$$ | tee model-$RUN-$NODE";
    let trainer = script(&[(ANSWER, &answer), (LOOP, changes), ("od -An -tf4 vector-$$ | tee model-$$", model)]);
    fs::write(folder.path().join("trainer.sh"), trainer).unwrap();
    let models = |run: &str| {
        [0, 1, 2].map(|node| fs::read_to_string(folder.path().join(format!("model-{run}-{node}"))).unwrap())
    };
    let swarm = PlannedSwarm::with_local_steps(3, 9, 2);
    let mut peers = [0, 1, 2].map(|node| {
        let command = in_folder(folder.path(), &format!("RUN=real NODE={node} sh trainer.sh"));
        let patience = ["--wait", "sync", "--deadline", "60s", "--training-deadline", "60s"];
        swarm.start_task(node, &[&["--rounds", "9", "--trainer", &command], &patience[..]].concat())
    });
    for peer in &mut peers {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 9);
        assert_eq!(peer.exit_code(), Some(0));
    }
    let command = in_folder(folder.path(), "RUN=simulated NODE={node} sh trainer.sh");
    let plan = swarm.plan();
    let arguments = ["simulate", "--plan", text(&plan), "--rounds", "9", "--wait", "sync", "--trainer", &command];
    let output = run(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("9 rounds of 3 nodes, 2 parameters"), "{}", stdout(&output));
    let simulated = models("simulated");
    assert_eq!(simulated, models("real"), "{simulated:?}");
    assert!(simulated.iter().all(|model| !model.contains("00000000")), "they have trained: {simulated:?}");
}

/// A training over sums of the model of scripts, with `more` lines in its problem file, and a plan for three nodes.
fn over_sums(folder: &Path, more: &str) -> [String; 2] {
    let [problem, plan] = ["problem.toml", "plan.json"].map(|name| folder.join(name));
    let usual = "kind = \"training\"\nmodel = \"trainer\"\nlocal_steps = 2\nrounds = 4\n";
    fs::write(&problem, format!("{usual}{more}")).unwrap();
    let made = run(&["plan", "make", "--topology", "complete:n=3", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    [problem, plan].map(|path| text(&path).to_owned())
}

/// Each script moves the model by (0, 1) times its number in a round, so the mean moves by 1 and all move by 4.
#[test]
fn scripts_train_over_sums_in_one_process_and_end_with_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = "case $MINGLE_NODE in 0) last='\\0' high='\\0' ;; 1) last='\\200' high='\\077' ;; 2) last='\\0' high='\\100' ;; esac\nwhile [";
    let change = "printf '\\0\\0\\0\\0\\0\\0'\"$last$high\" | call \"http://localhost/v1/trainer/exchange";
    let model = "tee model-$MINGLE_NODE";
    let trainer = script(&[(ANSWER, change), (LOOP, numbers), ("tee model-$$", model)]);
    fs::write(folder.path().join("trainer.sh"), trainer).unwrap();
    let [problem, plan] = over_sums(folder.path(), "");
    let found = folder.path().join("found");
    let command = in_folder(folder.path(), "sh trainer.sh");
    let solve = ["solve", "--problem", &problem, "--plan", &plan, "-o", text(&found), "--trainer", &command];
    let output = run(&solve);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("the scripts' model, 2 parameters") && stdout(&output).contains("sums     masked")
    );
    for node in 0..3 {
        let model = fs::read_to_string(folder.path().join(format!("model-{node}"))).unwrap();
        assert_eq!(model.split_whitespace().collect::<Vec<_>>(), ["0", "5"], "1 at the beginning, and 4 more");
    }
    assert!(found.join("model.safetensors").exists(), "one model of all");
}

#[test]
fn scripts_over_sums_that_end_early_and_problems_that_are_not_theirs_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let solve = |more: &str, command: &str| {
        let [problem, plan] = over_sums(folder.path(), more);
        run(&["solve", "--problem", &problem, "--plan", &plan, "--trainer", command])
    };
    let in_the_middle = format!("if [ $MINGLE_NODE = 1 ]; then echo out of memory >&2; exit 4; fi\n{LOOP}");
    fs::write(folder.path().join("trainer.sh"), script(&[(LOOP, &in_the_middle)])).unwrap();
    let command = in_folder(folder.path(), "sh trainer.sh");
    assert_fails(&solve("", &command), 7, &["node 1:", "exit status: 4", "out of memory"]);
    assert_fails(&solve("data = \"digits\"\n", &command), 4, &["data is about built-in models"]);
    assert_fails(&solve("", " "), 4, &["--trainer has no command"]);
    let built_in = folder.path().join("problem.toml");
    fs::write(&built_in, "kind = \"training\"\ndata = \"digits\"\n").unwrap();
    let plan = folder.path().join("plan.json");
    let refused = run(&["solve", "--problem", text(&built_in), "--plan", text(&plan), "--trainer", &command]);
    assert_fails(&refused, 4, &["leave --trainer out"]);
}
