//! A swarm that trains beside a crowd of idle strangers and a flood of handshakes from addresses without a machine: a
//! member that comes back finds its way in, and training goes on.
//!
//! `scripts/campaign strangers` measures it: 1,024 strangers, 1,000 handshakes a second, turns with and without them.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::played_peers::{PATIENCE, Swarm, played};
use crate::support::{RunningPeer, mingle, run, stderr, text};
use futures::StreamExt;
use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::SwarmEvent;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, Endpoint, EndpointConfig};

/// The time after which a stranger that was sent away comes back.
const COMES_BACK: Duration = Duration::from_secs(10);
/// Strangers that share an address: fewer than a peer takes from one.
const STRANGERS_PER_ADDRESS: usize = 64;
/// Seconds after which a first packet is sent again, when the peer has given up on it.
const REPEATED_AFTER_S: usize = 12;
/// Made-up addresses that stay silent: those before them answer that no socket is there, as a machine would that is.
const SILENT: usize = 4096;

/// The load of a test.
struct Load {
    strangers: usize,
    handshakes_per_s: usize,
    turns: usize,
    /// The time for which training is watched in each half of a turn.
    watched: Duration,
    /// The training options: where the pace is measured, rounds that are long enough to be training.
    training: &'static [&'static str],
    /// The limits that must hold; the load under `cargo test` shares its machine with other tests.
    most_to_reconnect: Duration,
    least_pace: f64,
}

impl Load {
    fn asked_for() -> Self {
        if std::env::var_os("MINGLE_FLOOD").is_some() {
            let (watched, most_to_reconnect) = (Duration::from_secs(15), Duration::from_secs(5));
            let training = &["--model", "cnn"];
            Self {
                strangers: 1024,
                handshakes_per_s: 1000,
                turns: 5,
                watched,
                training,
                most_to_reconnect,
                least_pace: 0.8,
            }
        } else {
            let (watched, most_to_reconnect) = (Duration::from_secs(2), Duration::from_secs(20));
            let training = &["--model", "softmax", "--priority", "low"];
            Self {
                strangers: 160,
                handshakes_per_s: 400,
                turns: 1,
                watched,
                training,
                most_to_reconnect,
                least_pace: 0.0,
            }
        }
    }
}

/// First packets of QUIC connections that go no further, each of another connection.
fn first_packets(to: SocketAddr, number: usize) -> Vec<Vec<u8>> {
    let tls = libp2p_tls::make_client_config(&Keypair::generate_ed25519(), None).unwrap();
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
    let mut packet = || {
        let (_, mut connection) = endpoint.connect(Instant::now(), config.clone(), to, "l").unwrap();
        let mut datagrams = Vec::new();
        let sent = connection.poll_transmit(Instant::now(), 1, &mut datagrams).unwrap();
        datagrams.truncate(sent.size);
        datagrams
    };
    (0..number).map(|_| packet()).collect()
}

/// Sends first packets from loopback addresses that no other process uses, until it is dropped.
struct Flood {
    over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    sender: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(to: SocketAddr, packets: Arc<Vec<Vec<u8>>>, per_s: usize) -> Self {
        let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ends, counter) = (over.clone(), sent.clone());
        let sender = std::thread::spawn(move || {
            let (began, mut silent) = (Instant::now(), VecDeque::new());
            for number in 0_usize.. {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                // Waits, so as not to exceed the rate.
                std::thread::sleep(
                    Duration::from_secs_f64(number as f64 / per_s as f64).saturating_sub(began.elapsed()),
                );
                let made_up = Ipv4Addr::new(127, 64 + (number >> 16) as u8 % 64, (number >> 8) as u8, number as u8);
                let Ok(socket) = UdpSocket::bind((made_up, 0)) else { continue };
                counter.fetch_add(
                    u64::from(socket.send_to(&packets[number % packets.len()], to).is_ok()),
                    Ordering::Relaxed,
                );
                silent.push_back(socket);
                if silent.len() > SILENT {
                    silent.pop_front();
                }
            }
        });
        Self { over, sent, sender: Some(sender) }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        drop(self.sender.take().map(JoinHandle::join));
    }
}

