//! Frames, and their fates.

use std::time::Duration;

/// The addressee of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient {
    /// All nodes in range: broadcast, multicast, ARP requests. Never acknowledged.
    All,
    /// One node. Acknowledged and repeated where the settings say so.
    One(usize),
}

/// A frame to be sent. `P` is its content, which the medium does not look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AirFrame<P> {
    /// The addressee.
    pub recipient: Recipient,
    /// The length that takes time on the air, headers of the link layer included.
    pub bytes: usize,
    /// The content.
    pub payload: P,
}

/// The fate of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameOutcome<P> {
    /// A frame arrived at a node that it was meant for.
    Received {
        /// The end of its reception.
        at: Duration,
        /// The receiver.
        node: usize,
        /// The sender.
        from: usize,
        /// The frame.
        frame: AirFrame<P>,
    },
    /// A frame left the queue of its sender.
    Left {
        /// The end of its last transmission, or of the wait for its acknowledgement.
        at: Duration,
        /// The sender.
        node: usize,
        /// `false` for a frame to one node that was given up after its last retry. Its receiver may have it all the
        /// same, where acknowledgements were lost.
        is_sent: bool,
        /// The frame.
        frame: AirFrame<P>,
    },
}

/// A frame that cannot be put into a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The queue of the node is full.
    #[error("the queue of node {node} is full: it holds {frames} frames")]
    QueueFull {
        /// The sender.
        node: usize,
        /// The limit of its queue.
        frames: usize,
    },
    /// The sender or the addressee is no node of the base graph.
    #[error("node {node} is no node of the base graph, which has {nodes}")]
    NoSuchNode {
        /// The number that was given.
        node: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// A frame is longer than the medium takes.
    #[error("a frame of {bytes} bytes is longer than {limit} bytes, the most that fit")]
    TooLong {
        /// The length of the frame.
        bytes: usize,
        /// The most bytes of a frame.
        limit: usize,
    },
}
