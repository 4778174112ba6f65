//! The sending thread: payloads that several neighbours are to have, one packet after another at the rate of the air.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use mingle_multicast::{
    AirRate, ObjectName, Pacer, PacketHead, RateControl, SECRET_BYTES, SenderKey, TransmissionStep, Word, symbol_bytes,
};

use super::active::{Active, REMIND_EVERY};
use super::audience::Audience;
use super::error::MulticastError;
use super::offers::{Gathering, PayloadOffer};
use super::{Notices, Order, PACKET_BYTES, Shared};

/// Longest time without a look at probes and waits.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Bytes under one key.
const RENEW_AFTER: u64 = 1 << 36;
/// Packets in a row that cannot be sent, after which multicast is regarded as broken.
const MAX_ERRORS: u32 = 20;

pub(super) struct Transmitter {
    pub(super) socket: UdpSocket,
    pub(super) group: SocketAddrV4,
    pub(super) shared: Arc<Shared>,
    notices: Notices,
    pub(super) key: SenderKey,
    secret: [u8; SECRET_BYTES],
    bytes_under_key: u64,
    pub(super) next_object: u32,
    pub(super) audience: Audience,
    pub(super) gathering: Vec<Gathering>,
    pub(super) active: Vec<Active>,
    pacer: Pacer,
    pub(super) rate: RateControl,
    pub(super) packet: Vec<u8>,
    errors: u32,
    pub(super) is_broken: bool,
    /// The number of the last beacon under the present key.
    pub(super) last_beacon: u32,
    /// Nodes whose slots were reported to have another length.
    pub(super) reported_slots: BTreeSet<u32>,
}

impl Transmitter {
    pub(super) fn new(
        socket: UdpSocket,
        group: SocketAddrV4,
        rate: Option<AirRate>,
        shared: Arc<Shared>,
        notices: Notices,
    ) -> Result<Self, MulticastError> {
        let pacer = if shared.slots.is_some() { Pacer::in_slots(PACKET_BYTES) } else { Pacer::new(PACKET_BYTES) };
        let (secret, key) = new_key()?;
        shared.own_key.store(key.number(), Ordering::Relaxed);
        Ok(Self {
            socket,
            group,
            shared,
            notices,
            key,
            secret,
            bytes_under_key: 0,
            next_object: 1,
            audience: Audience::new(),
            gathering: Vec::new(),
            active: Vec::new(),
            pacer,
            rate: RateControl::new(rate),
            packet: Vec::with_capacity(usize::from(PACKET_BYTES)),
            errors: 0,
            is_broken: false,
            last_beacon: 0,
            reported_slots: BTreeSet::new(),
        })
    }

