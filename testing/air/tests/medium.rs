//! The medium on virtual time: reception, collisions, access, acknowledgements, loss, counts.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use mingle_air::{
    Acknowledgements, Air, AirFrame, AirLoss, AirSettings, CarrierSense, FrameOutcome, RadioCounts, Recipient,
};
use mingle_planner::Topology;
use proptest::prelude::*;

const FRAME: usize = 1_242;

fn topology(text: &str) -> Topology {
    Topology::parse(text).unwrap()
}

/// a - b - c: a and c are out of each other's range.
fn hidden_senders() -> Topology {
    topology("a b\nb c\n")
}

fn to_all(payload: u32) -> AirFrame<u32> {
    AirFrame { recipient: Recipient::All, bytes: FRAME, payload }
}

fn to_one(node: usize, payload: u32) -> AirFrame<u32> {
    AirFrame { recipient: Recipient::One(node), bytes: FRAME, payload }
}

fn with_carrier_sense(seed: u64) -> AirSettings {
    AirSettings { carrier_sense: Some(CarrierSense::default()), seed, ..AirSettings::default() }
}

fn with_acknowledgements(seed: u64) -> AirSettings {
    AirSettings { acknowledgements: Some(Acknowledgements::default()), ..with_carrier_sense(seed) }
}

/// Runs an air until nothing is left to happen.
fn run(air: &mut Air<u32>) -> Vec<FrameOutcome<u32>> {
    let mut outcomes = Vec::new();
    while let Some(next) = air.next_event() {
        outcomes.extend(air.advance(next));
    }
    outcomes
}

/// Receivers and contents of what arrived, in order.
fn received(outcomes: &[FrameOutcome<u32>]) -> Vec<(usize, u32)> {
    let one = |outcome: &FrameOutcome<u32>| match outcome {
        FrameOutcome::Received { node, frame, .. } => Some((*node, frame.payload)),
        FrameOutcome::Left { .. } => None,
    };
    outcomes.iter().filter_map(one).collect()
}

#[test]
fn a_frame_reaches_the_neighbours_and_takes_its_bytes_at_the_rate() {
    let settings = AirSettings::default();
    let mut air = Air::new(&topology("a b\nb c\nc d\n"), &settings).unwrap();
    air.send(Duration::ZERO, 1, to_all(7)).unwrap();
    let outcomes = run(&mut air);
    assert_eq!(received(&outcomes), [(0, 7), (2, 7)]);
    let airtime = Duration::from_nanos(100_000 + 1_242 * 800);
    assert_eq!(settings.airtime(FRAME), airtime);
    assert_eq!((air.now(), air.busy(), air.counts()[1].airtime), (airtime, airtime, airtime));
    assert_eq!(air.counts()[3], RadioCounts::default());
}

#[test]
fn two_hidden_senders_collide_at_the_node_between_them() {
    for settings in [AirSettings::default(), with_carrier_sense(1)] {
        let mut air = Air::new(&hidden_senders(), &settings).unwrap();
        air.send(Duration::ZERO, 0, to_all(0)).unwrap();
        air.send(Duration::ZERO, 2, to_all(2)).unwrap();
        assert_eq!(received(&run(&mut air)), []);
        assert_eq!(air.counts()[1].collided, 2);
        assert_eq!(air.counts()[1].received, 0);
    }
}

#[test]
fn a_part_of_a_frame_that_overlaps_is_enough_to_lose_both() {
    let settings = AirSettings::default();
    let airtime = settings.airtime(FRAME);
    for (second, expected) in [(airtime - Duration::from_nanos(1), vec![]), (airtime, vec![(1, 0), (1, 2)])] {
        let mut air = Air::new(&hidden_senders(), &settings).unwrap();
        air.send(Duration::ZERO, 0, to_all(0)).unwrap();
        air.send(second, 2, to_all(2)).unwrap();
        assert_eq!(received(&run(&mut air)), expected, "the second began after {second:?}");
    }
}

