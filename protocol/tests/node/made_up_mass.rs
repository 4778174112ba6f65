//! Weight that a member claims in its parcels and never had, and weight that nobody can take from it.

use std::collections::BTreeSet;

use mingle_protocol::InjectedBug;

use super::*;

/// Number of nodes that all send to all; node 0 claims too much weight.
const NODES: u32 = 6;
/// Rounds of a run, each of one step.
const ROUNDS: u64 = 4_000;

fn all_to_all() -> Arc<Schedule> {
    let ids = || (0..NODES).map(NodeId);
    let links = ids().flat_map(|from| ids().map(move |to| (from, to))).filter(|(from, to)| from != to);
    let share = 1.0 / f64::from(NODES);
    let step = Step { keep: vec![share; NODES as usize], links: links.map(|(from, to)| (from, to, share)).collect() };
    Arc::new(Schedule::new(NODES as usize, &[step], 1).unwrap())
}

fn config_of(id: u32) -> NodeConfig {
    let mut config = NodeConfig::new(NodeId(id), all_to_all(), vec![f32::from(id as u8); 3], ROUNDS);
    config.identity.boot_nonce = u64::from(id);
    config
}

/// Nodes that train for a second a round, wired without delay. Parcels of node 0 claim `factor` times their weight, or
/// cannot be decoded.
struct Swarm {
    nodes: Vec<Node>,
    factor: u64,
    /// The steps in which they do.
    is_claiming: fn(u64) -> bool,
    /// Set when it never claims more than a sound node may put into a parcel.
    is_careful: bool,
    /// Set when its parcels are differences to a reference that nobody has.
    is_undecodable: bool,
    /// Set when it does not hear that parcels came which it did not send itself.
    is_deaf: bool,
    events: Vec<(usize, NodeEvent)>,
    trainings: Vec<(usize, u64)>,
}

impl Swarm {
    fn new(factor: u64, is_careful: bool) -> Self {
        let (nodes, is_claiming) = ((0..NODES).map(|id| Node::new(config_of(id)).unwrap()).collect(), |_| true);
        Self {
            nodes,
            factor,
            is_claiming,
            is_careful,
            is_undecodable: false,
            is_deaf: false,
            events: Vec::new(),
            trainings: Vec::new(),
        }
    }

    fn settle(&mut self, now: Time, inputs: Vec<(usize, Input)>) {
        let mut inbox: VecDeque<_> = inputs.into();
        while let Some((to, input)) = inbox.pop_front() {
            for effect in self.nodes[to].handle(now, input) {
                match effect {
                    Effect::Send { to: receiver, mut message } => {
                        if let (0, Message::Parcel(parcel)) = (to, &mut message)
                            && (self.is_claiming)(parcel.header.step)
                        {
                            let made_up = Mass::from_units(self.factor * parcel.header.mass.units());
                            let heaviest = all_to_all().heaviest_parcel(NodeId(0), receiver, parcel.header.step);
                            parcel.header.mass = if self.is_careful { made_up.min(heaviest) } else { made_up };
                            if self.is_undecodable {
                                parcel.payload = parcel.payload.clone().against_named(ReferenceId([7; 16]));
                            }
                        }
                        if let (true, NodeId(0), Message::Ack(ack)) = (self.is_deaf, receiver, &mut message) {
                            ack.link.received = 0;
                        }
                        let from = NodeId(to as u32);
                        inbox.push_back((receiver.index(), Input::Received { from, message }));
                    }
                    Effect::Train { round, .. } => self.trainings.push((to, round)),
                    Effect::Report(event) => self.events.push((to, event)),
                    _ => {}
                }
            }
        }
    }

    fn run(&mut self, rounds: u64) {
        let ids = 0..NODES as usize;
        let starts = ids.clone().map(|id| (id, Input::Start));
        let pairs = ids.clone().flat_map(|id| ids.clone().map(move |peer| (id, peer))).filter(|(id, peer)| id != peer);
        let links = pairs.map(|(id, peer)| (id, Input::LinkUp { peer: NodeId(peer as u32) }));
        self.settle(AT, starts.chain(links).collect());
        self.go_on(1..=rounds);
    }