    /// Transmits until all senders of orders are gone.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            loop {
                match orders.try_recv() {
                    Ok(order) => self.obey(order),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            let wait = self.act();
            if wait > Duration::ZERO {
                match orders.recv_timeout(wait) {
                    Ok(order) => self.obey(order),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        }
    }

    fn obey(&mut self, order: Order) {
        let now = self.shared.now();
        match order {
            Order::Join { link, node, words, counters } => {
                self.audience.join(link, node, words, counters, now);
                self.audience.tell(link, self.key_word());
            }
            Order::Leave { link } => {
                self.audience.leave(link);
                self.active.iter_mut().for_each(|active| active.transmission.remove(link));
            }
            Order::Offer { link, step, payload, answer } => {
                self.offer(PayloadOffer { link, step, payload, answer }, now);
            }
            Order::Said { link, word } => self.hear(link, word, now),
        }
    }

    fn hear(&mut self, link: u64, word: Word, now: Duration) {
        let of = |active: &&mut Active, object: ObjectName| active.name == object;
        match word {
            Word::Heard { key, probe } if key == self.key.number() => self.audience.heard(link, probe),
            Word::Got { object } => {
                self.audience.note_got(link);
                self.active.iter_mut().filter(|active| of(active, object)).for_each(|a| a.transmission.remove(link));
            }
            Word::Rest { object } => {
                self.active.iter_mut().filter(|active| of(active, object)).for_each(|a| a.transmission.remove(link));
                if let Some(node) = self.audience.note_failure(link, now) {
                    let group = self.group;
                    self.say(format!("node {node} no longer hears group {group}: its payloads go by stream"));
                }
            }
            Word::Lacks { object, pass, missing } => {
                if let Some(active) = self.active.iter_mut().find(|active| of(active, object)) {
                    active.transmission.answer(link, pass, missing);
                }
            }
            // The words of a sender, and answers to keys of the past.
            Word::Heard { .. } | Word::Key { .. } | Word::Sent { .. } | Word::Coming { .. } => {}
        }
    }

    /// Does what is due. Returns the time until something else may be.
    fn act(&mut self) -> Duration {
        let now = self.shared.now();
        self.renew_key_if_worn(now);
        let gathered = self.close_gatherings(now);
        self.probe(now);
        self.report(now);
        let next = self.transmit(now);
        let next = next.into_iter().chain(gathered).min().unwrap_or(LONGEST_WAIT);
        next.min(LONGEST_WAIT)
    }

    /// Sends packets while the pace allows, and asks receivers of what was sent. Returns the time until more is due.
    fn transmit(&mut self, now: Duration) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        for place in 0..self.active.len() {
            if !self.active[place].transmission.has_symbols()
                && let Some(until) = self.ask(place, now)
            {
                let wait = until.saturating_sub(now);
                next = Some(next.map_or(wait, |next| next.min(wait)));
            }
        }
        self.remind(now);
        let rate = &mut self.rate;
        self.active.retain_mut(|active| {
            let is_over = active.transmission.receivers().next().is_none() || active.transmission.is_over();
            if is_over && !active.has_lost {
                rate.learn(0.0);
            }
            !is_over
        });
        self.renew_windows(now);
        let opens_in = |active: &Active| active.opens_in(now);
        let first = self.active.iter().position(|active| opens_in(active) == Some(Duration::ZERO));
        match first {
            Some(place) => Some(self.send_symbols(place, now)),
            None => self.active.iter().filter_map(opens_in).chain(next).min(),
        }
    }

    /// Puts the question after a pass to the receivers. Returns the time until which they may answer.
    fn ask(&mut self, place: usize, now: Duration) -> Option<Duration> {
        let active = &mut self.active[place];
        // Repair symbols are sent by the pace, and in slots.
        active.transmission.evaluate(now);
        if let Some(lost) = active.transmission.take_lost() {
            active.has_lost = true;
            self.rate.learn(lost);
        }
        while !active.transmission.has_symbols() {
            match active.transmission.next(now) {
                TransmissionStep::Ask { pass, last } => {
                    let word = Word::Sent { object: active.name, pass, last };
                    active.transmission.receivers().for_each(|link| self.audience.tell(link, word.clone()));
                }
                TransmissionStep::WaitUntil(until) => return Some(until),
                TransmissionStep::Over | TransmissionStep::Symbol(_) => break,
            }
        }
        None
    }

    fn remind(&mut self, now: Duration) {
        for active in self.active.iter_mut().filter(|active| active.remind_at <= now) {
            active.remind_at = now + REMIND_EVERY;
            let word = Word::Coming { object: active.name };
            active.transmission.receivers().for_each(|link| self.audience.tell(link, word.clone()));
        }
    }

