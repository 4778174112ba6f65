//! Exact averaging on random graphs, against the golden schedules, and against an exhaustive search on tiny graphs.

#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, fs, path::PathBuf};

use mingle_planner::{
    DesignError, DesignOptions, Link, Medium, Method, MixingStep, Parameter, Plan, Topology, design, digraph::Digraph,
    load::busiest,
};
use proptest::prelude::*;

/// A tenth of the default effort, for tests where any schedule will do.
fn quick() -> DesignOptions {
    DesignOptions { effort: 1, ..DesignOptions::default() }
}

fn exact(topology: &Topology, options: &DesignOptions) -> Plan {
    design(topology, Method::ExactAverage, options).unwrap()
}

fn slots_at_least(plan: &Plan) -> usize {
    match plan.parameters()["slots_at_least"] {
        Parameter::Whole(slots) => slots as usize,
        ref other => panic!("{other:?}"),
    }
}

/// Checks that the product of a round is `J / n`, to 1e-12 in every entry.
fn assert_averages(nodes: usize, round: &[MixingStep], what: &str) {
    let mut scratch = vec![0.0; nodes];
    for source in 0..nodes {
        let mut column = vec![0.0; nodes];
        column[source] = 1.0;
        round.iter().for_each(|step| step.mix(&mut column, &mut scratch));
        let worst = column.iter().map(|entry| (entry - 1.0 / nodes as f64).abs()).fold(0.0, f64::max);
        assert!(worst <= 1e-12, "{what}: column {source} is off by {worst:e}");
    }
}

/// Checks that every link of every slot is received by the rule of the model: the receiver is silent, and of all nodes
/// whose transmissions reach it, the sender alone transmits.
fn assert_every_link_is_heard(plan: &Plan, what: &str) {
    let base = plan.base();
    for slot in plan.steps().iter().flat_map(|step| step.slots()) {
        let transmitters: BTreeSet<usize> = slot.iter().map(|link| link.from).collect();
        for link in slot {
            let reaching: Vec<usize> =
                transmitters.iter().copied().filter(|&from| base.interferes(from, link.to)).collect();
            assert_eq!(reaching, [link.from], "{what}: {link} in {slot:?}");
            assert!(base.has_edge(link.from, link.to), "{what}: {link}");
        }
    }
}

/// Checks that a node that sends all its mass does so once, and receives nothing more until the root has everything.
fn assert_nobody_sends_before_it_has_everything(nodes: usize, round: &[MixingStep], what: &str) {
    let mut has_sent = vec![false; nodes];
    for step in round {
        let gives_all: Vec<usize> = (0..nodes).filter(|&node| step.keep()[node] == 0.0).collect();
        if gives_all.is_empty() {
            assert_eq!(has_sent.iter().filter(|sent| !**sent).count(), 1, "{what}: only the root has not sent");
            return;
        }
        for link in step.links() {
            assert!(!has_sent[link.to] && !gives_all.contains(&link.to), "{what}: {} is sent to too late", link.to);
        }
        for node in gives_all {
            assert!(!std::mem::replace(&mut has_sent[node], true), "{what}: {node} sends twice");
        }
    }
}

fn assert_sound(plan: &Plan, what: &str) {
    assert_every_link_is_heard(plan, what);
    for round in plan.steps().chunks(plan.round_length()) {
        assert_averages(plan.node_count(), round, what);
        assert_nobody_sends_before_it_has_everything(plan.node_count(), round, what);
    }
    let forecast = plan.forecast();
    assert_eq!((forecast.lambda_2, forecast.periods_to_1e_2), (Some(0.0), Some(1)), "{what}");
    assert_eq!((forecast.perron_min, forecast.perron_max), (Some(1.0), Some(1.0)), "{what}");
    if plan.medium() == Medium::Broadcast {
        assert_eq!(plan.round_length(), plan.steps().len(), "{what}");
    }
}

/// A connected graph: a random tree, and every other pair with the given density; perhaps with more interference.
fn topologies(nodes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Topology> {
    let parts = nodes.prop_flat_map(|n| {
        let parents = prop::collection::vec(any::<prop::sample::Index>(), n - 1);
        let draws = prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), n * (n - 1) / 2);
        (Just(n), parents, draws, 0.0..0.8_f64, prop::option::of(0.0..0.5_f64))
    });
    parts.prop_map(|(n, parents, draws, density, noise)| {
        let mut edges: Vec<_> = parents.iter().enumerate().map(|(at, parent)| (parent.index(at + 1), at + 1)).collect();
        let pairs: Vec<_> = (0..n).flat_map(|u| (u + 1..n).map(move |v| (u, v))).collect();
        let drawn = pairs.iter().zip(&draws);
        edges.extend(drawn.clone().filter(|(_, draw)| draw.0 < density * density).map(|(&pair, _)| pair));
        let topology = Topology::new((0..n).map(|node| node.to_string()).collect(), &edges).unwrap();
        let Some(noise) = noise else { return topology };
        edges.extend(drawn.filter(|(_, draw)| draw.1 < noise).map(|(&pair, _)| pair));
        topology.with_interference(&edges).unwrap()
    })
}

