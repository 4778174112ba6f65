//! Payloads by multicast over the loopback interface: one transmission for all receivers, and streams where it fails.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::{RunningPeer, assert_fails, read_json, run, stderr, stdout, text};

const LOOPBACK: &str = "multicast%127.0.0.1";
const NODES: usize = 5;

/// A swarm in which each peer sends its model to all others in each round.
fn dense(rounds: u64) -> PlannedSwarm {
    PlannedSwarm::with_design(&format!("complete:n={NODES}"), "d-psgd", NODES, rounds)
}

/// Starts a peer with a model of 38 kB and this medium.
fn start(swarm: &PlannedSwarm, node: usize, medium: &str) -> RunningPeer {
    let rounds = swarm.rounds.to_string();
    let task = ["--model", "mlp", "--split", "iid", "--rounds", &rounds, "--evaluate-every", "1000"];
    swarm.start_task(node, &[&task[..], &["--medium", medium, "--learning-rate", "0.2"]].concat())
}

fn summary(swarm: &PlannedSwarm, node: usize) -> Value {
    read_json(&swarm.home(node).join("summary.json"))
}

fn count(summary: &Value, name: &str) -> u64 {
    summary["multicast"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {}", summary["multicast"]))
}

/// A group of this test alone.
fn group(number: u8) -> SocketAddrV4 {
    let [low, high, ..] = std::process::id().to_le_bytes();
    let port = 20_000 + u16::from_le_bytes([low, high & 0x0f]) % 4_000 + 1_000 * u16::from(number % 8);
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 200 + number, low), port)
}

#[test]
fn each_payload_of_a_dense_swarm_travels_once() {
    let swarm = dense(60);
    let mut peers: Vec<RunningPeer> = (0..NODES).map(|node| start(&swarm, node, LOOPBACK)).collect();
    swarm.finish(&mut peers, "by multicast");
    for node in 0..NODES {
        let summary = summary(&swarm, node);
        println!("node {node}: {} bytes sent, {}", summary["sent_bytes"], summary["multicast"]);
        let sent = |name| count(&summary, name);
        // Four receivers: with all of them, packets are a quarter of what streams would carry, and some overhead.
        assert!(sent("sent_parcels") > 4 * 60 / 2, "{summary:#}");
        assert!(sent("packet_bytes") * 3 < sent("stream_bytes"), "{summary:#}");
        assert!(sent("received_parcels") > 0, "{summary:#}");
        let parcels = summary["encoding"]["parcels"]["f32"].as_u64().unwrap();
        assert!(sent("sent_parcels") <= parcels, "{summary:#}");
    }
}

#[test]
fn a_mixed_swarm_learns_together_each_link_by_what_carries_it() {
    let swarm = dense(60);
    let media = [LOOPBACK, LOOPBACK, LOOPBACK, "unicast", "unicast"];
    let mut peers: Vec<RunningPeer> =
        media.iter().enumerate().map(|(node, medium)| start(&swarm, node, medium)).collect();
    swarm.finish(&mut peers, "mixed");
    for node in 0..3 {
        let summary = summary(&swarm, node);
        assert!(count(&summary, "sent_parcels") > 0, "{summary:#}");
        assert!(count(&summary, "sent_parcels") <= summary["encoding"]["parcels"]["f32"].as_u64().unwrap() / 2 + 1);
    }
    assert!((3..5).all(|node| summary(&swarm, node)["multicast"].is_null()), "they know no multicast");
}

#[test]
fn a_peer_that_cannot_hear_the_group_is_served_by_stream() {
    let swarm = dense(60);
    let (near, far) = (format!("multicast:{}%127.0.0.1", group(0)), format!("multicast:{}%127.0.0.1", group(1)));
    let media = [&near, &near, &near, &near, &far];
    let mut peers: Vec<RunningPeer> =
        media.iter().enumerate().map(|(node, medium)| start(&swarm, node, medium)).collect();
    swarm.finish(&mut peers, "one is out of reach");
    let far = summary(&swarm, 4);
    assert_eq!((count(&far, "received_parcels"), count(&far, "sent_parcels")), (0, 0), "{far:#}");
    for node in 0..4 {
        let near = summary(&swarm, node);
        assert!(count(&near, "sent_parcels") > 0 && count(&near, "resorted_parcels") == 0, "{near:#}");
    }
}

