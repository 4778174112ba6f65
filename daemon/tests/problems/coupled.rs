//! Variables that cliques couple, and models that links draw together: in one process and among real peers.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::solving::{assert_peers_find_the_same, assert_refused, solve};
use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{run, stderr, stdout, text};

/// Five robots in two groups that share one: a formation of three, and a pair that stays near and within a budget.
fn robots(folder: &Path) -> (PathBuf, PathBuf) {
    let topology = folder.join("robots.edges");
    fs::write(&topology, "0 1\n0 2\n1 2\n2 3\n2 4\n3 4\n").unwrap();
    let mut problem = "kind = \"clique-coupling\"\ncomponents = [\"x\", \"y\"]\n\
                       [[clique]]\nname = \"wedge\"\nmembers = [1, 0, 2]\ncoupling = \"formation\"\n\
                       offsets = [[0, 0], [-1, -1], [1, -1]]\n\
                       [[clique]]\nname = \"near\"\nmembers = [2, 3, 4]\ncoupling = \"within\"\ndistance = 1.5\n\
                       [[clique]]\nname = \"load\"\nmembers = [3, 4]\ncoupling = \"budget\"\nbudget = [4, 2]\n"
        .to_owned();
    for node in 0..5 {
        problem += &format!("[[node]]\nnode = {node}\nwish = [{}, {}]\nupper = 6\n", 2 * node, 4 - node);
    }
    let path = folder.join("robots.toml");
    fs::write(&path, problem).unwrap();
    (topology, path)
}

/// Tables of six nodes: the first three have `y = 2 a + 1`, the others `y = 3 - a`, both a little disturbed.
fn houses(folder: &Path, more: &str) -> PathBuf {
    for node in 0..6_u32 {
        let mut table = "a,b,y\n".to_owned();
        for row in 0..12_u32 {
            let [a, b, noise] = [7, 11, 5].map(|step| f64::from((row + 12 * node) * step % 17) / 8.0 - 1.0);
            let y = if node < 3 { 2.0 * a + 1.0 } else { 3.0 - a };
            table += &format!("{a},{b},{}\n", y + 0.05 * noise);
        }
        fs::write(folder.join(format!("{node}.csv")), table).unwrap();
    }
    let path = folder.join("houses.toml");
    let problem = "kind = \"network-lasso\"\ndata = \"{node}.csv\"\ntarget = \"y\"\n";
    fs::write(&path, format!("{problem}{more}\n")).unwrap();
    path
}

/// A ring of six nodes.
fn ring(folder: &Path) -> PathBuf {
    let path = folder.join("ring.edges");
    fs::write(&path, "0 1\n1 2\n2 3\n3 4\n4 5\n5 0\n").unwrap();
    path
}

