//! Followers of real swarms: they get the model, to the bit, and take no part.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::founded_swarm::{ENDLESS, PLANS_ITSELF, Swarm};
use crate::support::{PATIENCE, RunningPeer, assert_fails, mingle, read_json, run, stderr, stdout, text};

/// A follower with this ticket that writes this file.
fn follow(ticket: &str, output: &Path, more: &[&str]) -> RunningPeer {
    RunningPeer::spawn_as(mingle(), &[&["follow", ticket, "--output", text(output)], more].concat())
}

/// BLAKE3 of a file, in hexadecimal.
fn hash(path: &Path) -> String {
    blake3::hash(&fs::read(path).unwrap()).to_hex().to_string()
}

fn id(swarm: &Swarm, peer: usize) -> String {
    stdout(&run(&["id", "--home", text(&swarm.home(peer))])).trim().to_owned()
}

/// Waits until the peer has trained in a plan of so many members.
fn trains_among(peer: &mut RunningPeer, members: u64) {
    while peer.wait_for("new_plan")["nodes"] != json!(members) {}
    peer.wait_for("joined");
    peer.wait_for("evaluated");
}

/// A swarm of three that plans itself, and trains until it is asked to end. Returns the address of peer 1 as well.
fn swarm_of_three() -> (Swarm, Vec<RunningPeer>, String) {
    let swarm = Swarm::found();
    let task = [&ENDLESS[..], &["--durability", "off", "--followers", "16"]].concat();
    let mut peers = vec![swarm.start_operator(&[&PLANS_ITSELF[..], &task].concat())];
    peers[0].address();
    peers.push(swarm.join(1, &swarm.invite(1), &task));
    let address = peers[1].address();
    // A plan of its own: the operator's peer tells the next one as a new plan.
    peers[1].wait_for("plan");
    peers.push(swarm.join(2, &swarm.invite(1), &task));
    trains_among(&mut peers[0], 3);
    (swarm, peers, address)
}

/// A ticket that leads to this address.
fn ticket_by_way_of(swarm: &Swarm, address: &str) -> String {
    let invited = run(&["invite", "--home", text(&swarm.home(0)), "--address", address]);
    assert!(invited.status.success(), "{}", stderr(&invited));
    stdout(&invited).trim().to_owned()
}

fn wait_for_file(path: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} is not written", path.display());
        std::thread::yield_now();
    }
}

/// The next model of a follower, whose file has its bytes.
fn model(follower: &mut RunningPeer) -> Value {
    let model = follower.wait_for("model");
    assert_eq!(model["event"], "model", "it ended: {model}");
    model
}

#[test]
fn a_follower_goes_on_at_another_member_and_ends_with_its_final_model_to_the_bit() {
    let (swarm, mut peers, address) = swarm_of_three();
    let ticket = ticket_by_way_of(&swarm, &address);
    let output = swarm.folder.path().join("followed.safetensors");
    let seen = swarm.folder.path().join("seen");
    let command = format!("cp \"$MINGLE_FOLLOWED_FILE\" '{}'", text(&seen));
    let mut follower = follow(&ticket, &output, &["--every", "5", "--exec", &command]);
    assert_eq!(follower.wait_for("following")["peer"], id(&swarm, 1));
    let first = model(&mut follower);
    assert_eq!((&first["patch"], &first["final"]), (&json!(false), &json!(false)), "{first}");
    let second = model(&mut follower);
    assert!(second["round"].as_u64() >= first["round"].as_u64().map(|round| round + 1), "{first} {second}");
    assert_eq!(second["peer"], first["peer"]);
    assert_eq!(run(&["ckpt", "verify", text(&output)]).status.code(), Some(0));
    peers[1].kill();
    assert_eq!(follower.wait_for("lost")["peer"], id(&swarm, 1));
    let elsewhere = follower.wait_for("following")["peer"].clone();
    let followed = [0, 2].into_iter().find(|peer| elsewhere == id(&swarm, *peer)).unwrap();
    assert_eq!(model(&mut follower)["peer"], elsewhere);
    let ended = run(&["stop", "--for-all", "--home", text(&swarm.home(0))]);
    assert!(ended.status.success(), "{}", stderr(&ended));
    let last = loop {
        let model = model(&mut follower);
        if model["final"] == true {
            break model;
        }
        assert_eq!(model["peer"], elsewhere);
    };
    follower.wait_for("done");
    assert_eq!(follower.exit_code(), Some(0));
    peers[followed].wait_through_rounds_for("done");
    let exported = swarm.home(followed).join("model.safetensors");
    assert_eq!(last["blake3"].as_str(), Some(hash(&exported).as_str()), "{last}");
    assert_eq!(fs::read(&output).unwrap(), fs::read(&exported).unwrap(), "to the bit");
    assert_eq!(fs::read(&seen).unwrap(), fs::read(&exported).unwrap(), "the command saw it");
    let plan = read_json(&swarm.home(followed).join("plan.json"));
    assert_eq!(plan["nodes"].as_array().unwrap().len(), 3, "a follower is no node");
}

