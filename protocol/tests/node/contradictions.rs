//! Neighbours whose books contradict those of the node: the effect of false claims and of true ones.

use std::collections::BTreeMap;

use super::test_keys::TestKeys;
use super::*;

/// A node with records and keys that has exchanged parcels with a neighbour, and its codes for them.
struct Victim {
    node: Node,
    config: NodeConfig,
    peer: Incarnation,
    written: Vec<Record>,
    /// The node's newest codes to the neighbour.
    said: Evidence,
}

impl Victim {
    /// A node with two parcels under way or applied, which has applied one of the neighbour.
    fn new() -> Self {
        Self::of(1, |_| {})
    }

    /// A node with another configuration that has applied this number of parcels.
    fn of(parcels: u64, change: impl FnOnce(&mut NodeConfig)) -> Self {
        let mut config = config(ME, 0);
        config.durability = Durability::On;
        config.keys = Arc::new(TestKeys(ME));
        change(&mut config);
        let peer = Incarnation { incarnation: 1, boot_nonce: 101 };
        Self::start(config, peer, parcels)
    }

    fn start(config: NodeConfig, peer: Incarnation, parcels: u64) -> Self {
        let node = Node::new(config.clone()).unwrap();
        let mut victim = Self { node, config, peer, written: Vec::new(), said: Evidence::default() };
        victim.tell(Input::Start);
        victim.tell(Input::LinkUp { peer: PEER });
        victim.tell(from_peer(victim.hello(|_| {})));
        for seq in 1..=parcels {
            victim.exchange(seq);
        }
        victim
    }

    /// Lets the neighbour apply all that came, and send its next parcel.
    fn exchange(&mut self, seq: u64) {
        let chain = |seq: u64| if seq == 0 { Chain::default() } else { Chain([seq as u8; 32]) };
        if let Some(sent) = self.said.sent {
            let Sent { seq: received, chain: applied_chain, .. } = sent;
            let link =
                LinkPositions { received, applied: received, applied_chain, next_seq: seq, ..LinkPositions::default() };
            self.tell(from_peer(self.ack(link)));
        }
        let mut parcel = parcel_from_peer(seq, seq - 1, 8.0);
        let header = &mut parcel.header;
        header.generation = self.config.generation;
        (header.sender_incarnation, header.receiver_incarnation) = (self.peer.incarnation, self.life());
        (header.previous, header.chain) = (chain(seq - 1), chain(seq));
        self.tell(from_peer(Message::Parcel(parcel)));
        assert_eq!(self.node.ledger().incoming[&PEER].applied_seq, seq);
    }

