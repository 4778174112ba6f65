use std::sync::Arc;

use super::network::{Faults, Network};
use super::plans::{gather_and_scatter, ids, one_peer_exponential, uneven};
use crate::collective::*;
use crate::{NodeId, Schedule, Step};

fn values(id: NodeId) -> [f64; 2] {
    let id = f64::from(id.0);
    [(id + 0.1).sin(), 1e10 / (id + 3.0)]
}

fn nodes(plan: &Schedule, reduction: Reduction) -> Vec<AllReduce> {
    let trees = Arc::new(Trees::of(plan).unwrap());
    ids(plan.nodes()).map(|id| AllReduce::new(Arc::clone(&trees), id, reduction, &values(id)).unwrap()).collect()
}

#[test]
fn everybody_has_the_same_sum_and_the_same_largest_over_any_links() {
    for plan in [uneven(12, 9, 2, 4), one_peer_exponential(4), gather_and_scatter()] {
        for (reduction, loss) in [(Reduction::Sum, 0.0), (Reduction::Sum, 0.3), (Reduction::Max, 0.3)] {
            let faults = Faults { loss, duplication: loss };
            let mut network = Network::new(nodes(&plan, reduction), 2, faults, 7);
            let done = |nodes: &[ReliableChannel<AllReduce>]| nodes.iter().all(|node| node.collective().is_complete());
            network.run(done, |_| {});
            let results: Vec<&[f64]> = network.nodes.iter().map(|node| node.collective().result().unwrap()).collect();
            assert!(results.iter().all(|result| *result == results[0]));
            for (place, result) in results[0].iter().enumerate() {
                let all = ids(plan.nodes()).map(|id| values(id)[place]);
                match reduction {
                    Reduction::Sum => {
                        let sum: f64 = all.sum();
                        assert!((result - sum).abs() <= 1e-14 * sum.abs().max(10.0));
                    }
                    Reduction::Max => assert_eq!(*result, all.fold(f64::NEG_INFINITY, f64::max)),
                }
            }
        }
    }
}

#[test]
fn sums_of_integers_wrap_with_and_without_a_carry_and_are_the_same_everywhere_over_any_links() {
    for plan in [uneven(12, 9, 2, 4), one_peer_exponential(4), gather_and_scatter()] {
        for (modulus, loss) in
            [(Modulus::HalfWord, 0.0), (Modulus::Word, 0.0), (Modulus::TwoWords, 0.0), (Modulus::TwoWords, 0.3)]
        {
            let trees = Arc::new(Trees::of(&plan).unwrap());
            let words = |id: NodeId| vec![u64::MAX - u64::from(id.0), 1 << 60, 7, u64::MAX];
            let node = |id| ModularSum::new(Arc::clone(&trees), id, modulus, words(id)).unwrap();
            let nodes = ids(plan.nodes()).map(node).collect();
            let mut network = Network::new(nodes, 4, Faults { loss, duplication: loss }, 7);
            let done = |nodes: &[ReliableChannel<ModularSum>]| nodes.iter().all(|node| node.collective().is_complete());
            network.run(done, |_| {});
            let wide = |words: &[u64]| u128::from(words[0]) | u128::from(words[1]) << 64;
            let all: Vec<Vec<u64>> = ids(plan.nodes()).map(words).collect();
            for node in &network.nodes {
                let sum = node.collective().result().unwrap();
                let expected = |place: usize| all.iter().fold(0_u64, |sum, words| sum.wrapping_add(words[place]));
                match modulus {
                    Modulus::HalfWord => {
                        let lower = |place| expected(place) & u64::from(u32::MAX);
                        let upper = |place: usize| {
                            all.iter().fold(0_u32, |sum, words| sum.wrapping_add((words[place] >> 32) as u32))
                        };
                        assert_eq!(sum, [0, 1, 2, 3].map(|place| lower(place) | u64::from(upper(place)) << 32));
                    }
                    Modulus::Word => assert_eq!(sum, [0, 1, 2, 3].map(expected)),
                    Modulus::TwoWords => {
                        let pair = |at| all.iter().fold(0_u128, |sum, words| sum.wrapping_add(wide(&words[at..])));
                        assert_eq!([wide(sum), wide(&sum[2..])], [pair(0), pair(2)]);
                    }
                }
            }
        }
    }
    let trees = Arc::new(Trees::of(&gather_and_scatter()).unwrap());
    let half = ModularSum::new(trees, NodeId(0), Modulus::TwoWords, vec![1]);
    assert_eq!(half.unwrap_err(), CollectiveError::Dimension { dimension: 1 });
}

#[test]
fn a_reduction_takes_two_messages_for_each_node_but_the_root() {
    let plan = uneven(12, 9, 2, 4);
    let mut nodes = nodes(&plan, Reduction::Sum);
    let mut messages = 0;
    while !nodes.iter().all(Collective::is_complete) {
        for id in ids(12) {
            while let Some((to, partial)) = nodes[id.index()].poll() {
                messages += 1;
                nodes[to.index()].handle(id, partial).unwrap();
            }
        }
    }
    assert_eq!(messages, 2 * 11);
}

#[test]
fn nobody_speaks_for_others_and_no_tree_spans_what_is_not_connected() {
    let plan = uneven(12, 0, 1, 4);
    let mut nodes = nodes(&plan, Reduction::Sum);
    let partial = |is_whole, values: &[f64]| Partial { is_whole, values: values.to_vec() };
    // On a ring without chords, everything comes from the node before.
    let me = &mut nodes[5];
    assert_eq!(me.handle(NodeId(7), partial(false, &[0.0; 2])), Err(CollectiveFault::NoSuchLink));
    assert_eq!(me.handle(NodeId(4), partial(true, &[0.0; 3])), Err(CollectiveFault::WrongDimension));
    assert_eq!(me.handle(NodeId(4), partial(true, &[f64::NAN; 2])), Err(CollectiveFault::NotFinite));
    let one_way = Step { keep: vec![0.5, 1.0], links: vec![(NodeId(0), NodeId(1), 0.5)] };
    assert_eq!(Trees::of(&Schedule::new(2, &[one_way], 0).unwrap()), None);
}
