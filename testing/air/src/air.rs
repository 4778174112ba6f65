//! The medium: who is in range of whom, what is on the air, and what becomes of it.
//!
//! [`Air`] is a discrete-event machine. Its host gives it frames with their times ([`Air::send`]) and lets it go on to a
//! time ([`Air::advance`]); it answers with outcomes. Time is the duration since the start of the air, in nanoseconds.
//! The same inputs give the same outcomes and counts.
//!
//! Reception, as the conflicts of \[NH\] section 2.4 assume it: a node receives a transmission whole if it is in range of
//! its sender, sends nothing itself meanwhile, and no other transmission that disturbs it overlaps. One that begins when
//! another ends does not overlap.

mod access;
mod agenda;
mod radio;
mod transmission;

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_planner::Topology;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use self::{
    agenda::{AirAgenda, AirEvent},
    radio::Radio,
    transmission::Transmission,
};
use crate::{
    counts::RadioCounts,
    frame::{AirFrame, FrameOutcome, Recipient, SendError},
    kept_transmission::KeptTransmission,
    settings::{AirLoss, AirSettings, AirSettingsError, MAX_FRAME_BYTES},
};

/// A shared half-duplex medium with a radio for each node of a base graph.
#[derive(Debug, Clone)]
pub struct Air<P> {
    settings: AirSettings,
    /// The nodes in range of each node, with the share of transmissions that chance takes on the way there.
    in_range: Vec<Vec<(usize, f64)>>,
    /// The nodes at which a transmission of each node arrives, wanted or not.
    disturbed: Vec<Vec<usize>>,
    radios: Vec<Radio<P>>,
    on_air: BTreeMap<u64, Transmission>,
    agenda: AirAgenda,
    random: ChaCha8Rng,
    now: Duration,
    transmissions: u64,
    busy: Duration,
    busy_since: Duration,
    outcomes: Vec<FrameOutcome<P>>,
    kept: Vec<KeptTransmission>,
}

impl<P: Clone> Air<P> {
    /// An air without frames.
    ///
    /// # Errors
    ///
    /// Settings that make no medium.
    pub fn new(base: &Topology, settings: &AirSettings) -> Result<Self, AirSettingsError> {
        settings.check()?;
        let nodes = 0..base.node_count();
        Ok(Self {
            in_range: losses(base, settings.loss)?,
            disturbed: nodes.clone().map(|node| base.interferers(node).to_vec()).collect(),
            radios: nodes.map(|_| Radio::new()).collect(),
            on_air: BTreeMap::new(),
            agenda: AirAgenda::default(),
            random: ChaCha8Rng::seed_from_u64(settings.seed),
            now: Duration::ZERO,
            transmissions: 0,
            busy: Duration::ZERO,
            busy_since: Duration::ZERO,
            outcomes: Vec::new(),
            kept: Vec::new(),
            settings: settings.clone(),
        })
    }

    /// Puts a frame into the queue of a node at a time; an earlier time than that of the air counts as the air's.
    ///
    /// # Errors
    ///
    /// A full queue, a node that does not exist, a frame that is too long.
    pub fn send(&mut self, at: Duration, node: usize, frame: AirFrame<P>) -> Result<(), SendError> {
        self.go_on_to(at);
        let nodes = self.radios.len();
        let named = match frame.recipient {
            Recipient::One(recipient) => node.max(recipient),
            Recipient::All => node,
        };
        if named >= nodes {
            return Err(SendError::NoSuchNode { node: named, nodes });
        }
        if frame.bytes > MAX_FRAME_BYTES {
            return Err(SendError::TooLong { bytes: frame.bytes, limit: MAX_FRAME_BYTES });
        }
        let frames = self.settings.queue_frames;
        let radio = &mut self.radios[node];
        if radio.queue.len() >= frames {
            radio.counts.dropped += 1;
            return Err(SendError::QueueFull { node, frames });
        }
        radio.queue.push_back(frame);
        if radio.is_idle() {
            self.contend(node);
        }
        Ok(())
    }

    /// The time of the next event; `None` while nothing is queued or on the air.
    #[must_use]
    pub fn next_event(&self) -> Option<Duration> {
        self.agenda.next()
    }

    /// Lets the medium go on to a time, and returns what happened since the last call, in its order.
    pub fn advance(&mut self, to: Duration) -> Vec<FrameOutcome<P>> {
        self.go_on_to(to);
        std::mem::take(&mut self.outcomes)
    }

    /// The time of the air.
    #[must_use]
    pub const fn now(&self) -> Duration {
        self.now
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &AirSettings {
        &self.settings
    }

    /// The number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.radios.len()
    }

    /// The counts of each node.
    #[must_use]
    pub fn counts(&self) -> Vec<RadioCounts> {
        self.radios.iter().map(|radio| radio.counts.clone()).collect()
    }

    /// The time in which at least one node was sending.
    #[must_use]
    pub fn busy(&self) -> Duration {
        if self.on_air.is_empty() { self.busy } else { self.busy + (self.now - self.busy_since) }
    }

    /// The transmissions so far, in the order of their ends, where the settings keep them.
    #[must_use]
    pub fn transmissions(&self) -> &[KeptTransmission] {
        &self.kept
    }

    fn go_on_to(&mut self, to: Duration) {
        while let Some((at, event)) = self.agenda.pop_until(to) {
            self.now = at;
            self.handle(event);
        }
        self.now = self.now.max(to);
    }

    fn handle(&mut self, event: AirEvent) {
        match event {
            AirEvent::TransmissionEnds { id } => self.end_transmission(id),
            AirEvent::AcknowledgementDue { node, to, serial } => self.acknowledge(node, to, serial),
            AirEvent::AcknowledgementLate { node, epoch } => self.on_late_acknowledgement(node, epoch),
            AirEvent::Access { node, epoch } => self.on_access(node, epoch),
        }
    }
}

/// The nodes in range of each node, with the share that is lost on the way.
fn losses(base: &Topology, loss: AirLoss) -> Result<Vec<Vec<(usize, f64)>>, AirSettingsError> {
    let nodes = 0..base.node_count();
    let with_loss = |share: &dyn Fn(usize, usize) -> f64| {
        let row = |node: usize| base.neighbors(node).iter().map(|&other| (other, share(node, other))).collect();
        nodes.clone().map(row).collect()
    };
    let share = match loss {
        AirLoss::Uniform(share) => return Ok(with_loss(&|_, _| share)),
        AirLoss::AtRange(share) => share,
    };
    let places = base.positions().ok_or(AirSettingsError::NoPositions)?;
    let square = |u: usize, v: usize| (places[u][0] - places[v][0]).powi(2) + (places[u][1] - places[v][1]).powi(2);
    let longest = base.edges().iter().map(|&(u, v)| square(u, v)).fold(f64::MIN_POSITIVE, f64::max);
    Ok(with_loss(&|u, v| share * square(u, v) / longest))
}
