//! Rounds of plans on virtual time.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use mingle_air::{
    Acknowledgements, AirLoss, AirSettings, AirtimeRequest, CarrierSense, PlayError, Played, RoundPayload, Slotting,
    draw_round, play_multicast, play_slots, play_streams, unicast_slots,
};
use mingle_planner::{DesignOptions, Link, Medium, Method, Plan, Topology, design};

const LIMIT: Duration = Duration::from_secs(3_600);

#[test]
fn a_picture_shows_a_payload_in_each_slot_and_the_losses_of_senders_without_slots() {
    let request = |graph: &str, bytes| AirtimeRequest {
        graphs: vec![(graph.to_owned(), Topology::generate(graph).unwrap())],
        designs: Vec::new(),
        settings: AirSettings::default(),
        payload: RoundPayload { bytes, ..RoundPayload::default() },
        slotting: Slotting { guard: Duration::from_millis(1), clock_error: Duration::from_micros(500) },
        runs: 1,
    };
    let picture = draw_round(&request("rg:n=8,r=0.6,seed=1", 20_000), Method::DPsgd).unwrap();
    assert_eq!(picture, draw_round(&request("rg:n=8,r=0.6,seed=1", 20_000), Method::DPsgd).unwrap());
    for words in ["in slots", "multicast", "unicast", "lost at a receiver", "</svg>"] {
        assert!(picture.contains(words), "{words}");
    }
    let shown = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/air.svg")).unwrap();
    assert!(picture == shown, "README shows another picture: scripts/air --draw --payload 20000 -o docs/air.svg");
    let steps = draw_round(&request("rg:n=12,r=0.5,seed=3", 1_000), Method::BassOptimised).unwrap_err().to_string();
    assert!(steps.contains("bass-optimised makes a plan of") && steps.contains("steps"), "{steps}");
}

#[test]
fn transmissions_in_slots_are_lost_at_no_receiver_and_kept_only_where_that_is_asked() {
    let plan = plan("windmill:cliques=3,size=5", Method::DPsgd);
    let kept = AirSettings { keeps_transmissions: true, ..AirSettings::default() };
    let played = play_slots(&plan, &kept, &payload(), Slotting::default()).unwrap();
    let sent: u64 = played.counts.iter().map(|counts| counts.frames).sum();
    assert_eq!(played.transmissions.len() as u64, sent);
    let links: Vec<Link> = plan.steps()[0].slots().iter().flatten().copied().collect();
    let lost = |link: &&Link| {
        played.transmissions.iter().any(|sent| sent.sender == link.from && sent.spoiled_at.contains(&link.to))
    };
    assert_eq!(links.iter().find(lost), None);
    assert!(in_slots(&plan, Slotting::default()).transmissions.is_empty());
}

fn payload() -> RoundPayload {
    RoundPayload { bytes: 30_000, ..RoundPayload::default() }
}

fn plan(graph: &str, method: Method) -> Plan {
    design(&Topology::generate(graph).unwrap(), method, &DesignOptions::default()).unwrap()
}

fn shared(seed: u64) -> AirSettings {
    AirSettings {
        carrier_sense: Some(CarrierSense::default()),
        acknowledgements: Some(Acknowledgements::default()),
        seed,
        ..AirSettings::default()
    }
}

fn at_once(plan: &Plan) -> Vec<Duration> {
    vec![Duration::ZERO; plan.node_count()]
}

fn in_slots(plan: &Plan, slotting: Slotting) -> Played {
    play_slots(plan, &AirSettings::default(), &payload(), slotting).unwrap()
}

#[test]
fn a_plan_in_its_slots_has_no_collision_and_takes_slots_times_slot_length() {
    let designs = [
        Method::DPsgd,
        Method::SgpUniform,
        Method::NguyenHe,
        Method::BassOptimised,
        Method::Tuned,
        Method::ExactAverage,
    ];
    for graph in
        ["rg:n=12,r=0.5,seed=3", "windmill:cliques=3,size=5", "erdos-renyi:n=10,p=0.4,seed=2", "grid:rows=3,cols=4"]
    {
        for method in designs {
            let plan = plan(graph, method);
            let played = in_slots(&plan, Slotting::default());
            let slots = u32::try_from(plan.forecast().slots_per_period).unwrap();
            let slot = payload().airtime(&AirSettings::default());
            assert_eq!(played.undelivered, 0, "{graph} {}", method.name());
            assert_eq!(played.elapsed, slot * slots, "{graph} {}", method.name());
            let sent: u64 = played.counts.iter().map(|counts| counts.frames).sum();
            let payloads = plan.forecast().payloads_per_period * payload().packets();
            assert_eq!(sent, payloads as u64, "{graph} {}", method.name());
        }
    }
}

#[test]
fn clocks_within_the_guard_lose_nothing_and_clocks_beyond_it_do() {
    let plan = plan("rg:n=12,r=0.5,seed=3", Method::DPsgd);
    let error = Duration::from_millis(2);
    let kept = in_slots(&plan, Slotting { guard: 2 * error, clock_error: error });
    assert_eq!(kept.undelivered, 0);
    let slots = u32::try_from(plan.forecast().slots_per_period).unwrap();
    let forecast = Slotting { guard: 2 * error, clock_error: error }.slot(&payload(), &AirSettings::default()) * slots;
    assert!(
        kept.elapsed <= forecast && kept.elapsed.as_secs_f64() > 0.8 * forecast.as_secs_f64(),
        "{:?}",
        kept.elapsed
    );
    let passed = in_slots(&plan, Slotting { guard: Duration::ZERO, clock_error: error });
    assert!(passed.undelivered > 0, "clocks that are off by 2 ms kept slots without a guard");
}

