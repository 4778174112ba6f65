//! Payloads by multicast between machines: packets that are lost, uplinks that are slow, networks without a route.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::machines::{Reach, apply, audit, object, succeed, swarm_with};
use crate::support::RunningPeer;
use crate::support::lossy_network::{Faults, LossyNetwork};
use crate::support::namespaces::{Machine, Networks};

const LISTEN: [&str; 2] = ["--listen", "/ip4/0.0.0.0/udp/4717/quic-v1"];
const NAMES: [&str; 8] = ["ana", "ben", "cho", "dan", "eve", "fay", "gus", "hal"];

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Starts a swarm in which each peer sends its model to all others in each round, until it is killed.
fn dense(networks: &Networks, machines: &[&Machine], model: &str, medium: &[&str]) -> Vec<RunningPeer> {
    let task = ["--model", model, "--split", "iid", "--evaluate-every", "1000000", "--rounds", "1000000"];
    // Each round waits for each neighbour, however long its model takes.
    let in_step = ["--wait", "sync", "--deadline", "120s", "--batch-size", "2"];
    let medium = &[&in_step[..], medium].concat();
    let peers = swarm_with(machines, &LISTEN, &[&task[..], medium].concat());
    let topology = format!("complete:n={}", machines.len());
    apply(networks, machines[0], &["--topology", &topology, "--method", "d-psgd"], Reach::All);
    peers
}

fn wait_for(machine: &Machine, what: &str) {
    succeed(machine, &["wait", "--for", what, "--timeout", "300s"]);
}

/// Waits until packets of this machine reach all neighbours, if it sends any.
fn wait_until_heard(machine: &Machine, by_stream: bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let are_heard = || {
        let status = object(&succeed(machine, &["status", "--json"]));
        status["neighbours"].as_array().unwrap().iter().all(|neighbour| neighbour["multicast"]["hears"] == true)
    };
    while !by_stream && !are_heard() {
        assert!(Instant::now() < deadline, "{}", succeed(machine, &["status"]));
    }
}

fn multicast(machine: &Machine) -> Value {
    object(&succeed(machine, &["status", "--json"]))["multicast"].clone()
}