/// A stranger that holds a connection and sends nothing on it, and comes back when it is sent away.
async fn idle(source: Ipv4Addr, address: Multiaddr, connected: Arc<AtomicUsize>, tried: Arc<AtomicUsize>) {
    let mut swarm = played(Keypair::generate_ed25519());
    // libp2p dials from where it listens.
    swarm.listen_on(Multiaddr::empty().with(Protocol::Ip4(source)).with(Protocol::Tcp(0))).unwrap();
    while !matches!(swarm.select_next_some().await, SwarmEvent::NewListenAddr { .. }) {}
    let mut is_first = true;
    loop {
        swarm.dial(address.clone()).unwrap();
        loop {
            match swarm.select_next_some().await {
                SwarmEvent::ConnectionEstablished { .. } => drop(connected.fetch_add(1, Ordering::Relaxed)),
                SwarmEvent::ConnectionClosed { .. } => {
                    connected.fetch_sub(1, Ordering::Relaxed);
                    break;
                }
                SwarmEvent::OutgoingConnectionError { .. } => break,
                _ => continue,
            }
            if std::mem::take(&mut is_first) {
                tried.fetch_add(1, Ordering::Relaxed);
            }
        }
        if std::mem::take(&mut is_first) {
            tried.fetch_add(1, Ordering::Relaxed);
        }
        tokio::time::sleep(COMES_BACK).await;
    }
}

/// Strangers that hold the connections they get, once each of them has tried.
struct Crowd {
    connected: Arc<AtomicUsize>,
    _runtime: tokio::runtime::Runtime,
}

impl Crowd {
    fn gather(address: &Multiaddr, strangers: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (connected, tried) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for number in 0..strangers {
            let source = Ipv4Addr::new(127, 9, (number / STRANGERS_PER_ADDRESS) as u8, 1);
            runtime.spawn(idle(source, address.clone(), connected.clone(), tried.clone()));
        }
        let began = Instant::now();
        while tried.load(Ordering::Relaxed) < strangers {
            assert!(began.elapsed() < 4 * PATIENCE, "{} of {strangers} have tried", tried.load(Ordering::Relaxed));
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { connected, _runtime: runtime }
    }
}

/// The processor time that a process has used, in seconds.
fn processor_s(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// A swarm whose first peer is attacked, and whose second comes back again and again.
struct Attacked {
    swarm: Swarm,
    training: &'static [&'static str],
    peers: [RunningPeer; 2],
    tcp: Multiaddr,
    quic: Multiaddr,
}

impl Attacked {
    fn start(training: &'static [&'static str]) -> Self {
        let swarm = Swarm::new();
        let plan = swarm.folder.path().join("plan.json");
        let home = swarm.home(0);
        let mut first = Self::start_peer(training, &["--home", text(&home), "--plan", text(&plan)]);
        let listening = first.wait_for("listening")["addresses"].clone();
        let address = |part: &str| -> Multiaddr {
            let all = listening.as_array().unwrap().iter().map(|address| address.as_str().unwrap());
            all.into_iter().find(|address| address.contains(part)).unwrap().parse().unwrap()
        };
        let (tcp, quic) = (address("/tcp/"), address("/quic-v1"));
        let second = Self::start_second(&swarm, training, &quic);
        first.wait_for("joined");
        Self { swarm, training, peers: [first, second], tcp, quic }
    }

    fn start_peer(training: &[&str], more: &[&str]) -> RunningPeer {
        let common = ["--split", "iid", "--rounds", "1000000", "--join-timeout", "1s", "--evaluate-every", "20"];
        RunningPeer::start(&[training, &common, more].concat())
    }

    fn start_second(swarm: &Swarm, training: &[&str], address: &Multiaddr) -> RunningPeer {
        let (home, plan) = (swarm.home(1), swarm.folder.path().join("plan.json"));
        let bootstrap = address.to_string();
        Self::start_peer(training, &["--home", text(&home), "--plan", text(&plan), "--bootstrap", &bootstrap])
    }

    /// Rounds, and seconds of a processor, of the first peer per second.
    fn pace(&self, watched: Duration) -> (f64, f64) {
        let (process, began) = (self.peers[0].id(), Instant::now());
        let (round, processor) = (self.round(), processor_s(process));
        std::thread::sleep(watched);
        let rounds = self.round() - round;
        let seconds = began.elapsed().as_secs_f64();
        (rounds as f64 / seconds, (processor_s(process) - processor) / seconds)
    }

