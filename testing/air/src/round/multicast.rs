//! Senders without slots, each of which sends its payload once for all its receivers, and repairs what they lack.
//!
//! ```text
//!   sender     all packets      as many repair packets as the worst receiver lacks      ...until all have enough
//!   receiver                 "I lack 7"                                        "I have it"
//! ```
//!
//! Repair is ideal: a payload of `k` packets is complete with any `k` of them, as with a fountain code. Reports are small
//! frames to the sender, acknowledged and repeated by the link layer. A receiver knows when its sender has sent the last
//! packet of a pass, without a frame for that.

use std::collections::{BTreeMap, BTreeSet};
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

/// Bytes of a report, without the headers of its packet.
const REPORT_BYTES: usize = 64;

/// Plays the period of a plan by multicast without slots. Nodes begin at `starts`, and take up a step when they have
/// everything of the one before. Carrier sense, acknowledgements of reports and losses are those of the settings.
///
/// # Errors
///
/// An empty payload, settings that make no medium, a round longer than `limit`.
pub fn play_multicast(
    plan: &Plan,
    settings: &AirSettings,
    payload: &RoundPayload,
    starts: &[Duration],
    limit: Duration,
) -> Result<Played, PlayError> {
    payload.check()?;
    let most_queued = plan.steps().len().saturating_mul(payload.packets() + plan.node_count());
    let settings = AirSettings { queue_frames: settings.queue_frames.max(most_queued), ..settings.clone() };
    let air = Air::new(plan.base(), &settings)?;
    let mut multicast = Multicast {
        payload: *payload,
        progress: StepProgress::new(plan),
        passes: BTreeMap::new(),
        arrived: BTreeMap::new(),
    };
    play(air, &mut multicast, starts, limit)
}

#[derive(Debug, Clone, Copy)]
enum MulticastPacket {
    /// A packet of the payload of a step.
    Symbol { step: usize },
    /// The number of packets that a receiver lacks.
    Report { link: StepLink, lacks: usize },
}

/// A sender's passes through the payload of a step.
#[derive(Debug)]
struct Pass {
    /// Packets of the pass that have not left the radio.
    leaving: usize,
    /// Receivers that have not reported completion, or their lack in this pass.
    unreported: BTreeSet<usize>,
    /// Receivers that lack packets, with the number.
    lacking: BTreeMap<usize, usize>,
}

struct Multicast {
    payload: RoundPayload,
    progress: StepProgress,
    /// By step and sender.
    passes: BTreeMap<(usize, usize), Pass>,
    /// The number of packets that have arrived, by step, sender and receiver.
    arrived: BTreeMap<(usize, usize, usize), usize>,
}

impl Multicast {
    fn take_up(&mut self, air: &mut Air<MulticastPacket>, node: usize, steps: Vec<usize>) -> Result<(), SendError> {
        for step in steps {
            let receivers: BTreeSet<usize> = self.progress.receivers(step, node).iter().copied().collect();
            if receivers.is_empty() {
                continue;
            }
            let packets = self.payload.packets();
            self.passes
                .insert((step, node), Pass { leaving: packets, unreported: receivers, lacking: BTreeMap::new() });
            for number in 0..packets {
                self.send_symbol(air, step, node, self.payload.packet(number))?;
            }
        }
        Ok(())
    }

    fn send_symbol(
        &self,
        air: &mut Air<MulticastPacket>,
        step: usize,
        node: usize,
        bytes: usize,
    ) -> Result<(), SendError> {
        air.send(
            air.now(),
            node,
            AirFrame { recipient: Recipient::All, bytes, payload: MulticastPacket::Symbol { step } },
        )
    }

    fn report(&self, air: &mut Air<MulticastPacket>, link: StepLink) -> Result<(), SendError> {
        let bytes = self.payload.header_bytes + REPORT_BYTES;
        let payload = MulticastPacket::Report { link, lacks: self.lack(link) };
        air.send(air.now(), link.to, AirFrame { recipient: Recipient::One(link.from), bytes, payload })
    }