fn count(counts: &Value, name: &str) -> u64 {
    counts[name].as_u64().unwrap_or_else(|| panic!("no {name} in {counts}"))
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn models_come_whole_over_a_network_that_loses_a_twentieth_or_a_fifth_of_all_packets() {
    for loses_one_in in [20, 5] {
        let networks = Networks::new();
        let faults = Faults { loses_one_in, delay_ms: (1, 3), seed: 91 };
        let mut air = LossyNetwork::new(&networks, faults);
        let machines: Vec<Machine> = (0..4_u8)
            .map(|node| {
                let machine = networks.add_machine(NAMES[usize::from(node)], &[]);
                air.plug(&machine, [10, 83, 0, 5 + node]);
                machine
            })
            .collect();
        let machines: Vec<&Machine> = machines.iter().collect();
        let medium = ["--medium", "multicast%tun0", "--air-rate", "20mbit", "--slots", "off"];
        let mut peers = dense(&networks, &machines, "mlp:hidden=400", &medium);
        machines.iter().for_each(|machine| wait_for(machine, "round=30"));
        let counts: Vec<Value> = machines.iter().map(|machine| multicast(machine)).collect();
        println!("{}", succeed(machines[0], &["status"]));
        for counts in &counts {
            println!("one in {loses_one_in}: {counts}");
            let sent = |name| count(counts, name);
            assert!(sent("repair_bytes") > 0 && sent("sent_parcels") > 30, "{counts}");
            // Three receivers. Streams would carry three payloads, and what they repeat.
            assert!(sent("packet_bytes") * 2 < sent("stream_bytes"), "{counts}");
            assert!(sent("resorted_parcels") * 10 < sent("sent_parcels"), "{counts}");
            assert_eq!(sent("refused_packets"), 0, "no payload had another hash: {counts}");
        }
        let exact = audit(&machines, &mut peers);
        assert!(exact.contains("exactly 4"), "{exact}");
    }
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn a_slow_uplink_carries_a_payload_once_and_rounds_take_less_time() {
    // As large as you like: MINGLE_LAN_PEERS=8 MINGLE_LAN_RATE=100mbit MINGLE_LAN_HIDDEN=33000
    let peers = usize::try_from(number("MINGLE_LAN_PEERS", 4)).unwrap();
    let rate = std::env::var("MINGLE_LAN_RATE").unwrap_or_else(|_| "10mbit".to_owned());
    let model = format!("mlp:hidden={}", number("MINGLE_LAN_HIDDEN", 1_000));
    let rounds = number("MINGLE_LAN_ROUNDS", 20);
    // The machines share no channel: each has a line of its own to the switch.
    let by_multicast = ["--medium", "multicast%tolan", "--air-rate", &rate, "--slots", "off"];
    let [streams, packets] = [&[][..], &by_multicast[..]].map(|medium| {
        let networks = Networks::new();
        networks.add_network("lan");
        let machines: Vec<Machine> = (0..peers)
            .map(|node| {
                let machine = networks.add_machine(NAMES[node], &[("lan", &format!("10.77.0.{}/16", 5 + node))]);
                machine.limit_rate("lan", &rate);
                machine
            })
            .collect();
        let machines: Vec<&Machine> = machines.iter().collect();
        let mut running = dense(&networks, &machines, &model, medium);
        wait_for(machines[0], "round=5");
        wait_until_heard(machines[0], medium.is_empty());
        let (began, before) = (Instant::now(), object(&succeed(machines[0], &["status", "--json"])));
        wait_for(machines[0], &format!("round={}", before["round"].as_u64().unwrap() + rounds));
        let seconds = began.elapsed().as_secs_f64();
        let after = object(&succeed(machines[0], &["status", "--json"]));
        let of = |name: &str| after[name].as_u64().unwrap() - before[name].as_u64().unwrap();
        let (bytes, rounds) = (of("sent_bytes") as f64 / of("round") as f64, of("round") as f64);
        let (step, counts) = (&after["local_step_s"], &after["multicast"]);
        println!("{medium:?}: {bytes:.0} bytes, {:.2} s a round, {step} s a step; {counts}", seconds / rounds);
        let exact = audit(&machines, &mut running);
        assert!(exact.contains(&format!("exactly {peers}")), "{exact}");
        (bytes, seconds / rounds)
    });
    println!("bytes {:.2} times less, a round {:.2} times faster", streams.0 / packets.0, streams.1 / packets.1);
    let receivers = (peers - 1) as f64;
    assert!(streams.0 / packets.0 > receivers / 1.15, "{streams:?} by stream, {packets:?} by multicast");
    assert!(streams.1 / packets.1 > 1.5, "{streams:?} by stream, {packets:?} by multicast");
}

#[test]
#[ignore = "needs network namespaces: root, iproute2, nftables, socat and /dev/net/tun"]
fn a_machine_without_a_route_for_the_group_says_so_and_uses_streams() {
    let networks = Networks::new();
    networks.add_network("lan");
    let machines = ["ana", "ben", "cho"].map(|name| {
        let number = NAMES.iter().position(|other| *other == name).unwrap();
        networks.add_machine(name, &[("lan", &format!("10.77.0.{}/16", 5 + number))])
    });
    let machines: Vec<&Machine> = machines.iter().collect();
    let mut peers = dense(&networks, &machines, "softmax", &["--medium", "multicast"]);
    let warning = peers[0].wait_for_warning("payloads go by stream");
    assert!(warning.contains("cannot join group 239.255."), "{warning}");
    machines.iter().for_each(|machine| wait_for(machine, "round=10"));
    let exact = audit(&machines, &mut peers);
    assert!(exact.contains("exactly 3"), "{exact}");
}