    /// All effects of an input, with a disk that writes at once.
    fn tell(&mut self, input: Input) -> Vec<Effect> {
        let mut all = Vec::new();
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let effects = self.node.handle(AT, input);
            for record in records(&effects) {
                inputs.push_back(Input::Persisted { number: record.books.number });
                self.written.push(Arc::unwrap_or_clone(record));
            }
            for effect in &effects {
                match effect {
                    Effect::Send { to: PEER, message: Message::Parcel(Parcel { header, .. }) } => {
                        let &ParcelHeader { seq, chain, mac, .. } = header;
                        self.said.sent = Some(Sent { seq, chain, mac });
                    }
                    Effect::Send { to: PEER, message: Message::Ack(ack) } if ack.link.applied > 0 => {
                        self.said.applied = Some(Applied { seq: ack.link.applied, mac: ack.link.applied_mac });
                    }
                    _ => {}
                }
            }
            all.extend(effects);
        }
        all
    }

    /// The same node in a new process that goes on from one of its records.
    fn started_from(&self, record: &Record) -> Self {
        let payloads =
            self.written.iter().filter_map(|record| Some((record.books.number, record.payload.clone()?))).collect();
        let mut config = self.config.clone();
        config.identity.boot_nonce += 1;
        let node = Node::resume(config.clone(), record.clone(), &payloads).unwrap();
        let mut next = Self { node, config, peer: self.peer, written: Vec::new(), said: Evidence::default() };
        next.tell(Input::Start);
        next.tell(Input::LinkUp { peer: PEER });
        next
    }

    fn life(&self) -> u64 {
        self.node.config().identity.incarnation
    }

    /// The state of the links at a neighbour that has applied the node's newest parcel, and whose one parcel the node
    /// has.
    fn true_state(&self) -> LinkPositions {
        let Sent { seq, chain, .. } = self.said.sent.unwrap();
        LinkPositions {
            received: seq,
            applied: seq,
            applied_chain: chain,
            acked: 1,
            next_seq: 2,
            ..LinkPositions::default()
        }
    }

    fn hello(&self, change: impl FnOnce(&mut Hello)) -> Message {
        let Message::Hello(mut hello) = hello_from_peer(1, 101) else { unreachable!() };
        hello.generation = self.config.generation;
        hello.identity = SignedIdentity::sign(PEER, &hello.generation, self.peer, &TestKeys(PEER));
        let me = self.node.config().identity;
        hello.seen = Some(SignedIdentity::sign(ME, &hello.generation, me, &TestKeys(ME)));
        change(&mut hello);
        Message::Hello(hello)
    }

    fn ack(&self, link: LinkPositions) -> Message {
        let seen = self.node.config().identity;
        Message::Ack(Ack { generation: self.config.generation, identity: self.peer, seen, link })
    }

    /// Lets the neighbour greet the node, with true numbers and this evidence.
    fn is_shown(&mut self, evidence: Evidence) -> Vec<Effect> {
        let link = LinkPositions { next_seq: 2, ..LinkPositions::default() };
        self.tell(from_peer(self.hello(|hello| (hello.link, hello.evidence) = (link, evidence))))
    }

    /// The mass that the node would lose by a rollback, and its life.
    fn holdings(&self) -> (Mass, u64) {
        (self.node.mass(), self.life())
    }
}

fn rolled_back(effects: &[Effect]) -> bool {
    reports(effects).iter().any(|event| matches!(event, NodeEvent::RollbackDetected { .. }))
}

const SUSPENDED: NodeEvent = NodeEvent::NeighbourSuspended { peer: PEER, reason: Suspension::Contradicts };

/// Returns `true` if the node asked its neighbour to greet it.
fn asks(effects: &[Effect]) -> bool {
    messages(effects).iter().any(|message| matches!(message, Message::Hello(hello) if hello.seen.is_none()))
}

type Lie = fn(&mut LinkPositions);

/// Claims of a neighbour about the two links that contradict the node's books.
const LIES: [(&str, Lie); 5] = [
    ("it has received parcels that were never sent", |state| state.received = 9),
    ("it has applied parcels that were never sent", |state| (state.received, state.applied) = (9, 9)),
    ("it has applied another parcel", |state| state.applied_chain = Chain([66; 32])),
    ("the node has applied parcels that it never saw", |state| (state.acked, state.next_seq) = (9, 10)),
    ("the node has applied parcels before any came", |state| (state.base, state.acked, state.next_seq) = (4, 9, 10)),
];

#[test]
fn a_neighbour_that_contradicts_a_nodes_books_without_proof_takes_nothing_of_it() {
    for (what, lie) in LIES {
        let mut victim = Victim::new();
        let before = victim.holdings();
        let mut link = victim.true_state();
        lie(&mut link);
        let said = victim.tell(from_peer(victim.ack(link)));
        assert!(!rolled_back(&said) && asks(&said), "{what}: {said:?}");
        assert_eq!(reports(&said), [], "{what}: a question, and nothing else");
        let evidence = victim.said;
        for shown in [Evidence::default(), evidence] {
            let hello = victim.hello(|hello| (hello.link, hello.evidence) = (link, shown));
            let said = victim.tell(from_peer(hello));
            assert!(!rolled_back(&said), "{what}: {said:?}");
            let named = reports(&said).contains(&SUSPENDED);
            assert_eq!(named, shown.is_empty(), "{what}: told once, with the neighbour's name: {said:?}");
        }
        assert_eq!(victim.holdings(), before, "{what}");
    }
}

#[test]
fn a_parcel_that_echoes_an_acknowledgement_nobody_gave_takes_nothing() {
    let mut victim = Victim::new();
    let before = victim.holdings();
    let mut parcel = parcel_from_peer(2, 1, 8.0);
    (parcel.header.previous, parcel.header.acked) = (Chain([1; 32]), 9);
    let said = victim.tell(from_peer(Message::Parcel(parcel)));
    assert!(!rolled_back(&said) && asks(&said), "{said:?}");
    assert_eq!(victim.holdings(), before);
}