    fn go_on(&mut self, rounds: std::ops::RangeInclusive<u64>) {
        for round in rounds {
            let trained = std::mem::take(&mut self.trainings).into_iter().map(|(id, round)| {
                (id, Input::Trained { round, delta: vec![0.0; 3], steps: 1, state: HostState::default() })
            });
            self.settle(AT + Duration::from_secs(round), trained.collect());
        }
    }

    fn who_reports(&self, is_one: fn(&NodeEvent) -> bool) -> BTreeSet<usize> {
        self.events.iter().filter(|(_, event)| is_one(event)).map(|(id, _)| *id).collect()
    }
}

fn is_refusal(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::ParcelRefused { peer: NodeId(0), .. })
}

fn is_alarm(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::MassHigh { .. })
}

#[test]
fn parcels_that_weigh_more_than_any_sound_one_are_refused_and_their_sender_is_left_alone() {
    let mut swarm = Swarm::new(5, false);
    swarm.run(40);
    let others: BTreeSet<usize> = (1..NODES as usize).collect();
    assert_eq!(swarm.who_reports(is_refusal), others);
    for (id, node) in swarm.nodes.iter().enumerate().skip(1) {
        let view = node.neighbour_views().next().unwrap();
        assert_eq!((view.id, view.suspended), (NodeId(0), Some(Suspension::Refused)), "node {id}");
    }
    let weights: f64 = swarm.nodes.iter().skip(1).map(Node::w).sum();
    assert!(weights <= f64::from(NODES), "the sound nodes hold {weights}");
}

#[test]
fn a_parcel_that_is_too_heavy_now_and_then_in_a_long_run_suspends_no_neighbour() {
    let mut swarm = Swarm::new(5, false);
    swarm.is_claiming = |step| [10, 1_200, 2_400, 3_600].contains(&step);
    swarm.run(3_700);
    let refusals = swarm.events.iter().filter(|(_, event)| is_refusal(event)).count();
    assert_eq!(refusals, 4 * (NODES as usize - 1));
    for (id, node) in swarm.nodes.iter().enumerate().skip(1) {
        assert_eq!(node.neighbour_views().next().unwrap().suspended, None, "node {id}");
    }
}

#[test]
fn a_member_that_makes_weight_up_little_by_little_makes_the_others_raise_the_alarm() {
    let mut swarm = Swarm::new(4, true);
    swarm.run(200);
    assert_eq!(swarm.who_reports(is_refusal), BTreeSet::new());
    let alarmed = swarm.who_reports(is_alarm);
    assert!(alarmed.is_superset(&(1..NODES as usize).collect()), "{alarmed:?}");
    let mut honest = Swarm::new(1, true);
    honest.run(200);
    assert_eq!(honest.who_reports(is_alarm), BTreeSet::new());
    let weights: u64 = honest.nodes.iter().map(|node| node.mass().units()).sum();
    assert_eq!(weights, u64::from(NODES) * UNITS_PER_ONE);
}

#[test]
fn what_piled_up_at_a_node_goes_out_in_parcels_of_sound_weight() {
    let schedule = all_to_all();
    let share = Mass::from_units(UNITS_PER_ONE / u64::from(NODES));
    let heaviest = schedule.heaviest_parcel(NodeId(0), NodeId(1), 7);
    assert!(heaviest.units().abs_diff(4 * share.units()) < 100, "{heaviest}");
    assert_eq!(schedule.heaviest_parcel(NodeId(0), NodeId(0), 7), Mass::ZERO, "there is no such link");
}