#[test]
fn a_member_at_its_end_waits_for_a_follower_that_is_slow_to_read_the_final_model() {
    let swarm = Swarm::found();
    let mut operator = swarm.start_operator(&[&PLANS_ITSELF[..], &ENDLESS].concat());
    operator.address();
    let mut member = swarm.join(1, &swarm.invite(1), &[]);
    member.wait_for("joined");
    let output = swarm.folder.path().join("followed.safetensors");
    let mut follower = follow(&swarm.invite(1), &output, &["--every", "100000"]);
    model(&mut follower);
    // Some rounds later, it has asked for the next one, and waits.
    member.forget_what_it_said();
    (0..5).for_each(|_| drop(member.wait_for("evaluated")));
    follower.signal("STOP");
    let ended = run(&["stop", "--for-all", "--home", text(&swarm.home(0))]);
    assert!(ended.status.success(), "{}", stderr(&ended));
    // The final model is sent at once. The operator's peer ends no earlier than it is read.
    wait_for_file(&swarm.home(0).join("model.safetensors"));
    assert_eq!(member.exit_code(), Some(0));
    follower.signal("CONT");
    while model(&mut follower)["final"] != true {}
    operator.wait_through_rounds_for("done");
    assert_eq!((follower.exit_code(), operator.exit_code()), (Some(0), Some(0)));
}

#[test]
fn sixteen_followers_of_one_peer_get_the_same_models_and_one_more_waits_for_a_place() {
    let swarm = Swarm::found();
    let mut first = swarm.start_operator(&[&PLANS_ITSELF[..], &["--rounds", "1000000", "--followers", "16"]].concat());
    first.address();
    let ticket = swarm.invite(1);
    let mut second = swarm.join(1, &ticket, &["--rounds", "1000000"]);
    second.wait_for("evaluated");
    // The ticket of a member whose uses are spent lets no other in.
    let spent = run(&["follow", &ticket, "--output", text(&swarm.folder.path().join("spent")), "--timeout", "5s"]);
    assert_fails(&spent, 6, &["serves no model here", "used"]);
    let ticket = swarm.invite(1);
    let file = |number: usize| swarm.folder.path().join(format!("{number}.safetensors"));
    let mut followers: Vec<RunningPeer> = (0..16).map(|number| follow(&ticket, &file(number), &[])).collect();
    for follower in &mut followers {
        model(follower);
    }
    // All of them follow peer 0, whose address the ticket names.
    let full = run(&["follow", &ticket, "--output", text(&file(99)), "--timeout", "3s", "--once"]);
    let found = stderr(&full);
    assert!(full.status.code() == Some(3) && found.contains("serves 16 followers") || full.status.success(), "{found}");
    let patched = followers.iter_mut().map(|follower| {
        let models: Vec<Value> = (0..3).map(|_| model(follower)).collect();
        models.iter().filter(|model| model["patch"] == true).count()
    });
    let patched: usize = patched.sum();
    println!("{patched} of 48 models came as patches");
    // Another precision has versions of its own.
    followers.truncate(15);
    // The link stays one: its target is written.
    std::os::unix::fs::symlink("rounded.safetensors", file(98)).unwrap();
    let rounded = run(&["follow", &ticket, "--output", text(&file(98)), "--once", "--precision", "bf16", "--json"]);
    assert!(rounded.status.success(), "{}{}", stdout(&rounded), stderr(&rounded));
    let bytes = fs::read(swarm.folder.path().join("rounded.safetensors")).unwrap();
    assert!(file(98).is_symlink() && String::from_utf8_lossy(&bytes).contains("\"BF16\""));
    second.kill();
    first.kill();
}

