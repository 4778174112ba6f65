//! A picture of one round on the air, as three kinds of senders play it: a lane for each node on one axis of time.

use std::collections::BTreeSet;

use mingle_planner::{Method, Plan};
use mingle_plot::{Bar, Group, lane_chart};

use crate::{
    comparison::{AirtimeError, AirtimeRequest, designed, play_unslotted},
    frame::Recipient,
    kept_transmission::KeptTransmission,
    round::{PlayError, Played, play_multicast, play_slots, play_streams},
    settings::AirSettings,
};

/// The kinds of bar, by number.
const KINDS: [&str; 3] = ["arrived", "acknowledgement", "lost at a receiver"];
const ARRIVED: usize = 0;
const ACKNOWLEDGEMENT: usize = 1;
const LOST: usize = 2;
/// Bars of one kind that are no further apart than this share of the width are drawn as one.
const LEAST_GAP: f64 = 0.001;

/// Draws a round of one design on the first graph of a request as an SVG document: in slots, by multicast without slots,
/// and by unicast streams, the latter two with the first seed of the request.
///
/// A transmission is lost at a receiver where another one overlaps there, or the receiver itself sends. Losses by chance
/// are not shown.
///
/// # Errors
///
/// A request without a graph, a design that refuses it or makes a plan of several steps, or a plan that cannot be played.
pub fn draw_round(request: &AirtimeRequest, design: Method) -> Result<String, AirtimeError> {
    let Some((graph, base)) = request.graphs.first() else { return Err(AirtimeError::NoGraph) };
    let plan = designed(graph, base, design)?;
    if plan.steps().len() > 1 {
        let steps = plan.steps().len();
        return Err(AirtimeError::Steps { design: design.name(), graph: graph.clone(), steps });
    }
    let settings = AirSettings { keeps_transmissions: true, ..request.settings.clone() };
    let request = AirtimeRequest { settings, ..request.clone() };
    let rounds = played(&request, &plan).map_err(|source| AirtimeError::Play {
        design: design.name(),
        graph: graph.clone(),
        source,
    })?;
    let longest = rounds.iter().map(|(_, round)| round.elapsed.as_secs_f64()).fold(f64::MIN_POSITIVE, f64::max);
    let groups: Vec<Group> = rounds.iter().map(|(name, round)| group(name, round, &plan, longest)).collect();
    let title = format!("One round of {} on the air", design.name());
    Ok(lane_chart(&title, "seconds", (0.0, longest), &KINDS, &groups))
}

/// The round of each kind of senders, with its name.
fn played(request: &AirtimeRequest, plan: &Plan) -> Result<[(&'static str, Played); 3], PlayError> {
    let in_slots = play_slots(plan, &request.settings, &request.payload, request.slotting)?;
    Ok([
        ("in slots", in_slots),
        ("multicast", play_unslotted(request, plan, play_multicast, 0)?),
        ("unicast", play_unslotted(request, plan, play_streams, 0)?),
    ])
}

/// The lanes of all nodes in one round, with a line at its end.
fn group(name: &str, round: &Played, plan: &Plan, longest: f64) -> Group {
    let receivers = receivers(plan);
    let mut lanes: Vec<Vec<Bar>> = vec![Vec::new(); plan.node_count()];
    for transmission in &round.transmissions {
        let kind = kind_of(transmission, &receivers[transmission.sender]);
        let bar = Bar { kind, from: transmission.began.as_secs_f64(), to: transmission.ended.as_secs_f64() };
        add(&mut lanes[transmission.sender], bar, longest * LEAST_GAP);
    }
    Group { name: name.to_owned(), lanes, ticks: vec![round.elapsed.as_secs_f64()] }
}

/// The nodes to which each node sends in the plan's only step.
fn receivers(plan: &Plan) -> Vec<BTreeSet<usize>> {
    let mut receivers = vec![BTreeSet::new(); plan.node_count()];
    for link in plan.steps().iter().flat_map(|step| step.slots()).flatten() {
        receivers[link.from].insert(link.to);
    }
    receivers
}

fn kind_of(transmission: &KeptTransmission, receivers: &BTreeSet<usize>) -> usize {
    let is_for = |node: &usize| match transmission.recipient {
        Recipient::One(recipient) => recipient == *node,
        Recipient::All => receivers.contains(node),
    };
    if transmission.spoiled_at.iter().any(is_for) {
        LOST
    } else if transmission.is_acknowledgement {
        ACKNOWLEDGEMENT
    } else {
        ARRIVED
    }
}

/// Adds a bar to a lane, or lengthens the last one of its kind where that ends close before it.
fn add(lane: &mut Vec<Bar>, bar: Bar, gap: f64) {
    match lane.last_mut() {
        Some(last) if last.kind == bar.kind && bar.from - last.to <= gap => last.to = bar.to,
        _ => lane.push(bar),
    }
}
