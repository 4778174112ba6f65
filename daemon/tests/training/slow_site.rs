//! A site whose training takes ten times as long as that of the others, with the default options of `run`.
#![cfg(unix)]

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::RunningPeer;
use crate::support::planned_swarm::{ONE, PlannedSwarm};
use crate::support::trainer::{Answer, Trainer, bytes};

const PEERS: usize = 3;
const ROUNDS: u64 = 40;
const LOCAL_STEPS: u32 = 10;
/// The time of a local step at a site that is not slow.
const STEP: Duration = Duration::from_millis(10);
/// The length of a local step in the model.
const LENGTH: f32 = 0.02;

/// Goes in this direction by the same length in each local step, so that the final model tells how many counted, whenever
/// they were taken. Each takes so long. Returns the number of steps taken, and the final model.
fn train_for(home: PathBuf, direction: [f32; 2], step: Duration) -> JoinHandle<(u64, Vec<f32>)> {
    std::thread::spawn(move || {
        // The model begins at its target, 0.
        let mut trainer = Trainer::new(&home, [0.0; 2]);
        trainer.attach();
        let (mut order, mut taken) = (trainer.order(), 0);
        while order.kind() != "end" {
            let (steps, change) = take_steps(&order, direction, step);
            taken += steps;
            let path = format!("/v1/trainer/exchange?order={}&steps={steps}&wait=5", order.number("mingle-order"));
            let answer = trainer.call("POST", &path, &[], &bytes(&change));
            order = if answer.status == 200 { answer } else { trainer.order() };
        }
        (taken, order.vector())
    })
}

/// Takes the steps that are wanted, as many as begin within the time given for them.
fn take_steps(order: &Answer, direction: [f32; 2], step: Duration) -> (u64, Vec<f32>) {
    let limit = order.headers.get("mingle-seconds").map(|seconds| Duration::from_secs_f64(seconds.parse().unwrap()));
    let began = Instant::now();
    let mut taken = 0_u8;
    let wanted = order.number("mingle-steps");
    while u64::from(taken) < wanted && (taken == 0 || limit.is_none_or(|limit| began.elapsed() < limit)) {
        // The work of a step: what is measured is time, so that it has to pass.
        std::thread::sleep(step);
        taken += 1;
    }
    (taken.into(), direction.map(|way| f32::from(taken) * LENGTH * way).to_vec())
}

/// The mean of a peer's weights at the ends of its rounds, as a part of what it began with, to the end of its run.
fn mean_weight(peer: &mut RunningPeer) -> f64 {
    let (mut sum, mut rounds) = (0, 0);
    peer.look_at_rounds_until("done", |round| {
        sum += round["weight_units"].as_u64().unwrap();
        rounds += 1;
    });
    sum as f64 / (rounds * ONE) as f64
}

/// A whole run.
#[derive(Debug)]
struct Run {
    took: Duration,
    /// The event of the last peer about its pace.
    said: Option<String>,
    /// Number of local steps that each peer took.
    taken: Vec<u64>,
    /// Share of the last peer's direction in the final model, from 0, where its work does not count, to 1.
    share_of_last: f32,
}

impl Run {
    /// The share of the last peer's steps in all, without those of one change, which may come after the end.
    fn share_of_its_steps(&self) -> f32 {
        let of_last = self.taken[PEERS - 1] - u64::from(LOCAL_STEPS);
        of_last as f32 / (self.taken.iter().sum::<u64>() - u64::from(LOCAL_STEPS)) as f32
    }
}

/// Runs with these times of the peers' local steps. The last peer moves the model along (1, 0), all others along (0, 1).
fn run_with(steps: [Duration; PEERS]) -> Run {
    let swarm = PlannedSwarm::with_local_steps(PEERS, ROUNDS, LOCAL_STEPS);
    let mut peers: Vec<_> = (0..PEERS).map(|node| swarm.start_for_a_trainer(node)).collect();
    let direction = |node: usize| if node == PEERS - 1 { [1.0, 0.0] } else { [0.0, 1.0] };
    let trainers: Vec<_> =
        steps.iter().enumerate().map(|(node, step)| train_for(swarm.home(node), direction(node), *step)).collect();
    peers[0].wait_for("round");
    let began = Instant::now();
    let done = peers[0].wait_through_rounds_for("done");
    let took = began.elapsed();
    assert_eq!(done["round"], ROUNDS, "{done}");
    let least = peers[1..].iter_mut().map(mean_weight).fold(1.0, f64::min);
    println!("the least mean weight of a peer: {least:.3}");
    assert!(least > 0.8, "a peer is left with {least} of its weight");
    let ends: Vec<(u64, Vec<f32>)> = trainers.into_iter().map(|trainer| trainer.join().unwrap()).collect();
    for (_, model) in &ends {
        // A tenth of what the local steps of a round put between two neighbours.
        let apart = 0.1 * LOCAL_STEPS as f32 * LENGTH;
        assert!(model.iter().zip(&ends[0].1).all(|(a, b)| (a - b).abs() < apart), "all agree: {ends:?}");
    }
    peers.iter_mut().for_each(|peer| assert_eq!(peer.exit_code(), Some(0)));
    swarm.audit("at the end");
    let events = std::fs::read_to_string(swarm.home(PEERS - 1).join("events.jsonl")).unwrap();
    let said = events.lines().find(|line| line.contains("so that nobody waits for it")).map(str::to_owned);
    let share_of_last = ends[0].1[0] / ends[0].1.iter().sum::<f32>();
    Run { took, said, taken: ends.into_iter().map(|(taken, _)| taken).collect(), share_of_last }
}

#[test]
fn a_site_ten_times_slower_costs_the_others_less_than_twice_the_time_and_its_work_counts() {
    let usual = run_with([STEP; PEERS]);
    println!("{usual:?}");
    assert_eq!(usual.said, None);
    assert!((usual.share_of_last - 1.0 / 3.0).abs() < 0.05, "{usual:?}");
    // A change of one step in place of ten counts as four at most: at most 4 of 24, and less where it is late.
    let mut took = Vec::new();
    for (slowness, least_share) in [(10, 0.08), (40, 0.0)] {
        let slow = run_with([STEP, STEP, STEP * slowness]);
        println!("{slowness} times slower: {slow:?}");
        took.push(slow.took);
        assert!(slow.taken[PEERS - 1] >= 10, "{slow:?}");
        let least_share = (0.8 * slow.share_of_its_steps()).max(least_share);
        assert!(slow.share_of_last > least_share, "its work counts: {least_share} at least: {slow:?}");
        // At 40 times slower, too few of its rounds are over to know the usual pace.
        assert!(slow.said.is_some() || slowness > 10, "it says why it takes fewer steps");
    }
    // Before and after: what else the machine does changes meanwhile.
    let again = run_with([STEP; PEERS]);
    let beside = usual.took.max(again.took);
    assert!(took.iter().all(|took| *took < 2 * beside), "{took:?} instead of {:?} and {:?}", usual.took, again.took);
}