#[test]
fn a_node_that_sends_receives_nothing() {
    let mut air = Air::new(&hidden_senders(), &AirSettings::default()).unwrap();
    air.send(Duration::ZERO, 0, to_all(0)).unwrap();
    air.send(Duration::from_micros(10), 1, to_all(1)).unwrap();
    // b is in range of a, and a still sends when b begins: c alone receives b.
    assert_eq!(received(&run(&mut air)), [(2, 1)]);
    assert_eq!((air.counts()[0].missed, air.counts()[1].missed), (1, 1));
}

#[test]
fn carrier_sense_keeps_two_senders_in_range_apart() {
    let pair = topology("a b\nb c\na c\n");
    for seed in 0..200 {
        let mut air = Air::new(&pair, &with_carrier_sense(seed)).unwrap();
        air.send(Duration::ZERO, 0, to_all(0)).unwrap();
        // The second one begins while the first is on the air, whatever its back-off was: at most 34 + 15 * 9 us.
        air.send(Duration::from_micros(200), 1, to_all(1)).unwrap();
        assert_eq!(received(&run(&mut air)), [(1, 0), (2, 0), (0, 1), (2, 1)], "seed {seed}");
        assert!(air.counts().iter().all(|counts| counts.collided + counts.missed == 0), "seed {seed}");
    }
}

#[test]
fn without_carrier_sense_the_same_two_senders_collide() {
    let mut air = Air::new(&topology("a b\nb c\na c\n"), &AirSettings::default()).unwrap();
    air.send(Duration::ZERO, 0, to_all(0)).unwrap();
    air.send(Duration::from_micros(200), 1, to_all(1)).unwrap();
    assert_eq!(received(&run(&mut air)), []);
    assert_eq!(air.counts()[2].collided, 2);
}

#[test]
fn senders_in_range_share_the_channel_and_lose_little_to_equal_backoffs() {
    let clique = Topology::generate("complete:n=5").unwrap();
    let mut air = Air::new(&clique, &with_carrier_sense(3)).unwrap();
    for node in 0..5 {
        (0..200).for_each(|number| air.send(Duration::ZERO, node, to_all(number)).unwrap());
    }
    run(&mut air);
    let counts = air.counts();
    let in_range: u64 = counts.iter().map(RadioCounts::in_range).sum();
    let lost: u64 = counts.iter().map(|counts| counts.collided + counts.missed).sum();
    let share = lost as f64 / in_range as f64;
    // Five saturated stations send in a slot with 2 / 17 each (Bianchi), and collide with 1 - (15 / 17)^4 = 0.394.
    assert!((0.34..0.45).contains(&share), "{share} of {in_range} were lost");
}

#[test]
fn a_frame_to_one_node_is_acknowledged_and_its_retries_deliver_it_once() {
    let settings = AirSettings { loss: AirLoss::Uniform(0.3), ..with_acknowledgements(5) };
    let mut air = Air::new(&topology("a b\n"), &settings).unwrap();
    (0..500).for_each(|number| air.send(Duration::ZERO, 0, to_one(1, number)).unwrap());
    let outcomes = run(&mut air);
    // A try succeeds both ways with 0.49; all eight fail for one frame in 218.
    assert_eq!(
        received(&outcomes).iter().map(|&(_, number)| number).collect::<std::collections::BTreeSet<_>>().len(),
        received(&outcomes).len()
    );
    assert!(received(&outcomes).len() >= 495, "{} arrived", received(&outcomes).len());
    let counts = air.counts();
    assert!((400..700).contains(&counts[0].retries), "{} retries", counts[0].retries);
    assert_eq!(counts[0].frames, 500 + counts[0].retries);
    assert!(counts[1].repeated > 50, "{} repeated", counts[1].repeated);
    assert_eq!(counts[1].received, received(&outcomes).len() as u64 + counts[1].repeated);
    assert_eq!(counts[1].acknowledgements, counts[1].received);
}

#[test]
fn a_frame_to_a_node_out_of_range_is_given_up_after_its_retries() {
    let mut air = Air::new(&hidden_senders(), &with_acknowledgements(0)).unwrap();
    air.send(Duration::ZERO, 0, to_one(2, 9)).unwrap();
    let outcomes = run(&mut air);
    assert!(matches!(outcomes[..], [FrameOutcome::Left { node: 0, is_sent: false, .. }]), "{outcomes:?}");
    let counts = air.counts();
    assert_eq!((counts[0].frames, counts[0].retries, counts[0].given_up), (8, 7, 1));
    assert_eq!((counts[1].overheard, counts[2].in_range()), (8, 0));
}

