//! Senders that have a stream to each receiver: each packet goes to one node, and is acknowledged and repeated.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mingle_planner::Plan;

use super::{
    PlayError, Played, Player, RoundPayload, play,
    progress::{Progress, StepLink},
};
use crate::{
    air::Air,
    frame::{AirFrame, Outcome, Recipient, SendError},
    settings::AirSettings,
};

/// The packets that a node hands to its radio before the first of them has left.
const WINDOW: usize = 2;

/// Plays the period of a plan by unicast streams. Nodes begin at `starts`, and take up a step when they have everything
/// of the one before. A node serves its streams in turns; a packet that the link layer gives up is sent again later.
/// Acknowledgements of the transport are not sent, which favours streams.
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
    let mut streams = Streams {
        payload: *payload,
        progress: Progress::new(plan),
        turns: vec![VecDeque::new(); plan.node_count()],
        in_radio: vec![0; plan.node_count()],
        arrived: BTreeMap::new(),
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
struct Stream {
    link: StepLink,
    packets: VecDeque<usize>,
}

struct Streams {
    payload: RoundPayload,
    progress: Progress,
    /// The streams of each node that have packets to send; the first is served next.
    turns: Vec<VecDeque<Stream>>,
    in_radio: Vec<usize>,
    /// The packets of a link that have arrived.
    arrived: BTreeMap<(usize, usize, usize), Vec<bool>>,
}

impl Streams {
    fn take_up(&mut self, air: &mut Air<StreamPacket>, node: usize, steps: Vec<usize>) -> Result<(), SendError> {
        for step in steps {
            for &to in self.progress.receivers(step, node) {
                let link = StepLink { step, from: node, to };
                self.turns[node].push_back(Stream { link, packets: (0..self.payload.packets()).collect() });
            }
        }
        self.fill(air, node)
    }

    /// Hands packets to the radio of a node, up to the window.
    fn fill(&mut self, air: &mut Air<StreamPacket>, node: usize) -> Result<(), SendError> {
        while self.in_radio[node] < WINDOW {
            let Some(mut stream) = self.turns[node].pop_front() else {
                return Ok(());
            };
            if let Some(number) = stream.packets.pop_front() {
                let packet = StreamPacket { link: stream.link, number };
                let recipient = Recipient::One(stream.link.to);
                let frame = AirFrame { recipient, bytes: self.payload.packet(number), payload: packet };
                air.send(air.now(), node, frame)?;
                self.in_radio[node] += 1;
            }
            if !stream.packets.is_empty() {
                self.turns[node].push_back(stream);
            }
        }
        Ok(())
    }

    fn repeat(&mut self, packet: StreamPacket) {
        let turns = &mut self.turns[packet.link.from];
        match turns.iter_mut().find(|stream| stream.link == packet.link) {
            Some(stream) => stream.packets.push_back(packet.number),
            None => turns.push_back(Stream { link: packet.link, packets: VecDeque::from([packet.number]) }),
        }
    }
}

impl Player<StreamPacket> for Streams {
    fn on_start(&mut self, air: &mut Air<StreamPacket>, node: usize) -> Result<(), SendError> {
        let steps = self.progress.begin(node);
        self.take_up(air, node, steps)
    }

    fn on_outcome(&mut self, air: &mut Air<StreamPacket>, outcome: Outcome<StreamPacket>) -> Result<(), SendError> {
        match outcome {
            Outcome::Received { node, frame, .. } => {
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
            Outcome::Left { node, is_sent, frame, .. } => {
                self.in_radio[node] -= 1;
                if !is_sent {
                    self.repeat(frame.payload);
                }
                self.fill(air, node)
            }
        }
    }

    fn missing(&self) -> usize {
        self.progress.missing()
    }
}
