//! Pure averaging by real peers with default options: the disagreement shrinks from round to round as the plan forecasts.
#![cfg(unix)]

use std::path::Path;

use crate::support::planned_swarm::PlannedSwarm;
use crate::support::trainer::{Answer, Trainer, bytes};
use crate::support::{RunningPeer, run, status, stderr, text};

/// Rounds from one disturbance to the next; between them all models only mix.
const PERIOD: u64 = 40;
/// Rounds after a disturbance whose disagreements are fitted: peers may be four rounds apart, and fast modes die first.
const FITTED: std::ops::Range<u64> = 7..17;
/// Disturbances that are looked at. The first is left out, in which peers still start.
const LAST: u64 = 5;
const NODES: usize = 5;

/// Moves the model of this peer to and fro, once in each period.
fn disturb(home: &Path, target: [f32; 2]) {
    let mut trainer = Trainer::new(home, [1.0, 1.0]);
    trainer.attach();
    let answer = |order: &Answer| {
        let (number, steps) = (order.number("mingle-order"), order.number("mingle-steps"));
        let (period, round) = (order.number("mingle-round") / PERIOD, order.number("mingle-round") % PERIOD);
        let sign = if round > 0 {
            0.0
        } else if period.is_multiple_of(2) {
            1.0
        } else {
            -1.0
        };
        let path = format!("/v1/trainer/exchange?order={number}&steps={steps}&wait=5");
        trainer.call("POST", &path, &[], &bytes(&target.map(|value| sign * value)))
    };
    let mut order = trainer.order();
    while (order.status, order.kind()) != (200, "end") {
        order = match order.status {
            200 => answer(&order),
            202 | 409 => trainer.order(),
            status => panic!("{status}: {}", order.message()),
        };
    }
}

/// The factors per round by which the disagreement of a peer shrinks after each disturbance.
fn factors(peer: &mut RunningPeer) -> Vec<f64> {
    let mut periods = vec![Vec::new(); LAST as usize + 1];
    loop {
        let event = peer.wait_for("evaluated");
        let (round, apart) = (event["round"].as_u64().unwrap(), event["disagreement"].as_f64());
        if round > (LAST + 1) * PERIOD {
            return periods[1..].iter().map(|points| factor(points)).collect();
        }
        // A peer that received nothing in a round has nothing to compare.
        if let Some(apart) = apart.filter(|apart| *apart > 0.0 && FITTED.contains(&(round % PERIOD))) {
            periods[(round / PERIOD) as usize].push((round as f64, apart));
        }
    }
}

/// The factor per round of the least-squares line through the logarithms.
fn factor(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let y = points.iter().map(|point| point.1.ln()).sum::<f64>() / count;
    let along: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (points.iter().map(|point| (point.0 - x) * (point.1.ln() - y)).sum::<f64>() / along).exp()
}

fn stop(home: &Path) {
    let stopped = run(&["stop", "--home", text(home)]);
    assert!(stopped.status.success(), "{}", stderr(&stopped));
}

#[test]
fn the_disagreement_shrinks_in_a_round_as_the_plan_forecasts() {
    for method in ["d-psgd", "nguyen-he"] {
        let swarm = PlannedSwarm::with_design(&format!("ring:n={NODES}"), method, NODES, 1_000_000);
        let rounds = swarm.rounds.to_string();
        let task = ["--trainer", "attach", "--rounds", &rounds, "--evaluate-every", "1"];
        let mut peers: Vec<RunningPeer> = (0..NODES).map(|node| swarm.start_task(node, &task)).collect();
        let trainers: Vec<_> = (0..NODES)
            .map(|node| (swarm.home(node), [node as f32, (node * node) as f32]))
            .map(|(home, target)| std::thread::spawn(move || disturb(&home, target)))
            .collect();
        let mut observed: Vec<f64> = peers.iter_mut().flat_map(factors).collect();
        observed.sort_by(f64::total_cmp);
        let (low, median, high) = (observed[0], observed[observed.len() / 2], observed[observed.len() - 1]);
        let forecast = status(&swarm.home(0))["contraction"]["forecast"].as_f64().unwrap();
        println!(
            "{method}: a round leaves {median:.4} of the disagreement ({low:.4} to {high:.4}), forecast {forecast:.4}"
        );
        assert!(
            (median / forecast - 1.0).abs() <= 0.1,
            "{method}: {median} where {forecast} is forecast: {observed:?}"
        );
        let stops = (0..NODES).map(|node| swarm.home(node)).map(|home| std::thread::spawn(move || stop(&home)));
        for thread in stops.chain(trainers).collect::<Vec<_>>() {
            thread.join().unwrap();
        }
    }
}