#[test]
fn frames_to_all_are_neither_acknowledged_nor_repeated() {
    let settings = AirSettings { loss: AirLoss::Uniform(0.5), ..with_acknowledgements(2) };
    let mut air = Air::new(&Topology::generate("star:n=6").unwrap(), &settings).unwrap();
    (0..100).for_each(|number| air.send(Duration::ZERO, 0, to_all(number)).unwrap());
    run(&mut air);
    let counts = air.counts();
    assert_eq!((counts[0].frames, counts[0].group_frames, counts[0].retries), (100, 100, 0));
    assert!(counts.iter().all(|counts| counts.acknowledgements == 0));
}

#[test]
fn chance_loses_the_share_it_is_given() {
    let settings = AirSettings { loss: AirLoss::Uniform(0.2), seed: 11, ..AirSettings::default() };
    let mut air = Air::new(&Topology::generate("star:n=11").unwrap(), &settings).unwrap();
    (0..2_000).for_each(|number| air.send(Duration::ZERO, 0, to_all(number)).unwrap());
    run(&mut air);
    let lost: u64 = air.counts().iter().map(|counts| counts.lost).sum();
    // 20,000 draws: the standard deviation is 57.
    assert!((3_750..4_250).contains(&lost), "{lost} of 20,000 were lost");
}

#[test]
fn loss_by_distance_grows_with_the_square_of_the_length() {
    let line = topology("a b\na c\n").with_positions(vec![[0.0, 0.0], [0.5, 0.0], [0.0, 1.0]]);
    let settings = AirSettings { loss: AirLoss::AtRange(0.4), seed: 4, ..AirSettings::default() };
    let mut air = Air::new(&line, &settings).unwrap();
    (0..10_000).for_each(|number| air.send(Duration::ZERO, 0, to_all(number)).unwrap());
    run(&mut air);
    let lost: Vec<u64> = air.counts().iter().map(|counts| counts.lost).collect();
    assert!((880..1_120).contains(&lost[1]) && (3_800..4_200).contains(&lost[2]), "{lost:?}");
    assert!(Air::<u32>::new(&hidden_senders(), &settings).is_err(), "there are no positions");
}

#[test]
fn a_node_that_disturbs_without_being_received_spoils_frames() {
    let base = topology("a b\nb c\nc d\n").with_interference(&[(0, 1), (1, 2), (2, 3), (1, 3)]).unwrap();
    let mut air = Air::new(&base, &AirSettings::default()).unwrap();
    air.send(Duration::ZERO, 0, to_all(0)).unwrap();
    air.send(Duration::ZERO, 3, to_all(3)).unwrap();
    assert_eq!(received(&run(&mut air)), [(2, 3)]);
    assert_eq!((air.counts()[1].collided, air.counts()[1].in_range()), (1, 1));
}

#[test]
fn impossible_settings_and_frames_are_refused() {
    let base = hidden_senders();
    let sound = || with_acknowledgements(0);
    let slow = Acknowledgements { space: Duration::from_millis(1), ..Acknowledgements::default() };
    let no_slot = CarrierSense { slot: Duration::ZERO, ..CarrierSense::default() };
    for wrong in [
        AirSettings { rate: 0, ..sound() },
        AirSettings { loss: AirLoss::Uniform(1.0), ..sound() },
        AirSettings { loss: AirLoss::Uniform(f64::NAN), ..sound() },
        AirSettings { queue_frames: 0, ..sound() },
        AirSettings { frame_overhead: Duration::MAX, ..sound() },
        AirSettings { acknowledgements: Some(slow), ..sound() },
        AirSettings { carrier_sense: Some(no_slot), ..sound() },
    ] {
        assert!(Air::<u32>::new(&base, &wrong).is_err(), "{wrong:?}");
    }
    let mut air = Air::new(&base, &AirSettings { queue_frames: 2, ..sound() }).unwrap();
    assert!(air.send(Duration::ZERO, 3, to_all(0)).is_err());
    assert!(air.send(Duration::ZERO, 0, to_one(3, 0)).is_err());
    assert!(air.send(Duration::ZERO, 0, AirFrame { bytes: 100_000, ..to_all(0) }).is_err());
    (0..2).for_each(|number| air.send(Duration::ZERO, 0, to_all(number)).unwrap());
    assert!(air.send(Duration::ZERO, 0, to_all(2)).is_err());
    assert_eq!(air.counts()[0].dropped, 1);
}

