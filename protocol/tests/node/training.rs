//! Local training: ordered once a round, guarded by the weight, and not awaited beyond its deadline.

use super::*;

#[test]
fn training_is_asked_for_once_a_round_and_guarded_by_the_weight() {
    let (mut node, effects) = greeted(2);
    let train = effects.iter().find(|effect| matches!(effect, Effect::Train { .. }));
    assert_eq!(
        train,
        Some(&Effect::Train {
            round: 0,
            from: vec![0.0; 3].into(),
            local_steps: 2,
            rounds_left: 10,
            time_box: None,
            last_factor: 1.0
        })
    );
    assert_eq!(node.state(), NodeState::Training);
    // With w = w* the whole change is applied.
    let effects = node.handle(AT, trained(0, 2.0, b""));
    assert_eq!(*node.ratio(), [2.0; 3]);
    let sent = parcels(&effects);
    assert_eq!(sent.len(), 1);
    assert_eq!((&*sent[0].payload.values(), sent[0].header.mass.to_f64()), ([2.0; 3].as_slice(), 0.5));
    // The neighbour goes on without a parcel, so half of the weight is under way when the next step comes.
    let ack = Ack {
        generation: node.config().generation,
        identity: Incarnation { incarnation: 1, boot_nonce: 101 },
        seen: node.config().identity,
        link: LinkPositions { next_seq: 1, passed: 1, ..LinkPositions::default() },
    };
    node.handle(AT, from_peer(Message::Ack(ack)));
    assert_eq!((node.round(), node.w()), (1, 0.5));
    node.handle(AT, trained(1, 1.0, b""));
    // x = 0.5 * 2 + min(1, 2 * 0.5 / 1) * 1 = 2, so z = 4: half of the usual weight carries a whole change, and no
    // change moves z by more than twice itself.
    assert_eq!(*node.ratio(), [4.0; 3]);
    assert_eq!(node.held_back(), None);
}

#[test]
fn a_round_that_nobody_trains_lasts_until_it_is_trained_or_a_neighbour_is_ahead() {
    let (mut node, _) = greeted(2);
    let is_asked = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Train { round: 0, .. }));
    for _ in 0..3 {
        let effects = node.handle(AT, Input::Untrained { round: 0 });
        assert!(is_asked(&effects) && parcels(&effects).is_empty(), "{effects:?}");
    }
    assert_eq!((node.round(), node.state()), (0, NodeState::Training));
    node.handle(AT, from_peer(Message::Parcel(parcel_from_peer(1, 0, 8.0))));
    let effects = node.handle(AT, Input::Untrained { round: 0 });
    assert_eq!((parcels(&effects).len(), node.round()), (1, 1));
    let effects = node.handle(AT, Input::Untrained { round: 0 });
    assert_eq!(reports(&effects), [NodeEvent::Ignored { peer: ME, fault: InputFault::UnexpectedTraining }]);
}

#[test]
fn training_that_was_not_asked_for_is_ignored() {
    let (mut node, _) = greeted(1);
    let before = node.ratio();
    let effects = node.handle(AT, trained(5, 1.0, b""));
    let ignored = NodeEvent::Ignored { peer: ME, fault: InputFault::UnexpectedTraining };
    assert_eq!(reports(&effects), [ignored]);
    assert_eq!(node.ratio(), before);
    assert_eq!(node.state(), NodeState::Training);
}

/// A pair of nodes that train, the first with this deadline, and the time at which they met.
fn impatient(deadline: Duration) -> (Pair, Time) {
    impatient_with(deadline, Durability::Off)
}

fn impatient_with(deadline: Duration, durability: Durability) -> (Pair, Time) {
    let configs = [ME, PEER].map(|id| {
        let mut config = config(id, 2);
        config.policy = WaitPolicy::Bounded { staleness: 8 };
        config.durability = durability;
        config.training_deadline = (id == ME).then_some(deadline);
        config
    });
    let mut pair = Pair::new(configs);
    let effects = pair.meet(AT);
    assert!(effects[0].iter().any(|effect| matches!(effect, Effect::Train { round: 0, .. })));
    (pair, AT)
}

