//! Problems solved in one process and among real peers, to the same bits, over links that lose, and through the death
//! of a peer.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

/// Forty rows of four columns, two of which are nearly the same: the target is `2 a - b`, a little disturbed.
fn table(alike: f64) -> String {
    let mut text = "a,b,twin,c,y\n".to_owned();
    for row in 0_u32..40 {
        let [a, b, c, noise, apart] = [7, 11, 13, 5, 3].map(|step| f64::from(row * step % 17) / 8.0 - 1.0);
        let twin = b + alike * apart;
        text += &format!("{a},{b},{twin},{c},{}\n", 2.0 * a - b + 0.1 * noise);
    }
    text
}

/// A problem file beside its table, which is dealt out.
pub(super) fn regression(folder: &Path, alike: f64, more: &str) -> PathBuf {
    fs::write(folder.join("table.csv"), table(alike)).unwrap();
    let path = folder.join("problem.toml");
    let problem = "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\n";
    fs::write(&path, format!("{problem}{more}\n")).unwrap();
    path
}

/// A regression of 100 columns, of which any two have a correlation near 0.9, over 30 rows.
fn more_columns_than_rows(folder: &Path, more: &str) -> PathBuf {
    let mut state = 1_u64;
    let mut draw = || {
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(state >> 40).unwrap()) / f64::from(1 << 24)
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    };
    let names: Vec<String> = (0..100).map(|column| format!("c{column}")).collect();
    let mut table = format!("{},y\n", names.join(","));
    for _ in 0..30 {
        let shared = 3.0 * draw();
        let row: Vec<f64> = names.iter().map(|_| shared + draw()).collect();
        row.iter().for_each(|value| table += &format!("{value},"));
        table += &format!("{}\n", row[0] - 2.0 * row[1] + 0.1 * draw());
    }
    let problem = regression(folder, 1.0, more);
    fs::write(folder.join("table.csv"), table).unwrap();
    problem
}

/// A robust model of the same numbers: the label is whether the target is above 0.
pub(super) fn robust(folder: &Path, more: &str) -> PathBuf {
    let rows = table(1.0);
    let mut labelled = String::new();
    for (at, line) in rows.lines().enumerate() {
        let (row, number) = line.rsplit_once(',').unwrap();
        let label = number.parse::<f64>().map_or("y", |number| if number > 0.0 { "ill" } else { "well" });
        labelled += &format!("{row},{label}\n");
        assert!(at > 0 || label == "y");
    }
    fs::write(folder.join("robust.csv"), labelled).unwrap();
    let path = folder.join("robust.toml");
    let problem = "kind = \"robust-classification\"\ndata = \"robust.csv\"\ndeal = true\ntarget = \"y\"\n\
                   labels = [\"well\", \"ill\"]\nsupport = \"box\"\nradius = 0.02\ntheta = 0.1\n";
    fs::write(&path, format!("{problem}{more}\n")).unwrap();
    path
}

/// Two cliques of three nodes that have one in common.
fn budgets(folder: &Path) -> (PathBuf, PathBuf) {
    let edges = "0 1\n0 2\n1 2\n2 3\n2 4\n3 4\n";
    fs::write(folder.join("wards.edges"), edges).unwrap();
    let mut problem = "kind = \"resource-allocation\"\n".to_owned();
    for (name, members, more) in
        [("a", "0, 1, 2", "budget = 9"), ("b", "2, 3, 4", "budget = 3\nweight = 2\ntarget = 5")]
    {
        problem += &format!("[[clique]]\nname = \"{name}\"\nmembers = [{members}]\n{more}\n");
    }
    for node in 0..5 {
        problem += &format!("[[node]]\nnode = {node}\nwish = {}\nupper = 4\n", node + 1);
    }
    let path = folder.join("budgets.toml");
    fs::write(&path, problem).unwrap();
    (folder.join("wards.edges"), path)
}

/// The solutions of all nodes that `mingle solve` finds.
pub(super) fn solve(problem: &Path, plan: &Path, more: &[&str]) -> Vec<Value> {
    let output = run(&[&["solve", "--json", "--problem", text(problem), "--plan", text(plan)], more].concat());
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let end: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
    end["solutions"].as_array().unwrap().clone()
}

/// The solution that a peer left in its home.
pub(super) fn solution(home: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(home.join("solution.json")).unwrap()).unwrap()
}