#[test]
fn a_follower_that_is_of_no_use_or_harm_is_refused_with_the_reason() {
    let swarm = Swarm::found();
    let mut first = swarm.start_operator(&[&PLANS_ITSELF[..], &["--rounds", "1000000", "--followers", "0"]].concat());
    let address = first.address();
    let ticket = swarm.invite(1);
    let file = swarm.folder.path().join("model.safetensors");
    let followed = |ticket: &str, more: &[&str]| {
        run(&[&["follow", ticket, "--output", text(&file), "--timeout", "20s"], more].concat())
    };
    assert_fails(&followed("mingle2nonsense", &[]), 4, &["this is not a ticket"]);
    assert_fails(&followed(&ticket, &[]), 6, &["serves no followers (mingle run --followers 0)"]);
    // A ticket to another swarm with the address of this one.
    let other = Swarm::found();
    let invited = run(&["invite", "--home", text(&other.home(0)), "--address", &address]);
    assert_fails(&followed(stdout(&invited).trim(), &[]), 6, &["belongs to another swarm"]);
    fs::write(&file, "a poem").unwrap();
    assert_fails(&followed(&ticket, &[]), 4, &["holds no model of a swarm", "--output"]);
    assert_eq!(fs::read(&file).unwrap(), b"a poem");
    assert_fails(&followed(&ticket, &["--home", text(&swarm.home(0))]), 4, &["home of a peer"]);
    assert_fails(&run(&["follow", &ticket, "--output", text(swarm.folder.path())]), 4, &["it is a folder"]);
    let nowhere = swarm.folder.path().join("missing/model.safetensors");
    assert_fails(&run(&["follow", &ticket, "--output", text(&nowhere)]), 4, &["there is no folder"]);
    first.kill();
    let solving = Swarm::found();
    fs::write(solving.folder.path().join("table.csv"), "a,y\n1,2\n2,4\n3,7\n4,8\n").unwrap();
    let problem = solving.folder.path().join("problem.toml");
    fs::write(&problem, "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\n").unwrap();
    let mut solver = solving.start_operator(&["--problem", text(&problem)]);
    solver.address();
    fs::remove_file(&file).unwrap();
    assert_fails(&followed(&solving.invite(1), &[]), 6, &["solves a problem, which has no model to follow"]);
    solver.kill();
    // No member is there.
    let gone = run(&["follow", &ticket, "--output", text(&file), "--timeout", "2s"]);
    assert_fails(&gone, 3, &["no member of the swarm could be reached in 2 s"]);
}

#[test]
fn a_follower_whose_ticket_is_revoked_ends_and_one_never_replaces_the_model_of_another_task() {
    let swarm = Swarm::found();
    let mut first = swarm.start_operator(&[&PLANS_ITSELF[..], &["--rounds", "1000000"]].concat());
    first.address();
    let mut second = swarm.join(1, &swarm.invite(1), &["--rounds", "1000000"]);
    second.wait_for("evaluated");
    let ticket = swarm.invite(1);
    let file = swarm.folder.path().join("model.safetensors");
    let mut follower = follow(&ticket, &file, &["--timeout", "20s"]);
    model(&mut follower);
    let listed = stdout(&run(&["invite", "--home", text(&swarm.home(0)), "--list", "--json"]));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    for invite in listed["invites"].as_array().unwrap() {
        let revoked = run(&["invite", "--home", text(&swarm.home(0)), "--revoke", invite["id"].as_str().unwrap()]);
        assert!(revoked.status.success(), "{}", stderr(&revoked));
    }
    let lost = follower.wait_for("lost");
    assert!(lost["reason"].as_str().unwrap().contains("revoked"), "{lost}");
    // The file of another swarm stays as it is; one with the same model by another seed is another task.
    let others = Swarm::found();
    let seeded = ["--rounds", "1000000", "--seed", "7"];
    let mut third = others.start_operator(&[&PLANS_ITSELF[..], &seeded].concat());
    third.address();
    let mut fourth = others.join(1, &others.invite(1), &seeded);
    fourth.wait_for("evaluated");
    let refused = run(&["follow", &others.invite(1), "--output", text(&file), "--timeout", "20s"]);
    assert_fails(&refused, 4, &["the model of another task", "seed 0", "is not replaced", "--output"]);
    let kept = fs::read(&file).unwrap();
    assert!(String::from_utf8_lossy(&kept).contains("seed 0"));
    [first, second, third, fourth].iter_mut().for_each(RunningPeer::kill);
}