fn trained(round: u64, value: f32, state: &[u8]) -> Input {
    Input::Trained { round, delta: vec![value; 3], steps: 2, state: state.to_vec().into() }
}

fn orders(effects: &[Effect]) -> Vec<(u64, f64)> {
    let order = |effect: &Effect| match effect {
        Effect::Train { round, last_factor, .. } => Some((*round, *last_factor)),
        _ => None,
    };
    effects.iter().filter_map(order).collect()
}

#[test]
fn a_node_whose_trainer_hangs_goes_on_mixing_and_orders_nothing_until_it_answers() {
    let deadline = Duration::from_millis(100);
    let (mut pair, began) = impatient(deadline);
    assert_eq!(pair.nodes[0].next_deadline().map(|at| at <= began + deadline), Some(true));
    let early = pair.settle(began + deadline / 2, 0, Input::Tick);
    assert!(parcels(&early[0]).is_empty(), "it waits for its training");
    let mut now = began + deadline;
    let late = pair.settle(now, 0, Input::Tick);
    assert!(reports(&late[0]).contains(&NodeEvent::TrainingLate { round: 0 }));
    assert!(!parcels(&late[0]).is_empty(), "it mixes without it");
    let mut ordered = orders(&late[0]);
    // The neighbour trains on; the node mixes the parcels that it is sent, round after round.
    for round in 0..4 {
        now = now + Duration::from_millis(10);
        let effects = pair.settle(now, 1, trained(round, 0.0, b""));
        ordered.extend(orders(&effects[0]));
    }
    assert!(ordered.is_empty(), "a second order would wait behind the first: {ordered:?}");
    assert!(pair.nodes[0].round() > 1, "{}", pair.nodes[0].round());
}

/// In the first step of a round both keep their mass; in the second the neighbour gives half to this node; in the third
/// this node gives half back.
fn there_and_back(id: NodeId) -> NodeConfig {
    let alone = Step { keep: vec![1.0, 1.0], links: Vec::new() };
    let there = Step { keep: vec![1.0, 0.5], links: vec![(PEER, ME, 0.5)] };
    let back = Step { keep: vec![0.5, 1.0], links: vec![(ME, PEER, 0.5)] };
    let mut config = config(id, 2);
    config.schedule = Arc::new(Schedule::new(2, &[alone, there, back], 2).unwrap());
    config.policy = WaitPolicy::Bounded { staleness: 8 };
    config
}

fn untrained(round: u64) -> Input {
    Input::Trained { round, delta: vec![0.0; 3], steps: 0, state: HostState::default() }
}

#[test]
fn a_node_that_cannot_train_waits_for_a_parcel_that_is_to_come_and_not_for_one_that_came_before() {
    let mut pair = Pair::new([ME, PEER].map(there_and_back));
    pair.meet(AT);
    // The neighbour waits for the node a while, and then goes ahead: its parcel arrives before its step.
    pair.settle(AT, 1, trained(0, 0.0, b""));
    assert_eq!((pair.nodes[0].round(), pair.nodes[1].round()), (0, 0));
    let later = AT + Duration::from_secs(2);
    pair.settle(later, 1, Input::Tick);
    assert_eq!((pair.nodes[0].round(), pair.nodes[1].round()), (0, 1));
    pair.settle(later, 0, untrained(0));
    assert_eq!(
        (pair.nodes[0].round(), pair.nodes[0].state()),
        (1, NodeState::Training),
        "it need not wait for a deadline"
    );
    // The next parcel has not been sent yet.
    pair.settle(later, 0, untrained(1));
    assert_eq!((pair.nodes[0].round(), pair.nodes[0].state()), (1, NodeState::AwaitingParcels), "it would only spin");
    pair.settle(later, 1, trained(1, 0.0, b""));
    assert_eq!((pair.nodes[0].round(), pair.nodes[0].state()), (2, NodeState::Training));
}

