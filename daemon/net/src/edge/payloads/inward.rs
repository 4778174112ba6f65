//! The receiver's side: announced payloads from the object store, and what is said about them.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use futures::io::ReadHalf;
use futures::{AsyncRead, AsyncWrite};
use mingle_multicast::{Geometry, ObjectName, ObjectReception, Word};
use mingle_protocol::wire::{self, MessageReader};
use mingle_protocol::{Message, NodeId};
use tokio::sync::mpsc;

use super::{WORD_QUEUE, no_word, sleep_until};
use crate::edge::halves::{DriverGone, Incoming, Outgoing, READ_BYTES, read_in_time};
use crate::multicast::{Multicast, Quiet};
use crate::traffic::Counters;

/// Bytes that come at once with a payload by stream; words are shorter.
const CHUNK_AT_LEAST: usize = 1_000;

pub(in crate::edge) struct InReading {
    node: NodeId,
    multicast: Arc<Multicast>,
    counters: Arc<Counters>,
    say: mpsc::Sender<Word>,
    /// Length of symbols under the sender's key, once that has come.
    symbol_bytes: Option<u16>,
    reception: Option<ObjectReception>,
    /// The last probe that was acknowledged: key and number.
    acknowledged: Option<(u32, u32)>,
}

pub(in crate::edge) struct InWriting {
    quiet: Quiet,
    said: mpsc::Receiver<Word>,
}

pub(super) fn conversation(
    multicast: &Arc<Multicast>,
    node: NodeId,
    counters: &Arc<Counters>,
) -> (InReading, InWriting) {
    let (say, said) = mpsc::channel(WORD_QUEUE);
    let reading = InReading {
        node,
        multicast: Arc::clone(multicast),
        counters: Arc::clone(counters),
        say,
        symbol_bytes: None,
        reception: None,
        acknowledged: None,
    };
    (reading, InWriting { quiet: Quiet::new(multicast, node), said })
}

