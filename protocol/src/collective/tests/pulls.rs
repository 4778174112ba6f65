use std::collections::BTreeMap;
use std::sync::Arc;

use super::network::{Faults, Network};
use super::plans::{gather_and_scatter, ids, one_peer_exponential, uneven};
use crate::collective::*;
use crate::{NodeId, Schedule};

fn values(id: NodeId) -> [f64; 2] {
    let id = f64::from(id.0);
    [(id + 0.1).sin(), 1e10 / (id + 3.0)]
}

/// Node `i` wants its own vector, and those of the nodes one and five behind it.
fn wishes(nodes: usize) -> Vec<Vec<NodeId>> {
    (0..nodes).map(|me| [0, 1, 5].map(|ahead| NodeId(((me + 5 * nodes - ahead) % nodes) as u32)).to_vec()).collect()
}

fn nodes(plan: &Schedule) -> Vec<Pull> {
    let routes = Arc::new(PullRoutes::of(plan, &wishes(plan.nodes())).unwrap());
    ids(plan.nodes()).map(|id| Pull::new(Arc::clone(&routes), id, &values(id)).unwrap()).collect()
}

#[test]
fn everybody_gets_what_it_wants_bit_for_bit_and_nothing_else_over_any_links() {
    for plan in [uneven(12, 9, 2, 4), one_peer_exponential(4), gather_and_scatter()] {
        for loss in [0.0, 0.3] {
            let mut network = Network::new(nodes(&plan), 2, Faults { loss, duplication: loss }, 7);
            let done = |nodes: &[ReliableChannel<Pull>]| nodes.iter().all(|node| node.collective().is_complete());
            network.run(done, |_| {});
            for (id, wanted) in ids(plan.nodes()).zip(wishes(plan.nodes())) {
                let result = network.nodes[id.index()].collective().result().unwrap();
                let expected: BTreeMap<NodeId, Arc<[f64]>> =
                    wanted.into_iter().map(|source| (source, Arc::from(values(source)))).collect();
                assert_eq!(*result, expected, "{id}");
            }
        }
    }
}

#[test]
fn a_vector_crosses_a_link_once_at_most_and_goes_nowhere_it_is_not_needed() {
    // On a ring without chords a vector goes from node to node as far as it is wanted: five links from each source.
    let plan = uneven(12, 0, 1, 4);
    let mut nodes = nodes(&plan);
    let mut crossed = BTreeMap::new();
    while !nodes.iter().all(Collective::is_complete) {
        for id in ids(12) {
            while let Some((to, message)) = nodes[id.index()].poll() {
                *crossed.entry((id, to, message.source)).or_insert(0) += 1;
                nodes[to.index()].handle(id, message).unwrap();
            }
        }
    }
    assert!(crossed.values().all(|times| *times == 1));
    assert_eq!(crossed.len(), 12 * 5);
}

#[test]
fn nobody_sends_what_is_not_on_its_way_and_nothing_is_kept_twice() {
    let plan = uneven(12, 0, 1, 4);
    let mut nodes = nodes(&plan);
    let message = |source, values: &[f64]| PullMessage { source: NodeId(source), values: values.into() };
    let me = &mut nodes[6];
    while me.poll().is_some() {}
    // Everything comes from the node before; a vector that no node behind this one wants does not come here.
    assert_eq!(me.handle(NodeId(7), message(5, &[0.0; 2])), Err(CollectiveFault::NoSuchLink));
    assert_eq!(me.handle(NodeId(5), message(7, &[0.0; 2])), Err(CollectiveFault::NoSuchLink));
    assert_eq!(me.handle(NodeId(5), message(6, &[0.0; 2])), Err(CollectiveFault::NoSuchLink));
    assert_eq!(me.handle(NodeId(5), message(99, &[0.0; 2])), Err(CollectiveFault::NoSuchLink));
    assert_eq!(me.handle(NodeId(5), message(5, &[0.0; 3])), Err(CollectiveFault::WrongDimension));
    assert_eq!(me.handle(NodeId(5), message(5, &[f64::NAN; 2])), Err(CollectiveFault::NotFinite));
    me.handle(NodeId(5), message(5, &[1.0, 2.0])).unwrap();
    assert!(me.poll().is_some());
    me.handle(NodeId(5), message(5, &[3.0, 4.0])).unwrap();
    assert!(me.poll().is_none(), "what comes again is not passed on again");
}

#[test]
fn wishes_that_cannot_be_met_have_no_routes() {
    let plan = uneven(4, 0, 1, 4);
    assert_eq!(PullRoutes::of(&plan, &vec![Vec::new(); 3]), None);
    assert_eq!(PullRoutes::of(&plan, &[vec![NodeId(4)], vec![], vec![], vec![]]), None);
    let nobody = Arc::new(PullRoutes::of(&plan, &vec![Vec::new(); 4]).unwrap());
    assert!(Pull::new(Arc::clone(&nobody), NodeId(0), &[1.0]).unwrap().is_complete());
    assert!(Pull::new(Arc::clone(&nobody), NodeId(4), &[1.0]).is_err());
    assert!(Pull::new(nobody, NodeId(0), &[]).is_err());
}
