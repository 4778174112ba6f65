//! Two processes with one key, with any neighbours: nodes in a ring, and a clone of one of them, in virtual time.

use std::collections::BTreeMap;

use super::test_keys::TestKeys;
use super::*;

/// A ring of four nodes and, as the fifth instance, another process of node 0. The test makes the connections.
struct Ring {
    now: Time,
    nodes: Vec<Option<Node>>,
    /// The instance that an instance reaches under a node's number.
    connections: BTreeMap<(usize, NodeId), usize>,
    inbox: VecDeque<(usize, Input)>,
    events: Vec<(usize, NodeEvent)>,
    /// Two instances between which process statements are lost.
    deaf: Option<(usize, usize)>,
    statements: usize,
}

const RING: u32 = 4;
const CLONE: usize = 4;

fn node_of(instance: usize) -> NodeId {
    NodeId(if instance == CLONE { 0 } else { instance as u32 })
}

impl Ring {
    fn new() -> Self {
        let nodes = (0..=CLONE).map(|_| None).collect();
        let (connections, inbox, events) = (BTreeMap::new(), VecDeque::new(), Vec::new());
        Self { now: AT, nodes, connections, inbox, events, deaf: None, statements: 0 }
    }

    fn start(&mut self, instance: usize, boot_nonce: u64) {
        let around = |node: u32, by: u32| NodeId((node + by) % RING);
        let links = (0..RING).flat_map(|node| [1, RING - 1].map(|by| (NodeId(node), around(node, by), 0.25))).collect();
        let step = Step { keep: vec![0.5; RING as usize], links };
        let schedule = Arc::new(Schedule::new(RING as usize, &[step], 1).unwrap());
        let mut config = NodeConfig::new(node_of(instance), schedule, vec![1.0; 3], 1_000);
        config.identity = Incarnation { incarnation: 1, boot_nonce };
        config.task = TaskDigest { hash: [3; 32], description: "digits".into() };
        config.keys = Arc::new(TestKeys(node_of(instance)));
        config.heartbeat = Duration::from_secs(1);
        self.nodes[instance] = Some(Node::new(config).unwrap());
        self.inbox.push_back((instance, Input::Start));
        self.deliver();
    }

    /// All four nodes, each connected to the next one, except the last to the first.
    fn in_a_row() -> Self {
        let mut ring = Self::new();
        for (instance, boot_nonce) in [(0, 50), (1, 11), (2, 12), (3, 13)] {
            ring.start(instance, boot_nonce);
        }
        for instance in 0..3 {
            ring.connect(instance, instance + 1);
        }
        ring
    }

    fn connect(&mut self, one: usize, other: usize) {
        for (from, to) in [(one, other), (other, one)] {
            self.connections.insert((from, node_of(to)), to);
            self.inbox.push_back((from, Input::LinkUp { peer: node_of(to) }));
        }
        self.deliver();
    }

    fn kill(&mut self, instance: usize) {
        self.nodes[instance] = None;
        let reached: Vec<_> = self.connections.iter().filter(|(_, to)| **to == instance).map(|(key, _)| *key).collect();
        self.connections.retain(|(from, _), to| *from != instance && *to != instance);
        for (from, peer) in reached {
            self.inbox.push_back((from, Input::LinkDown { peer }));
        }
        self.deliver();
    }

