//! The times of slots beside neighbours that lie, differ, or fall silent.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use mingle_multicast::*;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const MS: Duration = Duration::from_millis(1);
const ROUND: u32 = 4;

fn length() -> SlotLength {
    SlotLength::of(100_000, 1_200, "10mbit".parse().unwrap())
}

/// Node `node` of four, each of which has the slot of its number in each round, and sends to the next one.
fn rhythm(node: u32) -> Rhythm {
    let own = vec![((node + 1) % ROUND, node)];
    let step = StepSlots { slots: ROUND, own, last_busy: Some(node), quiet: Vec::new() };
    Rhythm::new(SlotTable::new(1, vec![step]).unwrap(), ROUND as usize, node, length())
}

/// A node of a plan whose rounds differ: it sends in the second one of two alone.
fn rhythm_of_unlike_rounds() -> Rhythm {
    let step = |slots, own| StepSlots { slots, own, last_busy: Some(0), quiet: Vec::new() };
    let table = SlotTable::new(1, vec![step(2, Vec::new()), step(5, vec![(0, 3)])]).unwrap();
    Rhythm::new(table, 4, 3, length())
}

fn offer(rhythm: &mut Rhythm, node: u32, step: u64, now: Duration) -> SlotWindow {
    rhythm.offer(step, (node + 1) % ROUND, None, now).unwrap()
}

#[test]
fn a_payload_has_the_slot_of_its_link_in_the_next_round_if_it_is_late() {
    let mut rhythm = rhythm(2);
    let slot = rhythm.slot();
    let first = offer(&mut rhythm, 2, 0, 500 * MS);
    assert_eq!((first.start, first.is_late), (500 * MS + 2 * slot, false), "rounds begin with the first payload");
    assert_eq!(first.end, first.start + slot - length().guard());
    let late = offer(&mut rhythm, 2, 1, first.start + ROUND * slot + 10 * MS);
    assert_eq!((late.start, late.is_late), (first.start + 2 * ROUND * slot, true));
    let rest = rhythm.next_window(late, late.end).unwrap();
    assert_eq!(rest.start, late.start + ROUND * slot, "what is left has the next one");
    assert!(rhythm.offer(2, 0, None, MS).is_none(), "no link");
}

#[test]
fn a_node_follows_the_one_with_the_lowest_number_and_no_other() {
    let [mut low, mut high] = [0, 3].map(rhythm);
    let window = offer(&mut low, 0, 0, 1_000 * MS);
    let own = offer(&mut high, 3, 0, 1_030 * MS);
    let beacon = low.beacon(&window, window.start).unwrap();
    assert_eq!(high.hear(0, &beacon, window.start), BeaconOutcome::Followed);
    assert_eq!(offer(&mut high, 3, 0, 1_030 * MS).start, window.start + 3 * low.slot());
    let answer = high.beacon(&own, own.start).unwrap();
    assert_eq!((answer.root, answer.hops), (0, 1));
    assert_eq!(low.hear(3, &answer, own.start + 40 * MS), BeaconOutcome::Kept);
    assert_eq!(offer(&mut low, 0, 1, window.start + 10 * MS).start, window.start + ROUND * low.slot());
}

#[test]
fn beacons_of_other_slots_and_beacons_that_cannot_be_are_no_times() {
    let [mut low, mut high] = [0, 3].map(rhythm);
    let window = offer(&mut low, 0, 0, MS);
    let beacon = low.beacon(&window, window.start).unwrap();
    let mut hear = |beacon: SlotBeacon| high.hear(0, &beacon, 5_000 * MS);
    let longer = SlotBeacon { slot: beacon.slot + 1, ..beacon };
    assert_eq!(hear(longer), BeaconOutcome::OtherLength(low.slot() + Duration::from_micros(1)));
    assert_eq!(hear(SlotBeacon { root: 1, ..beacon }), BeaconOutcome::Refused, "a root above its sender");
    assert_eq!(hear(SlotBeacon { hops: 1, ..beacon }), BeaconOutcome::Refused, "the root itself, one link away");
    assert_eq!(hear(SlotBeacon { elapsed: u64::MAX, ..beacon }), BeaconOutcome::Refused);
    assert_eq!(hear(SlotBeacon { step: u64::MAX, ..beacon }), BeaconOutcome::Refused);
    let pauses = Pauses { round: u32::MAX, step: 0 };
    assert_eq!(hear(SlotBeacon { pauses, ..beacon }), BeaconOutcome::Refused);
    assert_eq!(hear(SlotBeacon { wanted: pauses, ..beacon }), BeaconOutcome::Refused);
    assert_eq!(hear(beacon), BeaconOutcome::Followed);
}

