//! Traffic counters of the streams of this process: bytes both ways, and parcels by codec.

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mingle_protocol::{ChosenCodec, Codec, Payload};
use serde::{Deserialize, Serialize};

/// Bytes of a parameter in [`Codec::F32`].
const F32_BYTES: u64 = 4;

/// Byte and parcel counts, all since the same point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes written, headers and acknowledgements included.
    pub sent_bytes: u64,
    /// Bytes read.
    pub received_bytes: u64,
    /// Bytes that f32 would have added to `sent_bytes`.
    pub saved_bytes: u64,
    /// Parcels written, by the number of their codec; each retransmission counts.
    sent_parcels: [u64; Codec::ALL.len()],
    /// Parcels read.
    pub received_parcels: u64,
    /// Time from the first to the last bytes of a parcel, summed over all parcels read. It measures the link, not the
    /// time that the sender trained.
    pub receiving: Duration,
    /// Payloads by multicast.
    pub multicast: MulticastTraffic,
}

impl Traffic {
    /// The packets of a peer, beside what its streams carry.
    pub(crate) fn of_packets(multicast: MulticastTraffic, received_bytes: u64) -> Self {
        Self { sent_bytes: multicast.packet_bytes, received_bytes, multicast, ..Self::default() }
    }

    /// Parcels written.
    pub fn sent_parcels(&self) -> u64 {
        self.sent_parcels.iter().sum()
    }

    /// The encoding of the parcels sent, where `chosen` is the codec under the present plan.
    pub fn encoding(&self, chosen: ChosenCodec) -> ParameterEncoding {
        let parcels = Codec::ALL.into_iter().zip(self.sent_parcels).filter(|(_, count)| *count > 0);
        ParameterEncoding {
            parcels: parcels.map(|(codec, count)| (codec.name().to_owned(), count)).collect(),
            saved_bytes: self.saved_bytes,
            ..ParameterEncoding::of(chosen)
        }
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.saved_bytes += other.saved_bytes;
        self.received_parcels += other.received_parcels;
        self.receiving += other.receiving;
        self.multicast += other.multicast;
        self.sent_parcels.iter_mut().zip(other.sent_parcels).for_each(|(count, more)| *count += more);
    }
}

/// Payloads by multicast: those of one link, or all of a peer with its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastTraffic {
    /// Parcels sent whose payload went by multicast.
    pub sent_parcels: u64,
    /// Bytes of these payloads: what the streams of the links would have carried.
    pub stream_bytes: u64,
    /// Parcels sent whose payload was offered by multicast, and went by stream in the end.
    pub resorted_parcels: u64,
    /// Parcels received whose payload came by multicast.
    pub received_parcels: u64,
    /// Payloads that this peer transmitted.
    pub objects: u64,
    /// Bytes of the packets that it transmitted, probes and repair included.
    pub packet_bytes: u64,
    /// Bytes of these in repair symbols.
    pub repair_bytes: u64,
    /// Packets received that no key of an in-neighbour opens.
    pub strange_packets: u64,
    /// Packets received from in-neighbours that make no sense or are beyond a limit, and payloads without their hash.
    pub refused_packets: u64,
    /// The slots in which payloads were sent, where a plan has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<SlotTraffic>,
}

/// Payloads in slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotTraffic {
    /// Length of a slot in microseconds.
    pub slot_us: u64,
    /// Mean length of a round in microseconds, with its pauses.
    pub round_us: u64,
    /// The pause before a round in microseconds: what nodes need for training beyond the slots of others.
    pub pause_us: u64,
    /// Payloads sent in the slot of their step.
    pub on_time: u64,
    /// Payloads that were ready after it, and were sent in a later one.
    pub late: u64,
    /// Slots more, for payloads or their repair that did not fit into one.
    pub split: u64,
    /// Beacons of in-neighbours that make no sense.
    pub refused_beacons: u64,
}