#[test]
fn a_change_that_comes_late_is_that_of_the_next_round_and_its_factor_is_told() {
    let deadline = Duration::from_millis(100);
    let (mut pair, began) = impatient(deadline);
    let mut now = began + deadline;
    pair.settle(now, 0, Input::Tick);
    let before = pair.nodes[0].ratio().to_vec();
    let mut all = pair.settle(now, 0, trained(0, 100.0, b""))[0].clone();
    for round in 0..3 {
        now = now + Duration::from_millis(10);
        all.extend(pair.settle(now, 1, trained(round, 0.0, b""))[0].clone());
    }
    let after = pair.nodes[0].ratio().to_vec();
    assert!(after[0] > before[0] + 10.0, "the change is not in {after:?}");
    let ordered = orders(&all);
    assert_eq!(ordered.len(), 1, "it trains again: {ordered:?}");
    let (round, factor) = ordered[0];
    assert!(round > 0 && factor > 0.0 && factor <= 1.0, "{ordered:?}");
    assert!(!reports(&all).iter().any(|event| matches!(event, NodeEvent::Ignored { .. })));
}

#[test]
fn records_keep_the_state_of_a_training_from_the_one_on_that_has_its_change() {
    let deadline = Duration::from_millis(100);
    let (mut pair, began) = impatient_with(deadline, Durability::On);
    let mut now = began + deadline;
    pair.settle(now, 0, Input::Tick);
    let before = pair.nodes[0].ratio()[0];
    let mut all = pair.settle(now, 0, trained(0, 100.0, b"later"))[0].clone();
    for round in 0..3 {
        now = now + Duration::from_millis(10);
        all.extend(pair.settle(now, 1, trained(round, 0.0, b"neighbour's"))[0].clone());
    }
    let written: Vec<(bool, Vec<u8>)> = records(&all)
        .iter()
        .map(|record| {
            let has_change = record.held_back.is_some() || record.believed_ratio()[0] > before + 10.0;
            (has_change, record.books.host.to_vec())
        })
        .collect();
    assert!(written.iter().any(|(has_change, _)| *has_change), "{written:?}");
    for (has_change, state) in written {
        assert_eq!(state, if has_change { b"later".as_slice() } else { b"" });
    }
}

#[test]
fn a_model_that_a_neighbour_has_made_large_is_told_from_one_that_diverged() {
    let mut configs = [ME, PEER].map(|id| config(id, 2));
    configs.iter_mut().for_each(|config| config.largest_norm = Some(100.0));
    configs[1].initial = vec![57.0; 3];
    let mut pair = Pair::new(configs);
    pair.meet(AT);
    assert!(!pair.nodes[0].is_pulled() && pair.nodes[1].is_pulled(), "a model may begin large");
    pair.settle(AT, 1, trained(0, 0.0, b""));
    pair.settle(AT, 0, trained(0, 0.0, b""));
    assert!(pair.nodes[0].ratio()[0] > 20.0 && pair.nodes[0].is_pulled());
}

#[test]
fn a_training_under_way_when_a_plan_begins_is_that_of_its_first_round() {
    let mut pair = Pair::new([ME, PEER].map(|id| config(id, 2)));
    pair.meet(AT);
    let steps_wanted = 8;
    let effects = enter_both(&mut pair, AT, [ME, PEER].map(|id| enter(id, steps_wanted)));
    assert!(orders(&effects).is_empty(), "{effects:?}");
    assert_eq!((pair.nodes[0].round(), pair.nodes[0].state()), (0, NodeState::Training));
    let before = pair.nodes[0].ratio()[0];
    let [effects, _] = pair.settle(AT, 0, trained(0, 3.0, b"state"));
    assert!(!reports(&effects).iter().any(|event| matches!(event, NodeEvent::Ignored { .. })), "{effects:?}");
    // It counts once, as all of the steps that the order asked for.
    assert_eq!(pair.nodes[0].ratio()[0], before + 3.0);
}

#[test]
fn a_change_that_came_late_is_part_of_the_next_plan() {
    let deadline = Duration::from_millis(100);
    let (mut pair, began) = impatient(deadline);
    let now = began + deadline;
    pair.settle(now, 0, Input::Tick);
    pair.settle(now, 0, trained(0, 3.0, b""));
    assert_eq!(pair.nodes[0].held_back(), Some([3.0; 3].as_slice()));
    let before = pair.nodes[0].ratio()[0];
    let effects = enter_both(&mut pair, now, [ME, PEER].map(|id| enter(id, 2)));
    assert_eq!(pair.nodes[0].held_back(), None);
    assert_eq!(pair.nodes[0].ratio()[0], before + 3.0);
    assert_eq!(orders(&effects), [(0, 1.0)], "{effects:?}");
}