/// Asserts that real peers find the solution of one process, to the bit.
pub(super) fn assert_peers_find_the_same(swarm: &PlannedSwarm, problem: &Path) {
    let expected = solve(problem, &swarm.plan(), &[]);
    let mut peers: Vec<_> = (0..swarm.nodes()).map(|node| swarm.solve(node, problem)).collect();
    for (node, peer) in peers.iter_mut().enumerate() {
        let end = peer.wait_for("solved");
        assert_eq!(end["converged"], true, "{end}");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
        assert_eq!(solution(&swarm.home(node)), expected[node], "node {node}");
        assert_eq!(end["gap"], expected[node]["certificate"]["gap"], "node {node}");
        assert!(swarm.home(node).join("residuals.svg").exists() && !swarm.home(node).join("attempt").exists());
    }
    let lines = fs::read_to_string(swarm.home(0).join("residuals.jsonl")).unwrap();
    assert_eq!(lines.lines().count() as u64, expected[0]["iterations"].as_u64().unwrap());
}

#[test]
fn peers_on_a_symmetric_plan_find_the_bits_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let swarm = PlannedSwarm::for_a_problem("ring:n=4", "clique-phi", 4);
    assert_peers_find_the_same(&swarm, &regression(folder.path(), 1.0, "lambda = 0.02"));
}

#[test]
fn peers_on_a_directed_plan_find_the_bits_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let swarm = PlannedSwarm::for_a_problem("rg:n=4,r=0.8,seed=2", "nguyen-he", 4);
    assert_peers_find_the_same(&swarm, &regression(folder.path(), 1.0, "lambda = 0.02\nridge = 0.01"));
}

/// Mixing alone ends after 20,000 iterations with a violation of 1e-3.
#[test]
fn more_columns_than_rows_are_solved_to_the_certificate_in_one_process_and_among_peers() {
    let folder = tempfile::tempdir().unwrap();
    let swarm = PlannedSwarm::for_a_problem("ring:n=6", "clique-phi", 6);
    let problem = more_columns_than_rows(folder.path(), "lambda = 0.001");
    let found = solve(&problem, &swarm.plan(), &[]);
    let kkt = found[0]["certificate"]["kkt"].as_f64().unwrap();
    assert!(kkt < 1e-8 && found[0]["iterations"].as_u64().unwrap() < 300, "{}", found[0]);
    assert_peers_find_the_same(&swarm, &problem);
}

/// The plan's second eigenvalue promises that one step an iteration is enough, and with one the residual grows for
/// ever.
#[test]
fn peers_on_a_tuned_plan_that_is_far_from_normal_find_the_bits_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let swarm = PlannedSwarm::for_a_problem("rg:n=8,r=0.5,seed=1", "tuned", 8);
    assert_peers_find_the_same(&swarm, &regression(folder.path(), 1.0, "lambda = 0.02\nridge = 0.01"));
}

#[test]
fn the_shipped_problem_is_solved_over_a_tuned_plan_that_is_far_from_normal() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    let make = ["plan", "make", "--topology", "rg:n=20,r=0.5,seed=2", "--method", "tuned", "-o", text(&plan)];
    let made = run(&make);
    assert!(made.status.success(), "{}", stderr(&made));
    let problem = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/problems/heart.toml");
    let found = solve(&problem, &plan, &[]);
    assert_eq!(found.len(), 20);
    for solution in found {
        // The objective of all rows in one place.
        let off = (solution["objective"].as_f64().unwrap() - 0.084_898_134_051).abs();
        assert!(solution["converged"] == true && off < 1e-11, "{solution}");
    }
}