    /// Sends symbols of one payload while the pace allows. Returns the time until the next packet may go.
    fn send_symbols(&mut self, place: usize, now: Duration) -> Duration {
        while self.active[place].transmission.has_symbols() && !self.is_slot_over(place) {
            if let Some(wait) = self.pacer.take(self.shared.now(), usize::from(PACKET_BYTES), self.rate.rate()) {
                return wait;
            }
            self.send_beacon_if_due(place);
            let active = &mut self.active[place];
            let TransmissionStep::Symbol(symbol) = active.transmission.next(now) else { break };
            match active.send(symbol, &self.socket, self.group, &mut self.packet, &self.shared) {
                Ok(bytes) => {
                    self.bytes_under_key += bytes as u64;
                    self.note_sent();
                    self.shared.note_busy();
                }
                Err(error) => {
                    if self.note_error(&error) {
                        return Duration::ZERO;
                    }
                }
            }
        }
        Duration::ZERO
    }

    fn note_sent(&mut self) {
        self.errors = 0;
        if std::mem::take(&mut self.is_broken) {
            self.say(format!("packets to group {} can be sent again", self.group));
        }
    }

    /// Notes an error of a packet. After some in a row all payloads go by stream, until a probe comes through.
    fn note_error(&mut self, error: &io::Error) -> bool {
        self.errors += 1;
        let is_too_long = is_too_long(error);
        if !(is_too_long || self.errors >= MAX_ERRORS) {
            return false;
        }
        let now = self.shared.now();
        self.audience.refute_all(now);
        for active in self.active.drain(..) {
            let word = Word::Sent { object: active.name, pass: u16::MAX, last: true };
            active.transmission.receivers().for_each(|link| self.audience.tell(link, word.clone()));
        }
        if !std::mem::replace(&mut self.is_broken, true) {
            let what = if is_too_long {
                format!("its interface takes no packets of {PACKET_BYTES} bytes and their headers")
            } else {
                error.to_string()
            };
            self.say(format!("packets to group {} cannot be sent: {what}; payloads go by stream", self.group));
        }
        true
    }

    fn probe(&mut self, now: Duration) {
        let Some(number) = self.audience.next_probe(now) else { return };
        // As long as a full packet, so that it proves that those come through.
        let padding = vec![0; usize::from(symbol_bytes(PACKET_BYTES))];
        self.key.seal(PacketHead::probe(self.key.number(), number), &padding, &mut self.packet);
        match self.socket.send_to(&self.packet, SocketAddr::from(self.group)) {
            Ok(bytes) => {
                self.shared.packet_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                self.note_sent();
            }
            Err(error) => {
                self.note_error(&error);
            }
        }
    }

    fn report(&mut self, now: Duration) {
        self.report_other_slots();
        let silent = self.audience.take_unreported(now);
        if !silent.is_empty() && !self.is_broken {
            let nodes: Vec<String> = silent.iter().map(ToString::to_string).collect();
            let group = self.group;
            self.say(format!("nodes {} do not hear group {group}: their payloads go by stream", nodes.join(", ")));
        }
    }

    /// Renews the key after many bytes, or where objects run out of numbers. It reaches no neighbour yet.
    fn renew_key_if_worn(&mut self, now: Duration) {
        if self.bytes_under_key < RENEW_AFTER && self.next_object < u32::MAX {
            return;
        }
        // Without random numbers, the old key serves until its object numbers end.
        let Ok((secret, key)) = new_key() else { return };
        self.secret = secret;
        self.key = key;
        self.bytes_under_key = 0;
        self.next_object = 1;
        self.shared.own_key.store(self.key.number(), Ordering::Relaxed);
        self.audience.refute_all(now);
        self.audience.tell_all(&self.key_word());
    }

    fn key_word(&self) -> Word {
        Word::Key { secret: self.secret, symbol_bytes: symbol_bytes(PACKET_BYTES) }
    }

    /// A sentence for people.
    pub(super) fn say(&self, message: String) {
        tracing::warn!(message, "multicast");
        (self.notices)(message);
    }
}

fn new_key() -> Result<([u8; SECRET_BYTES], SenderKey), MulticastError> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(|_| MulticastError::NoKey)?;
    Ok((secret, SenderKey::new(&secret)))
}

/// EMSGSIZE, by its numbers on Linux, macOS and Windows.
fn is_too_long(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(90 | 40 | 10_040))
}
