//! Peers that the operator expels, and invitations that it takes back.

use std::fs;

use crate::support::founded_swarm::{ENDLESS, PLANS_ITSELF, Swarm};
use crate::support::planned_swarm::ONE;
use crate::support::played_peers::Connection;
use crate::support::{RunningPeer, assert_fails, audit, mingle, run, stderr, stdout, text};
use libp2p::identity::Keypair;
use mingle_peer::membership::{TaskAnswer, Ticket, fetch_task, request_admission};
use mingle_peer::task::{ProblemCard, Work};
use serde_json::Value;

#[test]
fn an_expelled_peer_is_planned_out_and_neither_its_ticket_nor_an_empty_home_brings_it_back() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ENDLESS[..]].concat());
    operator.address();
    let ticket = swarm.invite(4);
    let mut stays = swarm.join(1, &ticket, &ENDLESS);
    assert_eq!(operator.wait_for("plan")["nodes"], 2);
    stays.wait_for("evaluated");
    let mut goes = swarm.join(2, &ticket, &ENDLESS);
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 3);
    goes.wait_for("evaluated");

    let (home, id) = (swarm.home(0), stdout(&run(&["id", "--home", text(&swarm.home(2))])));
    let expelled = run(&["expel", id.trim(), "--home", text(&home)]);
    assert!(expelled.status.success() && stdout(&expelled).contains("may not come back"), "{}", stderr(&expelled));
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 2);
    goes.wait_through_rounds_for("done");
    assert_eq!(goes.exit_code(), Some(0), "it keeps its model");

    // It comes with the ticket that once let it in; its key is known.
    assert!(!swarm.home(2).join("plan.signed").exists(), "that plan would tell it of the next one alone");
    let mut again = swarm.join(2, &ticket, &ENDLESS);
    let end = again.wait_for("done");
    assert!(end["error"]["message"].as_str().is_some_and(|message| message.contains("expelled")), "{end}");
    assert_eq!(again.exit_code(), Some(6));
    operator.wait_for("evaluated");
    stays.wait_for("evaluated");
    assert_fails(&swarm.apply(&swarm.plan_without_the_first("auto")), 4, &["expelled", "--undo"]);

    // The operator takes it back.
    assert!(run(&["expel", "--undo", id.trim(), "--home", text(&home)]).status.success());
    let mut back = swarm.join(2, &ticket, &ENDLESS);
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 3);
    back.wait_for("evaluated");
}

#[test]
fn one_command_of_the_operator_leaves_a_member_out_and_the_others_have_whole_weights() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let ticket = swarm.invite(2);
    let mut others = [1, 2].map(|peer| swarm.join(peer, &ticket, &ENDLESS));
    for _ in 0..2 {
        operator.wait_for("join_requested");
    }
    assert!(swarm.apply(&swarm.plan_by("d-psgd", "complete:n=3")).status.success());
    others.iter_mut().for_each(|peer| drop(peer.wait_for("evaluated")));

    let (home, id) = (swarm.home(0), stdout(&run(&["id", "--home", text(&swarm.home(2))])));
    let apply = || run(&["plan", "apply", "--without", id.trim(), "--home", text(&home), "--timeout", "4s"]);
    let applied = apply();
    assert!(applied.status.success(), "{}", stderr(&applied));
    assert_eq!(operator.wait_through_rounds_for("new_plan")["nodes"], 2);
    let [mut stays, mut goes] = others;
    assert_eq!(stays.wait_through_rounds_for("new_plan")["nodes"], 2);
    goes.wait_through_rounds_for("done");
    assert_eq!(goes.exit_code(), Some(0), "it keeps its model");
    assert_fails(&apply(), 4, &["the swarm's plan does not name", id.trim()]);
    let by_a_member = run(&["run", "--home", text(&swarm.home(2)), "--without", id.trim()]);
    assert_fails(&by_a_member, 4, &["has an operator", "mingle plan apply --without"]);

    stays.wait_through_rounds_for("evaluated");
    let homes = [0, 1].map(|peer| swarm.home(peer));
    for (home, mut peer) in homes.iter().zip([operator, stays]) {
        assert!(run(&["stop", "--home", text(home)]).status.success());
        peer.wait_through_rounds_for("done");
        assert_eq!(peer.exit_code(), Some(0));
    }
    let report = audit(&homes);
    assert_eq!((report["verdict"].as_str(), report["sum_units"].as_u64()), (Some("exact"), Some(2 * ONE)), "{report}");
}