/// After a single iteration the numbers are far from the best ones, and the certificate shows so.
#[test]
fn the_certificate_of_budgets_is_not_zero_before_they_are_shared_out() {
    let folder = tempfile::tempdir().unwrap();
    let (topology, problem) = budgets(folder.path());
    let plan = folder.path().join("plan.json");
    let made = run(&["plan", "make", "--topology", text(&topology), "--method", "clique-phi", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let kkt = |iterations: u32| {
        let short = folder.path().join("short.toml");
        let problem = fs::read_to_string(&problem).unwrap().replace("wish = 1\n", "wish = 1\nweight = 5\n");
        fs::write(&short, problem.replacen("[[clique]]", &format!("iterations = {iterations}\n[[clique]]"), 1))
            .unwrap();
        let output = run(&["solve", "--json", "--problem", text(&short), "--plan", text(&plan)]);
        let found = stdout(&output);
        let end = found.lines().find(|line| line.contains("mingle.solved")).unwrap();
        let end: Value = serde_json::from_str(end).unwrap();
        end["solutions"][0]["certificate"]["kkt"].as_f64().unwrap()
    };
    let (one, many) = (kkt(1), kkt(2_000));
    assert!(one > 0.1 && many < 1e-8, "{one} {many}");
}

#[test]
fn peers_that_share_budgets_find_the_bits_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let (topology, problem) = budgets(folder.path());
    let swarm = PlannedSwarm::for_a_problem(text(&topology), "clique-phi", 5);
    assert_peers_find_the_same(&swarm, &problem);
}

#[test]
fn losses_change_no_bit_of_a_solution() {
    let folder = tempfile::tempdir().unwrap();
    let (topology, shared) = budgets(folder.path());
    let explained = regression(folder.path(), 1.0, "lambda = 0.02");
    for (topology, method, problem) in [
        ("rg:n=9,r=0.5,seed=3", "clique-phi", &explained),
        ("rg:n=9,r=0.5,seed=3", "nguyen-he", &explained),
        ("rg:n=4,r=0.8,seed=2", "nguyen-he", &robust(folder.path(), "iterations = 40\ntolerance = 0.1")),
        (text(&topology), "clique-phi", &shared),
    ] {
        let plan = folder.path().join("plan.json");
        let made = run(&["plan", "make", "--topology", topology, "--method", method, "-o", text(&plan)]);
        assert!(made.status.success(), "{}", stderr(&made));
        let undisturbed = solve(problem, &plan, &[]);
        for loss in ["0.05", "0.2"] {
            assert_eq!(solve(problem, &plan, &["--loss", loss, "--seed", "4"]), undisturbed, "{method}, loss {loss}");
        }
    }
}

/// The scaled coefficients of a solution.
fn scaled(solution: &Value) -> Vec<f64> {
    let columns = solution["answer"]["coefficients"].as_array().unwrap();
    columns.iter().map(|column| column["scaled"].as_f64().unwrap()).collect()
}

#[test]
fn a_peer_that_was_killed_makes_all_begin_again_and_the_solution_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let problem = more_columns_than_rows(folder.path(), "lambda = 0.001");
    let swarm = PlannedSwarm::for_a_problem("complete:n=3", "clique-phi", 3);
    let expected = solve(&problem, &swarm.plan(), &[]);
    assert!(expected[0]["iterations"].as_u64().unwrap() > 200, "{}", expected[0]);
    let mut peers: Vec<_> = (0..3).map(|node| swarm.solve(node, &problem)).collect();
    peers[2].wait_for("iterated");
    peers[2].kill();
    assert!(swarm.home(2).join("attempt").exists());
    peers[2] = swarm.solve(2, &problem);
    peers[0].wait_for_warning("all begin attempt 1");
    for (node, peer) in peers.iter_mut().enumerate() {
        let end = peer.wait_for("solved");
        assert_eq!((&end["converged"], peer.exit_code()), (&Value::Bool(true), Some(0)), "node {node}: {end}");
        let (found, wanted) = (scaled(&solution(&swarm.home(node))), scaled(&expected[node]));
        let off = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // Both are as close as the tolerance allows.
        assert!(off < 1e-7, "node {node}: {off}");
    }
}

#[test]
fn a_solution_that_cannot_be_written_is_kept_until_it_can_be_and_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let problem = regression(folder.path(), 1.0, "lambda = 0.02");
    let swarm = PlannedSwarm::for_a_problem("complete:n=2", "clique-phi", 2);
    let in_the_way = swarm.home(1).join("solution.json");
    fs::create_dir_all(&in_the_way).unwrap();
    let mut peers = [swarm.solve(0, &problem), swarm.solve(1, &problem)];
    assert_eq!(peers[0].wait_for("solved")["converged"], true);
    assert_eq!(peers[0].exit_code(), Some(0));
    let warning = peers[1].wait_for_warning("cannot write");
    assert!(warning.contains("the problem is solved"), "{warning}");
    fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(peers[1].wait_for("solved")["converged"], true);
    assert_eq!(peers[1].exit_code(), Some(0));
    assert_eq!(solution(&swarm.home(1))["answer"], solution(&swarm.home(0))["answer"]);
}

