//! Recommenders: the same bits among real peers and in one process, through the death of a peer, and queries for a
//! user.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{assert_fails, read_json, run, stderr, stdout, text};
use serde_json::Value;

/// A shop of two tastes: customers with an even number buy even articles, the others odd ones.
fn shop(customers: usize, articles: usize) -> String {
    let mut lines = "user,item,rating,time\n".to_owned();
    for customer in 0..customers {
        for article in (customer % 2..articles).step_by(2).filter(|article| (customer * 7 + article * 3) % 5 > 1) {
            // Times run backwards: their order means nothing.
            lines += &format!("c{customer},a{article},4.5,{}\n", 9000 - customer);
        }
    }
    lines
}

/// A problem file beside the files of three shops of different size.
fn shops(folder: &Path, more: &str) -> PathBuf {
    for (node, customers) in [24, 30, 40].into_iter().enumerate() {
        fs::write(folder.join(format!("node-{node}.csv")), shop(customers, 20 + 2 * node)).unwrap();
    }
    problem(folder, "data = \"{node}.csv\"", more)
}

fn problem(folder: &Path, data: &str, more: &str) -> PathBuf {
    let path = folder.join("problem.toml");
    let usual = "frequencies = 10\nbatch_size = 64\nlearning_rate = 0.001\nepochs = 2";
    fs::write(&path, format!("kind = \"recommendation\"\n{data}\n{usual}\n{more}\n")).unwrap();
    path
}

fn in_one_process(problem: &Path, plan: &Path, folder: &Path, more: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["solve", "--problem", text(problem), "--plan", text(plan), "-o", text(folder)];
    arguments.extend(more);
    let output = run(&arguments);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    read_json(&folder.join("learned.json")).as_array().unwrap().clone()
}

#[test]
fn peers_that_are_killed_and_one_process_whose_links_lose_learn_the_same_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let problem = shops(folder.path(), "rounds = 12");
    let swarm = PlannedSwarm::for_a_problem("complete:n=3", "nguyen-he", 3);
    let out = folder.path().join("out");
    let expected = in_one_process(&problem, &swarm.plan(), &out, &[]);
    assert_eq!(expected, in_one_process(&problem, &swarm.plan(), &folder.path().join("lossy"), &["--loss", "0.3"]));

    let mut peers: Vec<_> = (0..3).map(|node| swarm.solve(node, &problem)).collect();
    while peers[1].wait_for("measured")["round"].as_u64().unwrap() < 4 {}
    peers[1].kill();
    assert!(fs::read_dir(swarm.home(1).join("rounds")).unwrap().count() <= 4);
    peers[1] = swarm.solve(1, &problem);
    let data = peers[0].wait_for_warning("data: ");
    assert!(data.starts_with("data: ") && data.contains(" users, ") && data.contains(" interactions"), "{data}");
    peers[0].wait_for_warning("all begin attempt 1, from the last round");
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("learned")["rounds"], 12, "node {node}");
        assert_eq!(peer.exit_code(), Some(0), "node {node}");
        assert_eq!(read_json(&swarm.home(node).join("learned.json")), expected[node], "node {node}");
        let own = fs::read(swarm.home(node).join("recommender.bin")).unwrap();
        assert_eq!(own, fs::read(out.join(format!("node-{node}/recommender.bin"))).unwrap(), "node {node}");
    }
    // Both separate the two tastes well.
    let recall = expected[0]["history"][11]["mean"][1].as_f64().unwrap();
    assert!(recall > 0.8, "{recall}");

    let home = swarm.home(2);
    let asked = run(&["recommend", "--home", text(&home), "--user", "c4", "--top", "3"]);
    assert!(asked.status.success(), "{}", stderr(&asked));
    let lines: Vec<String> = stdout(&asked).lines().map(str::to_owned).collect();
    assert!(lines[0].starts_with("c4 knows") && lines.len() == 4, "{lines:?}");
    let found = run(&["recommend", "--json", "--home", text(&home), "--user", "c4", "--top", "3"]);
    let found: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let is_even = |item: &Value| item["item"].as_str().unwrap()[1..].parse::<u32>().unwrap().is_multiple_of(2);
    assert!(found["items"].as_array().unwrap().iter().all(is_even), "{found}");
    assert_fails(&run(&["recommend", "--home", text(&home), "--user", "c400"]), 4, &["c400", "users are such as c0"]);
}

