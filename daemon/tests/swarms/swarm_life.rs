//! A swarm with an operator: peers join with a ticket, are planned in, and follow new plans while they train.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::founded_swarm::{ENDLESS, PLANS_ITSELF, Swarm, TASK};
use crate::support::{RunningPeer, assert_fails, run, stderr, stdout, text};

#[test]
fn peers_with_a_ticket_wait_until_a_plan_names_them_and_train_to_one_end() {
    let swarm = Swarm::found();
    let rounds = ["--rounds", "12", "--wait", "sync"];
    let mut operator = swarm.start_operator(&rounds);
    operator.address();
    let ticket = swarm.invite(2);
    let mut others = [swarm.join(1, &ticket, &rounds), swarm.join(2, &ticket, &rounds)];
    for other in &mut others {
        other.wait_for("admitted");
    }
    let applied = swarm.apply(&swarm.plan("complete:n=3"));
    assert!(applied.status.success(), "{}", stderr(&applied));
    // A waiting peer asks for the plan, and may have it before it is notified.
    let follows = |line: &&str| line.ends_with("accepted") || line.ends_with("follows it already");
    assert_eq!(stdout(&applied).lines().filter(follows).count(), 3, "{}", stdout(&applied));
    for peer in std::iter::once(&mut operator).chain(&mut others) {
        assert_eq!(peer.wait_for("done")["round"], 12);
        assert_eq!(peer.exit_code(), Some(0));
    }
}

#[test]
fn the_links_of_those_who_wait_are_measured_and_a_plan_for_them_names_the_right_peers() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&["--rounds", "4", "--wait", "sync"]);
    operator.address();
    let ticket = swarm.invite(2);
    let others = [1, 2].map(|peer| swarm.join(peer, &ticket, &["--rounds", "4", "--wait", "sync"]));
    let home = swarm.home(0);
    let waited = run(&["wait", "--home", text(&home), "--for", "waiting=2"]);
    assert!(waited.status.success(), "{}", stderr(&waited));

    let links = swarm.folder.path().join("links.toml");
    let probed = run(&["probe", "--home", text(&home), "-o", text(&links)]);
    assert!(probed.status.success(), "{}", stderr(&probed));
    assert!(stdout(&probed).contains("measured 6 directed links"), "{}{}", stdout(&probed), stderr(&probed));
    let plan = swarm.folder.path().join("plan.json");
    let made = run(&["plan", "make", "--links", text(&links), "--medium", "point-to-point", "-o", text(&plan)]);
    assert!(made.status.success(), "{}", stderr(&made));
    let applied = swarm.apply(&plan);
    assert!(applied.status.success(), "{}", stderr(&applied));
    let bound = fs::read_to_string(home.join("plan.json")).unwrap();
    let bound: serde_json::Value = serde_json::from_str(&bound).unwrap();
    for node in bound["nodes"].as_array().unwrap() {
        assert_eq!(node["name"], node["peer"], "{node}");
    }
    for mut peer in std::iter::once(operator).chain(others) {
        assert_eq!(peer.wait_for("done")["round"], 4);
    }
}

#[test]
fn only_the_operator_has_the_links_of_others_measured_and_strangers_measure_nothing() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    let address = operator.address();
    let ticket = swarm.invite(1);
    let mut first = swarm.join(1, &ticket, &ENDLESS);
    first.wait_for("admitted");
    // It knows of no other peer yet, and has no permission of its own.
    assert_fails(&run(&["probe", "--home", text(&swarm.home(1))]), 4, &["nobody else"]);
    let id = stdout(&run(&["id", "--home", text(&swarm.home(0))]));
    let home = swarm.home(1);
    assert_fails(&run(&["ping", id.trim(), "--home", text(&home)]), 6, &["no permission"]);
    assert!(swarm.apply(&swarm.plan("complete:n=2")).status.success());
    first.wait_for("evaluated");
    let pinged = run(&["ping", id.trim(), "--home", text(&home)]);
    assert!(stdout(&pinged).contains("Mbit/s"), "{}{}", stdout(&pinged), stderr(&pinged));
    assert_fails(&run(&["probe", "--home", text(&home)]), 6, &["only the operator"]);
    // A peer that answers at an address may be pinged by anyone.
    let pinged = run(&["ping", &address]);
    assert!(stdout(&pinged).contains(id.trim()), "{}{}", stdout(&pinged), stderr(&pinged));
    assert_fails(&run(&["ping", "/ip4/127.0.0.1/tcp/9"]), 3, &["127.0.0.1/tcp/9", "refused"]);
    assert_fails(&run(&["ping", "nobody"]), 4, &["neither a PeerId nor an address"]);
}

