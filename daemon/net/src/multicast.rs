//! Payloads by multicast beside the streams of one plan: the sockets and their threads.
//!
//! ```text
//!   stream of an out-link   -- offer a payload, words of the receiver -->  transmitter (thread)  --+
//!                           <-- words for the receiver -----------------                           |  UDP
//!   stream of an in-link    -- key of the sender -->  object store  <--  receiver (thread)  <------+
//!                           <-- an object, or what is missing of it
//! ```
//!
//! The threads wait for packets and for the pace, not for the runtime: a receive buffer of the system holds some
//! milliseconds only. What is sent, when, and what is lacking is decided in `mingle-multicast`.

mod active;
mod air_forecast;
mod audience;
mod error;
mod gathering;
mod offers;
mod quiet;
mod receiver;
mod settings;
mod slotted;
mod socket;
mod transmitter;

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

pub use mingle_multicast::{AirRate, MulticastOptions, PayloadMedium, SlotChoice, SlotLength, SlotTable, StepSlots};
use mingle_multicast::{DEFAULT_PACKET_BYTES, ObjectName, ObjectStore, Rhythm, StoreLimits, Word, group_of};
use mingle_protocol::{Codec, NodeId, Payload};
use tokio::sync::{oneshot, watch};

use crate::traffic::{Counters, MulticastTraffic, SlotTraffic, Traffic};
pub use air_forecast::AirForecast;
pub use error::MulticastError;
pub(crate) use quiet::Quiet;
pub use settings::{MulticastSettings, PlannedSlots, SlotSettings};
pub use socket::interface_address;

/// Memory of unfinished objects, unless one of each in-neighbour and two more need more.
const STORE_BYTES: usize = 256 << 20;

/// The multicast of one plan, for the tasks of its streams. Its threads end once all of them have dropped it.
pub(crate) struct Multicast {
    orders: mpsc::Sender<Order>,
    shared: Arc<Shared>,
    next_link: AtomicU64,
    group: SocketAddrV4,
}

/// State of the threads and tasks.
pub(crate) struct Shared {
    began: Instant,
    is_over: AtomicBool,
    store: Mutex<ObjectStore>,
    /// The newest probe of each in-neighbour that came: key and number.
    heard: Mutex<BTreeMap<u32, (u32, u32)>>,
    /// Changes with each complete object and each probe.
    progress: watch::Sender<u64>,
    /// Number of this peer's own key, whose packets come back to it.
    own_key: AtomicU32,
    objects: AtomicU64,
    packet_bytes: AtomicU64,
    repair_bytes: AtomicU64,
    forged: AtomicU64,
    slots: Option<Mutex<OwnSlots>>,
}

/// The slots of this peer, and what became of them.
pub(crate) struct OwnSlots {
    pub(crate) rhythm: Rhythm,
    /// The end of the last payload, out or in.
    pub(crate) busy_until: Option<Duration>,
    /// The newest beacon of each in-neighbour: key and number.
    pub(crate) beacons: BTreeMap<u32, (u32, u32)>,
    /// In-neighbours whose slots have another length, until that is reported.
    pub(crate) others: BTreeMap<u32, Duration>,
    pub(crate) traffic: SlotTraffic,
}

/// The way of sentences for people. It must not block.
pub(crate) type Notices = Box<dyn Fn(String) + Send>;

/// An order to the transmitter.
pub(crate) enum Order {
    /// A stream to an out-neighbour is open.
    Join { link: u64, node: NodeId, words: tokio::sync::mpsc::Sender<Word>, counters: Arc<Counters> },
    /// It has ended.
    Leave { link: u64 },
    /// A payload for the neighbour. The answer is its name, or `None` if it is to go by stream.
    Offer { link: u64, step: u64, payload: Payload, answer: oneshot::Sender<Option<ObjectName>> },
    /// A word of the neighbour.
    Said { link: u64, word: Word },
}

