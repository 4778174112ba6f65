//! Keys that were lost or stolen: what docs/security.md says to do, step by step.
#![allow(clippy::unwrap_used)]

#[path = "support/founded_swarm.rs"]
#[allow(dead_code)]
mod founded_swarm;
mod support;

use std::fs;

use founded_swarm::{ENDLESS, Swarm};
use serde_json::Value;
use support::{run, stderr, stdout, text};

fn id(swarm: &Swarm, peer: usize) -> String {
    stdout(&run(&["id", "--home", text(&swarm.home(peer))])).trim().to_owned()
}

#[test]
fn a_member_whose_key_was_stolen_gets_another_and_the_old_one_opens_nothing() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&["--planning", "auto"], &ENDLESS[..]].concat());
    operator.address();
    let mut ben = swarm.join(1, &swarm.invite(1), &ENDLESS);
    assert_eq!(operator.wait_for("plan")["nodes"], 2);
    ben.wait_for("evaluated");
    let mut cho = swarm.join(3, &swarm.invite(1), &ENDLESS);
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 3);
    cho.wait_for("evaluated");

    // The old key is out, and so is the ticket that lay beside it; the new home has a new ticket.
    let home = swarm.home(0);
    let invites: Value =
        serde_json::from_str(&stdout(&run(&["invite", "--list", "--json", "--home", text(&home)]))).unwrap();
    let all = invites["invites"].as_array().unwrap();
    assert_eq!(all.len(), 2, "{invites}");
    let invite = all[0]["id"].as_str().unwrap();
    assert!(run(&["invite", "--revoke", invite, "--home", text(&home)]).status.success());
    assert!(run(&["expel", &id(&swarm, 1), "--home", text(&home)]).status.success());
    ben.wait_through_rounds_for("done");
    assert_eq!(ben.exit_code(), Some(0), "it keeps its model");
    let mut again = swarm.join(2, &swarm.invite(1), &ENDLESS);
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 2);
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 3);
    again.wait_for("evaluated");
    assert_ne!(id(&swarm, 1), id(&swarm, 2));

    // Whoever has the old home gets no further than the door.
    fs::remove_file(swarm.home(1).join("plan.signed")).unwrap();
    let mut thief = swarm.start(1, &ENDLESS);
    let end = thief.wait_for("done");
    assert!(end["error"]["message"].as_str().is_some_and(|message| message.contains("expelled")), "{end}");
    assert_eq!(thief.exit_code(), Some(6));
}

#[test]
fn copies_of_two_files_bring_the_operator_back_with_the_list_of_those_it_had_expelled() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let mut ben = swarm.join(1, &swarm.invite(1), &ENDLESS);
    let address = ben.address();
    operator.wait_for("join_requested");
    let plan = swarm.plan_by("d-psgd", "complete:n=2");
    let (home, gone) = (swarm.home(0), libp2p::PeerId::random().to_string());
    assert!(run(&["expel", &gone, "--home", text(&home)]).status.success());
    assert!(swarm.apply(&plan).status.success());
    ben.wait_for("evaluated");
    operator.kill();

    // Its machine is gone, and there is a copy.
    let restored = swarm.home(2);
    fs::create_dir(&restored).unwrap();
    for file in ["identity.key", "swarm.json"] {
        fs::copy(home.join(file), restored.join(file)).unwrap();
    }
    fs::remove_dir_all(&home).unwrap();
    ben.wait_through_rounds_for("evaluated");
    let mut back = swarm.start(2, &[&["--bootstrap", &address], &ENDLESS[..]].concat());
    back.wait_for("evaluated");
    let via = ["--via", &address, "--timeout", "8s", "--json"];
    let told = run(&[&["plan", "apply", text(&plan), "--home", text(&restored)], &via[..]].concat());
    assert!(told.status.success(), "{}", stderr(&told));
    let applied: Value = serde_json::from_str(&stdout(&told)).unwrap();
    assert!(applied["counter"].as_u64() > Some(1), "{applied}");
    assert_eq!(ben.wait_through_rounds_for("new_plan")["counter"], applied["counter"]);
    // The list came back with the plan.
    let kept = fs::read_to_string(restored.join("revoked.json")).unwrap();
    assert!(kept.contains(&gone), "{kept}");
}