#[test]
fn a_newcomer_is_planned_in_while_the_others_train_and_begins_with_their_model() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let ticket = swarm.invite(2);
    let mut first = swarm.join(1, &ticket, &ENDLESS);
    first.wait_for("admitted");
    assert!(swarm.apply(&swarm.plan("complete:n=2")).status.success());
    let trained = operator.wait_for("evaluated")["round"].as_u64().unwrap();

    let mut second = swarm.join(2, &ticket, &ENDLESS);
    second.wait_for("admitted");
    let applied = swarm.apply(&swarm.plan("complete:n=3"));
    assert!(applied.status.success(), "{}", stderr(&applied));
    for peer in [&mut operator, &mut first] {
        let new = peer.wait_for("new_plan");
        assert!(new["counter"] == 2 && new["nodes"] == 3, "{new}");
        assert!(new["first_round"].as_u64().unwrap() >= trained, "{new}");
    }
    second.wait_for("borrowed");
    let evaluated = second.wait_for("evaluated");
    assert!(evaluated["metrics"]["accuracy"].as_f64().unwrap() > 0.5, "it did not begin anew: {evaluated}");
    assert!(evaluated["round"].as_u64().unwrap() > trained, "{evaluated}");

    // A member that was away follows the new plan when it is back, and one that is planned out ends in good order.
    first.kill();
    assert!(swarm.apply(&swarm.plan_without_the_first("auto")).status.success());
    second.wait_for("new_plan");
    let mut first = swarm.start(1, &ENDLESS);
    let end = first.wait_for("planned_out");
    assert_eq!(end["counter"], 3);
}

#[test]
fn plans_that_follow_one_another_while_parcels_flow_and_one_for_a_late_joiner_keep_the_weight_exact() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let ticket = swarm.invite(3);
    let mut peers = vec![operator, swarm.join(1, &ticket, &ENDLESS), swarm.join(2, &ticket, &ENDLESS)];
    for peer in &mut peers[1..] {
        peer.wait_for("admitted");
    }
    assert!(swarm.apply(&swarm.plan("complete:n=3")).status.success());
    peers[0].wait_for("evaluated");
    for topology in ["star:n=3", "complete:n=3", "star:n=3"] {
        let applied = swarm.apply(&swarm.plan(topology));
        assert!(applied.status.success(), "{}", stderr(&applied));
    }
    follow(&mut peers, 4);

    let mut late = swarm.join(3, &ticket, &ENDLESS);
    late.wait_for("admitted");
    assert!(swarm.apply(&swarm.plan("complete:n=4")).status.success());
    late.wait_for("borrowed");
    follow(&mut peers, 5);
    peers.push(late);
    for peer in &mut peers {
        for _ in 0..20 {
            assert_eq!(peer.wait_for("round")["event"], "round");
        }
    }
    peers.iter_mut().for_each(RunningPeer::kill);
    let homes: Vec<PathBuf> = (0..4).map(|peer| swarm.home(peer)).collect();
    let homes: Vec<&str> = homes.iter().map(|home| text(home)).collect();
    let audit = run(&[&["audit"], &homes[..]].concat());
    assert!(audit.status.success(), "{}{}", stdout(&audit), stderr(&audit));
    assert!(stdout(&audit).contains("exactly 4"), "{}", stdout(&audit));
}

#[test]
fn a_member_that_was_away_while_the_same_plan_was_applied_again_hears_of_it_from_its_neighbours() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let ticket = swarm.invite(2);
    let mut peers = vec![operator, swarm.join(1, &ticket, &ENDLESS), swarm.join(2, &ticket, &ENDLESS)];
    for peer in &mut peers[1..] {
        peer.wait_for("admitted");
    }
    let plan = swarm.plan("complete:n=3");
    assert!(swarm.apply(&plan).status.success());
    peers[2].wait_for("evaluated");
    let mut away = peers.pop().unwrap();
    away.kill();
    // The same file: its hash is the one that the streams of all three carry.
    let again = swarm.apply(&plan);
    assert!(stdout(&again).contains("accepted"), "{}{}", stdout(&again), stderr(&again));
    follow(&mut peers, 2);
    peers.push(swarm.start(2, &[]));
    follow(&mut peers[2..], 2);
    for peer in &mut peers {
        for _ in 0..20 {
            assert_eq!(peer.wait_for("round")["event"], "round");
        }
    }
    peers.iter_mut().for_each(RunningPeer::kill);
    let homes: Vec<PathBuf> = (0..3).map(|peer| swarm.home(peer)).collect();
    let audit = run(&[&["audit"], &homes.iter().map(|home| text(home)).collect::<Vec<_>>()[..]].concat());
    assert!(stdout(&audit).contains("exactly 3"), "{}{}", stdout(&audit), stderr(&audit));
}