#[test]
fn a_flood_of_rubbish_to_the_group_costs_no_weight() {
    let swarm = dense(60);
    let medium = format!("multicast:{}%127.0.0.1", group(2));
    let mut peers: Vec<RunningPeer> = (0..NODES).map(|node| start(&swarm, node, &medium)).collect();
    peers.iter_mut().for_each(|peer| assert_eq!(peer.wait_for("round")["event"], "round"));
    let is_over = Arc::new(AtomicBool::new(false));
    let flood = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket2::SockRef::from(&socket).set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
            let mut packet = vec![0_u8; 1_200];
            let mut sent = 0_u32;
            while sent < 100_000 && !is_over.load(Ordering::Relaxed) {
                // The version of packets, and numbers that look like those of an object.
                packet[0] = 1;
                packet[1..5].copy_from_slice(&sent.wrapping_mul(0x9e37_79b9).to_le_bytes());
                socket.send_to(&packet, group(2)).unwrap();
                sent += 1;
            }
            sent
        }
    });
    swarm.finish(&mut peers, "in a flood");
    is_over.store(true, Ordering::Relaxed);
    println!("{} packets of rubbish", flood.join().unwrap());
    let dropped: Vec<u64> = (0..NODES).map(|node| count(&summary(&swarm, node), "strange_packets")).collect();
    assert!(dropped.iter().all(|dropped| *dropped > 0), "{dropped:?}");
}

#[test]
fn two_swarms_on_one_group_do_not_disturb_each_other() {
    let medium = format!("multicast:{}%127.0.0.1", group(4));
    let swarms = [dense(60), dense(60)];
    let mut peers = swarms
        .each_ref()
        .map(|swarm| -> Vec<RunningPeer> { (0..NODES).map(|node| start(swarm, node, &medium)).collect() });
    for (swarm, peers) in swarms.iter().zip(&mut peers) {
        swarm.finish(peers, "two on one group");
        for node in 0..NODES {
            let summary = summary(swarm, node);
            assert!(count(&summary, "sent_parcels") > 0 && count(&summary, "refused_packets") == 0, "{summary:#}");
        }
    }
}

#[test]
fn a_sender_that_is_killed_in_the_middle_goes_on_and_no_unit_of_weight_is_lost() {
    let swarm = dense(120);
    // Slow enough that each model of 38 kB is on its way for 8 ms, in a slot of its own.
    let start = |node| {
        let rounds = swarm.rounds.to_string();
        let task = ["--model", "mlp", "--split", "iid", "--rounds", &rounds, "--evaluate-every", "1000"];
        let medium = ["--medium", LOOPBACK, "--air-rate", "40mbit", "--learning-rate", "0.2"];
        swarm.start_task(node, &[&task[..], &medium].concat())
    };
    let mut peers: Vec<RunningPeer> = (0..NODES).map(start).collect();
    for victim in [1, 3] {
        for _ in 0..10 {
            assert_eq!(peers[victim].wait_for("round")["event"], "round");
        }
        peers[victim].kill();
        peers[victim] = start(victim);
        assert_eq!(peers[victim].wait_for("recovered")["event"], "recovered");
    }
    swarm.finish(&mut peers, "two were killed");
    assert!(count(&summary(&swarm, 0), "sent_parcels") > 0);
}

#[test]
fn a_group_whose_port_is_in_use_is_reported_and_payloads_go_by_stream() {
    let swarm = dense(60);
    let group = group(3);
    let _other = UdpSocket::bind(group).unwrap();
    let mut peers: Vec<RunningPeer> =
        (0..NODES).map(|node| start(&swarm, node, &format!("multicast:{group}%127.0.0.1"))).collect();
    let warning = peers[0].wait_for_warning("payloads go by stream");
    assert!(warning.contains(&format!("another program uses port {}", group.port())), "{warning}");
    swarm.finish(&mut peers, "by stream");
    assert_eq!(count(&summary(&swarm, 0), "packet_bytes"), 0);
}

/// Starts a peer with a rate, and so in the slots of its plan.
fn start_at_rate(swarm: &PlannedSwarm, node: usize, rate: &str) -> RunningPeer {
    let rounds = swarm.rounds.to_string();
    let task = ["--model", "mlp", "--split", "iid", "--rounds", &rounds, "--evaluate-every", "1000"];
    let medium = ["--medium", LOOPBACK, "--air-rate", rate, "--learning-rate", "0.2"];
    swarm.start_task(node, &[&task[..], &medium].concat())
}