#[test]
fn a_neighbour_whose_parcels_were_refused_does_not_wash_that_off_with_a_new_life() {
    let heavy = |seq: u64, life: u64| {
        let mut parcel = parcel_from_peer(1, seq, 5.0);
        parcel.payload = Payload::new(&[1e6; 3]).unwrap();
        parcel.header.sender_incarnation = life;
        from_peer(Message::Parcel(parcel))
    };
    let mut config = config(ME, 1);
    (config.largest_norm, config.rounds) = (Some(100.0), 1_000);
    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::LinkUp { peer: PEER });
    let is_suspended = |node: &Node| node.neighbour_views().next().unwrap().suspended == Some(Suspension::Refused);
    let mut strikes = Vec::new();
    for life in 1..=4 {
        node.handle(AT, from_peer(hello_from_peer(life, 100 + life)));
        assert!(!is_suspended(&node), "life {life} is tried again");
        let mut refused = 0;
        while !is_suspended(&node) && refused < 5 {
            let mut input = heavy(refused, life);
            if let Input::Received { message: Message::Parcel(parcel), .. } = &mut input {
                parcel.header.seq = refused + 1;
                parcel.header.previous = if refused == 0 { Chain::default() } else { Chain([9; 32]) };
            }
            node.handle(AT, input);
            refused += 1;
        }
        strikes.push(refused);
    }
    assert_eq!(strikes, [3, 1, 1, 1]);
}

#[test]
fn weight_made_up_within_the_bound_for_long_makes_no_sound_node_refuse_another_for_good() {
    let mut swarm = Swarm::new(4, true);
    swarm.run(2_000);
    let of_sound = |(node, event): &(usize, NodeEvent)| match event {
        NodeEvent::NeighbourSuspended { peer, .. } => *node != 0 && *peer != NodeId(0),
        NodeEvent::Ignored { .. } => *node != 0,
        _ => false,
    };
    let between: Vec<_> = swarm.events.iter().filter(|event| of_sound(event)).collect();
    assert!(between.is_empty(), "{between:?}");
    for node in &swarm.nodes[1..] {
        assert!(node.round() >= 990, "node {} is in round {}", node.id(), node.round());
        assert!(node.w() <= f64::from(NODES), "{}", node.w());
    }
}

#[test]
fn a_member_whose_parcels_nobody_can_decode_gives_nothing_and_is_named_as_one_that_keeps() {
    let mut swarm = Swarm::new(1, false);
    swarm.is_undecodable = true;
    swarm.run(200);
    let others: BTreeSet<usize> = (1..NODES as usize).collect();
    let is_missing = |event: &NodeEvent| matches!(event, NodeEvent::ReferenceMissing { peer: NodeId(0), .. });
    assert_eq!(swarm.who_reports(is_missing), others);
    let is_keeping = |event: &NodeEvent| matches!(event, NodeEvent::NeighbourKeeps { peer: NodeId(0), .. });
    assert_eq!(swarm.who_reports(is_keeping), others);
    for node in swarm.nodes.iter().skip(1) {
        let from_liar = &node.ledger().incoming[&NodeId(0)];
        assert_eq!(from_liar.applied_in_all(), 0, "node {}", node.id());
        assert!(node.w() > 0.5, "node {} keeps {}", node.id(), node.w());
    }
}

#[test]
fn a_member_that_gives_one_unit_for_the_last_step_and_takes_all_is_named() {
    let mut swarm = Swarm::new(1, false);
    swarm.is_deaf = true;
    let mut config = config_of(0);
    config.inject(InjectedBug::KeepsAll);
    swarm.nodes[0] = Node::new(config).unwrap();
    swarm.run(10);
    let mut parcel = parcel_from_peer(1, ROUNDS - 1, 1.0);
    parcel.header.generation = swarm.nodes[1].config().generation;
    parcel.header.mass = Mass::from_units(1);
    let gift = Input::Received { from: NodeId(0), message: Message::Parcel(parcel) };
    swarm.settle(AT + Duration::from_secs(10), (1..NODES as usize).map(|id| (id, gift.clone())).collect());
    swarm.go_on(11..=200);
    let is_keeping = |event: &NodeEvent| matches!(event, NodeEvent::NeighbourKeeps { peer: NodeId(0), .. });
    assert_eq!(swarm.who_reports(is_keeping), (1..NODES as usize).collect());
    for node in &swarm.nodes[1..] {
        let from_taker = node.neighbour_views().next().unwrap().incoming.unwrap();
        assert_eq!(from_taker.queued_parcels, 0, "node {} does not wait for the last step with it", node.id());
        assert_eq!(node.ledger().incoming[&NodeId(0)].applied_in_all(), 1, "node {}", node.id());
    }
}
