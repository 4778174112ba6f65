//! Nodes that find the slots of a plan by their beacons, on virtual time: how long their rounds are, and how often two
//! transmissions meet at a receiver.

#![allow(clippy::unwrap_used)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use mingle_multicast::{BeaconOutcome, Rhythm, SlotLength, SlotTable, SlotWindow, StepSlots};
use mingle_planner::{DesignOptions, Method, MixingStep, NodeSlots, Plan, Topology, design};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Bytes of a payload.
const PAYLOAD: usize = 100_000;

/// Nodes that wait for everything of a step before they take up the next one. Times are in microseconds.
struct SlottedSwarm<'a> {
    plan: &'a Plan,
    rhythms: Vec<Rhythm>,
    /// Training before a round, by node.
    training: Vec<u64>,
    /// Time from the last payload of a step to the next one.
    turn: u64,
    airtime: u64,
    slot: f64,
    guard: f64,
    random: ChaCha8Rng,
    agenda: BinaryHeap<Reverse<(u64, u64, Event)>>,
    events: u64,
    now: u64,
    /// The step of each node, the transmissions that it still has to make in it, and the payloads that have come, by step
    /// and receiver.
    steps: Vec<(u64, Option<usize>)>,
    arrived: BTreeMap<(u64, usize), usize>,
    busy: Vec<Option<Duration>>,
    /// The windows of payloads, by node and slot.
    windows: BTreeMap<(usize, usize), SlotWindow>,
    on_air: Vec<OnAir>,
    /// Transmissions of each round, those that met another one at a receiver, and the time at which the last ended.
    rounds: BTreeMap<u64, Round>,
    silent: Vec<usize>,
    /// The receivers of each node in any step: those that can open its packets.
    hearers: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug)]
struct OnAir {
    sender: usize,
    start: u64,
    end: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    payloads: usize,
    collided: usize,
    late: usize,
    end: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ready(usize),
    Start { node: usize, slot: usize },
    End { node: usize, slot: usize },
}

impl<'a> SlottedSwarm<'a> {
    fn new(plan: &'a Plan, training: Vec<u64>, seed: u64) -> Self {
        let nodes = plan.node_count();
        let length = length();
        let rhythm = |node: usize| rhythm(plan, node);
        let receivers = |node: usize| {
            let links = plan.steps().iter().flat_map(|step| step.links_from(node));
            links.map(|link| link.to).collect::<BTreeSet<usize>>().into_iter().collect()
        };
        let mut swarm = Self {
            plan,
            rhythms: (0..nodes).map(rhythm).collect(),
            training,
            turn: 3_000,
            airtime: (length.slot() - length.guard()).as_micros() as u64,
            slot: length.slot().as_micros() as f64,
            guard: length.guard().as_micros() as f64,
            random: ChaCha8Rng::seed_from_u64(seed),
            agenda: BinaryHeap::new(),
            events: 0,
            now: 0,
            steps: vec![(0, None); nodes],
            arrived: BTreeMap::new(),
            busy: vec![None; nodes],
            windows: BTreeMap::new(),
            on_air: Vec::new(),
            rounds: BTreeMap::new(),
            silent: Vec::new(),
            hearers: (0..nodes).map(receivers).collect(),
        };
        for node in 0..nodes {
            let begin = swarm.random.random_range(0..300_000);
            swarm.schedule(begin + swarm.training[node], Event::Ready(node));
        }
        swarm
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.events += 1;
        self.agenda.push(Reverse((at, self.events, event)));
    }

    fn run(&mut self, rounds: u64) {
        let end = rounds * self.plan.round_length() as u64;
        while let Some(Reverse((at, _, event))) = self.agenda.pop() {
            self.now = at;
            match event {
                Event::Ready(node) => self.ready(node),
                Event::Start { node, slot } => self.start(node, slot),
                Event::End { node, slot } => self.end(node, slot),
            }
            if (0..self.steps.len()).filter(|node| !self.silent.contains(node)).all(|node| self.steps[node].0 >= end) {
                return;
            }
        }
        panic!("the swarm stands still at {:?}", self.steps);
    }

    fn ready(&mut self, node: usize) {
        let (step, _) = self.steps[node];
        let links: BTreeMap<usize, usize> = self.links(step).slots_from(node).map(|(to, slot)| (slot, to)).collect();
        self.steps[node].1 = Some(links.len());
        for (slot, receiver) in links {
            let now = Duration::from_micros(self.now);
            let window = self.rhythms[node].offer(step, receiver as u32, self.busy[node], now).unwrap();
            self.round(step).late += usize::from(window.is_late);
            let start = self.now.max(window.start.as_micros() as u64);
            self.windows.insert((node, slot), window);
            self.schedule(start, Event::Start { node, slot });
        }
        self.go_on(node);
    }