#[test]
fn a_peer_that_is_stopped_goes_at_once_and_all_begin_again_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let problem = more_columns_than_rows(folder.path(), "lambda = 0.001");
    let swarm = PlannedSwarm::for_a_problem("complete:n=2", "clique-phi", 2);
    let mut peers = [swarm.solve(0, &problem), swarm.solve(1, &problem)];
    peers[1].wait_for("iterated");
    peers[1].signal("INT");
    let error = peers[1].wait_for("failed");
    assert!(error["error"]["message"].as_str().unwrap().contains("before the problem was solved"), "{error}");
    assert_eq!(peers[1].exit_code(), Some(130));
    peers[1] = swarm.solve(1, &problem);
    for peer in &mut peers {
        assert_eq!(peer.wait_for("solved")["converged"], true);
    }
}

#[test]
fn a_peer_that_solves_holds_no_weight_to_hand_over_and_says_so_running_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let problem = more_columns_than_rows(folder.path(), "lambda = 0.001");
    let swarm = PlannedSwarm::for_a_problem("complete:n=2", "clique-phi", 2);
    let mut peers = [swarm.solve(0, &problem), swarm.solve(1, &problem)];
    peers[0].wait_for("iterated");
    let home = swarm.home(0);
    assert_fails(&run(&["leave", "--home", text(&home)]), 6, &["solves a problem", "no weight to hand over"]);
    for peer in &mut peers {
        assert_eq!(peer.wait_for("solved")["converged"], true);
        assert_eq!(peer.exit_code(), Some(0));
    }
    let before = solution(&home);
    let output = run(&["leave", "--home", text(&home), "--problem", text(&problem)]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("nothing was changed"), "{}", stdout(&output));
    assert_eq!(solution(&home), before);
}

#[test]
fn peers_that_do_not_fit_are_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let problem = regression(folder.path(), 1.0, "lambda = 0.02");
    let other = folder.path().join("other.toml");
    fs::write(&other, fs::read_to_string(&problem).unwrap().replace("0.02", "0.03")).unwrap();
    let swarm = PlannedSwarm::for_a_problem("complete:n=2", "clique-phi", 2);
    let mut peers = [swarm.solve(0, &problem), swarm.solve(1, &other)];
    let messages = peers.each_mut().map(|peer| peer.wait_for("failed")["error"]["message"].to_string());
    assert!(messages.iter().any(|message| message.contains("solves another problem")), "{messages:?}");
    // A trainer and a solver, on the same plan. In other homes: these go on with the problem that they remember.
    let swarm = PlannedSwarm::for_a_problem("complete:n=2", "clique-phi", 2);
    let mut peers = [swarm.solve(0, &problem), swarm.start(1)];
    let messages = peers.each_mut().map(|peer| peer.wait_for("failed")["error"]["message"].to_string());
    let words = ["trains a model", "solves a problem"];
    assert!(messages.iter().any(|message| words.iter().all(|word| message.contains(word))), "{messages:?}");
}