/// The files in which a peer keeps its rounds, by name, and when each was written.
type Kept = Vec<(String, Vec<u8>, SystemTime)>;

fn kept_rounds(home: &Path) -> Kept {
    let mut kept: Kept = fs::read_dir(home.join("rounds"))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let written = entry.metadata().unwrap().modified().unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap(), written)
        })
        .collect();
    kept.sort();
    kept
}

#[test]
fn a_fresh_start_that_comes_to_nothing_leaves_the_rounds_before_and_one_that_goes_on_replaces_them() {
    let folder = tempfile::tempdir().unwrap();
    let problem = shops(folder.path(), "rounds = 4");
    let swarm = PlannedSwarm::for_a_problem("complete:n=3", "nguyen-he", 3);
    let task = ["--problem", text(&problem)];
    let learn = |more: &[&str]| {
        let mut peers: Vec<_> = (0..3).map(|node| swarm.start_task(node, &[&task, more].concat())).collect();
        for (node, peer) in peers.iter_mut().enumerate() {
            assert_eq!(peer.wait_for("learned")["rounds"], 4, "node {node}");
            assert_eq!(peer.exit_code(), Some(0), "node {node}");
        }
    };
    let kept = || (0..3).map(|node| kept_rounds(&swarm.home(node))).collect::<Vec<_>>();
    learn(&[]);
    let before = kept();
    assert!(before[1].iter().any(|(name, ..)| name == "4.state"), "{:?}", before[1].first());

    // Alone, it waits for the others, and is killed meanwhile.
    let mut alone = swarm.start_task(1, &[&task[..], &["--fresh"]].concat());
    alone.wait_for_warning("data: ");
    alone.wait_for("waiting");
    alone.kill();
    assert!(kept() == before, "a fresh start that came to nothing has changed what was kept");
    // Data that cannot be read end it before it meets anybody.
    let data = folder.path().join("node-1.csv");
    let whole = fs::read(&data).unwrap();
    fs::write(&data, "user,item\n").unwrap();
    let mut spoilt = swarm.start_task(1, &[&task[..], &["--fresh"]].concat());
    assert!(spoilt.wait_for("learned")["error"]["message"].as_str().unwrap().contains("cannot learn"));
    fs::write(&data, whole).unwrap();
    assert!(kept() == before, "data that cannot be read have cost a peer what it had kept");

    // The old command ends as before, from its last round.
    learn(&[]);
    let last = |of: &[Kept]| of.iter().map(|files| files.last().unwrap().2).collect::<Vec<_>>();
    assert_eq!(last(&kept()), last(&before), "the last round was learned again");
    learn(&["--fresh"]);
    let after = kept();
    for (node, (after, before)) in after.iter().zip(&before).enumerate() {
        assert!(after.last().unwrap().2 > before.last().unwrap().2, "node {node} has learned nothing anew");
        assert_eq!(after.last().unwrap().1, before.last().unwrap().1, "node {node}");
    }
}

#[test]
fn fedavg_alone_and_early_stopping_are_lines_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    assert!(run(&["plan", "make", "--topology", "complete:n=3", "-o", text(&plan)]).status.success());
    let learn = |more: &str| in_one_process(&shops(folder.path(), more), &plan, &folder.path().join("out"), &[]);
    let methods = [
        "",
        "method = \"fedavg\"",
        "method = \"alone\"",
        "method = \"uniform\"\nshare = 0.3",
        "loss = \"bpr\"",
        "filter = \"none\"",
        "kernel = \"connected\"",
        "centred = false",
    ];
    let found: Vec<Vec<Value>> =
        methods.iter().map(|more| learn(&format!("rounds = 4\nfrozen_rounds = 0\n{more}"))).collect();
    for (at, one) in found.iter().enumerate() {
        // Each method changes the learned model, except that the kernel may rank three clients alike.
        let others = found[..at].iter().filter(|other| other[0]["history"] == one[0]["history"]).count();
        assert!(others == 0 || methods[at].starts_with("kernel"), "{}", methods[at]);
    }
    let early = learn("rounds = 60\npatience = 2");
    assert_eq!(early[0]["stopped_early"], true);
    let (rounds, best) = (early[0]["rounds"].as_u64().unwrap(), early[0]["best_round"].as_u64().unwrap());
    assert_eq!(rounds, best + 2);
}