/// The time of a frame in microseconds, its sender, and its recipient; 9 and above are all.
type TimedFrame = (u64, usize, usize);

/// Frames at random times between random nodes, on a random graph: seed, carrier sense, acknowledgements, loss, frames.
fn traffic() -> impl Strategy<Value = (u64, bool, bool, f64, Vec<TimedFrame>)> {
    let frames = proptest::collection::vec((0_u64..200_000, 0_usize..9, 0_usize..12), 1..120);
    (0_u64..50, any::<bool>(), any::<bool>(), 0.0..0.5, frames)
}

fn play(seed: u64, senses: bool, acknowledges: bool, loss: f64, frames: &[TimedFrame]) -> (Air<u32>, usize) {
    let base = Topology::generate(&format!("rg:n=9,r=0.45,seed={seed}")).unwrap();
    let settings = AirSettings {
        carrier_sense: senses.then(CarrierSense::default),
        acknowledgements: acknowledges.then(Acknowledgements::default),
        loss: AirLoss::Uniform(loss),
        seed,
        ..AirSettings::default()
    };
    let mut air = Air::new(&base, &settings).unwrap();
    let mut frames = frames.to_vec();
    frames.sort_unstable();
    for (number, &(at, node, to)) in (0..).zip(&frames) {
        let frame = if to < 9 && to != node { to_one(to, number) } else { to_all(number) };
        air.send(Duration::from_micros(at), node, frame).unwrap();
    }
    let left = run(&mut air).iter().filter(|outcome| matches!(outcome, FrameOutcome::Left { .. })).count();
    (air, left)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn counts_add_up((seed, senses, acknowledges, loss, frames) in traffic()) {
        let base = Topology::generate(&format!("rg:n=9,r=0.45,seed={seed}")).unwrap();
        let (air, left) = play(seed, senses, acknowledges, loss, &frames);
        let counts = air.counts();
        prop_assert_eq!(left, frames.len());
        // Each transmission ends once at each node in range.
        let ended: u64 = counts.iter().map(RadioCounts::in_range).sum();
        let sent = |node: usize| counts[node].frames + counts[node].acknowledgements;
        let expected: u64 = (0..9).map(|node| sent(node) * base.neighbors(node).len() as u64).sum();
        prop_assert_eq!(ended, expected);
        // First tries are the frames; retries and failures need acknowledgements.
        let first: u64 = counts.iter().map(|counts| counts.frames - counts.retries).sum();
        prop_assert_eq!(first, frames.len() as u64);
        let airtime: Duration = counts.iter().map(|counts| counts.airtime).sum();
        let settings = air.settings();
        let of_frames: u64 = counts.iter().map(|counts| counts.frames).sum();
        let of_acks: u64 = counts.iter().map(|counts| counts.acknowledgements).sum();
        let expected = settings.airtime(FRAME) * of_frames as u32 + settings.airtime(14) * of_acks as u32;
        prop_assert_eq!(airtime, expected);
        prop_assert!(air.busy() <= airtime && air.busy() * 9 >= airtime);
        prop_assert!(air.busy() <= air.now());
        if !acknowledges {
            prop_assert_eq!(counts.iter().map(|counts| counts.retries + counts.given_up + counts.repeated).sum::<u64>(), 0);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_counts((seed, senses, acknowledges, loss, frames) in traffic()) {
        let (first, _) = play(seed, senses, acknowledges, loss, &frames);
        let (second, _) = play(seed, senses, acknowledges, loss, &frames);
        prop_assert_eq!(first.counts(), second.counts());
        prop_assert_eq!((first.now(), first.busy()), (second.now(), second.busy()));
    }
}