#[test]
fn an_invitation_that_is_taken_back_lets_nobody_in() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let (ticket, home) = (swarm.invite(3), swarm.home(0));
    let list = || -> Value {
        serde_json::from_str(&stdout(&run(&["invite", "--list", "--json", "--home", text(&home)]))).unwrap()
    };
    let invites = list()["invites"].clone();
    assert_eq!((invites[0]["uses"].as_u64(), invites[0]["revoked"].as_bool()), (Some(3), Some(false)), "{invites}");
    let id = invites[0]["id"].as_str().unwrap();
    assert_fails(&run(&["invite", "--revoke", "zz", "--home", text(&home)]), 4, &["no invitation", "--list"]);
    let revoked = run(&["invite", "--revoke", &id[..8], "--home", text(&home)]);
    assert!(revoked.status.success(), "{}", stderr(&revoked));
    assert_eq!(list()["invites"][0]["revoked"], true);
    let mut refused = swarm.join(1, &ticket, &ENDLESS);
    let end = refused.wait_for("done");
    assert!(end["error"]["message"].as_str().is_some_and(|message| message.contains("revoked")), "{end}");
    assert_eq!(refused.exit_code(), Some(6));

    // The same ticket, read from standard input so that no list of arguments shows it.
    let file = swarm.folder.path().join("ticket");
    fs::write(&file, ticket + "\n").unwrap();
    let home = swarm.home(2);
    let arguments = ["join", "-", "--home", text(&home), "--listen", "/ip4/127.0.0.1/tcp/0", "--model", "softmax"];
    let joined = mingle().args(arguments).stdin(fs::File::open(&file).unwrap()).output().unwrap();
    assert_fails(&joined, 6, &["revoked"]);
}

/// A bearer of a ticket, which sends requests with a program of its own.
struct Bearer {
    key: Keypair,
    connection: Connection,
    ticket: Ticket,
}

impl Bearer {
    async fn of(ticket: &str, address: &str) -> Self {
        let key = Keypair::generate_ed25519();
        let connection = Connection::open(key.clone(), address.parse().unwrap()).await;
        Self { key, connection, ticket: ticket.parse().unwrap() }
    }

    fn id(&self) -> String {
        self.key.public().to_peer_id().to_string()
    }

    /// The error with which the member refuses to send the task; `None` if it sends it.
    async fn refusal_to_tell(&mut self) -> Option<String> {
        let claim = self.ticket.invite.claim(&self.ticket.swarm, &self.key.public().to_peer_id()).unwrap();
        loop {
            match fetch_task(&mut self.connection.control, self.connection.peer, Some(&claim)).await {
                Ok(TaskAnswer::Task(_)) => return None,
                // The member has only started.
                Ok(TaskAnswer::NotYet) => {}
                Ok(TaskAnswer::Away) => panic!("the member went away"),
                Err(refusal) => return Some(refusal.to_string()),
            }
        }
    }

    /// The error with which the member refuses to admit a peer with another task.
    async fn refusal_of_other_work(&mut self) -> String {
        let claim = self.ticket.invite.claim(&self.ticket.swarm, &self.key.public().to_peer_id()).unwrap();
        let (control, peer) = (&mut self.connection.control, self.connection.peer);
        let asked = request_admission(
            control,
            peer,
            &self.ticket.swarm,
            &claim,
            &Work::Solve(ProblemCard::new(&serde_json::Value::Null)),
        )
        .await;
        asked.unwrap_err().to_string()
    }
}

#[test]
fn who_may_not_come_in_is_not_told_what_the_swarm_is_for() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    let address = operator.address();
    let home = swarm.home(0);
    let ids = || -> Vec<String> {
        let listed = stdout(&run(&["invite", "--list", "--json", "--home", text(&home)]));
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed["invites"].as_array().unwrap().iter().map(|invite| invite["id"].as_str().unwrap().to_owned()).collect()
    };
    let [good, used, revoked] = [2, 1, 2].map(|uses| swarm.invite(uses));
    let _newcomer = swarm.join(1, &used, &ENDLESS);
    operator.wait_for("join_requested");
    assert!(run(&["invite", "--revoke", &ids()[2], "--home", text(&home)]).status.success());

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for (ticket, why) in [(&used, "used up"), (&revoked, "revoked")] {
            let mut bearer = Bearer::of(ticket, &address).await;
            let refusal = bearer.refusal_to_tell().await;
            assert!(refusal.as_ref().is_some_and(|refusal| refusal.contains(why)), "{why}: {refusal:?}");
            let refusal = bearer.refusal_of_other_work().await;
            assert!(refusal.contains(why), "in what the work differs is told to nobody else: {refusal}");
        }
        let mut bearer = Bearer::of(&good, &address).await;
        assert_eq!(bearer.refusal_to_tell().await, None);
        assert!(bearer.refusal_of_other_work().await.contains("does not fit the task"));
        assert!(run(&["expel", &bearer.id(), "--home", text(&home)]).status.success());
        let refusal = bearer.refusal_to_tell().await;
        assert!(refusal.as_ref().is_some_and(|refusal| refusal.contains("expelled")), "{refusal:?}");
        // A request for the task uses up nothing.
        assert_eq!(Bearer::of(&good, &address).await.refusal_to_tell().await, None);
    });
}