#[test]
fn one_file_is_dealt_out_and_what_is_wrong_with_data_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    assert!(run(&["plan", "make", "--topology", "complete:n=3", "-o", text(&plan)]).status.success());
    let mut all = String::from("user,item\n");
    for place in ["x", "y", "z"] {
        let lines = shop(24, 20).replace('c', &format!("{place}c")).replace(",a", &format!(",{place}a"));
        lines.lines().skip(1).for_each(|line| all += &format!("{}\n", line.split(",4.5").next().unwrap()));
    }
    fs::write(folder.path().join("all.csv"), &all).unwrap();
    let file = |data: &str, more: &str| problem(folder.path(), data, more);
    let dealt = in_one_process(&file("data = \"all.csv\"", "rounds = 1"), &plan, &folder.path().join("out"), &[]);
    assert_eq!(dealt.len(), 3);

    let fails = |problem: &Path, words: &[&str]| {
        let output = run(&["solve", "--problem", text(problem), "--plan", text(&plan)]);
        assert_fails(&output, 4, words);
    };
    fails(&file("data = \"all.csv\"", "colour = 3"), &["problem.toml does not hold", "colour"]);
    fails(&file("", ""), &["needs data"]);
    fails(&file("data = \"all.csv\"", "rounds = 0"), &["0 rounds"]);
    fails(&file("data = \"all.csv\"", "floor = 2.0"), &["floor = 2", "0 to 1"]);
    fails(&file("data = \"all.csv\"", "device = \"abacus\""), &["abacus"]);
    fails(&file("data = \"none.csv\"", ""), &["node node-0 cannot learn", "none.csv"]);
    fs::write(folder.path().join("node-0.csv"), shop(24, 20)).unwrap();
    fs::write(folder.path().join("node-1.csv"), "user,item,rating\nc1,a1,5\nc2,a2,good\n").unwrap();
    fails(
        &file("data = \"{node}.csv\"", ""),
        &["node node-1 cannot learn", "node-1.csv, line 3", "\"good\" is no number"],
    );
    fs::write(folder.path().join("node-1.csv"), "user,item\nc1,a1\nc2,a1\n").unwrap();
    fails(&file("data = \"{node}.csv\"", ""), &["node-1 cannot learn", "3 users and items are too few", "frequencies"]);
}

#[test]
fn the_demo_shows_each_alone_fedavg_and_lpsfed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let output =
        run(&["demo", "--problem", "recommendation", "--peers", "3", "--rounds", "5", "--output", text(&root)]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let report = read_json(&root.join("report.json"));
    for method in ["each alone", "FedAvg", "LPSFed"] {
        assert!(stdout(&output).lines().any(|line| line.starts_with(method)), "{}", stdout(&output));
        let ndcg = report["methods"][method]["ndcg@20"].as_f64().unwrap();
        // Twenty of some eighty articles: guessing reaches less than 0.12.
        assert!(ndcg > 0.15, "{method}: {ndcg}");
    }
    assert!(stdout(&output).contains("3 peers") && stdout(&output).contains("all with the bits of one process"));
    assert_eq!(report["different"], serde_json::json!([]));
    assert!(fs::read_to_string(root.join("curves.svg")).unwrap().contains("LPSFed"));
    let command = stdout(&output).lines().last().unwrap().trim().to_owned();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(run(&words).status.success(), "{command}");
}