impl InReading {
    pub(super) async fn read_all(
        mut self,
        mut stream: ReadHalf<impl AsyncRead + AsyncWrite + Unpin>,
        mut incoming: Incoming<'_>,
    ) -> Result<Option<String>, DriverGone> {
        let mut buffer = vec![0; READ_BYTES];
        let mut progress = self.multicast.shared().progress();
        loop {
            let waits_since = Instant::now();
            let read = loop {
                let patience = incoming.pace.patience().map(|patience| patience.saturating_sub(waits_since.elapsed()));
                tokio::select! {
                    read = read_in_time(&mut stream, &mut buffer, patience) => break read,
                    _ = progress.changed() => {}
                    () = sleep_until(self.wake_at()) => {}
                }
                self.go_on(&mut incoming).await?;
            };
            match read {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    if count >= CHUNK_AT_LEAST {
                        self.multicast.shared().note_busy();
                    }
                    if let Some(error) = incoming.take(&buffer[..count], waits_since).await? {
                        return Ok(Some(error));
                    }
                }
                Err(error) => return Ok(Some(error.to_string())),
            }
            for aside in incoming.reader.take_asides() {
                incoming.admit_aside().await;
                let Some(word) = Word::decode(&aside) else { return Ok(Some(no_word())) };
                self.hear(&word);
            }
            self.go_on(&mut incoming).await?;
        }
    }

    /// Says what is to be said, and hands over the parcel whose payload has come.
    async fn go_on(&mut self, incoming: &mut Incoming<'_>) -> Result<(), DriverGone> {
        self.acknowledge_probe();
        match self.complete(&mut incoming.reader) {
            Some(message) => incoming.hand_over(message, Instant::now()).await,
            None => Ok(()),
        }
    }

    fn hear(&mut self, word: &Word) {
        let shared = self.multicast.shared();
        if let Word::Key { secret, symbol_bytes } = word
            && shared.store().admit(self.node.0, secret, *symbol_bytes)
        {
            self.symbol_bytes = Some(*symbol_bytes);
        }
        let now = shared.now();
        self.reception.iter_mut().for_each(|reception| reception.hear(word, now));
    }

    fn acknowledge_probe(&mut self) {
        let heard = self.multicast.shared().heard_of(self.node);
        if let Some((key, probe)) = heard.filter(|_| heard != self.acknowledged) {
            self.acknowledged = heard;
            self.counters.set_heard(true);
            self.say(Word::Heard { key, probe });
        }
    }

    /// The awaited parcel, if its payload has come.
    fn complete(&mut self, reader: &mut MessageReader) -> Option<Message> {
        let Some((name, bytes)) = reader.awaited() else {
            self.reception = None;
            return None;
        };
        let object = ObjectName::from_number(name);
        if self.reception.as_ref().is_none_or(|reception| reception.object() != object) {
            self.reception = self.begin(object, bytes);
        }
        let multicast = Arc::clone(&self.multicast);
        let shared = multicast.shared();
        let node = self.node.0;
        let reception = self.reception.as_mut().filter(|reception| !reception.has_given_up())?;
        let payload = shared.store().take(node, object);
        let Some(payload) = payload else {
            if shared.store().is_over(node, object) {
                // It was dropped for newer ones of the sender.
                let word = reception.give_up();
                self.say(word);
                return None;
            }
            let word = reception.poll(shared.store().missing(node, object), shared.now());
            word.into_iter().for_each(|word| self.say(word));
            return None;
        };
        let message = reader.supply(&payload);
        let word = if message.is_some() {
            self.counters.note_received_by_multicast();
            self.reception = None;
            Word::Got { object }
        } else {
            // The sender, or another receiver that has its key, made it up.
            shared.note_forged();
            reception.give_up()
        };
        self.say(word);
        message
    }

    /// Begins the reception of an announced payload. One that cannot come, or came for an earlier parcel and is gone,
    /// is wanted by stream at once.
    fn begin(&mut self, object: ObjectName, bytes: usize) -> Option<ObjectReception> {
        let shared = Arc::clone(self.multicast.shared());
        let geometry = Geometry::new(
            bytes,
            self.symbol_bytes.unwrap_or(mingle_multicast::symbol_bytes(crate::multicast::PACKET_BYTES)),
        )?;
        let mut reception = ObjectReception::new(object, geometry, shared.now());
        if self.symbol_bytes.is_none() || shared.store().is_over(self.node.0, object) {
            let word = reception.give_up();
            self.say(word);
        }
        Some(reception)
    }

    fn wake_at(&self) -> Option<Instant> {
        let reception = self.reception.as_ref().filter(|reception| !reception.has_given_up())?;
        Some(self.multicast.shared().at(reception.wake_at()))
    }

    fn say(&self, word: Word) {
        // The queue is full only if the other side takes nothing: its stream ends by another limit.
        let _ = self.say.try_send(word);
    }
}