#[test]
fn a_node_that_leaves_hands_over_a_change_that_it_still_holds_back() {
    let deadline = Duration::from_millis(100);
    let (mut pair, began) = impatient(deadline);
    let sum = |pair: &Pair| pair.nodes.iter().map(|node| node.numerator()[0]).sum::<f32>();
    let before = sum(&pair);
    let now = began + deadline;
    pair.settle(now, 0, Input::Tick);
    pair.settle(now, 0, trained(0, 3.0, b""));
    assert_eq!(pair.nodes[0].held_back(), Some([3.0; 3].as_slice()));
    pair.settle(now, 0, Input::Leave);
    // The neighbour takes what it is handed in the steps of the plan.
    for round in 0..4 {
        pair.settle(now, 1, trained(round, 0.0, b""));
    }
    assert!(pair.nodes[0].has_left() && pair.nodes[0].mass().is_zero(), "{:?}", pair.nodes[0].state());
    assert_eq!((pair.nodes[0].held_back(), sum(&pair)), (None, before + 3.0));
}

#[test]
fn a_node_that_leaves_while_its_host_trains_reports_it_and_takes_no_change_after_that() {
    let mut pair = Pair::new([ME, PEER].map(|id| config(id, 2)));
    pair.meet(AT);
    let mut said = Vec::new();
    pair.settle(AT, 0, Input::Leave);
    for round in 0..4 {
        let [effects, _] = pair.settle(AT, 1, trained(round, 0.0, b""));
        said.extend(reports(&effects));
    }
    assert!(pair.nodes[0].has_left(), "{:?}", pair.nodes[0].state());
    let given_up = NodeEvent::DeltaSkipped { round: 0, reason: SkippedDelta::LeftMeanwhile };
    assert_eq!(said.iter().filter(|event| **event == given_up).count(), 1, "{said:?}");
    let [effects, _] = pair.settle(AT, 0, trained(0, 3.0, b""));
    let ignored = NodeEvent::Ignored { peer: ME, fault: InputFault::UnexpectedTraining };
    assert_eq!((reports(&effects), pair.nodes[0].held_back()), (vec![ignored], None));
}

#[test]
fn a_node_that_begins_a_plan_with_the_model_of_another_reports_the_training_that_it_gives_up() {
    let mut pair = Pair::new([ME, PEER].map(|id| config(id, 2)));
    pair.meet(AT);
    let Input::Enter(mut new) = enter(ME, 2) else { panic!("no plan") };
    new.ratio = Some(vec![7.0; 3]);
    let effects = enter_both(&mut pair, AT, [Input::Enter(new), enter(PEER, 2)]);
    let given_up = NodeEvent::DeltaSkipped { round: 0, reason: SkippedDelta::OtherModel };
    assert!(reports(&effects).contains(&given_up), "{effects:?}");
    assert_eq!(orders(&effects).len(), 1, "{effects:?}");
}

/// Lets both nodes enter a plan and meet there; returns the effects of the first.
fn enter_both(pair: &mut Pair, now: Time, entries: [Input; 2]) -> Vec<Effect> {
    let mut of_first = Vec::new();
    for (node, entry) in entries.into_iter().enumerate() {
        of_first.extend(pair.settle(now, node, entry)[0].clone());
    }
    for (node, peer) in [(0, PEER), (1, ME)] {
        of_first.extend(pair.settle(now, node, Input::LinkUp { peer })[0].clone());
    }
    of_first
}

/// The second plan of the pair, with this number of local steps.
fn enter(id: NodeId, local_steps: u32) -> Input {
    let generation = Generation { counter: 1, plan_hash: [4; 32] };
    let (schedule, keys) = (exchange_half(local_steps), Arc::new(NoKeys));
    Input::Enter(Box::new(NewGeneration { generation, schedule, id, keys, rounds: 10, ratio: None }))
}