    fn lack(&self, link: StepLink) -> usize {
        let arrived = self.arrived.get(&(link.step, link.from, link.to)).copied().unwrap_or(0);
        self.payload.packets().saturating_sub(arrived)
    }

    fn on_symbol(&mut self, air: &mut Air<MulticastPacket>, link: StepLink) -> Result<(), SendError> {
        if self.lack(link) == 0 || self.progress.receivers(link.step, link.from).binary_search(&link.to).is_err() {
            return Ok(());
        }
        *self.arrived.entry((link.step, link.from, link.to)).or_default() += 1;
        if self.lack(link) > 0 {
            return Ok(());
        }
        self.report(air, link)?;
        let steps = self.progress.arrive(link);
        self.take_up(air, link.to, steps)
    }

    /// A packet of the payload left the radio: after the last of a pass, receivers report their lack.
    fn on_left(&mut self, air: &mut Air<MulticastPacket>, step: usize, node: usize) -> Result<(), SendError> {
        let Some(pass) = self.passes.get_mut(&(step, node)) else {
            return Ok(());
        };
        pass.leaving -= 1;
        if pass.leaving > 0 {
            return Ok(());
        }
        let unreported: Vec<usize> = pass.unreported.iter().copied().collect();
        for to in unreported {
            let link = StepLink { step, from: node, to };
            // A report of completion is under way already.
            if self.lack(link) > 0 {
                self.report(air, link)?;
            }
        }
        Ok(())
    }

    fn on_report(&mut self, air: &mut Air<MulticastPacket>, link: StepLink, lacks: usize) -> Result<(), SendError> {
        let Some(pass) = self.passes.get_mut(&(link.step, link.from)) else {
            return Ok(());
        };
        if lacks > 0 && pass.leaving > 0 {
            return Ok(()); // a copy of one from the pass before
        }
        pass.unreported.remove(&link.to);
        if lacks == 0 {
            pass.lacking.remove(&link.to);
        } else {
            pass.lacking.insert(link.to, lacks);
        }
        if pass.leaving > 0 || !pass.unreported.is_empty() {
            return Ok(());
        }
        let lacking = std::mem::take(&mut pass.lacking);
        let Some(&repairs) = lacking.values().max() else {
            self.passes.remove(&(link.step, link.from));
            return Ok(());
        };
        pass.leaving = repairs;
        pass.unreported = lacking.into_keys().collect();
        for _ in 0..repairs {
            self.send_symbol(air, link.step, link.from, self.payload.packet(0))?;
        }
        Ok(())
    }
}

impl Player<MulticastPacket> for Multicast {
    fn on_wake(&mut self, air: &mut Air<MulticastPacket>, node: usize) -> Result<(), SendError> {
        let steps = self.progress.begin(node);
        self.take_up(air, node, steps)
    }

    fn on_outcome(
        &mut self,
        air: &mut Air<MulticastPacket>,
        outcome: FrameOutcome<MulticastPacket>,
    ) -> Result<(), SendError> {
        match outcome {
            FrameOutcome::Received { node, from, frame, .. } => match frame.payload {
                MulticastPacket::Symbol { step } => self.on_symbol(air, StepLink { step, from, to: node }),
                MulticastPacket::Report { link, lacks } => self.on_report(air, link, lacks),
            },
            FrameOutcome::Left { node, is_sent, frame, .. } => match frame.payload {
                MulticastPacket::Symbol { step } => self.on_left(air, step, node),
                // Its sender has it perhaps; a report of a pass that is over does no harm.
                MulticastPacket::Report { link, .. } if !is_sent => self.report(air, link),
                MulticastPacket::Report { .. } => Ok(()),
            },
        }
    }

    fn missing(&self) -> usize {
        self.progress.missing()
    }
}