#[test]
fn a_suspended_neighbour_is_told_nothing_new_and_counts_again_in_its_next_life() {
    let mut victim = Victim::new();
    let mut link = victim.true_state();
    link.received = 9;
    victim.tell(from_peer(victim.hello(|hello| hello.link = link)));
    let before = victim.node.ledger();
    // Neither the neighbour's later messages, true or not, nor its parcels change anything.
    for link in [victim.true_state(), link] {
        let said = victim.tell(from_peer(victim.ack(link)));
        assert_eq!((reports(&said), parcels(&said)), (vec![], vec![]));
    }
    let mut parcel = parcel_from_peer(2, 1, 8.0);
    parcel.header.previous = Chain([1; 32]);
    victim.tell(from_peer(Message::Parcel(parcel)));
    assert_eq!(victim.node.ledger(), before);

    victim.peer = Incarnation { incarnation: 2, boot_nonce: 102 };
    victim.tell(from_peer(victim.hello(|_| {})));
    let mut parcel = parcel_from_peer(1, 1, 8.0);
    parcel.header.sender_incarnation = 2;
    victim.tell(from_peer(Message::Parcel(parcel)));
    assert_eq!(victim.node.ledger().incoming[&PEER].received_seq, 1, "it takes part again");
}

/// Genuine codes, each shown for something that it was not made for.
fn misused_codes() -> Vec<(&'static str, Evidence)> {
    let of_victim = Victim::new().said;
    let Evidence { sent: Some(sent), applied: Some(applied) } = of_victim else { panic!("{of_victim:?}") };
    let with_sent = |sent: Sent| Evidence { sent: Some(sent), applied: None };
    let with_applied = |applied: Applied| Evidence { sent: None, applied: Some(applied) };
    let of_other_life = Victim::start(Victim::new().config, Incarnation { incarnation: 2, boot_nonce: 102 }, 4);
    let own_life = Victim::of(4, |config| config.identity.incarnation = 2);
    let other_counter = Victim::of(4, |config| config.generation.counter += 1);
    let other_plan = Victim::of(4, |config| config.generation.plan_hash = [9; 32]);
    let other_node = Victim::of(4, |config| config.keys = Arc::new(TestKeys(PEER)));
    vec![
        ("of this node, which remembers it", of_victim),
        ("under a later parcel", with_sent(Sent { seq: sent.seq + 1, ..sent })),
        ("under the largest number", with_sent(Sent { seq: u64::MAX, ..sent })),
        ("under other parcels", with_sent(Sent { chain: Chain([66; 32]), ..sent })),
        ("under a later acknowledgement", with_applied(Applied { seq: applied.seq + 1, ..applied })),
        ("of the other end", with_applied(Applied { seq: sent.seq, mac: sent.mac })),
        ("of the other end", with_sent(Sent { mac: applied.mac, seq: applied.seq + 8, ..sent })),
        ("for another life of the neighbour", of_other_life.said),
        ("of another life of the node", own_life.said),
        ("of an earlier generation", other_counter.said),
        ("of another plan", other_plan.said),
        ("of another key", other_node.said),
        ("of nobody", with_sent(Sent { seq: 9, mac: Mac::default(), ..sent })),
    ]
}

#[test]
fn a_code_proves_nothing_but_what_it_was_made_for() {
    for (what, evidence) in misused_codes() {
        for (lie_of, lie) in LIES {
            let mut victim = Victim::new();
            let before = victim.holdings();
            let mut link = victim.true_state();
            lie(&mut link);
            let hello = victim.hello(|hello| (hello.link, hello.evidence) = (link, evidence));
            let said = victim.tell(from_peer(hello));
            assert!(!rolled_back(&said), "a code {what}, and {lie_of}: {said:?}");
            assert_eq!(victim.holdings(), before, "a code {what}, and {lie_of}");
        }
    }
}