/// Waits until all follow the plan of this number; they may have skipped some before it.
fn follow(peers: &mut [RunningPeer], counter: u64) {
    for peer in peers {
        while peer.wait_for("new_plan")["counter"].as_u64().unwrap() < counter {}
    }
}

#[test]
fn only_the_operator_invites_and_applies_and_only_its_ticket_lets_in() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let ticket = swarm.invite(1);
    let mut first = swarm.join(1, &ticket, &ENDLESS);
    first.wait_for("admitted");
    assert_fails(&run(&["invite", "--home", text(&swarm.home(1))]), 6, &["only the operator"]);
    let plan = swarm.plan("complete:n=2");
    let home = swarm.home(1);
    assert_fails(&run(&["plan", "apply", text(&plan), "--home", text(&home)]), 6, &["only the operator"]);
    // The ticket is used up.
    let mut second = swarm.join(2, &ticket, &ENDLESS);
    let end = second.wait_for("done");
    assert!(end["error"]["message"].as_str().unwrap().contains("used up"), "{end}");
    assert_eq!(second.exit_code(), Some(6));
    let home = swarm.home(3);
    let damaged = run(&["join", &ticket[..ticket.len() - 2], "--home", text(&home)]);
    assert_fails(&damaged, 4, &["not a ticket"]);
    // A plan for more peers than there are, and one that was changed.
    assert_fails(&swarm.apply(&swarm.plan("complete:n=5")), 4, &["2 peers", "mingle invite"]);
    let home = swarm.home(0);
    let changed = run(&["plan", "apply", text(&plan), "--home", text(&home), "--expect", "0123456789"]);
    assert_fails(&changed, 8, &["changed"]);
    fs::remove_file(&plan).unwrap();
}

#[test]
fn a_peer_that_leaves_hands_its_weight_over_and_is_gone_for_good() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let ticket = swarm.invite(2);
    let mut others = [swarm.join(1, &ticket, &ENDLESS), swarm.join(2, &ticket, &ENDLESS)];
    for other in &mut others {
        other.wait_for("admitted");
    }
    assert!(swarm.apply(&swarm.plan("complete:n=3")).status.success());
    let [mut stays, mut goes] = others;
    goes.wait_for("evaluated");
    // A peer that was killed is started again to leave; one that runs is asked to, below.
    goes.kill();
    let mut goes = RunningPeer::leave(&[&["--home", text(&swarm.home(2))], &TASK[..], &ENDLESS].concat());
    goes.wait_for("left");
    assert_eq!(goes.wait_for("done")["weight_units"], 0);
    assert_eq!(goes.exit_code(), Some(0));
    let again = run(&[&["run", "--home", text(&swarm.home(2))], &TASK[..], &ENDLESS].concat());
    assert!(stderr(&again).contains("left"), "{}", stderr(&again));
    stays.wait_for("evaluated");
    let left = run(&["leave", "--home", text(&swarm.home(1))]);
    assert!(left.status.success() && stdout(&left).contains("handed over"), "{}{}", stdout(&left), stderr(&left));
    stays.wait_for("left");
    assert_eq!(stays.exit_code(), Some(0));
    // The weight on the disk of the remaining peer is all there is.
    operator.wait_for("evaluated");
    operator.kill();
    let audit = run(&["audit", text(&swarm.home(0)), text(&swarm.home(1)), text(&swarm.home(2))]);
    assert!(audit.status.success(), "{}{}", stdout(&audit), stderr(&audit));
    assert!(stdout(&audit).contains("exactly 3"), "{}", stdout(&audit));
}