impl InWriting {
    pub(super) async fn write_all<S: AsyncRead + AsyncWrite + Unpin>(
        mut self,
        mut outgoing: Outgoing<'_, S>,
        mut messages: mpsc::Receiver<Message>,
    ) -> io::Result<()> {
        loop {
            let quiet = self.quiet.until();
            tokio::select! {
                message = messages.recv(), if quiet.is_none() => {
                    let Some(message) = message else { return outgoing.close().await };
                    let more = !messages.is_empty();
                    outgoing.write_message(message, more).await?;
                }
                Some(word) = self.said.recv(), if quiet.is_none() => {
                    outgoing.write(std::iter::once(&*wire::aside(&word.encode())), false).await?;
                }
                () = sleep_until(quiet) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{Ipv4Addr, SocketAddrV4};

    use mingle_multicast::{PacketHead, SenderKey};
    use mingle_protocol::{Chain, Generation, Mac, Mass, Parcel, ParcelHeader, Payload};

    use super::*;
    use crate::multicast::{MulticastOptions, MulticastSettings};

    const SECRET: [u8; 32] = [7; 32];
    const OBJECT: u32 = 3;

    /// The reading half at a receiver that has the key of node 5, with what it says.
    fn receiver(port: u16) -> (InReading, InWriting) {
        let group = Some(SocketAddrV4::new(Ipv4Addr::new(239, 255, 61, 5), port));
        let options = MulticastOptions { group, interface: Some("127.0.0.1".to_owned()) };
        let settings = MulticastSettings { options, ..MulticastSettings::default() };
        let multicast = Multicast::start(&settings, &[1; 32], 400, 1, Box::new(|_| {})).unwrap();
        let (mut reading, writing) = conversation(&multicast, NodeId(5), &Arc::default());
        reading.hear(&Word::Key { secret: SECRET, symbol_bytes: 1166 });
        (reading, writing)
    }

    fn parcel() -> Message {
        let generation = Generation { counter: 0, plan_hash: [0; 32] };
        let header = ParcelHeader {
            generation,
            sender_incarnation: 1,
            receiver_incarnation: 1,
            base: 0,
            acked: 0,
            seq: 1,
            previous: Chain::default(),
            chain: Chain::default(),
            step: 0,
            mass: Mass::from_units(1),
            mac: Mac::default(),
        };
        Message::Parcel(Parcel { header, payload: Payload::new(&[0.5; 400]).unwrap() })
    }

    fn name() -> ObjectName {
        ObjectName { key: SenderKey::new(&SECRET).number(), object: OBJECT }
    }

    /// A decoder that has the header of the parcel.
    fn decoder() -> MessageReader {
        let mut decoder = MessageReader::new(400).with_payloads_elsewhere();
        let encoded = wire::encode(parcel());
        let (header, _) = encoded.frames().next().unwrap();
        decoder.feed(&[header, &wire::elsewhere(name().to_number())].concat()).unwrap();
        decoder
    }

    /// The packets of a payload, as whoever has the key can make them.
    fn deliver(reading: &InReading, payload: &[u8]) {
        let key = SenderKey::new(&SECRET);
        for (symbol, bytes) in (0..).zip(payload.chunks(1166)) {
            let mut packet = Vec::new();
            let object_bytes = u32::try_from(payload.len()).unwrap();
            key.seal(PacketHead { key: key.number(), object: OBJECT, object_bytes, symbol }, bytes, &mut packet);
            reading.multicast.shared().store().receive(&mut packet);
        }
    }

    #[test]
    fn a_payload_in_packets_completes_its_parcel_and_the_sender_is_told() {
        let (mut reading, mut writing) = receiver(23_311);
        let mut decoder = decoder();
        assert_eq!(reading.complete(&mut decoder), None);
        deliver(&reading, &0.5_f32.to_le_bytes().repeat(400));
        assert_eq!(reading.complete(&mut decoder), Some(parcel()));
        assert_eq!(writing.said.try_recv(), Ok(Word::Got { object: name() }));
        assert_eq!(reading.counters.read().multicast.received_parcels, 1);
    }

    #[test]
    fn a_payload_that_another_holder_of_the_key_made_up_is_dropped_and_wanted_by_stream() {
        let (mut reading, mut writing) = receiver(23_312);
        let mut decoder = decoder();
        deliver(&reading, &0.25_f32.to_le_bytes().repeat(400));
        assert_eq!(reading.complete(&mut decoder), None);
        assert_eq!(writing.said.try_recv(), Ok(Word::Rest { object: name() }));
        assert_eq!(reading.multicast.traffic().multicast.refused_packets, 1);
        // Right packets after that come too late: the sender knows what it has to do.
        deliver(&reading, &0.5_f32.to_le_bytes().repeat(400));
        assert_eq!(reading.complete(&mut decoder), None);
        assert!(writing.said.try_recv().is_err(), "it has said what it wants");
        let encoded = wire::encode(parcel());
        let chunks: Vec<u8> = encoded.frames().skip(1).flat_map(|(head, body)| [head, body].concat()).collect();
        assert_eq!(decoder.feed(&chunks).unwrap(), [parcel()]);
    }

    #[test]
    fn a_payload_of_a_sender_whose_key_never_came_is_wanted_by_stream_at_once() {
        let (mut reading, mut writing) = receiver(23_313);
        reading.symbol_bytes = None;
        assert_eq!(reading.complete(&mut decoder()), None);
        assert_eq!(writing.said.try_recv(), Ok(Word::Rest { object: name() }));
    }
}
