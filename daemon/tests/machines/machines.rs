//! Three machines, each with a network interface and a disk of its own: the actions of users, and the faults of
//! networks.

use crate::support::lossy_network::{Faults, LossyNetwork};
use crate::support::namespaces::{Machine, Networks};
use crate::support::{RunningPeer, assert_fails, run, stderr, stdout, text};
use serde_json::Value;

const LISTEN: [&str; 4] = ["--listen", "/ip4/0.0.0.0/udp/4717/quic-v1", "--listen", "/ip4/0.0.0.0/tcp/4717"];
const TASK: [&str; 6] = ["--model", "softmax", "--split", "iid", "--evaluate-every", "5"];
const ENDLESS: [&str; 2] = ["--rounds", "1000000"];

#[track_caller]
pub(super) fn succeed(machine: &Machine, arguments: &[&str]) -> String {
    let output = machine.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

pub(super) fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Ana founds a swarm, and the others join it; all wait for a plan.
fn swarm(machines: &[&Machine], rounds: &[&str]) -> Vec<RunningPeer> {
    swarm_with(machines, &LISTEN, &[&TASK, rounds].concat())
}

pub(super) fn swarm_with(machines: &[&Machine], listen: &[&str], task: &[&str]) -> Vec<RunningPeer> {
    let [ana, others @ ..] = machines else { return Vec::new() };
    succeed(ana, &["init", "--swarm", "ward7"]);
    let mut peers = vec![ana.start(&[&["run"], listen, task].concat())];
    peers[0].address();
    let ticket = succeed(ana, &["invite", "--uses", &others.len().to_string()]);
    for other in others {
        peers.push(other.start(&[&["join", ticket.trim()], listen, task].concat()));
    }
    succeed(ana, &["wait", "--for", &format!("waiting={}", others.len())]);
    peers
}

/// The members that `plan apply` can reach from ana's machine.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reach {
    All,
    /// The others are behind routers: they ask for the plan themselves.
    Part,
}

pub(super) fn apply(networks: &Networks, ana: &Machine, design: &[&str], reach: Reach) {
    let plan = networks.folder().join("plan.json");
    succeed(ana, &[&["plan", "make", "-o", text(&plan)], design].concat());
    let applied = succeed(ana, &["plan", "apply", text(&plan)]);
    assert!(!applied.contains("refused"), "{applied}");
    assert_eq!(applied.contains("not reached"), reach == Reach::Part, "{applied}");
}

/// Waits until each machine's peer has done more rounds than now.
fn all_go_on(machines: &[&Machine]) {
    for machine in machines {
        let status = object(&succeed(machine, &["status", "--json"]));
        let next = format!("round={}", status["round"].as_u64().unwrap() + 10);
        succeed(machine, &["wait", "--for", &next, "--timeout", "60s"]);
    }
}

/// Kills all peers, and adds up the mass on their disks.
pub(super) fn audit(machines: &[&Machine], peers: &mut [RunningPeer]) -> String {
    peers.iter_mut().for_each(RunningPeer::kill);
    let homes: Vec<&str> = machines.iter().map(|machine| machine.home()).collect();
    let audit = run(&[&["audit"], &homes[..]].concat());
    assert!(audit.status.success(), "{}{}", stdout(&audit), stderr(&audit));
    stdout(&audit)
}