#[test]
fn a_swarm_that_plans_itself_takes_in_who_has_a_ticket_and_lets_go_of_who_leaves() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ENDLESS[..]].concat());
    operator.address();
    let ticket = swarm.invite(2);
    let mut first = swarm.join(1, &ticket, &ENDLESS);
    assert_eq!(operator.wait_for("plan")["nodes"], 2);
    first.wait_for("evaluated");

    let mut second = swarm.join(2, &ticket, &ENDLESS);
    for peer in [&mut operator, &mut first] {
        let new = peer.wait_through_rounds_for("new_plan");
        assert!(new["counter"] == 2 && new["nodes"] == 3, "{new}");
    }
    second.wait_for("evaluated");

    assert!(run(&["leave", "--home", text(&swarm.home(2))]).status.success());
    second.wait_through_rounds_for("left");
    let new = operator.wait_through_rounds_for("new_plan");
    assert!(new["counter"] == 3 && new["nodes"] == 2, "{new}");
    first.wait_through_rounds_for("new_plan");
    operator.wait_for("evaluated");
}

#[test]
fn only_an_operator_can_plan_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    assert!(run(&["init", "--home", text(&home)]).status.success());
    assert_fails(&run(&["run", "--home", text(&home), "--planning", "auto"]), 4, &["for the operator", "mingle init"]);
}

/// A problem file beside its table. Two columns are nearly the same, and take thousands of iterations to separate.
fn slow_problem(folder: &Path) -> PathBuf {
    let row = |row: u32| {
        let [a, b, apart] = [7, 11, 3].map(|step| f64::from(row * step % 17) / 8.0 - 1.0);
        format!("{a},{b},{},{}\n", b + 0.2 * apart, 2.0 * a - b)
    };
    let rows: String = (0..40).map(row).collect();
    fs::write(folder.join("table.csv"), format!("a,b,twin,y\n{rows}")).unwrap();
    let problem = "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\nlambda = 0.0001\n";
    let path = folder.join("problem.toml");
    fs::write(&path, problem).unwrap();
    path
}

/// A robust model of the same table: the label is whether the last column is above 0.
fn robust_problem(folder: &Path) -> PathBuf {
    let path = slow_problem(folder);
    let rows = fs::read_to_string(folder.join("table.csv")).unwrap();
    let labelled = rows.lines().skip(1).map(|line| {
        let (row, number) = line.rsplit_once(',').unwrap();
        format!("{row},{}\n", if number.parse::<f64>().unwrap() > 0.0 { "ill" } else { "well" })
    });
    fs::write(folder.join("table.csv"), format!("a,b,twin,y\n{}", labelled.collect::<String>())).unwrap();
    let problem = "kind = \"robust-classification\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\n\
                   labels = [\"well\", \"ill\"]\nsupport = \"box\"\nradius = 0.02\ntheta = 0.1\n";
    fs::write(&path, problem).unwrap();
    path
}

#[test]
fn a_peer_that_is_gone_for_good_is_planned_out_of_a_problem_and_the_others_solve_it() {
    assert_the_others_solve_it(slow_problem);
}

#[test]
fn a_newer_plan_is_taken_up_in_the_middle_of_a_robust_model() {
    assert_the_others_solve_it(robust_problem);
}

/// Of three peers one dies for good. The operator's newer plan leaves it out, and the others find the solution that one
/// process finds along that plan.
fn assert_the_others_solve_it(problem: fn(&Path) -> PathBuf) {
    let swarm = Swarm::found();
    let problem = problem(swarm.folder.path());
    let more = ["--problem", text(&problem)];
    let mut operator = swarm.start_operator(&more);
    operator.address();
    let ticket = swarm.invite(2);
    let mut gone = swarm.join(1, &ticket, &more);
    let mut other = swarm.join(2, &ticket, &more);
    gone.wait_for("admitted");
    other.wait_for("admitted");
    let applied = swarm.apply(&swarm.plan_by("clique-phi", "complete:n=3"));
    assert!(applied.status.success(), "{}", stderr(&applied));
    gone.wait_for("iterated");
    gone.kill();
    let plan = swarm.plan_without_the_first("clique-phi");
    let applied = swarm.apply(&plan);
    assert!(stdout(&applied).contains("accepted"), "{}{}", stdout(&applied), stderr(&applied));
    let solved = run(&["solve", "--json", "--problem", text(&problem), "--plan", text(&plan)]);
    let expected: serde_json::Value = serde_json::from_str(stdout(&solved).lines().last().unwrap()).unwrap();
    for (node, (home, mut peer)) in [(0, operator), (2, other)].into_iter().enumerate() {
        assert_eq!(peer.wait_for("new_plan")["counter"], 2);
        assert_eq!(peer.wait_for("solved")["converged"], true);
        let found = fs::read_to_string(swarm.home(home).join("solution.json")).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&found).unwrap(), expected["solutions"][node]);
    }
}