#[test]
fn a_code_for_one_neighbour_proves_nothing_from_another() {
    const OTHER: NodeId = NodeId(2);
    let links = [(ME, PEER), (PEER, ME), (ME, OTHER), (OTHER, ME)].map(|(from, to)| (from, to, 0.25)).to_vec();
    let schedule = Arc::new(Schedule::new(3, &[Step { keep: vec![0.5, 0.75, 0.75], links }], 0).unwrap());
    // The other neighbour receives no parcel, and shows the codes of this one.
    let plan = |config: &mut NodeConfig| (config.schedule, config.policy) = (schedule.clone(), WaitPolicy::Async);
    let mut config = Victim::new().config;
    plan(&mut config);
    let mut node = Node::new(config.clone()).unwrap();
    let mut said = Evidence::default();
    let hello_of = |id: NodeId, evidence: Evidence| {
        let Message::Hello(mut hello) = hello_from_peer(1, 101) else { unreachable!() };
        hello.identity = SignedIdentity::sign(id, &hello.generation, hello.identity.identity, &TestKeys(id));
        hello.evidence = evidence;
        Input::Received { from: id, message: Message::Hello(hello) }
    };
    let mut inputs = VecDeque::from([Input::Start]);
    for peer in [PEER, OTHER] {
        inputs.extend([Input::LinkUp { peer }, hello_of(peer, Evidence::default())]);
    }
    while let Some(input) = inputs.pop_front() {
        for effect in node.handle(AT, input) {
            match effect {
                Effect::Persist(record) => inputs.push_front(Input::Persisted { number: record.books.number }),
                Effect::Send { to: PEER, message: Message::Parcel(parcel) } => {
                    let ParcelHeader { seq, chain, mac, .. } = parcel.header;
                    said.sent = Some(Sent { seq, chain, mac });
                }
                _ => {}
            }
        }
    }
    assert!(said.sent.is_some());
    // The same node without its records: its codes to the one neighbour prove that it forgot them, only when that one
    // shows them.
    for (from, is_proof) in [(OTHER, false), (PEER, true)] {
        let mut forgetful = Node::new(config.clone()).unwrap();
        forgetful.handle(AT, Input::Start);
        forgetful.handle(AT, Input::LinkUp { peer: from });
        assert_eq!(rolled_back(&forgetful.handle(AT, hello_of(from, said))), is_proof, "node {from}");
    }
}

#[test]
fn a_node_that_was_rolled_back_believes_its_own_word_once() {
    let before = Victim::of(3, |_| {});
    let Evidence { sent, applied } = before.said;
    for evidence in [Evidence { sent, applied: None }, Evidence { sent: None, applied }, before.said] {
        // From every older copy without the state that the codes prove, and not from the newest record.
        for record in &before.written {
            let mut victim = before.started_from(record);
            let (incoming, outgoing) = (&record.books.incoming[&PEER], &record.books.outgoing[&PEER]);
            let forgot_sent = evidence.sent.is_some_and(|sent| outgoing.next_seq <= sent.seq);
            let forgot_applied = evidence.applied.is_some_and(|applied| incoming.applied < applied.seq);
            let said = victim.is_shown(evidence);
            assert_eq!(rolled_back(&said), forgot_sent || forgot_applied, "record {}", record.books.number);
            if rolled_back(&said) {
                assert_eq!(victim.holdings(), (Mass::ZERO, 2));
                assert!(!rolled_back(&victim.is_shown(evidence)), "it was said by the life before");
            }
        }
    }
    let newest = before.written.last().unwrap();
    assert!(!rolled_back(&before.started_from(newest).is_shown(before.said)));
    // Without any record.
    let mut fresh = Victim::of(0, |_| {});
    assert!(rolled_back(&fresh.is_shown(before.said)));
}

#[test]
fn a_node_that_went_another_way_from_an_old_copy_is_shown_what_it_had_sent() {
    let before = Victim::of(2, |_| {});
    let sent = before.said.sent.unwrap();
    // As many parcels as before, but others.
    let old = before.written.iter().find(|record| record.books.outgoing[&PEER].next_seq == sent.seq).unwrap();
    let mut victim = before.started_from(old);
    let link = LinkPositions { acked: 1, next_seq: 2, ..LinkPositions::default() };
    victim.tell(from_peer(victim.hello(|hello| hello.link = link)));
    victim.exchange(2);
    let again = victim.said.sent.filter(|again| again.seq == sent.seq).map(|again| again.chain);
    assert!(again.is_some_and(|chain| chain != sent.chain), "{again:?}");
    assert!(rolled_back(&victim.is_shown(Evidence { sent: Some(sent), applied: None })));
}