/// The length of a slot that `plan show` forecasts for the model of [`start_at_rate`], in microseconds.
fn planned_slot_us(swarm: &PlannedSwarm, rate: &str) -> u64 {
    let object = |arguments: &[&str]| serde_json::from_str::<Value>(&stdout(&run(arguments))).unwrap();
    let model = object(&["ckpt", "inspect", text(&swarm.home(0).join("model.safetensors")), "--json"]);
    let bytes = (4 * model["parameters"].as_u64().unwrap()).to_string();
    let air = ["--air-rate", rate, "--payload-bytes", &bytes, "--json"];
    let forecast = object(&[&["plan", "show", text(&swarm.plan())], &air[..]].concat());
    (1e6 * forecast["air"]["seconds_per_slot"].as_f64().unwrap()).round() as u64
}

#[test]
fn with_a_rate_payloads_are_sent_in_the_slots_of_the_plan() {
    let swarm = dense(80);
    let mut peers: Vec<RunningPeer> = (0..NODES).map(|node| start_at_rate(&swarm, node, "15mbit")).collect();
    swarm.finish(&mut peers, "in slots");
    let slots: Vec<Value> = (0..NODES).map(|node| summary(&swarm, node)["multicast"]["slots"].clone()).collect();
    println!("{slots:#?}");
    let of = |slots: &Value, name: &str| slots[name].as_u64().unwrap();
    let planned = planned_slot_us(&swarm, "15mbit");
    for slots in &slots {
        assert_eq!(of(slots, "slot_us"), planned, "`plan show --air-rate` forecasts the slots that peers keep");
        assert_eq!(of(slots, "refused_beacons"), 0);
        assert!(of(slots, "on_time") + of(slots, "late") >= 40, "most rounds of each peer are in slots: {slots:#}");
    }
    // How many are in time depends on what else this machine does; virtual time has the rest (testing/air/tests/rhythm.rs).
    let on_time: Vec<u64> = slots.iter().map(|slots| of(slots, "on_time")).collect();
    assert!(on_time.iter().sum::<u64>() > 0, "{on_time:?} payloads were sent in the slot of their step");
    // A round has five slots, and a pause of as much at most.
    let length = |name| slots.iter().map(|slots| of(slots, name)).max().unwrap();
    assert!((5 * length("slot_us")..=10 * length("slot_us")).contains(&length("round_us")), "{slots:#?}");
}

#[test]
fn a_neighbour_with_another_rate_is_named() {
    let swarm = dense(60);
    let rates = ["40mbit", "40mbit", "40mbit", "40mbit", "30mbit"];
    let mut peers: Vec<RunningPeer> =
        rates.iter().enumerate().map(|(node, rate)| start_at_rate(&swarm, node, rate)).collect();
    let warning = peers[0].wait_for_warning("the same --air-rate");
    assert!(warning.contains("node 4 has slots of "), "{warning}");
    swarm.finish(&mut peers, "with two rates");
}

#[test]
fn media_and_interfaces_that_make_no_sense_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    assert!(run(&["init", "--home", text(&home)]).status.success());
    let run_with = |medium: &str| run(&["run", "--home", text(&home), "--medium", medium]);
    assert_fails(&run_with("multicast:10.0.0.1:7000"), 2, &["10.0.0.1 is not a multicast address"]);
    assert_fails(&run_with("radio"), 2, &["`radio` is no medium"]);
    assert_fails(&run_with("multicast%nope0"), 4, &["no interface `nope0`: it has ", "lo"]);
    let demo = run(&["demo", "--medium", "multicast%nope0", "--output", text(&folder.path().join("demo"))]);
    assert_fails(&demo, 4, &["no interface `nope0`"]);
    let wrong = run(&["run", "--home", text(&home), "--air-rate", "fast"]);
    assert_fails(&wrong, 2, &["`fast` is no rate"]);
    let without_rate = run(&["run", "--home", text(&home), "--medium", LOOPBACK, "--slots", "on"]);
    assert_fails(&without_rate, 4, &["--slots on needs --medium multicast and --air-rate"]);
    let wrong = run(&["run", "--home", text(&home), "--slots", "some"]);
    assert_fails(&wrong, 2, &["`some` is no choice of slots"]);
}

#[test]
fn a_demo_by_multicast_says_what_it_saved() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    let options = ["demo", "--peers", "4", "--rounds", "40", "--method", "d-psgd", "--no-comparison"];
    let output = run(&[&options[..], &["--medium", "multicast", "--output", text(&root)]].concat());
    let said = stdout(&output);
    assert!(output.status.success(), "{said}{}", stderr(&output));
    assert!(said.contains("by multicast: ") && said.contains(" MB in packets where streams would carry "), "{said}");
    assert!(said.contains("sum of weights: exactly 4"), "{said}");
    let report = read_json(&root.join("summary.json"));
    assert!(report["multicast"]["sent_parcels"].as_u64() > Some(0), "{report:#}");
}
