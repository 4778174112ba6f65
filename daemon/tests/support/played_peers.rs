//! Peers that this process plays, beside sound ones: a member that need not keep to the protocol, and strangers.

use std::path::PathBuf;
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::identity::Keypair;
use libp2p::swarm::{NetworkBehaviour, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Stream, StreamProtocol, SwarmBuilder, noise, ping, tcp, yamux};
use mingle_protocol::NodeId;
use serde_json::Value;

use crate::support::liar::{Part, hash_of};
use crate::support::{RunningPeer, run, stderr, stdout, text};

pub(crate) const EDGE: StreamProtocol = StreamProtocol::new("/mingle/edge/1");
pub(crate) const SWARM: StreamProtocol = StreamProtocol::new("/mingle/swarm/7");
pub(crate) const PROBE: StreamProtocol = StreamProtocol::new("/mingle/probe/1");
/// More than any answer of a sound peer takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Two sound peers, and the third member of their plan, which this test plays.
pub(crate) struct Swarm {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) plan_hash: [u8; 32],
    pub(crate) member: Keypair,
}

impl Swarm {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let member = Keypair::generate_ed25519();
        let plan = folder.path().join("plan.json");
        let made = run(&["plan", "make", "--topology", "complete:n=3", "--method", "d-psgd", "-o", text(&plan)]);
        assert!(made.status.success(), "{}", stderr(&made));
        let mut swarm = Self { folder, plan_hash: [0; 32], member };
        let peers = [0, 1].map(|node| stdout(&run(&["init", "--home", text(&swarm.home(node))])).trim().to_owned());
        for (node, peer) in peers.into_iter().chain([swarm.member.public().to_peer_id().to_string()]).enumerate() {
            assert!(run(&["plan", "bind", text(&plan), "--peer", &format!("{node}={peer}")]).status.success());
        }
        swarm.plan_hash = hash_of(&plan);
        swarm
    }

    pub(crate) fn home(&self, node: usize) -> PathBuf {
        self.folder.path().join(node.to_string())
    }

    /// The place of the third member, which this test plays.
    pub(crate) fn part(&self) -> Part {
        Part { node: NodeId(2), key: self.member.clone(), plan_hash: self.plan_hash }
    }

    /// The PeerId of a sound peer.
    pub(crate) fn id(&self, node: usize) -> String {
        stdout(&run(&["id", "--home", text(&self.home(node))])).trim().to_owned()
    }

    /// Both sound peers, training without the third, and the address of the first.
    pub(crate) fn start(&self) -> ([RunningPeer; 2], Multiaddr) {
        let plan = self.folder.path().join("plan.json");
        let common = ["--plan", text(&plan), "--model", "softmax", "--split", "iid", "--rounds", "1000000"];
        // Training goes on until a test is over: the test's waits come first.
        let gather = ["--join-timeout", "1s", "--evaluate-every", "20", "--priority", "low"];
        let start = |node: usize, more: &[&str]| {
            let home = self.home(node);
            RunningPeer::start(&[&["--home", text(&home)], &common[..], &gather, more].concat())
        };
        let mut first = start(0, &[]);
        let address = first.address();
        let second = start(1, &["--bootstrap", &address]);
        first.wait_for("joined");
        ([first, second], address.parse().unwrap())
    }

    pub(crate) fn status(&self, node: usize) -> Value {
        serde_json::from_str(&stdout(&run(&["status", "--json", "--home", text(&self.home(node))]))).unwrap()
    }

    /// Checks that both peers go on training, were not harmed, and stop in good order.
    pub(crate) fn check(&self, mut peers: [RunningPeer; 2]) {
        for (node, peer) in peers.iter_mut().enumerate() {
            // Rounds after the lies, not reported before them.
            let now = self.status(node)["round"].as_u64().unwrap();
            while peer.wait_for("evaluated")["round"].as_u64().unwrap() < now + 40 {}
            // After a rollback its streams are opened anew.
            while self.status(node)["neighbours"].as_array().unwrap().iter().all(|other| other["state"] != "up") {
                peer.wait_for("evaluated");
            }
        }
        for (node, peer) in peers.iter_mut().enumerate() {
            let home = self.home(node);
            let stopped = run(&["stop", "--home", text(&home)]);
            assert!(stopped.status.success(), "{}", stderr(&stopped));
            let done = peer.wait_for("done");
            let megabytes = done["peak_resident_bytes"].as_u64().unwrap() / 1_000_000;
            assert!(megabytes < 200, "peer {node} took {megabytes} MB");
            assert_ended_in_good_order(peer, &done);
        }
    }
}

