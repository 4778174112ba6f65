//! A follower whose disk fills up: it says so, and the model that it had stays.
#![cfg(unix)]

use std::fs;

use crate::support::founded_swarm::{PLANS_ITSELF, Swarm};
use crate::support::small_disk::SmallDisk;
use crate::support::{RunningPeer, assert_fails, run, stderr, text};

#[test]
#[ignore = "needs root, to mount a small disk"]
fn a_follower_on_a_full_disk_ends_and_leaves_the_model_that_it_had() {
    let swarm = Swarm::found();
    let mut first = swarm.start_operator(&[&PLANS_ITSELF[..], &["--rounds", "1000000"]].concat());
    first.address();
    let mut second = swarm.join(1, &swarm.invite(1), &["--rounds", "1000000"]);
    second.wait_for("evaluated");
    let ticket = swarm.invite(1);
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::under(folder.path());
    let file = folder.path().join("model.safetensors");
    let follow = || run(&["follow", &ticket, "--output", text(&file), "--once", "--timeout", "20s"]);
    let followed = follow();
    assert!(followed.status.success(), "{}", stderr(&followed));
    let before = fs::read(&file).unwrap();
    disk.fill();
    assert_fails(&follow(), 4, &["cannot write", "model.safetensors", "free some room on that disk"]);
    assert_eq!(fs::read(&file).unwrap(), before, "the model stays whole");
    drop(disk);
    [first, second].iter_mut().for_each(RunningPeer::kill);
}