impl Multicast {
    /// Opens the sockets and starts the threads. Parcels have `dimension` parameters, and come from so many
    /// in-neighbours.
    ///
    /// # Errors
    /// The interface or the group cannot be used.
    pub(crate) fn start(
        settings: &MulticastSettings,
        plan_hash: &[u8; 32],
        dimension: usize,
        in_neighbours: usize,
        notices: Notices,
    ) -> Result<Arc<Self>, MulticastError> {
        settings.no_slots.iter().for_each(|reason| notices(format!("payloads keep no slots: {reason}")));
        let group = settings.options.group.unwrap_or_else(|| group_of(plan_hash));
        let sockets = socket::open(group, settings.options.interface.as_deref())?;
        let object_bytes = Codec::ALL.into_iter().map(|codec| codec.encoded_len(dimension)).max().unwrap_or_default();
        // An object and its repair symbols take twice its length at most.
        let most_bytes = 2 * (object_bytes + (1 << 16));
        let total_bytes = STORE_BYTES.max(most_bytes.saturating_mul(in_neighbours + 2));
        let limits = StoreLimits { object_bytes, total_bytes };
        let shared = Arc::new(Shared {
            began: Instant::now(),
            is_over: AtomicBool::new(false),
            store: Mutex::new(ObjectStore::new(limits)),
            heard: Mutex::default(),
            progress: watch::Sender::new(0),
            own_key: AtomicU32::new(0),
            objects: AtomicU64::new(0),
            packet_bytes: AtomicU64::new(0),
            repair_bytes: AtomicU64::new(0),
            forged: AtomicU64::new(0),
            slots: settings.slots.as_ref().map(|slots| Mutex::new(OwnSlots::of(slots))),
        });
        let (orders, taken) = mpsc::channel();
        let transmitter =
            transmitter::Transmitter::new(sockets.send, group, settings.rate, Arc::clone(&shared), notices)?;
        let receiver = receiver::Receiver { socket: sockets.receive, shared: Arc::clone(&shared) };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let cannot = |source| MulticastError::Thread { source };
        thread("multicast-send").spawn(move || transmitter.run(&taken)).map_err(cannot)?;
        thread("multicast-recv").spawn(move || receiver.run()).map_err(cannot)?;
        tracing::info!(%group, interface = ?settings.options.interface, "payloads go by multicast");
        Ok(Arc::new(Self { orders, shared, next_link: AtomicU64::new(1), group }))
    }

    /// The group.
    pub(crate) fn group(&self) -> SocketAddrV4 {
        self.group
    }

    /// State of the threads and tasks.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// A number for a stream.
    pub(crate) fn new_link(&self) -> u64 {
        self.next_link.fetch_add(1, Ordering::Relaxed)
    }

    /// Gives an order. If the transmitter has ended, it is lost: receivers then ask for payloads by stream.
    pub(crate) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// The packets of this peer, as traffic beside that of its streams.
    pub(crate) fn traffic(&self) -> Traffic {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = self.shared.store().counts();
        let multicast = MulticastTraffic {
            objects: of(&self.shared.objects),
            packet_bytes: of(&self.shared.packet_bytes),
            repair_bytes: of(&self.shared.repair_bytes),
            strange_packets: counts.strange,
            refused_packets: counts.refused + of(&self.shared.forged),
            slots: self.shared.slots().map(|slots| slots.traffic()),
            ..MulticastTraffic::default()
        };
        Traffic::of_packets(multicast, counts.bytes)
    }
}

impl Drop for Multicast {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    /// Time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// The moment at a time since the start.
    pub(crate) fn at(&self, time: Duration) -> Instant {
        self.began + time
    }

    /// The objects of all in-neighbours.
    pub(crate) fn store(&self) -> MutexGuard<'_, ObjectStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A watch on complete objects and probes.
    pub(crate) fn progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }

    /// The newest probe of an in-neighbour that came.
    pub(crate) fn heard_of(&self, node: NodeId) -> Option<(u32, u32)> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).get(&node.0).copied()
    }

    /// The slots, if payloads keep any.
    pub(crate) fn slots(&self) -> Option<MutexGuard<'_, OwnSlots>> {
        self.slots.as_ref().map(|slots| slots.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that a payload came or was sent just now: what is ready next was worked on since then.
    pub(crate) fn note_busy(&self) {
        let now = self.now();
        self.slots().into_iter().for_each(|mut slots| slots.busy_until = Some(now));
    }

    /// Counts an object that is not the announced payload.
    pub(crate) fn note_forged(&self) {
        self.forged.fetch_add(1, Ordering::Relaxed);
    }
}

impl OwnSlots {
    fn of(settings: &SlotSettings) -> Self {
        let SlotSettings { table, nodes, node, length } = settings;
        let rhythm = Rhythm::new(table.clone(), *nodes, node.0, *length);
        Self {
            rhythm,
            busy_until: None,
            beacons: BTreeMap::new(),
            others: BTreeMap::new(),
            traffic: SlotTraffic::default(),
        }
    }

    /// The counts, with the present lengths.
    fn traffic(&self) -> SlotTraffic {
        let micros = |time: Duration| time.as_micros() as u64;
        SlotTraffic {
            slot_us: micros(self.rhythm.slot()),
            round_us: micros(self.rhythm.round()),
            pause_us: micros(self.rhythm.pause()),
            ..self.traffic
        }
    }
}

/// Bytes of a packet.
pub const PACKET_BYTES: u16 = DEFAULT_PACKET_BYTES;