#[test]
fn two_plans_of_one_number_are_named_by_the_member_that_hears_of_both() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    operator.address();
    let ticket = swarm.invite(1);
    let mut ben = swarm.join(1, &ticket, &ENDLESS);
    let address = ben.address();
    operator.wait_for("join_requested");
    let plan = swarm.plan_by("d-psgd", "complete:n=2");
    assert!(swarm.apply(&plan).status.success());
    operator.wait_for("evaluated");
    let home = swarm.home(0);
    assert!(run(&["stop", "--home", text(&home)]).status.success());
    operator.exit_code();

    // A thief of the operator's home plans with the one member, and the operator, while that is down, without it.
    let stolen = swarm.home(7);
    fs::create_dir(&stolen).unwrap();
    for file in ["identity.key", "swarm.json", "plan.signed"] {
        fs::copy(home.join(file), stolen.join(file)).unwrap();
    }
    let apply = |home: &std::path::Path, plan: &std::path::Path, via: &str| -> (Value, String) {
        let told = run(&["plan", "apply", text(plan), "--home", text(home), "--timeout", "4s", "--via", via, "--json"]);
        assert!(told.status.success(), "{}", stderr(&told));
        (serde_json::from_str(&stdout(&told)).unwrap(), stderr(&told))
    };
    let (theirs, _) = apply(&stolen, &plan, &address);
    ben.wait_through_rounds_for("new_plan");
    ben.kill();
    let mut operator = swarm.start_operator(&ENDLESS);
    let address = operator.address();
    let gone = libp2p::PeerId::random().to_string();
    assert!(run(&["expel", &gone, "--home", text(&home)]).status.success());
    let other = swarm.plan_by("lazy-metropolis", "complete:n=2");
    let (ours, _) = apply(&home, &other, &address);
    assert_eq!((&theirs["counter"], &ours["counter"]), (&Value::from(2), &Value::from(2)), "{theirs} {ours}");
    assert_eq!(theirs["previous"], ours["previous"], "both follow plan 1");
    assert_ne!(theirs["signed_hash"], ours["signed_hash"]);
    let mut ben = swarm.start(1, &ENDLESS);
    let address = ben.address();
    // The peer that learns of both plans depends on who sends first, and on whose plan is followed.
    let named = RunningPeer::wait_for_warning_of_any(
        &mut [&mut operator, &mut ben],
        "the operator's key has signed two plans 2",
    );
    for hash in [&ours["signed_hash"], &theirs["signed_hash"]] {
        assert!(named.contains(&hash.as_str().unwrap()[..16]), "{named}");
    }

    // The thief learns of the plan that the member follows and plans after that, and so does the operator, whose peer
    // is down meanwhile.
    operator.kill();
    let (third, _) = apply(&stolen, &other, &address);
    assert!(third["counter"].as_u64() >= Some(3), "{third}");
    let (fourth, warned) = apply(&home, &other, &address);
    assert_eq!(fourth["counter"].as_u64(), third["counter"].as_u64().map(|third| third + 1), "{fourth}");
    assert_eq!(fourth["previous"], third["signed_hash"]);
    assert!(warned.contains("was signed with the key of this home, and not in it"), "{warned}");
    let kept = fs::read_to_string(home.join("revoked.json")).unwrap();
    assert!(kept.contains(&gone), "whom the operator expelled stays so: {kept}");
    while ben.wait_through_rounds_for("new_plan")["counter"] != fourth["counter"] {}
}

#[test]
fn only_the_operator_expels_and_never_itself() {
    let swarm = Swarm::found();
    let home = swarm.home(0);
    let own = stdout(&run(&["id", "--home", text(&home)]));
    assert_fails(&run(&["expel", own.trim(), "--home", text(&home)]), 4, &["cannot be expelled"]);
    assert!(run(&["init", "--home", text(&swarm.home(1))]).status.success());
    assert_fails(&run(&["expel", own.trim(), "--home", text(&swarm.home(1))]), 4, &["no swarm with an operator"]);
}
