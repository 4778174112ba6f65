//! The threads that carry frames: one reads each interface, one hosts the medium by the clock.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{
    ethernet::recipient,
    lateness::{Lateness, LatenessCounter},
};
use crate::{
    air::Air,
    counts::RadioCounts,
    frame::{AirFrame, FrameOutcome},
};

/// The most frames of a node that are read and have not left the air. Others wait in the interface.
pub(super) const QUEUE_FRAMES: usize = 64;

/// The most bytes read at once: the longest frame is shorter.
const READ_BYTES: usize = 9_100;

/// Frames between readers and the medium.
const CHANNEL_FRAMES: usize = 4_096;

/// An input of the carrier.
pub(super) enum CarrierInput {
    Frame { at: Instant, node: usize, bytes: Arc<[u8]> },
    End,
}

/// The work of a carrier.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub(super) elapsed: Duration,
    pub(super) busy: Duration,
    pub(super) counts: Vec<RadioCounts>,
    pub(super) delivery_late: Lateness,
    pub(super) intake_late: Lateness,
    pub(super) undeliverable: u64,
}

/// Places for frames of one node.
#[derive(Default)]
struct QueuePlaces {
    taken: Mutex<usize>,
    freed: Condvar,
}

impl QueuePlaces {
    /// Waits for a place and takes it.
    fn take(&self) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.freed.wait_while(taken, |taken| *taken >= QUEUE_FRAMES);
        *taken.unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn free(&self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(1);
        self.freed.notify_one();
    }
}

/// Starts the threads. Readers end when their interfaces do.
pub(super) fn start(air: Air<Arc<[u8]>>, taps: Vec<File>) -> (SyncSender<CarrierInput>, JoinHandle<Carried>) {
    let (input, inputs) = sync_channel(CHANNEL_FRAMES);
    let taps: Vec<Arc<File>> = taps.into_iter().map(Arc::new).collect();
    let places: Vec<Arc<QueuePlaces>> = taps.iter().map(|_| Arc::default()).collect();
    for (node, (tap, places)) in taps.iter().zip(&places).enumerate() {
        let tap = tap.clone();
        let places = places.clone();
        let input = input.clone();
        std::thread::spawn(move || read(node, &tap, &places, &input));
    }
    let carrier = Carrier {
        air,
        taps,
        places,
        began: Instant::now(),
        delivery_late: LatenessCounter::default(),
        intake_late: LatenessCounter::default(),
        undeliverable: 0,
    };
    (input, std::thread::spawn(move || carrier.carry(&inputs)))
}

fn read(node: usize, mut tap: &File, places: &QueuePlaces, input: &SyncSender<CarrierInput>) {
    let mut buffer = [0; READ_BYTES];
    loop {
        places.take();
        let bytes = match tap.read(&mut buffer) {
            Ok(length) => Arc::from(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Arc::from([]),
            Err(_) => return,
        };
        if input.send(CarrierInput::Frame { at: Instant::now(), node, bytes }).is_err() {
            return;
        }
    }
}

struct Carrier {
    air: Air<Arc<[u8]>>,
    taps: Vec<Arc<File>>,
    places: Vec<Arc<QueuePlaces>>,
    began: Instant,
    delivery_late: LatenessCounter,
    intake_late: LatenessCounter,
    undeliverable: u64,
}

impl Carrier {
    fn carry(mut self, inputs: &Receiver<CarrierInput>) -> Carried {
        loop {
            let input = match self.air.next_event() {
                Some(due) => inputs.recv_timeout(due.saturating_sub(self.began.elapsed())),
                None => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match input {
                Ok(CarrierInput::Frame { at, node, bytes }) => self.take_in(at, node, bytes),
                Ok(CarrierInput::End) | Err(RecvTimeoutError::Disconnected) => return self.carried(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            for outcome in self.air.advance(self.began.elapsed()) {
                self.act_on(&outcome);
            }
        }
    }

    fn take_in(&mut self, at: Instant, node: usize, bytes: Arc<[u8]>) {
        let Some(recipient) = recipient(&bytes, self.air.node_count()) else {
            self.places[node].free();
            return;
        };
        self.intake_late.add(at.elapsed());
        let frame = AirFrame { recipient, bytes: bytes.len(), payload: bytes };
        // QueuePlaces are as many as the queue holds, so that it is never full.
        if self.air.send(at.saturating_duration_since(self.began), node, frame).is_err() {
            self.places[node].free();
        }
    }

    fn act_on(&mut self, outcome: &FrameOutcome<Arc<[u8]>>) {
        match outcome {
            FrameOutcome::Received { at, node, frame, .. } => {
                let written = (&*self.taps[*node]).write(&frame.payload);
                self.undeliverable += u64::from(written.is_err());
                self.delivery_late.add(self.began.elapsed().saturating_sub(*at));
            }
            FrameOutcome::Left { node, .. } => self.places[*node].free(),
        }
    }

    fn carried(self) -> Carried {
        Carried {
            elapsed: self.began.elapsed(),
            busy: self.air.busy(),
            counts: self.air.counts(),
            delivery_late: self.delivery_late.lateness(),
            intake_late: self.intake_late.lateness(),
            undeliverable: self.undeliverable,
        }
    }
}
