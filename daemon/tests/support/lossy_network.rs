//! A network that loses and delays packets, for machines that have no other. It works on whole packets, so TCP and QUIC
//! suffer alike, and it needs nothing of the kernel but TUN interfaces:
//!
//! ```text
//!   machine -- tun -- socat -- socket --+                +-- socket -- socat -- tun -- machine
//!                                       +-- this process +
//!   machine -- tun -- socat -- socket --+                +-- socket -- socat -- tun -- machine
//! ```

use std::collections::{BTreeMap, BinaryHeap};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::namespaces::{Machine, Networks};

/// More than a TUN interface sends at once.
const MOST_PACKET_BYTES: usize = 4096;
/// Packets on their way; those beyond are lost, as in any queue.
const MOST_UNDER_WAY: usize = 20_000;

/// The faults on the way from one machine to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// One packet of so many is lost on average.
    pub(crate) loses_one_in: u32,
    /// The shortest and the longest time that a packet takes; each takes its own, so they overtake each other.
    pub(crate) delay_ms: (u64, u64),
    /// Decides which packets are lost, and the delay of each.
    pub(crate) seed: u64,
}

/// The network; machines that are plugged into it are cut off when it is dropped.
pub(crate) struct LossyNetwork {
    folder: PathBuf,
    ends: Ends,
    counts: Arc<Counts>,
    cables: Vec<Child>,
    threads: Vec<JoinHandle<()>>,
}

/// The socket of each machine, by its address.
type Ends = Arc<Mutex<BTreeMap<Ipv4Addr, PathBuf>>>;

/// Counts of the packets between machines.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    lost: AtomicU64,
}

impl LossyNetwork {
    /// A network without machines. Panics where something that it needs is missing.
    pub(crate) fn new(networks: &Networks, faults: Faults) -> Self {
        let has_socat =
            Command::new("socat").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
        assert!(has_socat, "a network that loses packets needs socat");
        assert!(Path::new("/dev/net/tun").exists(), "a network that loses packets needs /dev/net/tun");
        let folder = networks.folder().join("lossy");
        std::fs::create_dir(&folder).unwrap();
        let socket = UnixDatagram::bind(hub(&folder)).unwrap();
        let (ends, counts) = (Ends::default(), Arc::new(Counts::default()));
        let (arrived, packets) = channel();
        let reader = socket.try_clone().unwrap();
        let reading =
            std::thread::spawn(move || while receive(&reader).is_some_and(|packet| arrived.send(packet).is_ok()) {});
        let air = Air {
            faults,
            random: ChaCha8Rng::seed_from_u64(faults.seed),
            socket,
            ends: ends.clone(),
            counts: counts.clone(),
        };
        let carrying = std::thread::spawn(move || air.carry(&packets));
        Self { folder, ends, counts, cables: Vec::new(), threads: vec![reading, carrying] }
    }

    /// Gives a machine an interface with this address, such as `[10, 83, 0, 5]`, in this network.
    pub(crate) fn plug(&mut self, machine: &Machine, address: [u8; 4]) {
        let address = Ipv4Addr::from(address);
        let end = self.folder.join(address.to_string());
        self.ends.lock().unwrap().insert(address, end.clone());
        let interface = format!("TUN:{address}/24,iff-up,iff-no-pi");
        let cable = format!("UNIX-SENDTO:{},bind={}", hub(&self.folder).display(), end.display());
        let cable = machine.spawn("socat", &[&interface, &cable]);
        self.cables.push(cable);
        machine.wait_for_route();
    }

    /// Packets that were sent from one machine to another, and those of them that were lost.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counts.sent.load(Ordering::Relaxed), self.counts.lost.load(Ordering::Relaxed))
    }
}

impl Drop for LossyNetwork {
    fn drop(&mut self) {
        for cable in &mut self.cables {
            // It may have ended by itself.
            let _ = cable.kill();
            let _ = cable.wait();
        }
        // An empty datagram is the end. The thread that carries ends when the one that reads has.
        let ended = UnixDatagram::unbound().and_then(|socket| socket.send_to(&[], hub(&self.folder)));
        if ended.is_ok() {
            for thread in self.threads.drain(..) {
                let _ = thread.join();
            }
        }
    }
}

fn hub(folder: &Path) -> PathBuf {
    folder.join("hub")
}

/// The next packet; `None` at the end.
fn receive(socket: &UnixDatagram) -> Option<Vec<u8>> {
    let mut packet = vec![0; MOST_PACKET_BYTES];
    let length = socket.recv(&mut packet).ok().filter(|length| *length > 0)?;
    packet.truncate(length);
    Some(packet)
}

/// The medium that carries packets.
struct Air {
    faults: Faults,
    random: ChaCha8Rng,
    socket: UnixDatagram,
    ends: Ends,
    counts: Arc<Counts>,
}

impl Air {
    /// Takes packets as they come, and hands each over when it is due.
    fn carry(mut self, packets: &Receiver<Vec<u8>>) {
        let mut under_way: BinaryHeap<UnderWay> = BinaryHeap::new();
        loop {
            let next = match under_way.peek() {
                Some(first) => packets.recv_timeout(first.due.saturating_duration_since(Instant::now())),
                None => packets.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(packet) => under_way.extend(self.launch(&packet, under_way.len())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while under_way.peek().is_some_and(|first| first.due <= Instant::now()) {
                under_way.pop().into_iter().for_each(|packet| self.land(&packet));
            }
        }
    }

    /// Decides the fate of a packet at each machine that it is for: one to a group is for all but its sender, one to
    /// none is dropped.
    fn launch(&mut self, packet: &[u8], under_way: usize) -> Vec<UnderWay> {
        let Some((source, destination)) = addresses(packet) else { return Vec::new() };
        let is_for = |address: &Ipv4Addr| *address == destination || (destination.is_multicast() && *address != source);
        let known = self.ends.lock().unwrap().clone();
        let ends: Vec<PathBuf> = known.into_iter().filter(|(address, _)| is_for(address)).map(|(_, end)| end).collect();
        ends.into_iter().filter_map(|end| self.launch_to(end, packet, under_way)).collect()
    }

    fn launch_to(&mut self, end: PathBuf, packet: &[u8], under_way: usize) -> Option<UnderWay> {
        self.counts.sent.fetch_add(1, Ordering::Relaxed);
        let is_lost = self.random.random_ratio(1, self.faults.loses_one_in);
        let (shortest, longest) = self.faults.delay_ms;
        let delay = Duration::from_millis(self.random.random_range(shortest..=longest));
        if is_lost || under_way >= MOST_UNDER_WAY {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(UnderWay { due: Instant::now() + delay, packet: packet.to_vec(), end })
    }

    fn land(&self, packet: &UnderWay) {
        if self.socket.send_to(&packet.packet, &packet.end).is_err() {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The source and the destination of an IPv4 packet.
fn addresses(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let source: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
    let destination: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
    (packet[0] >> 4 == 4).then(|| (source.into(), destination.into()))
}

/// A packet on its way. The greatest is the one that is due first.
struct UnderWay {
    due: Instant,
    packet: Vec<u8>,
    end: PathBuf,
}

impl Ord for UnderWay {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.due.cmp(&self.due)
    }
}

impl PartialOrd for UnderWay {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for UnderWay {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for UnderWay {}