/// Returns `true` if links from `slow` were measured as the 20 Mbit/s that they carry, and all others as more.
fn tells_slow_links_apart(measured: &[Value], slow: &str) -> bool {
    measured.iter().all(|link| {
        let speed = link["mbit_s"].as_f64().unwrap();
        let is_slow = link["from"] == slow;
        assert!(!is_slow || speed < 24.0, "more than there is: {link}");
        if is_slow { speed > 12.0 } else { speed > 24.0 }
    })
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn from_nothing_to_a_trained_model_on_three_machines() {
    let networks = Networks::new();
    networks.add_network("lan");
    let ana = networks.add_machine("ana", &[("lan", "10.77.1.5/16")]);
    let ben = networks.add_machine("ben", &[("lan", "10.77.2.7/16")]);
    let cho = networks.add_machine("cho", &[("lan", "10.77.3.9/16")]);
    ben.limit_rate("lan", "20mbit");
    let machines = [&ana, &ben, &cho];
    let mut peers = swarm(&machines, &ENDLESS);

    // The ticket works on another machine: no address in it is loopback.
    let invited = object(&succeed(&ana, &["invite", "--json"]));
    let addresses: Vec<&str> = invited["addresses"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    assert!(addresses.iter().all(|address| address.contains("10.77.1.5")) && addresses.len() == 2, "{addresses:?}");

    let links = networks.folder().join("links.toml");
    let ben_id = succeed(&ben, &["id"]);
    // A machine that is busy with something else may measure too little once.
    let told_apart = (0..3).any(|_| {
        let probed = object(&succeed(&ana, &["probe", "-o", text(&links), "--json"]));
        let measured = probed["links"].as_array().unwrap();
        assert_eq!(measured.len(), 6, "{probed}");
        tells_slow_links_apart(measured, ben_id.trim())
    });
    assert!(told_apart, "{}", std::fs::read_to_string(&links).unwrap());
    apply(
        &networks,
        &ana,
        &["--links", text(&links), "--medium", "point-to-point", "--payload-bytes", "2600"],
        Reach::All,
    );
    for machine in machines {
        succeed(machine, &["wait", "--for", "joined", "--timeout", "60s"]);
    }

    // Cho goes away and comes back, then leaves for good; the others go on.
    all_go_on(&machines);
    let stopped = object(&succeed(&cho, &["stop", "--json"]));
    assert_eq!(stopped["durable"], true);
    peers.pop();
    let mut again = cho.start(&[&["run"], &LISTEN[..], &TASK, &ENDLESS].concat());
    assert_eq!(again.wait_for("recovered")["round"], stopped["round"]);
    all_go_on(&machines);
    succeed(&cho, &["leave"]);
    again.wait_for("left");
    all_go_on(&[&ana, &ben]);

    succeed(&ana, &["wait", "--for", "round=400", "--timeout", "60s"]);
    succeed(&ana, &["stop"]);
    let model = networks.folder().join("ward7.safetensors");
    succeed(&ana, &["export", "-o", text(&model)]);
    let judged = object(&succeed(&ana, &["eval", text(&model), "--json"]));
    assert!(judged["accuracy"].as_f64().unwrap() > 0.7, "{judged}");
    let exact = audit(&machines, &mut peers);
    assert!(exact.contains("exactly 3"), "{exact}");
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn peers_on_two_networks_that_only_a_third_can_reach_train_through_it() {
    let networks = Networks::new();
    networks.add_network("east");
    networks.add_network("west");
    let ana = networks.add_machine("ana", &[("east", "10.78.1.5/24"), ("west", "10.78.2.5/24")]);
    let ben = networks.add_machine("ben", &[("east", "10.78.1.7/24")]);
    let cho = networks.add_machine("cho", &[("west", "10.78.2.9/24")]);
    let machines = [&ana, &ben, &cho];
    let mut peers = swarm(&machines, &ENDLESS);
    // The plan has links between all three, and ben and cho have no route to each other.
    apply(&networks, &ana, &["--topology", "complete:n=3", "--method", "d-psgd"], Reach::All);
    for machine in machines {
        succeed(machine, &["wait", "--for", "peers=2", "--timeout", "60s"]);
    }
    all_go_on(&machines);
    let exact = audit(&machines, &mut peers);
    assert!(exact.contains("exactly 3"), "{exact}");
}

/// One machine that can be dialled, and two behind a router each.
fn behind_two_routers(networks: &Networks) -> (Machine, Machine, Machine) {
    for network in ["wan", "east", "west"] {
        networks.add_network(network);
    }
    let ana = networks.add_machine("ana", &[("wan", "10.81.0.5/24")]);
    let ben = networks.add_machine("ben", &[("east", "192.168.1.7/24")]);
    let cho = networks.add_machine("cho", &[("west", "192.168.1.9/24")]);
    networks.add_nat("box", ("east", "192.168.1.1/24"), ("wan", "10.81.0.11/24"));
    networks.add_nat("hub", ("west", "192.168.1.1/24"), ("wan", "10.81.0.12/24"));
    ben.set_gateway("192.168.1.1");
    cho.set_gateway("192.168.1.1");
    (ana, ben, cho)
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn peers_behind_two_routers_that_hide_them_train_with_each_other() {
    let networks = Networks::new();
    let (ana, ben, cho) = behind_two_routers(&networks);
    let machines = [&ana, &ben, &cho];
    let mut peers = swarm(&machines, &ENDLESS);
    apply(&networks, &ana, &["--topology", "complete:n=3", "--method", "d-psgd"], Reach::Part);
    for machine in machines {
        succeed(machine, &["wait", "--for", "peers=2", "--timeout", "60s"]);
    }
    all_go_on(&machines);
    let exact = audit(&machines, &mut peers);
    assert!(exact.contains("exactly 3"), "{exact}");
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn members_that_restart_on_another_port_get_back_every_link_to_peers_behind_routers() {
    let networks = Networks::new();
    let (ana, ben, cho) = behind_two_routers(&networks);
    let dan = networks.add_machine("dan", &[("wan", "10.81.0.6/24")]);
    let machines = [&ana, &dan, &ben, &cho];
    let mut peers = swarm(&machines, &ENDLESS);
    apply(&networks, &ana, &["--topology", "complete:n=4", "--method", "d-psgd"], Reach::Part);
    for machine in machines {
        succeed(machine, &["wait", "--for", "peers=3", "--timeout", "60s"]);
    }
    // Ana founded the swarm: it received the address of no member, and all know it at its old port.
    for (victim, port) in [(0, "5818"), (1, "5819"), (0, "5820")] {
        all_go_on(&machines);
        peers[victim].kill();
        let listen = [format!("/ip4/0.0.0.0/udp/{port}/quic-v1"), format!("/ip4/0.0.0.0/tcp/{port}")];
        let listen = ["--listen", &listen[0], "--listen", &listen[1]];
        peers[victim] = machines[victim].start(&[&["run"], &listen[..], &TASK, &ENDLESS].concat());
        peers[victim].wait_for("recovered");
        succeed(machines[victim], &["wait", "--for", "peers=3", "--timeout", "45s"]);
        for machine in machines {
            succeed(machine, &["wait", "--for", "peers=3", "--timeout", "45s"]);
        }
    }
    all_go_on(&machines);
    let exact = audit(&machines, &mut peers);
    assert!(exact.contains("exactly 4"), "{exact}");
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn peers_on_one_network_find_each_other_without_any_address_if_they_are_asked_to() {
    let networks = Networks::new();
    networks.add_network("lan");
    let machines = [("ana", "10.82.0.1/24"), ("ben", "10.82.0.2/24")]
        .map(|(name, address)| networks.add_machine(name, &[("lan", address)]));
    for machine in &machines {
        // Multicast needs a route.
        machine.set_gateway("10.82.0.254");
    }
    let plan = networks.folder().join("plan.json");
    assert!(run(&["plan", "make", "--topology", "complete:n=2", "-o", text(&plan)]).status.success());
    for (node, machine) in machines.iter().enumerate() {
        let peer = succeed(machine, &["init"]);
        let binding = format!("{node}={}", peer.trim());
        assert!(run(&["plan", "bind", text(&plan), "--peer", &binding]).status.success());
    }
    let start = |mdns: &str, machine: &Machine| {
        machine.start(&[&["run", "--plan", text(&plan), "--mdns", mdns, "--rounds", "8"], &LISTEN[..], &TASK].concat())
    };
    // A peer that was not asked to make itself known is not announced.
    let mut quiet = start("off", &machines[0]);
    let mut loud = start("on", &machines[1]);
    assert_eq!(quiet.wait_for("waiting")["missing"][0], 1);
    assert_eq!(loud.wait_for("waiting")["missing"][0], 0);
    quiet.kill();
    let mut second = start("on", &machines[0]);
    for peer in [&mut loud, &mut second] {
        assert_eq!(peer.wait_for("done")["round"], 8);
    }
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn a_partition_a_freeze_and_kills_lose_no_weight() {
    let networks = Networks::new();
    networks.add_network("lan");
    let names = ["ana", "ben", "cho", "dan"];
    let machines: Vec<Machine> = names
        .iter()
        .enumerate()
        .map(|(index, name)| networks.add_machine(name, &[("lan", &format!("10.79.0.{}/24", index + 1))]))
        .collect();
    let machines: Vec<&Machine> = machines.iter().collect();
    let mut peers = swarm(&machines, &ENDLESS);
    apply(&networks, machines[0], &["--topology", "complete:n=4", "--method", "d-psgd"], Reach::All);
    all_go_on(&machines);

    // One is cut off, and trains on alone as the others do without it; then they find each other again.
    networks.set_cable(names[3], "lan", false);
    all_go_on(&machines);
    networks.set_cable(names[3], "lan", true);
    for machine in &machines {
        succeed(machine, &["wait", "--for", "peers=3", "--timeout", "60s"]);
    }
    all_go_on(&machines);

    // A peer that is frozen does not hold the others up, and goes on when it thaws.
    peers[2].signal("STOP");
    all_go_on(&[machines[0], machines[1], machines[3]]);
    peers[2].signal("CONT");
    all_go_on(&machines);

    for victim in [1, 3, 2, 1] {
        peers[victim].kill();
        all_go_on(
            &machines.iter().enumerate().filter(|(peer, _)| *peer != victim).map(|(_, m)| *m).collect::<Vec<_>>(),
        );
        peers[victim] = machines[victim].start(&[&["run"], &LISTEN[..], &TASK, &ENDLESS].concat());
        peers[victim].wait_for("recovered");
        succeed(machines[victim], &["wait", "--for", "peers=3", "--timeout", "60s"]);
    }
    let exact = audit(&machines, &mut peers);
    assert!(exact.contains("exactly 4"), "{exact}");
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn an_address_that_cannot_be_reached_is_named_with_the_reason() {
    let networks = Networks::new();
    networks.add_network("lan");
    let ana = networks.add_machine("ana", &[("lan", "10.80.0.1/24")]);
    let nowhere = ana.run(&["ping", "/ip4/10.99.0.1/tcp/4717", "--timeout", "5s"]);
    assert_fails(&nowhere, 3, &["10.99.0.1", "unreachable"]);
    let silent = ana.run(&["ping", "/ip4/10.80.0.77/udp/4717/quic-v1", "--timeout", "2s"]);
    assert_fails(&silent, 3, &["10.80.0.77"]);
}

/// One packet of twenty is lost, and every one takes 30 to 70 ms.
const POOR_LINK: Faults = Faults { loses_one_in: 20, delay_ms: (30, 70), seed: 83 };

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn peers_that_speak_only_quic_train_over_links_that_lose_and_delay_packets() {
    trains_over_poor_links("/ip4/0.0.0.0/udp/4717/quic-v1");
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn peers_that_speak_only_tcp_train_over_links_that_lose_and_delay_packets() {
    trains_over_poor_links("/ip4/0.0.0.0/tcp/4717");
}

fn trains_over_poor_links(listen: &str) {
    let networks = Networks::new();
    let mut wan = LossyNetwork::new(&networks, POOR_LINK);
    let machines = [("ana", 5), ("ben", 7), ("cho", 9)].map(|(name, number)| {
        let machine = networks.add_machine(name, &[]);
        wan.plug(&machine, [10, 83, 0, number]);
        machine
    });
    let machines: Vec<&Machine> = machines.iter().collect();
    let mut peers = swarm_with(&machines, &["--listen", listen], &[&TASK[..], &ENDLESS].concat());
    apply(&networks, machines[0], &["--topology", "complete:n=3", "--method", "d-psgd"], Reach::All);
    for machine in &machines {
        succeed(machine, &["wait", "--for", "peers=2", "--timeout", "60s"]);
    }
    all_go_on(&machines);
    let (sent, lost) = wan.counts();
    assert!((0.02..0.10).contains(&(lost as f64 / sent as f64)), "{lost} of {sent} packets were lost");
    let exact = audit(&machines, &mut peers);
    assert!(exact.contains("exactly 3"), "{exact}");
}

/// A problem of three columns, two of which explain the fourth.
const PROBLEM: &str =
    "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\nlambda = 0.01\n";

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn peers_solve_to_the_same_bits_over_links_that_lose_a_twentieth_or_a_fifth_of_all_packets() {
    for loses_one_in in [20, 5] {
        let networks = Networks::new();
        let faults = Faults { loses_one_in, delay_ms: (1, 3), seed: 87 };
        let mut wan = LossyNetwork::new(&networks, faults);
        let row = |row: u32| {
            let [a, b, c] = [7, 11, 13].map(|step| f64::from(row * step % 17) / 8.0 - 1.0);
            format!("{a},{b},{c},{}\n", 2.0 * a - b)
        };
        let rows: String = (0..30).map(row).collect();
        std::fs::write(networks.folder().join("table.csv"), format!("a,b,c,y\n{rows}")).unwrap();
        let problem = networks.folder().join("problem.toml");
        std::fs::write(&problem, PROBLEM).unwrap();
        let machines = [("ana", 5), ("ben", 7), ("cho", 9)].map(|(name, number)| {
            let machine = networks.add_machine(name, &[]);
            wan.plug(&machine, [10, 83, 0, number]);
            machine
        });
        let machines: Vec<&Machine> = machines.iter().collect();
        let task = ["--problem", text(&problem)];
        let mut peers = swarm_with(&machines, &["--listen", "/ip4/0.0.0.0/udp/4717/quic-v1"], &task);
        let design = ["--topology", "complete:n=3", "--method", "clique-phi"];
        apply(&networks, machines[0], &design, Reach::All);
        let solved = run(&["solve", "--json", task[0], task[1], "--plan", text(&networks.folder().join("plan.json"))]);
        let expected = object(stdout(&solved).lines().last().unwrap());
        for (machine, peer) in machines.iter().zip(&mut peers) {
            let end = peer.wait_for("solved");
            assert_eq!(end["converged"], true, "{end}");
            let home = std::path::Path::new(machine.home());
            let found = object(&std::fs::read_to_string(home.join("solution.json")).unwrap());
            let node = usize::try_from(found["node"].as_u64().unwrap()).unwrap();
            assert_eq!(found, expected["solutions"][node], "one in {loses_one_in}");
        }
        let (sent, lost) = wan.counts();
        let wanted = 1.0 / f64::from(loses_one_in);
        assert!((lost as f64 / sent as f64 / wanted - 1.0).abs() < 0.5, "{lost} of {sent} packets were lost");
    }
}