#[test]
fn a_step_is_not_compared_with_those_that_a_node_took_alone_while_its_neighbour_was_away() {
    let is_clipped = |goes_away: bool| {
        let mut pair = Pair::new([ME, PEER].map(|id| config(id, 2)));
        pair.meet(AT);
        for round in 0..8 {
            (0..2).for_each(|node| drop(pair.settle(AT, node, trained(round, 1e-6, b""))));
        }
        if goes_away {
            pair.settle(AT, 0, Input::LinkDown { peer: PEER });
            pair.settle(AT, 1, Input::LinkDown { peer: ME });
            pair.settle(AT, 0, Input::LinkUp { peer: PEER });
            let [effects, _] = pair.settle(AT, 1, Input::LinkUp { peer: ME });
            assert!(reports(&effects).contains(&NodeEvent::NeighbourBack { peer: PEER }), "{effects:?}");
        }
        let [effects, _] = pair.settle(AT, 0, trained(8, 1.0, b""));
        reports(&effects).iter().any(|event| matches!(event, NodeEvent::DeltaClipped { .. }))
    };
    assert!(is_clipped(false));
    assert!(!is_clipped(true));
}

/// Two nodes of which the first trains for 3 `unit` and the second for `unit` in each of three rounds, the start of the
/// fourth round, and the effects of the first node there.
fn pair_with_a_slow_first_node(unit: Duration) -> (Pair, Time, Vec<Effect>) {
    let mut configs = [config(ME, LOCAL_STEPS), config(PEER, LOCAL_STEPS)];
    for config in &mut configs {
        (config.policy, config.keeps_up) = (WaitPolicy::default(), true);
    }
    let mut pair = Pair::new(configs);
    let [mut effects, _] = pair.meet(AT);
    let mut began = AT;
    for round in 0..3 {
        assert_eq!(time_boxes(&effects), [None], "round {round}");
        pair.settle(began + unit, 1, all_trained(round));
        began = began + 3 * unit;
        [effects, _] = pair.settle(began, 0, all_trained(round));
    }
    (pair, began, effects)
}

/// All local steps of a round of [`pair_with_a_slow_first_node`].
const LOCAL_STEPS: u32 = 10;

fn all_trained(round: u64) -> Input {
    Input::Trained { round, delta: vec![1.0; 3], steps: LOCAL_STEPS, state: HostState::default() }
}

#[test]
fn a_node_is_not_slow_where_its_training_is_within_the_shortest_limit() {
    // 3 times as long as its neighbour: 48 ms, which no limit cuts, and 51 ms.
    let far_slower = |ms| {
        let (_, _, effects) = pair_with_a_slow_first_node(Duration::from_millis(ms));
        let is_told = reports(&effects).iter().any(|event| matches!(event, NodeEvent::FarSlower { .. }));
        (is_told, time_boxes(&effects))
    };
    assert_eq!(far_slower(16), (false, vec![None]));
    assert_eq!(far_slower(17), (true, vec![Some(Duration::from_millis(50))]));
}

#[test]
fn a_node_that_trains_three_times_as_long_as_its_neighbour_boxes_its_training_until_another_plan_begins() {
    let (mut pair, began, effects) = pair_with_a_slow_first_node(Duration::from_millis(100));
    assert_eq!(time_boxes(&effects), [Some(Duration::from_millis(125))]);
    let [own, others] = [300, 100].map(Duration::from_millis);
    assert!(reports(&effects).contains(&NodeEvent::FarSlower { round: 3, own, others }), "{effects:?}");

    enter_both(&mut pair, began, [ME, PEER].map(|id| enter(id, LOCAL_STEPS)));
    // The trainings under way are those of the first round.
    pair.settle(began, 1, all_trained(3));
    let [effects, _] = pair.settle(began, 0, all_trained(3));
    let boxes = time_boxes(&effects);
    assert_eq!(boxes, [None], "what was measured is of the plan before");
}

/// Time boxes of the trainings that a host was asked for.
fn time_boxes(effects: &[Effect]) -> Vec<Option<Duration>> {
    let time_box = |effect: &Effect| if let Effect::Train { time_box, .. } = effect { Some(*time_box) } else { None };
    effects.iter().filter_map(time_box).collect()
}
