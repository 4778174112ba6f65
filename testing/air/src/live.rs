//! The air between network namespaces, in real time.
//!
//! ```text
//!   namespace mair4711-0: air0 -- TAP -- reader --+                 +-- TAP -- air0 of every node that receives
//!   namespace mair4711-1: air0 -- TAP -- reader --+-> Air, by a clock
//! ```
//!
//! Each node has a namespace with one interface, `air0`, with the address 10.83.0.(node + 1) and a route for multicast.
//! Frames are read from the interfaces and handed to [`Air`], whose events are due at times of the clock.
//! Carrier sense, back-off, collisions and acknowledgements happen at the times of the medium, however late the
//! scheduler is; a frame reaches a namespace late then, and [`LiveReport`] says how late.

mod carrier;
mod ethernet;
mod lateness;
mod namespaces;
mod report;

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use mingle_planner::Topology;

use self::carrier::{Carried, CarrierInput};
pub use self::{
    lateness::Lateness,
    namespaces::{NamespaceError, air_of_namespace, airs, clean, clean_stale, namespace_name, prefix_of},
    report::{LiveNode, LiveReport},
};
use crate::{
    air::Air,
    settings::{AirSettings, AirSettingsError},
};

/// The most nodes of an air in real time: their addresses share the network 10.83.0.0/24.
pub const MAX_LIVE_NODES: usize = 200;

/// The MTU of the interfaces, unless another is given.
pub const DEFAULT_MTU: usize = 1_500;

/// The MTUs that interfaces may have: IPv4 needs the least, and a reader holds the most.
pub const MTUS: std::ops::RangeInclusive<usize> = 576..=9_000;

/// A running air. Dropped without [`LiveAir::stop`], it removes its namespaces and makes no report.
pub struct LiveAir {
    prefix: String,
    nodes: Vec<LiveNode>,
    settings: AirSettings,
    input: SyncSender<CarrierInput>,
    carrier: Option<JoinHandle<Carried>>,
}

/// An air that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A graph with too many nodes.
    #[error("an air in real time has at most {MAX_LIVE_NODES} nodes, and the graph has {nodes}")]
    TooManyNodes {
        /// The nodes of the graph.
        nodes: usize,
    },
    /// An MTU that interfaces do not take.
    #[error("an MTU of {mtu} is out of range: use one from {} to {}", MTUS.start(), MTUS.end())]
    Mtu {
        /// The MTU that was given.
        mtu: usize,
    },
    /// Settings that make no medium.
    #[error(transparent)]
    Settings(#[from] AirSettingsError),
    /// A namespace could not be made.
    #[error("namespaces need root and iproute2")]
    Namespace(#[from] NamespaceError),
    /// A TAP interface could not be made.
    #[error("the TAP interface {name} could not be made: it needs root and /dev/net/tun")]
    Tap {
        /// The name of the interface.
        name: String,
        /// The reason.
        source: io::Error,
    },
}

impl LiveAir {
    /// Makes a namespace `PREFIX-NUMBER` for each node of a base graph, and carries frames between them.
    ///
    /// # Errors
    ///
    /// Too many nodes, an MTU out of range, settings that make no medium, or a system that refuses namespaces or
    /// interfaces. What was made until then is removed.
    pub fn start(base: &Topology, settings: &AirSettings, mtu: usize, prefix: &str) -> Result<Self, LiveError> {
        if base.node_count() > MAX_LIVE_NODES {
            return Err(LiveError::TooManyNodes { nodes: base.node_count() });
        }
        if !MTUS.contains(&mtu) {
            return Err(LiveError::Mtu { mtu });
        }
        // The carrier takes no more from an interface than this queue holds.
        let settings = AirSettings { queue_frames: carrier::QUEUE_FRAMES, ..settings.clone() };
        let air = Air::new(base, &settings)?;
        let made = Made { prefix };
        let mut nodes = Vec::new();
        let mut taps = Vec::new();
        for (number, name) in base.names().iter().enumerate() {
            let node = LiveNode {
                name: name.clone(),
                namespace: namespace_name(prefix, number),
                address: address(number),
                counts: Default::default(),
            };
            namespaces::add(&node.namespace)?;
            taps.push(tap(&node.namespace)?);
            namespaces::set_up(&node.namespace, number, node.address, mtu)?;
            nodes.push(node);
        }
        std::mem::forget(made);
        let (input, carrier) = carrier::start(air, taps);
        Ok(Self { prefix: prefix.to_owned(), nodes, settings, input, carrier: Some(carrier) })
    }

    /// The nodes, with their namespaces and addresses.
    #[must_use]
    pub fn nodes(&self) -> &[LiveNode] {
        &self.nodes
    }

    /// Ends the carrying of frames and removes the namespaces, with the processes in them.
    #[must_use]
    pub fn stop(mut self) -> LiveReport {
        let carried = self.end().unwrap_or_default();
        LiveReport::new(std::mem::take(&mut self.nodes), &self.settings, carried)
    }

    /// `None` after the first time.
    fn end(&mut self) -> Option<Carried> {
        let carrier = self.carrier.take()?;
        // Processes first: they may have last words.
        clean(&self.prefix);
        // A carrier that has ended already needs no end.
        let _ = self.input.send(CarrierInput::End);
        carrier.join().ok()
    }
}

impl Drop for LiveAir {
    fn drop(&mut self) {
        self.end();
    }
}

/// The namespaces of an air that is being made: removed where that fails.
struct Made<'p> {
    prefix: &'p str,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        clean(self.prefix);
    }
}

/// The address of a node. Numbers are below [`MAX_LIVE_NODES`].
fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 83, 0, u8::try_from(number + 1).unwrap_or(u8::MAX))
}

/// A TAP interface with the name of a namespace, in the present namespace.
fn tap(name: &str) -> Result<File, LiveError> {
    let made = || {
        let tap = tappers::Tap::new_named(tappers::Interface::new(name)?)?;
        // A duplicate keeps the interface when `tap` is dropped.
        Ok(File::from(tap.as_fd().try_clone_to_owned()?))
    };
    let made: io::Result<File> = made();
    made.map_err(|source| LiveError::Tap { name: name.to_owned(), source })
}
