use super::network::{Faults, Network, exchange};
use super::plans::{ids, one_peer_exponential, uneven};
use crate::collective::*;
use crate::{Schedule, Step};

fn ring(nodes: u32) -> Schedule {
    let links = (0..nodes).map(|i| (NodeId(i), NodeId((i + 1) % nodes), 0.5)).collect();
    Schedule::new(nodes as usize, &[Step { keep: vec![0.5; nodes as usize], links }], 0).unwrap()
}

#[test]
fn diameters_are_those_of_the_textbook() {
    assert_eq!(diameter(&ring(2)), Some(1));
    assert_eq!(diameter(&ring(9)), Some(8));
    assert_eq!(diameter(&one_peer_exponential(4)), Some(4), "as many hops as ones in a distance below 16");
    let alone = Schedule::new(1, &[Step { keep: vec![1.0], links: vec![] }], 0).unwrap();
    assert_eq!(diameter(&alone), Some(0));
    let one_way = Step { keep: vec![0.5, 1.0], links: vec![(NodeId(0), NodeId(1), 0.5)] };
    assert_eq!(diameter(&Schedule::new(2, &[one_way], 0).unwrap()), None);
}

/// Numbers with ties, zeros of both signs and one extreme per node.
fn numbers(id: NodeId, nodes: usize) -> Vec<f64> {
    let i = f64::from(id.0);
    let zero = if id.0 == 2 { 0.0 } else { -0.0 };
    vec![(i * 5.0) % nodes as f64, 7.0, zero, -i * 1e280, (i - 3.0) * 1e-310]
}

#[test]
fn extrema_are_the_same_bits_everywhere_after_the_diameter_under_any_faults() {
    for plan in [ring(6), (*uneven(9, 6, 2, 8)).clone()] {
        let nodes = plan.nodes();
        let rounds = diameter(&plan).unwrap();
        for (direction, seed) in [(Extreme::Max, 1), (Extreme::Min, 2)] {
            let new = |id| Extremum::new(&plan, id, direction, &numbers(id, nodes), rounds).unwrap();
            let mut network =
                Network::new(ids(nodes).map(new).collect(), 5, Faults { loss: 0.2, duplication: 0.2 }, seed);
            network.run(|nodes| nodes.iter().all(|node| node.collective().is_complete()), |_| ());
            let expected: Vec<(u64, NodeId)> = (0..5)
                .map(|place| {
                    let candidates = ids(nodes).map(|id| (numbers(id, nodes)[place], id));
                    let best = candidates.reduce(|best, other| match (direction, other.0.total_cmp(&best.0)) {
                        (Extreme::Max, std::cmp::Ordering::Greater) | (Extreme::Min, std::cmp::Ordering::Less) => other,
                        _ => best,
                    });
                    let (value, owner) = best.unwrap();
                    (value.to_bits(), owner)
                })
                .collect();
            for node in &network.nodes {
                let result = node.collective().result().unwrap();
                let bits: Vec<(u64, NodeId)> = result.iter().map(|(value, owner)| (value.to_bits(), *owner)).collect();
                assert_eq!(bits, expected, "{direction:?}");
            }
        }
    }
}

#[test]
fn a_round_less_than_the_diameter_is_not_enough_for_an_extremum() {
    let plan = ring(6);
    let new = |id: NodeId| Extremum::new(&plan, id, Extreme::Max, &[-f64::from(id.0)], 4).unwrap();
    let mut nodes: Vec<Extremum> = ids(6).map(new).collect();
    while exchange(&mut nodes) {}
    let found: Vec<f64> = nodes.iter().map(|node| node.result().unwrap()[0].0).collect();
    assert_eq!(found, [0.0, 0.0, 0.0, 0.0, 0.0, -1.0], "the ring's last node has not heard of the first");
}

#[test]
fn a_message_of_extrema_that_no_sound_neighbour_sends_is_refused() {
    let plan = ring(3);
    let (from, me) = (NodeId(0), NodeId(1));
    let best = |round, values: &[(f64, u32)]| FloodValue {
        round,
        values: values.iter().map(|(v, id)| (*v, NodeId(*id))).collect(),
    };
    let mut node = Extremum::new(&plan, me, Extreme::Max, &[1.0], 2).unwrap();
    assert_eq!(node.handle(NodeId(2), best(0, &[(9.0, 2)])), Err(CollectiveFault::NoSuchLink));
    assert_eq!(node.handle(from, best(1, &[(9.0, 0)])), Err(CollectiveFault::Gap));
    assert_eq!(node.handle(from, best(0, &[])), Err(CollectiveFault::WrongDimension));
    assert_eq!(node.handle(from, best(0, &[(f64::NAN, 0)])), Err(CollectiveFault::NotFinite));
    assert_eq!(node.handle(from, best(0, &[(9.0, 3)])), Err(CollectiveFault::UnknownOwner));
    node.handle(from, best(0, &[(0.5, 0)])).unwrap();
    node.handle(from, best(0, &[(9.0, 0)])).unwrap();
    node.handle(from, best(1, &[(0.75, 2)])).unwrap();
    assert_eq!(node.result(), Some(&[(1.0, me)][..]), "the second message of round 0 came too late");
    assert_eq!(node.handle(from, best(2, &[(9.0, 0)])), Err(CollectiveFault::TooFarAhead));
}
