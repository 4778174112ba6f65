//! Senders that have a stream to each receiver: each packet goes to one node, and is acknowledged and repeated.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mingle_planner::Plan;

use super::{
    PlayError, Played, Player, RoundPayload, play,
    progress::{StepLink, StepProgress},
};
use crate::{
    air::Air,
    frame::{AirFrame, FrameOutcome, Recipient, SendError},
    settings::AirSettings,
};

/// The packets that a node hands to its radio before the first of them has left.
const WINDOW: usize = 2;

/// The pause of a stream after a packet that was given up (the least retransmission timeout of TCP on Linux).
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The most doublings of a pause.
const MAX_DOUBLINGS: u32 = 6;

/// Plays the period of a plan by unicast streams. Nodes begin at `starts`, and take up a step when they have everything
/// of the one before. A node serves its streams in turns. A stream pauses after a packet that the link layer gave up, as
/// transports do: 200 ms, and twice as long each time until a packet arrives. Acknowledgements of the transport are not
/// sent, which favours streams.
///
/// # Errors
///
/// An empty payload, settings that make no medium, a round longer than `limit`.
pub fn play_streams(
    plan: &Plan,
    settings: &AirSettings,
    payload: &RoundPayload,
    starts: &[Duration],
    limit: Duration,
) -> Result<Played, PlayError> {
    payload.check()?;
    let air = Air::new(plan.base(), settings)?;
    let mut streams = StreamSenders {
        payload: *payload,
        progress: StepProgress::new(plan),
        turns: vec![VecDeque::new(); plan.node_count()],
        in_radio: vec![0; plan.node_count()],
        arrived: BTreeMap::new(),
        paused: BTreeMap::new(),
    };
    play(air, &mut streams, starts, limit)
}

/// A packet of a stream.
#[derive(Debug, Clone, Copy)]
struct StreamPacket {
    link: StepLink,
    number: usize,
}

/// The packets that a stream has to send.
#[derive(Debug, Clone)]
struct PacketStream {
    link: StepLink,
    packets: VecDeque<usize>,
    /// Packets given up since one arrived.
    failures: u32,
}

struct StreamSenders {
    payload: RoundPayload,
    progress: StepProgress,
    /// The streams of each node that have packets to send; the first is served next.
    turns: Vec<VecDeque<PacketStream>>,
    in_radio: Vec<usize>,
    /// The packets of a link that have arrived.
    arrived: BTreeMap<(usize, usize, usize), Vec<bool>>,
    /// StreamSenders that pause, by the time at which they go on, their sender, receiver and step.
    paused: BTreeMap<(Duration, usize, usize, usize), PacketStream>,
}

impl StreamSenders {
    fn take_up(&mut self, air: &mut Air<StreamPacket>, node: usize, steps: Vec<usize>) -> Result<(), SendError> {
        for step in steps {
            for &to in self.progress.receivers(step, node) {
                let link = StepLink { step, from: node, to };
                self.turns[node].push_back(PacketStream {
                    link,
                    packets: (0..self.payload.packets()).collect(),
                    failures: 0,
                });
            }
        }
        self.fill(air, node)
    }

    /// Hands packets to the radio of a node, up to the window.
    fn fill(&mut self, air: &mut Air<StreamPacket>, node: usize) -> Result<(), SendError> {
        while self.in_radio[node] < WINDOW {
            let next = self.turns[node].iter().position(|stream| !stream.packets.is_empty());
            let Some(mut stream) = next.and_then(|next| self.turns[node].remove(next)) else {
                return Ok(());
            };
            if let Some(number) = stream.packets.pop_front() {
                let packet = StreamPacket { link: stream.link, number };
                let recipient = Recipient::One(stream.link.to);
                let frame = AirFrame { recipient, bytes: self.payload.packet(number), payload: packet };
                air.send(air.now(), node, frame)?;
                self.in_radio[node] += 1;
            }
            self.turns[node].push_back(stream);
        }
        Ok(())
    }

    /// Takes note of a packet that left the radio; its stream pauses if it was given up.
    fn on_left(&mut self, now: Duration, packet: StreamPacket, is_sent: bool) {
        let node = packet.link.from;
        let Some(active) = self.turns[node].iter().position(|stream| stream.link == packet.link) else {
            // It pauses already: another packet of it was in the radio.
            let paused = self.paused.values_mut().find(|stream| stream.link == packet.link);
            paused.filter(|_| !is_sent).into_iter().for_each(|stream| stream.packets.push_back(packet.number));
            return;
        };
        if is_sent {
            self.turns[node][active].failures = 0;
        } else if let Some(mut stream) = self.turns[node].remove(active) {
            let pause = FIRST_PAUSE * (1 << stream.failures.min(MAX_DOUBLINGS));
            stream.failures += 1;
            stream.packets.push_back(packet.number);
            let key = (now + pause, node, stream.link.to, stream.link.step);
            self.paused.insert(key, stream);
        }
    }
}

impl Player<StreamPacket> for StreamSenders {
    fn on_wake(&mut self, air: &mut Air<StreamPacket>, node: usize) -> Result<(), SendError> {
        while let Some(entry) = self.paused.first_entry().filter(|entry| entry.key().0 <= air.now()) {
            let ((_, sender, ..), stream) = entry.remove_entry();
            self.turns[sender].push_back(stream);
            self.fill(air, sender)?;
        }
        let steps = self.progress.begin(node);
        self.take_up(air, node, steps)
    }

    fn next_wake(&self) -> Option<(Duration, usize)> {
        self.paused.first_key_value().map(|(&(at, node, ..), _)| (at, node))
    }

    fn on_outcome(
        &mut self,
        air: &mut Air<StreamPacket>,
        outcome: FrameOutcome<StreamPacket>,
    ) -> Result<(), SendError> {
        match outcome {
            FrameOutcome::Received { node, frame, .. } => {
                let StreamPacket { link, number } = frame.payload;
                let packets = self.payload.packets();
                let key = (link.step, link.from, link.to);
                let arrived = self.arrived.entry(key).or_insert_with(|| vec![false; packets]);
                let is_new = !std::mem::replace(&mut arrived[number], true);
                if !is_new || arrived.contains(&false) {
                    return Ok(());
                }
                let steps = self.progress.arrive(link);
                self.take_up(air, node, steps)
            }
            FrameOutcome::Left { node, is_sent, frame, .. } => {
                self.in_radio[node] -= 1;
                self.on_left(air.now(), frame.payload, is_sent);
                self.fill(air, node)
            }
        }
    }

    fn missing(&self) -> usize {
        self.progress.missing()
    }
}