/// The sum over the levels of the breadth-first tree from a node of the most children of a node.
fn breadth_first(topology: &Topology, root: usize) -> usize {
    let mut is_in = vec![false; topology.node_count()];
    is_in[root] = true;
    let (mut level, mut sum) = (vec![root], 0);
    while !level.is_empty() {
        let mut next = Vec::new();
        let mut most = 0;
        for node in level {
            let before = next.len();
            next.extend(topology.neighbors(node).iter().filter(|&&node| !std::mem::replace(&mut is_in[node], true)));
            most = most.max(next.len() - before);
        }
        sum += most;
        level = next;
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn one_period_averages_exactly_whatever_the_graph(topology in topologies(2..=40), seed in any::<u64>()) {
        let options = DesignOptions { seed, ..quick() };
        let plan = exact(&topology, &options);
        assert_sound(&plan, &format!("seed {seed}"));
        prop_assert!(slots_at_least(&plan) <= plan.forecast().slots_per_period);
        prop_assert!(plan.forecast().slots_per_period <= 2 * (topology.node_count() - 1));
        prop_assert_eq!(exact(&topology, &options).hash(), plan.hash());
    }

    #[test]
    fn on_separate_links_a_tree_takes_no_more_of_its_busiest_node_than_one_of_least_depth(topology in topologies(2..=40)) {
        let nodes = topology.node_count();
        let plan = exact(&topology, &DesignOptions { medium: Medium::PointToPoint, ..quick() });
        assert_sound(&plan, "point-to-point");
        let rounds = plan.steps().len() / plan.round_length();
        prop_assert_eq!(plan.forecast().payloads_per_period, 2 * (nodes - 1) * rounds);
        let busiest = busiest(nodes, plan.steps()) / rounds;
        // A step in which nodes send to f others at most reaches f + 1 times as many.
        let doublings = (nodes - 1).ilog2() + 1;
        prop_assert!(busiest >= 2 * doublings as usize, "{busiest} payloads for {nodes} nodes");
        let widest = (0..nodes).map(|root| breadth_first(&topology, root)).min().unwrap();
        prop_assert!(busiest <= 2 * widest, "{busiest} payloads, {widest} on the way down of a tree of least depth");
    }

    #[test]
    fn a_limit_on_receivers_is_kept_or_refused_with_one_that_is_possible(topology in topologies(3..=30), limit in 1_usize..5) {
        for medium in [Medium::Broadcast, Medium::PointToPoint] {
            let with = |limit| DesignOptions { medium, max_out_degree: Some(limit), ..quick() };
            let (plan, limit) = match design(&topology, Method::ExactAverage, &with(limit)) {
                Ok(plan) => (plan, limit),
                Err(DesignError::DegreeLimit { needed, .. }) => {
                    prop_assert!(needed > limit);
                    (exact(&topology, &with(needed)), needed)
                }
                Err(other) => panic!("{other}"),
            };
            assert_sound(&plan, "with a limit");
            let links = plan.steps().iter().flat_map(|step| step.links()).map(|link| link.link());
            prop_assert!(Digraph::new(topology.node_count(), links).max_out_degree() <= limit);
        }
    }
}

#[test]
fn a_budget_below_what_is_found_is_refused_with_what_was_found() {
    let ring = Topology::generate("ring:n=8").unwrap();
    let within = |slots| DesignOptions { budget_slots: Some(slots), ..quick() };
    let needed = exact(&ring, &quick()).forecast().slots_per_period;
    assert_eq!(exact(&ring, &within(needed)), exact(&ring, &quick()));
    let refused = design(&ring, Method::ExactAverage, &within(needed - 1));
    assert_eq!(refused, Err(DesignError::BudgetSlots { method: Method::ExactAverage, budget: needed - 1, needed }));
}

#[test]
fn no_effort_still_gives_a_schedule() {
    for expression in ["complete:n=2", "rg:n=40,r=0.3", "rg:n=200,r=0.15"] {
        let plan = exact(&Topology::generate(expression).unwrap(), &DesignOptions { effort: 0, ..quick() });
        assert_sound(&plan, expression);
    }
}

/// The least slots after which every node can have something of every other, whatever is sent: no exact average is
/// shorter. Breadth-first search over the sets of nodes that each node has something of.
fn gossip_slots(topology: &Topology) -> usize {
    let nodes = topology.node_count();
    let everything: u32 = (1 << nodes) - 1;
    let start: Vec<u32> = (0..nodes).map(|node| 1 << node).collect();
    let mut level = BTreeSet::from([start]);
    let mut seen = level.clone();
    for slots in 0.. {
        if level.iter().any(|known| known.iter().all(|&set| set == everything)) {
            return slots;
        }
        let mut next = BTreeSet::new();
        for known in &level {
            for transmitters in 1..everything {
                let mut after = known.clone();
                for to in (0..nodes).filter(|to| transmitters >> to & 1 == 0) {
                    let mut heard = topology.neighbors(to).iter().filter(|&&from| transmitters >> from & 1 == 1);
                    if let (Some(&from), None) = (heard.next(), heard.next()) {
                        after[to] |= known[from];
                    }
                }
                if seen.insert(after.clone()) {
                    next.insert(after);
                }
            }
        }
        level = next;
    }
    unreachable!()
}

/// All connected graphs of a number of nodes, one of each shape.
fn shapes(nodes: usize) -> Vec<Topology> {
    let pairs: Vec<(usize, usize)> = (0..nodes).flat_map(|u| (u + 1..nodes).map(move |v| (u, v))).collect();
    let orders = permutations(nodes);
    let mut known = BTreeSet::new();
    let mut shapes = Vec::new();
    for set in 0_u32..1 << pairs.len() {
        let edges: Vec<_> = (0..pairs.len()).filter(|at| set >> at & 1 == 1).map(|at| pairs[at]).collect();
        let renamed = |order: &Vec<usize>| {
            let named = edges.iter().map(|&(u, v)| (order[u].min(order[v]), order[u].max(order[v])));
            named.collect::<BTreeSet<_>>()
        };
        if known.insert(orders.iter().map(renamed).min().unwrap())
            && let Ok(topology) = Topology::new((0..nodes).map(|node| node.to_string()).collect(), &edges)
        {
            shapes.push(topology);
        }
    }
    shapes
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let with = |at: usize| {
        shorter.iter().map(move |order| {
            let mut order = order.clone();
            order.insert(at, count - 1);
            order
        })
    };
    (0..count).flat_map(with).collect()
}

#[test]
fn on_graphs_of_up_to_five_nodes_no_schedule_of_any_kind_is_shorter() {
    for nodes in 2..=5 {
        let shapes = shapes(nodes);
        assert_eq!(shapes.len(), [1, 2, 6, 21][nodes - 2], "the connected graphs of {nodes} nodes");
        for topology in shapes {
            let plan = exact(&topology, &DesignOptions::default());
            assert_sound(&plan, &format!("{:?}", topology.edges()));
            let (found, least) = (plan.forecast().slots_per_period, gossip_slots(&topology));
            assert!(slots_at_least(&plan) <= least, "{:?}", topology.edges());
            assert_eq!(found, least, "{:?}", topology.edges());
        }
    }
}

/// The golden cases: name, topology, slots of the best schedule that their author knew.
fn golden() -> Vec<(String, Topology, usize)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let case: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let slots = case.get("exact_average")?["slots_best"].as_u64().unwrap() as usize;
        let n = case["base"]["n"].as_u64().unwrap() as usize;
        let edges: Vec<(usize, usize)> = serde_json::from_value(case["base"]["edges"].clone()).unwrap();
        let topology = Topology::new((0..n).map(|node| node.to_string()).collect(), &edges).unwrap();
        Some((path.file_stem().unwrap().to_string_lossy().into_owned(), topology, slots))
    };
    paths.into_iter().filter_map(read).collect()
}

#[test]
fn schedules_are_no_longer_than_the_golden_ones_and_shorter_on_the_two_hard_graphs() {
    for (name, topology, golden) in golden() {
        let plan = exact(&topology, &DesignOptions::default());
        assert_sound(&plan, &name);
        let slots = plan.forecast().slots_per_period;
        println!("{name}: {slots} slots, at least {}, golden {golden}", slots_at_least(&plan));
        let most = match name.as_str() {
            "rg33_r0.5_nx0" => 13,
            "roofnet_33_187" => 12,
            _ => golden,
        };
        assert!(slots <= most, "{name}: {slots} slots");
    }
}

#[test]
fn the_large_windmill_is_proved_optimal() {
    let plan = exact(&Topology::generate("windmill:cliques=3,size=21").unwrap(), &quick());
    assert_eq!((slots_at_least(&plan), plan.forecast().slots_per_period), (23, 23));
    let hub = Link::new(0, 1);
    assert_eq!(plan.steps().last().unwrap().links()[0].link(), hub, "the hub serves all in the last slot");
}