/// Asserts the exit code of a peer after its event `done`: a run is not called whole where lies made it skip most of its
/// rounds.
pub(crate) fn assert_ended_in_good_order(peer: &mut RunningPeer, done: &Value) {
    let skipped_most = done["skipped"].as_u64().unwrap() > done["round"].as_u64().unwrap() / 2;
    assert_eq!(peer.exit_code(), Some(if skipped_most { 5 } else { 0 }), "{done}");
}

/// Pings are answered: a peer that does not answer them is not connected for long.
#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    ping: ping::Behaviour,
    streams: libp2p_stream::Behaviour,
}

/// A connection to a sound peer under some key, with the streams that can be opened on it.
pub(crate) struct Connection {
    pub(crate) control: libp2p_stream::Control,
    pub(crate) peer: PeerId,
}

/// A peer that others dial, and the address where they do.
pub(crate) async fn listen(keypair: Keypair) -> (libp2p_stream::Control, Multiaddr) {
    let mut swarm = played(keypair);
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
    let address = loop {
        if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
            break address;
        }
    };
    let control = swarm.behaviour().streams.new_control();
    tokio::spawn(async move { while swarm.next().await.is_some() {} });
    (control, address)
}

pub(crate) fn played(keypair: Keypair) -> libp2p::Swarm<Behaviour> {
    SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::default(), noise::Config::new, yamux::Config::default)
        .unwrap()
        .with_behaviour(|_| Behaviour { ping: ping::Behaviour::default(), streams: libp2p_stream::Behaviour::new() })
        .unwrap()
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(60)))
        .build()
}

impl Connection {
    pub(crate) async fn open(keypair: Keypair, address: Multiaddr) -> Self {
        let mut swarm = played(keypair);
        let control = swarm.behaviour().streams.new_control();
        swarm.dial(address).unwrap();
        let peer = loop {
            if let SwarmEvent::ConnectionEstablished { peer_id, .. } = swarm.select_next_some().await {
                break peer_id;
            }
        };
        tokio::spawn(async move { while swarm.next().await.is_some() {} });
        Self { control, peer }
    }

    pub(crate) async fn stream(&mut self, protocol: &StreamProtocol) -> Option<Stream> {
        let opened = tokio::time::timeout(PATIENCE, self.control.open_stream(self.peer, protocol.clone()));
        opened.await.expect("a sound peer answers").inspect_err(|error| eprintln!("no stream: {error}")).ok()
    }
}

/// A value in the encoding of peers: behind its length.
pub(crate) fn framed(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [&length.to_le_bytes(), bytes].concat()
}

/// Writes as much of this as the other side takes; returns all that it sends until it closes the stream.
pub(crate) async fn say(stream: &mut Stream, bytes: &[u8]) -> Vec<u8> {
    // It may close the stream in the middle of it.
    let _ = tokio::time::timeout(PATIENCE, stream.write_all(bytes)).await.expect("a sound peer takes it or closes");
    let _ = tokio::time::timeout(PATIENCE, stream.flush()).await.expect("a sound peer takes it or closes");
    let _ = stream.close().await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it ends the stream");
    answer
}

pub(crate) fn greeting(plan_hash: [u8; 32]) -> Vec<u8> {
    // The hash as it is, and the number of a process.
    [&plan_hash[..], &[7]].concat()
}