    fn start(&mut self, node: usize, slot: usize) {
        let now = Duration::from_micros(self.now);
        let window = self.windows[&(node, slot)];
        // One that began anew since the offer has none.
        let beacon = self.rhythms[node].beacon(&window, now);
        let heard =
            beacon.into_iter().flat_map(|beacon| self.hearers[node].clone().into_iter().map(move |to| (to, beacon)));
        for (neighbour, beacon) in heard.collect::<Vec<_>>() {
            let delay = Duration::from_micros(self.random.random_range(50..800));
            let outcome = self.rhythms[neighbour].hear(node as u32, &beacon, now + delay);
            assert!(matches!(outcome, BeaconOutcome::Kept | BeaconOutcome::Followed), "{outcome:?} {beacon:?}");
        }
        let end = self.now + self.airtime;
        self.on_air.push(OnAir { sender: node, start: self.now, end });
        self.schedule(end, Event::End { node, slot });
    }

    fn end(&mut self, node: usize, slot: usize) {
        let (step, _) = self.steps[node];
        let own = *self.on_air.iter().find(|sent| sent.sender == node && sent.end == self.now).unwrap();
        let links = self.links(step).slots_from(node).filter(|(_, of)| *of == slot);
        let receivers: Vec<usize> = links.map(|(receiver, _)| receiver).collect();
        let is_met = |receiver: usize| {
            let others = self.on_air.iter().filter(|other| other.sender != node);
            let mut overlapping = others.filter(|other| other.start < own.end && own.start < other.end);
            overlapping.any(|other| other.sender == receiver || self.plan.base().interferes(other.sender, receiver))
        };
        let is_collided = receivers.iter().any(|receiver| is_met(*receiver));
        let now = self.now;
        let round = self.round(step);
        round.payloads += 1;
        round.collided += usize::from(is_collided);
        round.end = round.end.max(now);
        self.on_air.retain(|sent| sent.end + 10 * self.airtime > now);
        self.steps[node].1 = self.steps[node].1.map(|left| left - 1);
        self.busy[node] = Some(Duration::from_micros(self.now));
        for receiver in receivers {
            *self.arrived.entry((step, receiver)).or_default() += 1;
            self.busy[receiver] = Some(Duration::from_micros(self.now));
            self.go_on(receiver);
        }
        self.go_on(node);
    }

    /// Lets a node take up its next step, if it has sent its payload and has all of the others.
    fn go_on(&mut self, node: usize) {
        let (step, left) = self.steps[node];
        let inward =
            self.links(step).links().iter().filter(|link| link.to == node && !self.silent.contains(&link.from));
        let has_all = inward.count() <= self.arrived.get(&(step, node)).copied().unwrap_or(0);
        if left != Some(0) || !has_all || self.silent.contains(&node) {
            return;
        }
        self.steps[node] = (step + 1, None);
        let is_first = (step + 1).is_multiple_of(self.plan.round_length() as u64);
        let work = if is_first { self.training[node] } else { self.turn };
        let work = (work as f64 * self.random.random_range(0.9..1.1)) as u64;
        self.schedule(self.now + work, Event::Ready(node));
    }

    fn links(&self, step: u64) -> &MixingStep {
        &self.plan.steps()[(step % self.plan.steps().len() as u64) as usize]
    }

    fn round(&mut self, step: u64) -> &mut Round {
        self.rounds.entry(step / self.plan.round_length() as u64).or_default()
    }

    /// The share of payloads that met another one, and the mean length of a round in slots, from one round to another.
    fn measured(&self, from: u64, to: u64) -> (f64, f64) {
        let rounds: Vec<&Round> = self.rounds.range(from..to).map(|(_, round)| round).collect();
        let sum = |count: fn(&Round) -> usize| rounds.iter().map(|round| count(round)).sum::<usize>();
        let collided = sum(|round| round.collided) as f64 / sum(|round| round.payloads) as f64;
        let length = (rounds[rounds.len() - 1].end - rounds[0].end) as f64 / (to - from - 1) as f64;
        (collided, length / self.slot)
    }
}

/// The rhythm of a node that knows no others.
fn rhythm(plan: &Plan, node: usize) -> Rhythm {
    let step = |NodeSlots { count, own, last_busy, quiet }| StepSlots { slots: count, own, last_busy, quiet };
    let steps = plan.slots_of_node(node, &[]).into_iter().map(step).collect();
    let table = SlotTable::new(plan.round_length(), steps).unwrap().of_equal_rounds(plan.has_equal_rounds());
    Rhythm::new(table, plan.node_count(), node as u32, length())
}

fn length() -> SlotLength {
    SlotLength::of(PAYLOAD, 1_200, "10mbit".parse().unwrap())
}