#[test]
fn what_is_lost_in_a_slot_is_reported() {
    let plan = plan("windmill:cliques=3,size=5", Method::DPsgd);
    let settings = AirSettings { loss: AirLoss::Uniform(0.05), ..AirSettings::default() };
    let played = play_slots(&plan, &settings, &payload(), Slotting::default()).unwrap();
    assert!(played.undelivered > 0 && played.undelivered <= plan.forecast().links, "{}", played.undelivered);
}

#[test]
fn a_transmission_for_each_link_takes_the_slots_that_were_published() {
    let published = [
        ("rg:n=12,r=0.5,seed=3", Method::DPsgd, 9, 36.0),
        ("rg:n=12,r=0.5,seed=3", Method::NguyenHe, 7, 22.0),
        ("windmill:cliques=3,size=5", Method::DPsgd, 13, 36.0),
        ("windmill:cliques=3,size=5", Method::NguyenHe, 11, 25.0),
    ];
    for (graph, method, broadcast, unicast) in published {
        let plan = plan(graph, method);
        assert_eq!(plan.forecast().slots_per_period, broadcast, "{graph} {}", method.name());
        // The published numbers are of a colouring, so each is an upper bound: another may find one slot less or more.
        assert!((unicast_slots(&plan) - unicast).abs() <= 1.0, "{graph} {}: {}", method.name(), unicast_slots(&plan));
    }
}

#[test]
fn streams_take_several_times_the_round_in_slots() {
    for graph in ["rg:n=12,r=0.5,seed=3", "windmill:cliques=3,size=5"] {
        let plan = plan(graph, Method::DPsgd);
        let slotted = in_slots(&plan, Slotting::default());
        let streams = play_streams(&plan, &shared(1), &payload(), &at_once(&plan), LIMIT).unwrap();
        let ratio = streams.elapsed.as_secs_f64() / slotted.elapsed.as_secs_f64();
        // Streams cannot be faster than the busiest receiver and sender allow, which is 2.4 and 2.8 times here.
        assert!(ratio > 2.4, "{graph}: {ratio}");
        assert!(streams.counts.iter().any(|counts| counts.retries > 0), "{graph}: hidden senders cause retries");
    }
}

#[test]
fn everything_arrives_whatever_chance_takes() {
    for loss in [0.0, 0.05, 0.3] {
        let plan = plan("rg:n=12,r=0.5,seed=3", Method::ExactAverage);
        let settings = AirSettings { loss: AirLoss::Uniform(loss), ..shared(7) };
        let multicast = play_multicast(&plan, &settings, &payload(), &at_once(&plan), LIMIT).unwrap();
        let streams = play_streams(&plan, &settings, &payload(), &at_once(&plan), LIMIT).unwrap();
        assert_eq!((multicast.undelivered, streams.undelivered), (0, 0));
        let least = plan.forecast().payloads_per_period * payload().packets();
        let sent: u64 = multicast.counts.iter().map(|counts| counts.group_frames).sum();
        assert!(sent >= least as u64 || plan.steps().len() > 1, "{sent} of at least {least} packets");
    }
}

#[test]
fn one_sender_repairs_no_more_than_its_worst_receiver_lacks() {
    let plan = plan("star:n=6", Method::ExactAverage);
    let alone = play_multicast(&plan, &shared(0), &payload(), &at_once(&plan), LIMIT).unwrap();
    let lossy = AirSettings { loss: AirLoss::Uniform(0.2), ..shared(0) };
    let repaired = play_multicast(&plan, &lossy, &payload(), &at_once(&plan), LIMIT).unwrap();
    // The centre answers its five leaves while all others are silent.
    assert_eq!(alone.counts[0].group_frames, 25);
    // Each leaf lacks five of 25 on average, then one; the worst of five some more.
    let sent = repaired.counts[0].group_frames;
    assert!((31..50).contains(&sent), "{sent} packets");
}

#[test]
fn the_same_seed_gives_the_same_round() {
    let plan = plan("windmill:cliques=3,size=5", Method::Tuned);
    let twice =
        |seed| [(); 2].map(|()| play_multicast(&plan, &shared(seed), &payload(), &at_once(&plan), LIMIT).unwrap());
    let [first, second] = twice(3);
    assert_eq!(first, second);
    assert_ne!(first, twice(4)[0]);
}

#[test]
fn a_round_that_cannot_end_is_given_up_at_its_limit() {
    let plan = plan("ring:n=6", Method::DPsgd);
    let error = play_streams(&plan, &shared(0), &payload(), &at_once(&plan), Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, PlayError::Endless { missing: 12, .. }), "{error:?}");
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    let separate = design(&Topology::generate("ring:n=6").unwrap(), Method::DPsgd, &options).unwrap();
    let error = play_slots(&separate, &AirSettings::default(), &payload(), Slotting::default()).unwrap_err();
    assert_eq!(error, PlayError::NoSlots);
}