#[test]
fn whatever_neighbours_claim_a_payload_is_sent_within_a_few_rounds() {
    for seed in 0..200 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut rhythms = [rhythm(2), rhythm_of_unlike_rounds()];
        for (kind, rhythm) in rhythms.iter_mut().enumerate() {
            let mut now = Duration::ZERO;
            let longest = 20 * rhythm.round();
            for step in 0..60 {
                for _ in 0..random.random_range(0..20) {
                    let sender = random.random_range(0..4);
                    let root = random.random_range(0..4);
                    let most_steps = if random.random() { 100 } else { 1 << 48 };
                    let most_elapsed = if random.random() { 4_000_000 } else { u64::MAX };
                    let beacon = SlotBeacon {
                        step: random.random_range(0..most_steps),
                        elapsed: random.random_range(0..most_elapsed),
                        slot: rhythm.slot().as_micros() as u32,
                        pauses: Pauses {
                            round: random.random_range(0..500_000),
                            step: random.random_range(0..200_000),
                        },
                        wanted: Pauses { round: random.random_range(0..500_000), step: 0 },
                        root,
                        hops: if root == sender { 0 } else { random.random() },
                        beat: random.random(),
                    };
                    rhythm.hear(sender, &beacon, now);
                    rhythm.quiet_for(sender, now);
                }
                let receiver = if kind == 0 { 3 } else { 0 };
                if let Some(window) = rhythm.offer(step, receiver, Some(now), now + 20 * MS) {
                    assert!(window.start < now + longest, "seed {seed}, kind {kind}: {window:?} at {now:?}");
                    assert!(window.end > window.start);
                    rhythm.beacon(&window, window.start);
                    now = window.end;
                }
            }
        }
    }
}

#[test]
fn words_wait_for_slots_that_they_would_disturb_and_for_no_others() {
    let own = vec![(1, 0)];
    let step = StepSlots { slots: 3, own, last_busy: Some(0), quiet: vec![(1, 2)] };
    let mut rhythm = Rhythm::new(SlotTable::new(1, vec![step]).unwrap(), 3, 0, length());
    assert_eq!(rhythm.quiet_for(1, MS), None, "no times are known");
    let window = rhythm.offer(0, 1, None, Duration::ZERO).unwrap();
    let slot = rhythm.slot();
    assert_eq!(rhythm.quiet_for(1, window.start + slot), None);
    for round in [0, 7] {
        let begin = window.start + 3 * round * slot;
        assert_eq!(rhythm.quiet_for(1, begin + 2 * slot + 10 * MS), Some(slot - 10 * MS));
        assert_eq!(rhythm.quiet_for(2, begin + 2 * slot + 10 * MS), None, "another neighbour");
        assert_eq!(rhythm.quiet_for(1, begin + 3 * slot), None, "the next round");
    }
}

#[test]
fn a_payload_of_one_packet_that_is_late_has_a_window_that_is_not_over() {
    for has_equal_rounds in [true, false] {
        let length = SlotLength::of(100, 1_200, "1gbit".parse().unwrap());
        let step =
            |own: &[(u32, u32)]| StepSlots { slots: 3, own: own.to_vec(), last_busy: Some(0), quiet: Vec::new() };
        let steps = if has_equal_rounds { vec![step(&[(0, 1)])] } else { vec![step(&[(0, 1)]), step(&[(0, 2)])] };
        let mut rhythm = Rhythm::new(SlotTable::new(1, steps).unwrap(), 4, 3, length);
        rhythm.offer(0, 0, None, Duration::ZERO).unwrap();
        for late in 0..400_u32 {
            let now = 50 * MS + late * Duration::from_micros(37);
            let window = rhythm.offer(1, 0, None, now).unwrap();
            assert!(window.end > now, "{now:?} {window:?}");
            let rest = rhythm.next_window(window, window.end).unwrap();
            assert!(rest.end > window.end, "{window:?} {rest:?}");
        }
    }
}

#[test]
fn repair_ahead_is_sent_with_the_object_and_left_out_at_the_end_of_a_slot() {
    let mut transmission = Transmission::new(Geometry::new(10_000, 1_000).unwrap());
    transmission.in_slots(0.25, MS);
    assert!(transmission.add(7) && transmission.has_receiver(7) && !transmission.has_receiver(8));
    let mut symbols = |count: u32| (0..count).map(|_| transmission.next(MS)).collect::<Vec<_>>();
    let expected: Vec<TransmissionStep> = (0..11).map(TransmissionStep::Symbol).collect();
    assert_eq!(symbols(11), expected, "ten of the object, and one of three ahead");
    assert!(transmission.has_symbols() && transmission.drop_ahead() && !transmission.has_symbols());
    assert_eq!(transmission.next(MS), TransmissionStep::Ask { pass: 0, last: false });
    transmission.answer(7, 0, vec![2]);
    transmission.evaluate(MS);
    assert!(transmission.has_symbols(), "the next pass has begun, and none of it is sent");
    assert_eq!(transmission.sent(), 11);
    assert!(!transmission.drop_ahead(), "these symbols are needed");
    // Three of eleven were lost: two that are missing, and one that the repair symbol replaced.
    assert!((transmission.take_lost().unwrap() - 3.0 / 11.0).abs() < 1e-9);
}
