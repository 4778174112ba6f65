//! Messages of the collectives, through their decoders and into a node.

use std::fmt::Debug;
use std::sync::Arc;

use mingle_protocol::collective::{
    Collective, CollectiveSequence, Extreme, Extremum, Frame, MessageEncoding, ReliableChannel, SizeLimits,
    TrackingAverage,
};
use mingle_protocol::{Mass, NodeId, Schedule, Step};

const NODES: u32 = 3;
const LIMITS: SizeLimits = SizeLimits { nodes: NODES as usize, dimension: 2 };

/// Checks one message to node 1 of a ring of three. The first byte chooses the collective.
///
/// A decoded message has an encoding that decodes to it. A node that receives it stays sound: it holds finite numbers
/// and no more mass than exists.
///
/// # Panics
/// If any of that does not hold.
pub fn check(input: &[u8]) {
    let &[kind, ref bytes @ ..] = input else {
        return;
    };
    let links = (0..NODES).map(|i| (NodeId(i), NodeId((i + 1) % NODES), 0.5)).collect();
    let step = Step { keep: vec![0.5; NODES as usize], links };
    let plan = Arc::new(Schedule::new(NODES as usize, &[step], 0).expect("a ring"));
    let (me, values) = (NodeId(1), [1.0, -1.0]);
    match kind % 3 {
        0 => {
            let node = deliver(TrackingAverage::new(plan, me, &values, 2).expect("a node"), bytes);
            assert!(node.sum().iter().all(|value| value.is_finite()));
            assert!(node.mass() <= Mass::from_units(u64::from(NODES) * Mass::ONE.units()));
        }
        1 => {
            let node = Extremum::new(&plan, me, Extreme::Max, &values, 2).expect("a node");
            deliver(node, bytes);
        }
        _ => {
            let mut node = CollectiveSequence::new(plan, me);
            node.begin_tracking(&values, 2).expect("its first turn");
            deliver(node, bytes);
        }
    }
}

/// Delivers to a node the frame that `bytes` encode, if they encode one, and takes all its replies.
fn deliver<C>(node: C, bytes: &[u8]) -> C
where
    C: Collective<Message: MessageEncoding + PartialEq + Debug> + Clone,
{
    let frame = match Frame::<C::Message>::decode(bytes, &LIMITS) {
        Ok(frame) => frame,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return node;
        }
    };
    assert_eq!(Frame::decode(&frame.encode(), &LIMITS).as_ref(), Ok(&frame));
    let mut channel = ReliableChannel::new(node);
    if let Err(fault) = channel.handle(NodeId(0), frame) {
        assert!(!fault.to_string().is_empty());
    }
    while let Some((_, frame)) = channel.poll() {
        assert_eq!(Frame::decode(&frame.encode(), &LIMITS).as_ref(), Ok(&frame));
    }
    channel.collective().clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;
    use mingle_protocol::collective::{FloodValue, SequenceMessage, Share};

    #[test]
    fn every_seed_is_a_frame_that_its_node_takes() {
        for (name, seed) in seeds::collective() {
            let bytes = &seed[1..];
            let is_frame = match seed[0] {
                0 => Frame::<Share>::decode(bytes, &LIMITS).is_ok(),
                1 => Frame::<FloodValue>::decode(bytes, &LIMITS).is_ok(),
                _ => Frame::<SequenceMessage>::decode(bytes, &LIMITS).is_ok(),
            };
            assert!(is_frame, "{name}");
            check(&seed);
        }
    }
}