    fn round(&self) -> u64 {
        self.swarm.status(0)["round"].as_u64().unwrap()
    }

    /// The time from the second peer's start, after it was stopped, until it is connected to the first one again. Had
    /// it been killed, the first one would keep to the link that it had until that is known to be dead.
    fn reconnect(&mut self) -> Duration {
        let home = self.swarm.home(1);
        assert!(run(&["stop", "--home", text(&home)]).status.success());
        assert_eq!(self.peers[1].exit_code(), Some(0));
        let began = Instant::now();
        self.peers[1] = Self::start_second(&self.swarm, self.training, &self.quic);
        loop {
            let asked = mingle().args(["status", "--json", "--home", text(&home)]).output().unwrap();
            let status: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
            if is_up(&status, 0) {
                return began.elapsed();
            }
            assert!(began.elapsed() < 4 * PATIENCE, "it has not come back: {}{status}", stderr(&asked));
        }
    }

    fn end(mut self) {
        // The first one cannot hand over the mass it owes while the second waits for the member that never comes, as it
        // does for a minute after each start.
        for node in [1, 0] {
            let home = self.swarm.home(node);
            assert!(run(&["stop", "--home", text(&home)]).status.success());
            let megabytes =
                self.peers[node].wait_through_rounds_for("done")["peak_resident_bytes"].as_u64().unwrap() / 1_000_000;
            println!("peer {node} took {megabytes} MB at most");
            assert!(megabytes < 300, "peer {node} took {megabytes} MB");
            assert_eq!(self.peers[node].exit_code(), Some(0));
        }
    }
}

/// Returns `true` if a peer's own status shows that it is connected to this neighbour.
fn is_up(status: &serde_json::Value, node: u64) -> bool {
    let mut neighbours = status["neighbours"].as_array().into_iter().flatten();
    neighbours.any(|neighbour| neighbour["node"] == node && neighbour["state"] == "up")
}

fn socket_address(address: &Multiaddr) -> SocketAddr {
    let mut parts = address.iter();
    match (parts.next(), parts.next()) {
        (Some(Protocol::Ip4(ip)), Some(Protocol::Udp(port))) => SocketAddr::from((ip, port)),
        _ => panic!("{address} is no address of QUIC"),
    }
}

#[test]
fn a_member_comes_back_and_training_goes_on_beside_idle_strangers_and_made_up_handshakes() {
    let load = Load::asked_for();
    let mut attacked = Attacked::start(load.training);
    let to = socket_address(&attacked.quic);
    let packets = Arc::new(first_packets(to, load.handshakes_per_s * REPEATED_AFTER_S));
    let (mut paces, mut shares, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..load.turns {
        let undisturbed = attacked.reconnect();
        let (quiet, quiet_share) = attacked.pace(load.watched);
        let crowd = Crowd::gather(&attacked.tcp, load.strangers);
        let flood = Flood::start(to, packets.clone(), load.handshakes_per_s);
        let began = Instant::now();
        // Wait until all places are taken that can be.
        std::thread::sleep(load.watched / 2);
        let came_back = attacked.reconnect();
        let (loud, loud_share) = attacked.pace(load.watched);
        let rate = flood.sent.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
        println!(
            "turn {turn}: back after {:.1} s, {:.1} s beside {} of {} strangers that hold a connection and {rate:.0} handshakes a second; \
             {quiet:.1} and {loud:.1} rounds a second; {quiet_share:.2} and {loud_share:.2} of a processor",
            undisturbed.as_secs_f64(),
            came_back.as_secs_f64(),
            crowd.connected.load(Ordering::Relaxed),
            load.strangers,
        );
        assert!(loud > 0.0, "no round was trained");
        paces.push(loud / quiet);
        shares.push(loud_share - quiet_share);
        times.push(came_back.as_secs_f64());
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let pace = median(paces);
    println!("{pace:.2} of the pace, {:.2} of a processor more, back after {slowest:.1} s at most", median(shares));
    assert!(slowest <= load.most_to_reconnect.as_secs_f64(), "a member was kept out for {slowest:.1} s");
    assert!(pace >= load.least_pace, "training keeps {pace:.2} of its pace");
    attacked.end();
}