    fn deliver(&mut self) {
        while let Some((instance, input)) = self.inbox.pop_front() {
            let Some(node) = &mut self.nodes[instance] else { continue };
            for effect in node.handle(self.now, input) {
                match effect {
                    Effect::Send { to, message } => {
                        let Some(&receiver) = self.connections.get(&(instance, to)) else { continue };
                        let is_statement = matches!(message, Message::Process(_));
                        self.statements += usize::from(is_statement);
                        let pair = (instance.min(receiver), instance.max(receiver));
                        if is_statement && self.deaf == Some(pair) {
                            continue;
                        }
                        let from = node_of(instance);
                        self.inbox.push_back((receiver, Input::Received { from, message }));
                    }
                    Effect::Report(event) => self.events.push((instance, event)),
                    _ => {}
                }
            }
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds * 10 {
            self.now = self.now + Duration::from_millis(100);
            self.inbox.extend((0..=CLONE).map(|instance| (instance, Input::Tick)));
            self.deliver();
        }
    }

    fn hear(&mut self, instance: usize, from: usize, statement: ProcessStatement) -> Option<InputFault> {
        let before = self.events.len();
        let message = Message::Process(statement);
        self.inbox.push_back((instance, Input::Received { from: node_of(from), message }));
        self.deliver();
        let ignored = |(_, event): &(usize, NodeEvent)| match event {
            NodeEvent::Ignored { fault, .. } => Some(*fault),
            _ => None,
        };
        self.events[before..].iter().find_map(ignored)
    }

    /// Instances that reported another process with their key, and whether they are to end.
    fn verdicts(&self) -> Vec<(usize, bool)> {
        let verdict = |(instance, event): &(usize, NodeEvent)| match event {
            NodeEvent::AnotherProcess { ends, .. } => Some((*instance, *ends)),
            _ => None,
        };
        self.events.iter().filter_map(verdict).collect()
    }
}

/// An unsigned statement of a process of node 0.
fn said(ring: &Ring, boot_nonce: u64, number: u64, other: Option<OtherProcess>) -> ProcessStatement {
    let generation = ring.nodes[1].as_ref().unwrap().config().generation;
    let signature = Signature::default();
    ProcessStatement { generation, node: ME, boot_nonce, number, age_ms: 0, other, signature }
}

#[test]
fn a_copied_home_is_found_although_the_two_have_no_neighbour_in_common() {
    // Either process may have drawn the larger nonce.
    for boot_nonce in [7, 77] {
        let mut ring = Ring::in_a_row();
        ring.pass(60);
        ring.start(CLONE, boot_nonce);
        ring.connect(CLONE, 3);
        ring.pass(5);
        assert!(ring.verdicts().contains(&(CLONE, true)), "{:?}", ring.verdicts());
        assert!(ring.verdicts().contains(&(0, false)), "the first one stays, and says so: {:?}", ring.verdicts());
        assert!(ring.verdicts().iter().all(|(instance, _)| [0, CLONE].contains(instance)));
    }
}

#[test]
fn a_process_after_another_is_no_second_one() {
    for boot_nonce in [7, 77] {
        let mut ring = Ring::in_a_row();
        ring.pass(10);
        ring.kill(0);
        ring.pass(5);
        ring.start(CLONE, boot_nonce);
        ring.connect(CLONE, 3);
        ring.connect(CLONE, 1);
        ring.pass(60);
        assert_eq!(ring.verdicts(), []);
    }
}

#[test]
fn two_that_began_while_the_swarm_was_cut_in_two_are_found_when_the_halves_meet() {
    for nonces in [(50, 51), (51, 50)] {
        let mut ring = Ring::new();
        for (instance, boot_nonce) in [(0, nonces.0), (1, 11), (2, 12), (3, 13), (CLONE, nonces.1)] {
            ring.start(instance, boot_nonce);
        }
        ring.connect(0, 1);
        ring.connect(2, 3);
        ring.connect(3, CLONE);
        ring.pass(30);
        assert_eq!(ring.verdicts(), []);
        ring.connect(1, 2);
        ring.pass(10);
        let told: std::collections::BTreeSet<usize> =
            ring.verdicts().into_iter().filter(|(_, ends)| *ends).map(|(instance, _)| instance).collect();
        assert_eq!(told.len(), 1, "one of the two ends: {:?}", ring.verdicts());
    }
}

#[test]
fn statements_that_were_lost_are_told_again_and_no_more_than_that() {
    let mut ring = Ring::in_a_row();
    ring.pass(10);
    ring.deaf = Some((1, 2));
    ring.start(CLONE, 7);
    ring.connect(CLONE, 3);
    ring.pass(10);
    assert_eq!(ring.verdicts(), []);
    ring.deaf = None;
    ring.pass(5);
    assert!(ring.verdicts().contains(&(CLONE, true)), "{:?}", ring.verdicts());
    ring.kill(CLONE);
    ring.pass(5);
    let so_far = ring.statements;
    ring.pass(60);
    assert_eq!(ring.statements, so_far, "all have heard of all");
}

#[test]
fn what_a_neighbour_makes_up_or_kept_of_an_earlier_process_ends_nobody() {
    let mut ring = Ring::in_a_row();
    ring.pass(5);
    let ends = |boot_nonce| Some(OtherProcess { boot_nonce, fate: Fate::OtherEnds });
    // Signed by the neighbour, or not at all.
    let mut forged = said(&ring, 9, 8, ends(50)).signed(&TestKeys(PEER));
    assert_eq!(ring.hear(0, 1, forged), Some(InputFault::Unsigned));
    forged.signature = Signature::default();
    assert_eq!(ring.hear(0, 1, forged), Some(InputFault::Unsigned));
    forged.node = NodeId(99);
    assert_eq!(ring.hear(0, 1, forged), Some(InputFault::ImpossibleProcess));
    // Statements of an earlier process, about itself and about the one before it.
    for (number, other) in [(5, None), (6, ends(3))] {
        let old = said(&ring, 9, number, other).signed(&TestKeys(ME));
        assert_eq!(ring.hear(0, 1, old), None);
    }
    let last = said(&ring, 9, u64::MAX, None).signed(&TestKeys(ME));
    assert_eq!(ring.hear(0, 1, last), Some(InputFault::ImpossibleProcess));
    ring.pass(10);
    assert_eq!(ring.verdicts(), []);
}

#[test]
fn a_member_that_says_ever_more_of_itself_is_heard_a_few_times() {
    let mut ring = Ring::in_a_row();
    ring.pass(5);
    ring.kill(3);
    let too_many = |ring: &Ring| {
        let mut refusals = ring.nodes[2].as_ref().unwrap().refusals();
        refusals.find_map(|(fault, count)| (fault == InputFault::TooManyProcesses).then_some(count)).unwrap_or(0)
    };
    let taken = |ring: &mut Ring, numbers: std::ops::Range<u64>| {
        let before = too_many(ring);
        let of_last = |number| ProcessStatement { node: NodeId(3), ..said(ring, number, number, None) };
        let statements = numbers.map(|number| of_last(number).signed(&TestKeys(NodeId(3))));
        let statements: Vec<_> = statements.collect();
        for statement in &statements {
            assert_eq!(ring.hear(2, 1, *statement), None, "the neighbour passes it on");
        }
        statements.len() as u64 - (too_many(ring) - before)
    };
    assert_eq!(taken(&mut ring, 100..200), 15, "and the one before");
    ring.pass(60);
    let later = taken(&mut ring, 200..300);
    assert!((7..=8).contains(&later), "{later}");
}