#[test]
fn what_a_neighbour_said_is_kept_on_disk_and_shown_to_it_by_the_next_process() {
    let mut keeper = Victim::new();
    let code = Mac::from([7; 16]);
    let mut parcel = parcel_from_peer(2, 1, 8.0);
    (parcel.header.previous, parcel.header.mac) = (Chain([1; 32]), code);
    keeper.tell(from_peer(keeper.ack(LinkPositions { applied_mac: code, ..keeper.true_state() })));
    let applied = keeper.true_state().applied;
    keeper.tell(from_peer(Message::Parcel(parcel)));
    let sent = Sent { seq: 2, chain: Chain([9; 32]), mac: code };
    let known = Evidence { sent: Some(sent), applied: Some(Applied { seq: applied, mac: code }) };
    let record = keeper.written.last().unwrap();
    assert_eq!(record.books.evidence, BTreeMap::from([(PEER, known)]));

    let payloads = keeper.written.iter().filter_map(|record| Some((record.books.number, record.payload.clone()?)));
    let mut next = Node::resume(keeper.config.clone(), record.clone(), &payloads.collect()).unwrap();
    next.handle(AT, Input::Start);
    let shown = |effects: Vec<Effect>| {
        messages(&effects).into_iter().find_map(|message| match message {
            Message::Hello(hello) => Some(hello.evidence),
            _ => None,
        })
    };
    assert_eq!(shown(next.handle(AT, Input::LinkUp { peer: PEER })), Some(known));
    // The next life of the neighbour has given no codes yet.
    keeper.peer = Incarnation { incarnation: 2, boot_nonce: 102 };
    assert_eq!(shown(keeper.tell(from_peer(keeper.hello(|_| {})))), Some(Evidence::default()));
}

/// A leave certificate of the neighbour, with this number of applied parcels of this life of the node.
fn departure(applied: u64, sender_incarnation: u64, evidence: Vec<(NodeId, Sent)>) -> Message {
    let ends = vec![LinkEnd { from: ME, sender_incarnation, applied, rejected: Rejections::default() }];
    let (generation, signature) = (config(ME, 0).generation, Signature::default());
    let certificate = LeaveCertificate { generation, leaver: PEER, incarnation: 1, ends, evidence, signature };
    Message::Left(certificate.signed(&TestKeys(PEER)))
}

#[test]
fn who_leaves_takes_nothing_with_it_by_a_lie_and_tells_the_truth_to_who_was_rolled_back() {
    let before = Victim::of(3, |_| {});
    let sent = before.said.sent.unwrap();
    let forged = Sent { seq: 9, ..sent };
    for (applied, life, evidence) in
        [(9, 1, vec![]), (9, 1, vec![(ME, forged)]), (9, 7, vec![(ME, forged)]), (9, 7, vec![])]
    {
        let mut victim = Victim::of(3, |_| {});
        let held = victim.holdings();
        let said = victim.tell(from_peer(departure(applied, life, evidence)));
        assert!(!rolled_back(&said), "{said:?}");
        assert!(reports(&said).contains(&NodeEvent::MemberLeft { peer: PEER }), "it has left all the same: {said:?}");
        assert!(victim.node.mass() >= held.0 && victim.life() == held.1);
    }
    let old = before.written.iter().find(|record| record.books.outgoing[&PEER].next_seq == sent.seq).unwrap();
    for (evidence, is_proof) in [(vec![], false), (vec![(ME, forged)], false), (vec![(ME, sent)], true)] {
        let said = before.started_from(old).tell(from_peer(departure(sent.seq, 1, evidence)));
        assert_eq!(rolled_back(&said), is_proof, "{said:?}");
        assert!(reports(&said).contains(&NodeEvent::MemberLeft { peer: PEER }));
    }
}

#[test]
fn who_keeps_no_records_gives_no_codes() {
    let (_, effects) = greeted(0);
    assert_eq!(parcels(&effects)[0].header.mac, Mac::default());
}