#[test]
fn a_node_that_the_file_does_not_mention_wants_what_the_documentation_says() {
    let folder = tempfile::tempdir().unwrap();
    let (topology, shared) = budgets(folder.path());
    let plan = folder.path().join("plan.json");
    let made = run(&["plan", "make", "--topology", text(&topology), "--method", "clique-phi", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let whole = fs::read_to_string(&shared).unwrap();
    let without = &whole[..whole.find("[[node]]\nnode = 4").unwrap()];
    let spelled_out = format!("{without}[[node]]\nnode = 4\nwish = 0\nweight = 1\nprice = 0\nlower = 0\nupper = inf\n");
    let [short, long] = [("short", without), ("long", &spelled_out)].map(|(name, problem)| {
        let path = folder.path().join(format!("{name}.toml"));
        fs::write(&path, problem).unwrap();
        path
    });
    assert_eq!(solve(&short, &plan, &[]), solve(&long, &plan, &[]));
    let said = stdout(&run(&["solve", "--problem", text(&short), "--plan", text(&plan)]));
    assert!(said.contains("no [[node]] for 4: wish 0"), "{said}");
}

/// Asserts that a problem file is refused with these words.
#[track_caller]
pub(super) fn assert_refused(folder: &Path, plan: &Path, problem: &str, words: &[&str]) {
    let path = folder.join("bad.toml");
    fs::write(&path, problem).unwrap();
    assert_fails(&run(&["solve", "--problem", text(&path), "--plan", text(plan)]), 4, words);
}

#[test]
fn every_kind_of_problem_is_named_by_the_help_by_the_error_of_another_kind_and_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let plan = folder.join("plan.json");
    let made = run(&["plan", "make", "--topology", "complete:n=2", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let help = stdout(&run(&["solve", "--help"]));
    for kind in mingle_problems::known_kinds() {
        assert!(help.contains(kind), "{kind} is missing in: {help}");
        assert_refused(folder, &plan, "kind = \"sudoku\"", &["sudoku", "choose one of", kind]);
        // Only entries of that kind are missing.
        let path = folder.join("kind.toml");
        fs::write(&path, format!("kind = \"{kind}\"")).unwrap();
        let output = run(&["solve", "--problem", text(&path), "--plan", text(&plan)]);
        assert_fails(&output, 4, &[]);
        assert!(!stderr(&output).contains("choose one of"), "{kind}: {}", stderr(&output));
    }
}

#[test]
fn what_cannot_be_solved_is_named_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (topology, shared) = budgets(folder);
    let plan = folder.join("plan.json");
    let made = run(&["plan", "make", "--topology", text(&topology), "--method", "clique-phi", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let good = fs::read_to_string(regression(folder, 1.0, "lambda = 0.02")).unwrap();
    let shared = fs::read_to_string(shared).unwrap();
    let refused = |problem: &str, words: &[&str]| assert_refused(folder, &plan, problem, words);

    refused("kind = \"sudoku\"", &["sudoku"]);
    refused("lambda = 1", &["kind"]);
    refused(&good.replace("lambda", "lambada"), &["lambada", "line 5"]);
    refused(&good.replace("0.02", "-0.02"), &["lambda is -0.02", "not convex"]);
    refused(&good.replace("\"y\"", "\"z\""), &["table.csv", "no column `z`", "a, b, twin, c, y"]);
    refused(&good.replace("table.csv", "missing.csv"), &["missing.csv", "No such file"]);
    refused(&good.replace("deal = true", ""), &["{node}", "deal = true"]);
    refused(&format!("{good}tolerance = 0.0"), &["tolerance = 0"]);
    refused(&format!("{good}groups = [[\"a\", \"b\"], [\"twin\"]]"), &["column `c` is in no group"]);

    fs::write(folder.join("0.csv"), "a,y\n1,2\n").unwrap();
    (1..5).for_each(|node| fs::write(folder.join(format!("{node}.csv")), "b,y\n1,2\n").unwrap());
    let each = good.replace("deal = true", "").replace("table.csv", "{node}.csv");
    refused(&each, &["tables of 0 and 1", "do not fit together"]);

    refused(&shared.replace("budget = 9", "budget = 13"), &["clique a", "13", "0 to 12"]);
    refused(
        &shared.replace("budget = 9", "budget = 12").replace("budget = 3", "budget = 3.5"),
        &["a, b", "contradict"],
    );
    refused(&shared.replace("0, 1, 2", "0, 1, 3"), &["clique a", "do not hear each other", "clique-phi"]);
    refused(&shared.replace("0, 1, 2", "0, 1, 7"), &["clique a", "no node 7"]);
    refused(&shared.replace("weight = 2", "weight = -2"), &["clique b", "weight is -2"]);
    refused(&shared.replace("members = [0, 1, 2]", "members = [1, 2]"), &["node 0", "in no clique"]);
    refused(&shared.replace("wish = 5", "wish = 5\nlower = 6"), &["at least 6 and at most 4"]);
    refused(
        &shared
            .replace("wish = 1\nupper = 4", "weight = 0\nprice = 1\nlower = -inf")
            .replace("wish = 2\nupper = 4", "weight = 0\nprice = 0"),
        &["no least value"],
    );
    refused(&shared.replace("node = 4", "node = 5"), &["no node 5", "0 to 4"]);
}

#[test]
fn the_demos_of_both_kinds_agree_with_one_place() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["sparse-regression", "resource-allocation"] {
        let root = folder.path().join(kind);
        let output = run(&["demo", "--json", "--problem", kind, "--peers", "5", "--output", text(&root)]);
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        let report: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
        assert!(report["difference"].as_f64().unwrap() < 1e-8, "{report}");
        assert!(report["solutions"][0]["certificate"]["kkt"].as_f64().unwrap() < 1e-8, "{report}");
        // The files of the demo solve the same again.
        let again = solve(&root.join("problem.toml"), &root.join("plan.json"), &[]);
        assert_eq!(Value::from(again), report["solutions"], "{kind}");
        assert!(root.join("residuals.svg").exists() && root.join("report.json").exists());
    }
}
