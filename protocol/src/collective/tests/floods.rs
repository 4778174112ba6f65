use super::network::{Faults, Network, exchange};
use super::plans::{ids, one_peer_exponential, uneven};
use crate::collective::*;
use crate::{Schedule, Step};

fn ring(nodes: u32) -> Schedule {
    let links = (0..nodes).map(|i| (NodeId(i), NodeId((i + 1) % nodes), 0.5)).collect();
    Schedule::new(nodes as usize, &[Step { keep: vec![0.5; nodes as usize], links }], 0).unwrap()
}

fn payload(id: NodeId, version: u64) -> Vec<u8> {
    format!("row {version} of {id}").into_bytes()
}

fn tables(plan: &Schedule) -> Vec<ReplicatedTable> {
    ids(plan.nodes()).map(|id| ReplicatedTable::new(plan, id).unwrap()).collect()
}

fn expected(nodes: usize, version: u64) -> Vec<Vec<u8>> {
    ids(nodes).map(|id| payload(id, version)).collect()
}

fn holds(table: &ReplicatedTable, version: u64) -> bool {
    let nodes = table.complete(version).map_or(0, |rows| rows.len());
    nodes > 0 && table.complete(version).unwrap() == expected(nodes, version)
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

#[test]
fn every_row_is_everywhere_after_as_many_exchanges_as_the_diameter_and_not_before() {
    for plan in [ring(7), (*uneven(12, 9, 2, 4)).clone(), (*one_peer_exponential(4)).clone()] {
        let mut nodes = tables(&plan);
        for (id, table) in ids(plan.nodes()).zip(&mut nodes) {
            table.publish(1, &payload(id, 1)).unwrap();
        }
        let diameter = diameter(&plan).unwrap();
        for done in 0..diameter {
            assert!(!nodes.iter().all(|table| holds(table, 1)), "complete after {done} of {diameter}");
            exchange(&mut nodes);
        }
        assert!(nodes.iter().all(|table| holds(table, 1) && table.is_complete()));
        assert!(nodes.iter().all(|table| table.missing(1).next().is_none()));
    }
}

#[test]
fn a_row_crosses_every_link_at_most_once() {
    let plan = uneven(10, 12, 1, 6);
    let mut nodes = tables(&plan);
    for (id, table) in ids(10).zip(&mut nodes) {
        table.publish(5, &payload(id, 5)).unwrap();
    }
    let mut crossings = std::collections::BTreeMap::new();
    for _ in 0..30 {
        let mut under_way = Vec::new();
        for id in ids(10) {
            while let Some((to, rows)) = nodes[id.index()].poll() {
                under_way.push((id, to, rows));
            }
        }
        for (from, to, rows) in under_way {
            for row in &rows.0 {
                *crossings.entry((from, to, row.id)).or_insert(0) += 1;
            }
            nodes[to.index()].handle(from, rows).unwrap();
        }
    }
    assert!(nodes.iter().all(|table| holds(table, 5)));
    assert!(crossings.values().all(|count| *count == 1));
}

#[test]
fn nobody_misses_a_version_however_unequal_the_nodes_and_lossy_the_links() {
    let plan = uneven(7, 4, 1, 9);
    for seed in 0..4 {
        let nodes: Vec<ReplicatedTable> = tables(&plan);
        let mut network = Network::new(nodes, 0, Faults { loss: 0.25, duplication: 0.1 }, seed);
        let mut states: Vec<Replicated<Vec<u8>>> = (0..7).map(|_| Replicated::new(Vec::new(), 1)).collect();
        for (id, node) in ids(7).zip(&mut network.nodes) {
            node.collective_mut().publish(1, &payload(id, 1)).unwrap();
        }
        // Each node goes on by itself as soon as it can; all reach version 12.
        while states.iter().any(|state| state.version() <= 12) {
            let versions: Vec<u64> = states.iter().map(Replicated::version).collect();
            let can_go_on = |nodes: &[ReliableChannel<ReplicatedTable>]| {
                nodes.iter().zip(&versions).any(|(node, version)| *version <= 12 && holds(node.collective(), *version))
            };
            network.run(can_go_on, |_| ());
            for (id, (state, node)) in ids(7).zip(states.iter_mut().zip(&mut network.nodes)) {
                let went_on = state.version() <= 12
                    && state.advance(node.collective(), |state, rows| [state.clone(), rows.concat()].concat());
                if went_on && state.version() <= 12 {
                    node.collective_mut().publish(state.version(), &payload(id, state.version())).unwrap();
                }
            }
        }
        let all: Vec<u8> = (1..=12).flat_map(|version| expected(7, version).concat()).collect();
        assert!(states.iter().all(|state| *state.state() == all), "seed {seed}");
    }
}

#[test]
fn rows_that_cannot_be_true_are_refused() {
    let plan = ring(3);
    let (from, me) = (NodeId(0), NodeId(1));
    let row =
        |id, version, payload: &[u8]| NewRows(vec![TableRow { id: NodeId(id), version, payload: payload.into() }]);
    let mut table = ReplicatedTable::new(&plan, me).unwrap();
    table.publish(4, b"mine").unwrap();
    table.handle(from, row(0, 1, b"one")).unwrap();
    let before = table.clone();
    assert_eq!(table.handle(NodeId(2), row(2, 1, b"")), Err(CollectiveFault::NoSuchLink));
    assert_eq!(table.handle(from, row(3, 1, b"")), Err(CollectiveFault::NotItsRow));
    assert_eq!(table.handle(from, row(1, 5, b"mine")), Err(CollectiveFault::NotItsRow));
    assert_eq!(table.handle(from, row(1, 4, b"not mine")), Err(CollectiveFault::Contradiction));
    assert_eq!(table.handle(from, row(0, 1, b"two")), Err(CollectiveFault::Contradiction));
    assert_eq!(table.handle(from, row(2, 1, &vec![0; MAX_ROW_BYTES + 1])), Err(CollectiveFault::TooLong));
    table.handle(from, row(1, 4, b"mine")).unwrap();
    table.handle(from, row(1, 3, b"an old one of mine")).unwrap();
    assert_eq!(table, before);
    assert_eq!(table.publish(4, b""), Err(CollectiveError::Version { version: 4, latest: 4 }));
    let bytes = MAX_ROW_BYTES + 1;
    assert_eq!(table.publish(5, &vec![0; bytes]), Err(CollectiveError::RowTooLong { bytes }));
}

#[test]
fn long_rows_travel_in_several_messages_that_fit() {
    let plan = ring(4);
    let mut nodes = tables(&plan);
    for (id, table) in ids(4).zip(&mut nodes) {
        table.publish(1, &vec![id.0 as u8; MAX_ROW_BYTES]).unwrap();
    }
    let limits = SizeLimits { nodes: 4, dimension: 0 };
    for _ in 0..3 {
        for id in ids(4) {
            while let Some((to, rows)) = nodes[id.index()].poll() {
                let bytes = rows.encode();
                assert!(bytes.len() <= MAX_ROWS_BYTES);
                nodes[to.index()].handle(id, NewRows::decode(&bytes, &limits).unwrap()).unwrap();
            }
        }
    }
    assert!(nodes.iter().all(|table| table.complete(1).unwrap().iter().all(|row| row.len() == MAX_ROW_BYTES)));
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
    assert_eq!(node.handle(from, best(0, &[(9.0, 3)])), Err(CollectiveFault::NotItsRow));
    node.handle(from, best(0, &[(0.5, 0)])).unwrap();
    node.handle(from, best(0, &[(9.0, 0)])).unwrap();
    node.handle(from, best(1, &[(0.75, 2)])).unwrap();
    assert_eq!(node.result(), Some(&[(1.0, me)][..]), "the second message of round 0 came too late");
    assert_eq!(node.handle(from, best(2, &[(9.0, 0)])), Err(CollectiveFault::TooFarAhead));
}