impl SlotTraffic {
    /// A short description for people.
    pub fn words(&self) -> String {
        let ms = |micros: u64| micros as f64 / 1e3;
        let mut words = format!(
            "slots of {:.1} ms, rounds of {:.0} ms, {:.0} ms of it pause: {} payloads on time, {} late",
            ms(self.slot_us),
            ms(self.round_us),
            ms(self.pause_us),
            self.on_time,
            self.late,
        );
        if self.split > 0 {
            words += &format!(", {} more slots for what did not fit", self.split);
        }
        words
    }
}

impl AddAssign for SlotTraffic {
    /// Adds the counts; the lengths are those of the second.
    fn add_assign(&mut self, other: Self) {
        *self = Self {
            on_time: self.on_time + other.on_time,
            late: self.late + other.late,
            split: self.split + other.split,
            refused_beacons: self.refused_beacons + other.refused_beacons,
            ..other
        };
    }
}

impl MulticastTraffic {
    /// A short description for people.
    pub fn words(&self) -> String {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let mut words = format!(
            "{:.2} MB in packets where streams would carry {:.2} MB, {:.2} MB of it repair",
            mb(self.packet_bytes),
            mb(self.stream_bytes),
            mb(self.repair_bytes),
        );
        if self.resorted_parcels > 0 {
            words += &format!(", {} parcels by stream in the end", self.resorted_parcels);
        }
        self.slots.iter().for_each(|slots| words += &format!("; {}", slots.words()));
        words
    }
}

impl AddAssign for MulticastTraffic {
    fn add_assign(&mut self, other: Self) {
        self.sent_parcels += other.sent_parcels;
        self.stream_bytes += other.stream_bytes;
        self.resorted_parcels += other.resorted_parcels;
        self.received_parcels += other.received_parcels;
        self.objects += other.objects;
        self.packet_bytes += other.packet_bytes;
        self.repair_bytes += other.repair_bytes;
        self.strange_packets += other.strange_packets;
        self.refused_packets += other.refused_packets;
        self.slots = match (self.slots, other.slots) {
            (Some(mut slots), Some(more)) => {
                slots += more;
                Some(slots)
            }
            (slots, more) => more.or(slots),
        };
    }
}

/// Encoding of parameters on the links of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterEncoding {
    /// The codec under the present plan: the one that was asked for, or what `auto` takes.
    pub codec: String,
    /// The reason for it, where `auto` took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Parcels sent, by the codec that they were sent in.
    pub parcels: BTreeMap<String, u64>,
    /// Bytes that f32 would have added.
    pub saved_bytes: u64,
}

impl ParameterEncoding {
    /// The encoding before anything was sent.
    pub fn of(chosen: ChosenCodec) -> Self {
        Self { codec: chosen.codec.name().to_owned(), reason: chosen.reason(), ..Self::default() }
    }

    /// The codec and its reason, with nothing counted.
    #[must_use]
    pub fn without_counts(&self) -> Self {
        Self { codec: self.codec.clone(), reason: self.reason.clone(), ..Self::default() }
    }

    /// Adds the counts of another peer.
    pub fn add(&mut self, other: &Self) {
        self.saved_bytes += other.saved_bytes;
        for (codec, count) in &other.parcels {
            *self.parcels.entry(codec.clone()).or_default() += count;
        }
    }

    /// Share of the bytes sent in those that f32 would have taken; `None` before anything was sent.
    pub fn share_of_f32(&self, sent_bytes: u64) -> Option<f64> {
        let whole = sent_bytes + self.saved_bytes;
        (whole > 0).then(|| sent_bytes as f64 / whole as f64)
    }

    /// A short description for people; `None` if f32 is sent, or nothing was sent yet.
    pub fn words(&self, sent_bytes: u64) -> Option<String> {
        let is_plain = self.codec == Codec::F32.name() || self.codec.is_empty();
        let share = self.share_of_f32(sent_bytes).filter(|_| !is_plain)?;
        let mut words = format!("{}: {:.0} % of f32", self.codec, 100.0 * share);
        let others = self.parcels.iter().filter(|(codec, _)| **codec != self.codec);
        let others: Vec<String> = others.map(|(codec, count)| format!("{count} parcels in {codec}")).collect();
        if !others.is_empty() {
            words += &format!(" ({})", others.join(", "));
        }
        Some(words)
    }
}