fn plan(graph: &str, method: Method) -> Plan {
    design(&Topology::generate(graph).unwrap(), method, &DesignOptions::default()).unwrap()
}

const GRAPHS: [&str; 4] =
    ["rg:n=12,r=0.5,seed=3", "windmill:cliques=3,size=5", "rg:n=20,r=0.4,seed=11", "grid:rows=4,cols=4"];

/// The slots of a mean round.
fn forecast(plan: &Plan) -> f64 {
    let slots = plan.steps().iter().map(|step| step.slots().len()).sum::<usize>();
    slots as f64 / (plan.steps().len() / plan.round_length()) as f64
}

#[test]
fn nodes_find_the_slots_of_each_design_by_their_beacons() {
    for graph in GRAPHS {
        for method in [Method::DPsgd, Method::SgpUniform, Method::NguyenHe, Method::Tuned, Method::ExactAverage] {
            for training in [20_000, 250_000] {
                let plan = plan(graph, method);
                let mut swarm = SlottedSwarm::new(&plan, vec![training; plan.node_count()], 7);
                swarm.run(100);
                let (collided, length) = swarm.measured(60, 100);
                let slots = forecast(&plan);
                println!("{graph} {}: {collided:.3} collided, {length:.2} slots for {slots:.2}", plan.method());
                assert!(collided < 0.01, "{graph} {method:?}: {collided} of all payloads met another one");
                // Training, and 3 ms from one payload to the next one. What is needed changes by a tenth.
                let work = 1.1 * (training as f64 + (plan.round_length() - 1) as f64 * 3_000.0) / swarm.slot;
                let guards = plan.round_length() as f64 * swarm.guard / swarm.slot;
                assert!(
                    length < slots + 1.1 * work + guards + 0.05,
                    "{graph} {method:?}: {length} for {slots} and {work}"
                );
            }
        }
    }
}

#[test]
fn rounds_that_differ_keep_their_order_and_few_payloads_meet() {
    for graph in GRAPHS {
        let plan = plan(graph, Method::BassOptimised);
        let mut swarm = SlottedSwarm::new(&plan, vec![20_000; plan.node_count()], 7);
        swarm.run(300);
        let (collided, length) = swarm.measured(200, 300);
        let slots = forecast(&plan);
        println!("{graph}: {collided:.3} collided, {length:.2} slots for {slots:.2}");
        // The rounds from 200 to 299 have more slots than the mean of the period, or less.
        let rounds = (200..300).map(|round| plan.steps()[round % plan.steps().len()].slots().len() as f64);
        let of_these = rounds.sum::<f64>() / 100.0;
        assert!(collided < 0.2, "{graph}: {collided} of all payloads met another one");
        assert!(length < 1.1 * of_these + 0.4, "{graph}: {length} for {of_these}");
    }
}

#[test]
fn where_training_takes_many_rounds_of_slots_payloads_take_later_ones() {
    let plan = plan(GRAPHS[0], Method::DPsgd);
    let mut swarm = SlottedSwarm::new(&plan, vec![3_000_000; plan.node_count()], 7);
    swarm.run(60);
    let (collided, length) = swarm.measured(30, 60);
    let training = 3_000_000.0 / swarm.slot;
    println!("{collided:.3} collided, {length:.2} slots, training takes {training:.2}");
    assert!(length < 1.1 * training + 2.0 * forecast(&plan), "{length}");
    assert!(collided < 0.1, "{collided} of all payloads met another one");
}

#[test]
fn the_others_keep_their_slots_without_the_node_that_they_followed() {
    let plan = plan("complete:n=6", Method::DPsgd);
    let mut swarm = SlottedSwarm::new(&plan, vec![20_000; 6], 7);
    swarm.run(40);
    swarm.silent.push(0);
    (1..6).for_each(|node| swarm.go_on(node));
    swarm.run(200);
    let (collided, length) = swarm.measured(60, 200);
    println!("{collided:.3} collided, {length:.2} slots");
    assert!(collided < 0.01, "{collided} of all payloads met another one");
    assert!(length < 6.5, "{length}");
}

#[test]
fn a_node_that_begins_anew_finds_the_times_of_the_others_within_a_round() {
    let plan = plan(GRAPHS[0], Method::NguyenHe);
    let mut swarm = SlottedSwarm::new(&plan, vec![20_000; plan.node_count()], 7);
    swarm.run(40);
    for node in [5, 9] {
        swarm.rhythms[node] = rhythm(&plan, node);
    }
    swarm.run(80);
    let (collided, length) = swarm.measured(44, 80);
    println!("{collided:.3} collided, {length:.2} slots for {:.2}", forecast(&plan));
    assert!(collided < 0.01, "{collided} of all payloads met another one");
    assert!(length < forecast(&plan) + 0.5, "{length}");
}