fn plan_of(folder: &Path, topology: &str) -> PathBuf {
    let plan = folder.join("plan.json");
    let made = run(&["plan", "make", "--topology", topology, "--method", "clique-phi", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    plan
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// The scaled coefficients of a node's model.
fn model(solution: &Value) -> Vec<f64> {
    let columns = solution["answer"]["coefficients"].as_array().unwrap();
    columns.iter().map(|column| column["scaled"].as_f64().unwrap()).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn robots_keep_their_formation_their_distance_and_their_budget_among_peers_as_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let (topology, problem) = robots(folder.path());
    let swarm = PlannedSwarm::for_a_problem(text(&topology), "clique-phi", 5);
    assert_peers_find_the_same(&swarm, &problem);
    let found = solve(&problem, &swarm.plan(), &[]);
    let at: Vec<Vec<f64>> = found.iter().map(|solution| numbers(&solution["answer"]["variables"])).collect();
    // The offsets are in the order of the members in the file: node 1 leads.
    assert!(distance(&at[0], &[at[1][0] - 1.0, at[1][1] - 1.0]) < 1e-8, "{at:?}");
    assert!(distance(&at[2], &[at[1][0] + 1.0, at[1][1] - 1.0]) < 1e-8, "{at:?}");
    assert!(distance(&[at[3][0] + at[4][0], at[3][1] + at[4][1]], &[4.0, 2.0]) < 1e-8, "{at:?}");
    for (one, other) in [(2, 3), (2, 4), (3, 4)] {
        assert!(distance(&at[one], &at[other]) < 1.5 + 1e-8, "{one} and {other}: {at:?}");
    }
    assert!(found[0]["certificate"]["kkt"].as_f64().unwrap() < 1e-7, "{}", found[0]);
    let table = stdout(&run(&["solve", "--problem", text(&problem), "--plan", text(&swarm.plan())]));
    for words in ["x, y of 5 nodes, coupled by 5 cliques", "near (2, 4)", "formation", "price of a unit"] {
        assert!(table.contains(words), "{words}: {table}");
    }
}

#[test]
fn nodes_of_a_network_lasso_find_the_models_of_their_groups_among_peers_as_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let problem = houses(folder.path(), "lambda = 0.3");
    // A ring: nodes 2 and 3, and 5 and 0, are linked though their models differ.
    let swarm = PlannedSwarm::for_a_problem(text(&ring(folder.path())), "clique-phi", 6);
    assert_peers_find_the_same(&swarm, &problem);
    let found = solve(&problem, &swarm.plan(), &[]);
    let models: Vec<Vec<f64>> = found.iter().map(model).collect();
    for (one, other, is_same) in [(0, 1, true), (1, 2, true), (3, 4, true), (4, 5, true), (2, 3, false), (5, 0, false)]
    {
        assert_eq!(distance(&models[one], &models[other]) < 1e-6, is_same, "{one} and {other}: {models:?}");
    }
    let table = stdout(&run(&["solve", "--problem", text(&problem), "--plan", text(&swarm.plan())]));
    assert!(table.contains("0, 1, 2: 36 rows") && table.contains("3, 4, 5: 36 rows"), "{table}");
}

#[test]
fn a_network_lasso_goes_from_each_alone_to_one_model_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let plan = plan_of(folder, text(&ring(folder)));
    let found = |more: &str| solve(&houses(folder, more), &plan, &[]).iter().map(model).collect::<Vec<_>>();
    // With a large weight: the regression over all tables.
    let together = found("lambda = 1000");
    let pooled = folder.join("pooled.toml");
    let regression = "kind = \"sparse-regression\"\ndata = \"{node}.csv\"\ntarget = \"y\"\nlambda = 0\n";
    fs::write(&pooled, regression).unwrap();
    let pooled = model(&solve(&pooled, &plan, &[])[0]);
    assert!(together.iter().all(|model| distance(model, &pooled) < 1e-6), "{together:?} {pooled:?}");
    // Without: each its own, which the neighbours do not change.
    let alone = found("lambda = 0");
    let cut = found("lambda = 0.3\n[[link]]\nnodes = [0, 1]\nweight = 0\n[[link]]\nnodes = [0, 5]\nweight = 0");
    assert!(distance(&alone[0], &cut[0]) < 1e-7 && distance(&alone[0], &alone[1]) > 1e-4, "{alone:?} {cut:?}");
}

#[test]
fn couplings_that_do_not_fit_are_named_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (topology, good) = robots(folder);
    let plan = plan_of(folder, text(&topology));
    let good = fs::read_to_string(good).unwrap();
    let refused = |problem: &str, words: &[&str]| assert_refused(folder, &plan, problem, words);
    refused(&good.replace("\"within\"", "\"magnetism\""), &["magnetism", "formation"]);
    refused(&good.replace("distance = 1.5", ""), &["clique near", "\"within\" needs distance"]);
    refused(
        &good.replace("distance = 1.5", "distance = 1.5\nbudget = 3"),
        &["clique near", "\"within\" has no budget"],
    );
    refused(&good.replace("distance = 1.5", "distance = -1"), &["clique near", "distance is -1"]);
    refused(&good.replace("budget = [4, 2]", "budget = [4, 2, 1]"), &["clique load", "budget has 3 numbers", "x, y"]);
    refused(&good.replace("budget = [4, 2]", "budget = nan"), &["clique load", "budget is NaN"]);
    refused(&good.replace(", [1, -1]]", "]"), &["clique wedge", "offsets has 2 entries", "3 members"]);
    refused(&good.replace("members = [3, 4]", "members = [1, 4]"), &["clique load", "do not hear each other"]);
    refused(&good.replace("[1, 0, 2]", "[1, 7, 2]"), &["clique wedge", "no node 7"]);
    refused(&good.replace("wish = [0, 4]", "wish = [0, 4]\nweight = [1, 0]"), &["node 0", "weight is 0"]);
    refused(&good.replace("wish = [0, 4]", "wish = [0, 4]\nlower = 7"), &["at least 7 and at most 6"]);
    refused(&good.replace("components = [\"x\", \"y\"]", "components = []"), &["at least one component"]);

    let good = fs::read_to_string(houses(folder, "lambda = 0.3")).unwrap();
    refused(&good.replace("0.3", "-0.3"), &["lambda is -0.3"]);
    refused(&format!("{good}[[link]]\nnodes = [0, 4]\nweight = 1\n"), &["does not link 0 and 4"]);
    refused(&good.replace("\"y\"", "\"z\""), &["0.csv", "no column `z`"]);
    fs::write(folder.join("4.csv"), "b,y\n1,2\n").unwrap();
    refused(&good, &["tables of 0 and 4", "do not fit together"]);
}

/// Two exact formations of the same nodes that no places keep.
#[test]
fn constraints_that_contradict_each_other_end_unsolved_and_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (topology, problem) = robots(folder);
    let plan = plan_of(folder, text(&topology));
    let twice = fs::read_to_string(&problem).unwrap().replace("kind =", "iterations = 300\nkind =")
        + "[[clique]]\nname = \"line\"\nmembers = [0, 1, 2]\ncoupling = \"formation\"\noffsets = [0, 1, 2]\n";
    fs::write(&problem, twice).unwrap();
    let output = run(&["solve", "--problem", text(&problem), "--plan", text(&plan)]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("NOT solved") && said.contains("they contradict each other"), "{said}");
}
