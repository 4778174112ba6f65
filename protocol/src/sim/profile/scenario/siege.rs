//! The scenario of a siege: members that attack inside the bounds, fewer than a third of every other node's neighbours.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{Scenario, swarm_of};
use crate::config::WaitPolicy;
use crate::schedule::{NodeId, Schedule, ScheduleError, Step};
use crate::sim::config::SwarmConfig;
use crate::sim::fault::Fault;
use crate::sim::misconduct::Misconduct;
use crate::sim::network::NetworkModel;
use crate::sim::plans::{complete, exact_average, exponential, one_peer, random_step, undirected};
use crate::sim::profile::Profile;
use crate::sim::resilience::{neighbours, outnumbers};
use crate::time::Time;

/// The time when the attack begins: the usual weights and pace of nodes have been seen by then.
const BEGINS: Time = Time::from_millis(40_000);
/// The time of the plan without the attackers.
const EXPELLED: Time = Time::from_millis(100_000);
/// The largest part of messages that is lost.
const MOST_LOST: f64 = 0.1;
/// The time after that.
const AFTERWARDS: Duration = Duration::from_secs(30);

/// The scenario of a seed.
pub(super) fn scenario(profile: Profile, seed: u64, mut rng: ChaCha8Rng) -> Result<Scenario, ScheduleError> {
    let rng = &mut rng;
    let nodes = rng.random_range(6..=profile.most_nodes());
    let (steps, attackers) = plan(nodes, rng);
    let config = swarm_of(profile, nodes, &steps, seed, rng)?;
    // A link that loses much would be a second attack.
    let drop = config.network.drop.min(MOST_LOST);
    let config = if config.schedule.hands_ratios_down() { with_deadlines_met(config, rng) } else { config };
    let config = SwarmConfig {
        training_time: (Duration::from_millis(20), Duration::from_millis(200)),
        network: NetworkModel { drop, ..config.network },
        ..config
    };
    let slowness = slowness(&config);
    let faults = attacks(&attackers, slowness, rng);
    let repair = Time(EXPELLED.micros() * u64::from(slowness)) + AFTERWARDS * slowness;
    let end = repair + AFTERWARDS * slowness;
    Ok(Scenario { config, faults, repair, end, limit: Time(end.micros() * 3), pace: 1 })
}

/// The factor by which all times are longer in a swarm with slow rounds: a node learns of others once a round, however long
/// rounds take. It is the mean time that the messages of a round are under way, in seconds, rounded up.
fn slowness(config: &SwarmConfig) -> u32 {
    let (shortest, longest) = config.network.delay;
    let round = (shortest + longest).as_secs_f64() / 2.0 * config.schedule.round_length() as f64;
    (round.ceil() as u32).max(1)
}

/// The swarm over streams, where nodes wait for each other: in trees of exact averages nodes that go on without others
/// have no usual weight.
fn with_deadlines_met(config: SwarmConfig, rng: &mut ChaCha8Rng) -> SwarmConfig {
    let policies = [WaitPolicy::Sync, WaitPolicy::default()];
    SwarmConfig {
        network: NetworkModel::streams(),
        retransmit_after: None,
        policy: policies[rng.random_range(0..2)],
        ..config
    }
}

/// A plan in which there is room for attackers, and these.
fn plan(nodes: u32, rng: &mut ChaCha8Rng) -> (Vec<Step>, BTreeSet<NodeId>) {
    loop {
        let steps = steps(nodes as usize, rng);
        let attackers = attackers(&steps, nodes, rng);
        if !attackers.is_empty() {
            return (steps, attackers);
        }
    }
}

/// The steps of a plan of some kind.
fn steps(nodes: usize, rng: &mut ChaCha8Rng) -> Vec<Step> {
    let members: Vec<NodeId> = (0..nodes as u32).map(NodeId).collect();
    match rng.random_range(0..6) {
        0 => vec![undirected(nodes, rng)],
        1 => vec![complete(nodes)],
        2 => vec![exponential(nodes)],
        3 => one_peer(nodes),
        4 => (0..rng.random_range(2..=3)).map(|_| random_step(nodes, &members, rng)).collect(),
        _ => exact_average(nodes, rng),
    }
}

/// Attackers drawn one after the other as long as they are fewer than a third of every other node's neighbours; at most
/// a quarter of all, and none that hands ratios down: all weight of a tree is in the hands of its root for a moment.
fn attackers(steps: &[Step], nodes: u32, rng: &mut ChaCha8Rng) -> BTreeSet<NodeId> {
    let Ok(schedule) = Schedule::new(nodes as usize, steps, 0) else {
        return BTreeSet::new();
    };
    let all = || (0..nodes).map(NodeId);
    let mut order: Vec<NodeId> = all().collect();
    order.shuffle(rng);
    let most = rng.random_range(1..=nodes as usize / 4);
    let mut attackers = BTreeSet::new();
    let hands_down = |node: NodeId| (0..schedule.period()).any(|step| schedule.hands_down(node, step));
    for candidate in order.into_iter().filter(|node| !hands_down(*node)) {
        let mut more = attackers.clone();
        more.insert(candidate);
        let mut sound = all().filter(|id| !more.contains(id));
        if more.len() <= most && sound.all(|id| outnumbers(&neighbours(&schedule, id), &more)) {
            attackers = more;
        }
    }
    attackers
}

/// The faults: all attackers begin at once, with one attack or each with its own, and go with one plan.
fn attacks(attackers: &BTreeSet<NodeId>, slowness: u32, rng: &mut ChaCha8Rng) -> Vec<(Time, Fault)> {
    let [begins, expelled] = [BEGINS, EXPELLED].map(|at| Time(at.micros() * u64::from(slowness)));
    let agreed = rng.random_bool(0.7).then(|| any(rng));
    let mut faults: Vec<(Time, Fault)> =
        attackers.iter().map(|&id| (begins, Fault::Besiege(id, agreed.unwrap_or_else(|| any(rng))))).collect();
    let end = attackers.first().map(|&first| (expelled, Fault::Expel(first, rng.random())));
    faults.extend(end);
    faults
}

fn any(rng: &mut ChaCha8Rng) -> Misconduct {
    Misconduct::ALL[rng.random_range(0..Misconduct::ALL.len())]
}
