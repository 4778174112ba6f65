//! Keys that were lost or stolen: the procedures of docs/security.md, step by step.

use std::fs;
use std::path::Path;

use crate::support::founded_swarm::{ENDLESS, PLANS_ITSELF, Swarm};
use crate::support::{assert_fails, read_json, run, stderr, stdout, text};
use serde_json::Value;

fn id(swarm: &Swarm, peer: usize) -> String {
    stdout(&run(&["id", "--home", text(&swarm.home(peer))])).trim().to_owned()
}

#[test]
fn a_member_whose_key_was_stolen_gets_another_and_the_old_one_opens_nothing() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ENDLESS[..]].concat());
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

    // A thief with the old home is refused at the door.
    assert!(!swarm.home(1).join("plan.signed").exists(), "the plan is gone with the place in it");
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

/// The output of a command, which must succeed.
#[track_caller]
fn told(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}{}", stderr(&output), stdout(&output));
    stdout(&output).trim().to_owned()
}

/// A copy of the files that a thief takes of a home.
fn stolen_from(swarm: &Swarm, home: &Path, copy: usize) -> std::path::PathBuf {
    let stolen = swarm.home(copy);
    fs::create_dir(&stolen).unwrap();
    for file in ["identity.key", "swarm.json", "plan.signed"] {
        fs::copy(home.join(file), stolen.join(file)).unwrap();
    }
    stolen
}

fn apply(home: &Path, plan: &Path, via: &str) -> std::process::Output {
    run(&["plan", "apply", text(plan), "--home", text(home), "--via", via, "--timeout", "6s"])
}

#[track_caller]
fn applied(home: &Path, plan: &Path, via: &str) -> Value {
    let home = text(home);
    let output = told(&["plan", "apply", text(plan), "--home", home, "--via", via, "--timeout", "12s", "--json"]);
    serde_json::from_str(&output).unwrap()
}

#[test]
fn the_key_of_an_operator_stays_offline_while_a_delegate_signs_until_it_is_taken_back() {
    let swarm = Swarm::found();
    let (safe, online) = (swarm.home(0), swarm.home(1));
    let delegate = told(&["init", "--home", text(&online)]);
    assert_fails(&run(&["invite", "--home", text(&online)]), 4, &["no swarm with an operator"]);
    let delegating = ["operator", "delegate", "--to", &delegate, "--home", text(&safe), "--until"];
    assert_fails(&run(&[&delegating[..], &["2001-01-01"]].concat()), 4, &["--until", "between"]);
    let appointment = told(&[&delegating[..], &["90d"]].concat());
    let other = swarm.home(8);
    told(&["init", "--home", text(&other)]);
    assert_fails(
        &run(&["operator", "accept", &appointment, "--home", text(&other)]),
        6,
        &["only the operator", &delegate],
    );
    told(&["operator", "accept", &appointment, "--home", text(&online)]);
    assert!(told(&["operator", "show", "--home", text(&online)]).contains("by delegation 1"));

    // The home of the operator runs no peer; the delegate's plans, invites and expels.
    let mut ana = swarm.start(1, &[&PLANS_ITSELF[..], &ENDLESS[..]].concat());
    ana.address();
    let ticket = told(&["invite", "--home", text(&online), "--uses", "5"]);
    let mut ben = swarm.join(2, &ticket, &ENDLESS);
    let address = ben.address();
    assert_eq!(ana.wait_for("plan")["nodes"], 2);
    ben.wait_for("evaluated");
    let gone = libp2p::PeerId::random().to_string();
    told(&["expel", &gone, "--home", text(&online)]);
    assert_fails(&run(&["expel", &delegate, "--home", text(&online)]), 4, &["cannot be expelled"]);

    // Its machine is broken into: the operator takes the delegation back, and plans.
    let stolen = stolen_from(&swarm, &online, 7);
    let again = told(&["operator", "revoke", "--home", text(&safe)]);
    let plan = swarm.plan_by("d-psgd", "complete:n=2");
    let next = applied(&safe, &plan, &address);
    assert_eq!((next["counter"].as_u64(), next["accepted"].as_u64()), (Some((2 << 32) + 1), Some(2)), "{next}");
    assert!(!next["members"].to_string().contains(&id(&swarm, 0)), "its key runs no peer: {next}");
    assert_eq!(ben.wait_through_rounds_for("new_plan")["counter"], next["counter"]);
    assert_eq!(read_json(&swarm.home(2).join("swarm.json"))["authority"]["delegation"]["number"], 2);

    // The thief may sign no more, and what it signed lets no peer in.
    assert_fails(&apply(&stolen, &plan, &address), 6, &["to the operator alone", "another key may sign"]);
    told(&["operator", "accept", &again, "--home", text(&stolen)]);
    assert_fails(&run(&["invite", "--home", text(&stolen)]), 6, &["only the operator"]);
    let mut late = swarm.join(3, &ticket, &ENDLESS);
    let end = late.wait_for("done");
    assert!(end["error"]["message"].as_str().is_some_and(|message| message.contains("replaced since")), "{end}");
    assert_eq!(late.exit_code(), Some(6));
    ben.wait_for("evaluated");
}