/// Counters that both halves of a stream add to.
#[derive(Debug, Default)]
pub struct Counters {
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    saved_bytes: AtomicU64,
    sent_parcels: [AtomicU64; Codec::ALL.len()],
    received_parcels: AtomicU64,
    receiving_nanoseconds: AtomicU64,
    multicast: MulticastCounters,
}

#[derive(Debug, Default)]
struct MulticastCounters {
    sent_parcels: AtomicU64,
    stream_bytes: AtomicU64,
    resorted_parcels: AtomicU64,
    received_parcels: AtomicU64,
    is_heard: AtomicBool,
}

impl Counters {
    /// Counts bytes written.
    pub fn note_sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes read.
    pub fn note_received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a parcel written with this payload, and the bytes that its codec saved.
    pub fn note_sent_parcel(&self, payload: &Payload) {
        let whole = F32_BYTES * payload.dimension() as u64;
        self.saved_bytes.fetch_add(whole.saturating_sub(payload.bytes().len() as u64), Ordering::Relaxed);
        self.sent_parcels[usize::from(payload.codec().id())].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a parcel read, which took this long to arrive.
    pub fn note_received_parcel(&self, took: Duration) {
        self.received_parcels.fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.receiving_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Counts a parcel whose payload the other side has from packets, and the bytes that the stream was spared.
    pub fn note_sent_by_multicast(&self, payload_bytes: usize) {
        self.multicast.sent_parcels.fetch_add(1, Ordering::Relaxed);
        self.multicast.stream_bytes.fetch_add(payload_bytes as u64, Ordering::Relaxed);
    }

    /// Counts a parcel whose payload went by stream although it was offered by multicast.
    pub fn note_resorted(&self) {
        self.multicast.resorted_parcels.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a parcel whose payload came in packets.
    pub fn note_received_by_multicast(&self) {
        self.multicast.received_parcels.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets whether this peer's packets reach the other side.
    pub fn set_heard(&self, is_heard: bool) {
        self.multicast.is_heard.store(is_heard, Ordering::Relaxed);
    }

    /// Returns `true` if this peer's packets reach the other side, as far as is known.
    pub fn is_heard(&self) -> bool {
        self.multicast.is_heard.load(Ordering::Relaxed)
    }

    /// The present counts.
    pub fn read(&self) -> Traffic {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            sent_bytes: of(&self.sent_bytes),
            received_bytes: of(&self.received_bytes),
            saved_bytes: of(&self.saved_bytes),
            sent_parcels: std::array::from_fn(|codec| of(&self.sent_parcels[codec])),
            received_parcels: of(&self.received_parcels),
            receiving: Duration::from_nanos(of(&self.receiving_nanoseconds)),
            multicast: MulticastTraffic {
                sent_parcels: of(&self.multicast.sent_parcels),
                stream_bytes: of(&self.multicast.stream_bytes),
                resorted_parcels: of(&self.multicast.resorted_parcels),
                received_parcels: of(&self.multicast.received_parcels),
                ..MulticastTraffic::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_codec_saves_is_what_f32_would_have_taken_besides() {
        let counters = Counters::default();
        for codec in [Codec::Int8, Codec::F32] {
            let payload = Payload::encoded(codec, &[1.0; 512], 0).unwrap();
            counters.note_sent(payload.bytes().len());
            counters.note_sent_parcel(&payload);
        }
        let traffic = counters.read() + Traffic { received_bytes: 7, received_parcels: 1, ..Traffic::default() };
        assert_eq!((traffic.sent_bytes, traffic.saved_bytes, traffic.received_bytes), (520 + 2048, 2048 - 520, 7));
        assert_eq!((traffic.sent_parcels(), traffic.received_parcels), (2, 1));
        let encoding = traffic.encoding(ChosenCodec::asked(Codec::Int8));
        assert_eq!(encoding.words(traffic.sent_bytes).unwrap(), "int8: 63 % of f32 (1 parcels in f32)");
        assert_eq!(traffic.encoding(ChosenCodec::asked(Codec::F32)).words(traffic.sent_bytes), None);
        assert_eq!(Traffic::default().encoding(ChosenCodec::asked(Codec::Int8)).words(0), None, "nothing was sent yet");
    }
}