#[test]
fn an_operator_whose_key_was_stolen_is_replaced_with_the_recovery_key() {
    let swarm = Swarm { folder: tempfile::tempdir().unwrap() };
    let (old, safe) = (swarm.home(0), swarm.folder.path().join("ward7.recovery"));
    let founding = ["init", "--home", text(&old), "--swarm", "ward7", "--recovery-key", text(&safe)];
    told(&founding);
    assert_fails(&run(&founding), 6, &["belongs to the swarm ward7 already"]);
    let mut ana = swarm.start_operator(&ENDLESS);
    ana.address();
    let ticket = swarm.invite(5);
    let mut ben = swarm.join(1, &ticket, &ENDLESS);
    let address = ben.address();
    ana.wait_for("join_requested");
    let mut cho = swarm.join(2, &ticket, &ENDLESS);
    ana.wait_for("join_requested");
    let plan = swarm.plan_by("d-psgd", "complete:n=3");
    assert!(swarm.apply(&plan).status.success());
    [&mut ana, &mut ben, &mut cho].into_iter().for_each(|peer| drop(peer.wait_for("evaluated")));

    // The thief plans, too; one member is away by then.
    cho.kill();
    let stolen = stolen_from(&swarm, &old, 7);
    let theirs = applied(&stolen, &plan, &address);
    assert_eq!(ben.wait_through_rounds_for("new_plan")["counter"], theirs["counter"]);
    ana.kill();

    // The recovery key names another home's key; the old one is expelled, and the others get a plan.
    let new = swarm.home(5);
    told(&["init", "--home", text(&new)]);
    told(&["operator", "recover", "--recovery-key", text(&safe), "--home", text(&new)]);
    assert_fails(
        &run(&["operator", "recover", "--recovery-key", text(&safe), "--home", text(&old)]),
        6,
        &["operates the swarm already"],
    );
    told(&["expel", &id(&swarm, 0), "--home", text(&new)]);
    // It trains without the member that is away.
    let mut eva = swarm.start(5, &[&["--bootstrap", &address, "--join-timeout", "2s"], &ENDLESS[..]].concat());
    eva.address();
    let plan = swarm.plan_by("d-psgd", "complete:n=3");
    let next = applied(&new, &plan, &address);
    assert_eq!(next["counter"].as_u64(), Some((1 << 48) + 1), "{next}");
    assert_eq!(ben.wait_through_rounds_for("new_plan")["counter"], next["counter"]);
    eva.wait_for("evaluated");

    // The member that was away learns of it. The thief signs in vain, and its tickets let no peer in.
    let mut cho = swarm.start(2, &ENDLESS);
    assert_eq!(cho.wait_through_rounds_for("new_plan")["counter"], next["counter"]);
    assert_fails(&apply(&stolen, &plan, &address), 6, &["to the operator alone", "another key may sign"]);
    let mut late = swarm.join(3, &ticket, &[&["--bootstrap", &address], &ENDLESS[..]].concat());
    let end = late.wait_for("done");
    assert!(end["error"]["message"].as_str().is_some_and(|message| message.contains("replaced since")), "{end}");
    // All of them know the operator after a restart.
    for peer in [1, 2, 5] {
        let shown = told(&["--json", "operator", "show", "--home", text(&swarm.home(peer))]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!((&shown["operator"], &shown["recovery_number"]), (&id(&swarm, 5).into(), &1.into()), "{shown}");
    }
    let mut fay = swarm.join(6, &told(&["invite", "--home", text(&new)]), &ENDLESS);
    eva.wait_through_rounds_for("join_requested");
    fay.wait_for("waiting_for_plan");
}
