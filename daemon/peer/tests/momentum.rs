//! Momentum across rounds in running peers, on loopback, with a training of the test's own.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_peer::training::{Budget, Evaluation, Layout, LocalTraining, Patience, Trained, TrainingError};
use mingle_peer::{ErrorKind, Home, Outcome, Peer, PeerBuilder, RunningPeer};
use mingle_planner::plan::{PlanDraft, StepDraft};
use mingle_planner::{DesignOptions, Medium, Method, Plan, Topology, WeightedLink, design};
use mingle_protocol::{MomentumAcrossRounds, WaitPolicy};
use tokio::time::timeout;

/// Timeout of every wait here.
const PATIENCE: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 30;
const MOMENTUM: f64 = 0.8;
const PULL: f64 = 0.05;
const TARGET: f64 = 3.0;

/// Pulls a number towards its target, and records what each round began with.
struct Pull {
    layout: Layout,
    began_with: Arc<Mutex<Vec<f32>>>,
}

impl LocalTraining for Pull {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        Ok(vec![0.0])
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        self.began_with.lock().unwrap().push(from[0]);
        let change = PULL * (TARGET - f64::from(from[0]));
        Ok(Trained { change: vec![change as f32], steps: budget.local_steps, loss: None })
    }

    fn evaluate(&mut self, x: &[f32], _: &Patience) -> Result<Evaluation, TrainingError> {
        let distance = (f64::from(x[0]) - TARGET).abs();
        Ok(Evaluation { metrics: [("distance", distance)].into_iter().collect(), samples: 1, is_whole: true })
    }
}

fn bound(mut plan: Plan, homes: &[Home]) -> Plan {
    for (node, home) in homes.iter().enumerate() {
        plan.bind(node, &home.peer_id().unwrap().to_string()).unwrap();
    }
    plan
}

fn homes(folder: &Path) -> Vec<Home> {
    (0..2).map(|node: u32| Home::create(Some(&folder.join(node.to_string()))).unwrap()).collect()
}

/// A peer with this momentum, and what its rounds begin with.
fn builder(home: &Home, plan: &Plan, momentum: f64) -> (PeerBuilder, Arc<Mutex<Vec<f32>>>) {
    let began_with = Arc::<Mutex<Vec<f32>>>::default();
    let training = Pull { layout: Layout::flat(1), began_with: Arc::clone(&began_with) };
    let builder = Peer::builder(home.clone()).plan(plan.clone()).rounds(ROUNDS).training(training).options(|options| {
        options.listen = vec!["/ip4/127.0.0.1/tcp/0".parse().unwrap()];
        options.wait = WaitPolicy::Sync;
        options.momentum_across_rounds = MomentumAcrossRounds::Factor(momentum);
    });
    (builder, began_with)
}

#[tokio::test]
async fn peers_move_as_heavy_ball_momentum_on_all_data_would() {
    let folder = tempfile::tempdir().unwrap();
    let homes = homes(folder.path());
    let topology = Topology::generate("complete:n=2").unwrap();
    let plan = bound(design(&topology, Method::ExactAverage, &DesignOptions::default()).unwrap(), &homes);
    let (mut peers, mut known, mut records) = (Vec::<RunningPeer>::new(), Vec::new(), Vec::new());
    for home in &homes {
        let (builder, began_with) = builder(home, &plan, MOMENTUM);
        let peer = timeout(PATIENCE, builder.bootstrap(&known).start()).await.unwrap().unwrap();
        known.extend_from_slice(peer.addresses());
        peers.push(peer);
        records.push(began_with);
    }
    for peer in peers {
        assert!(matches!(timeout(PATIENCE, peer.outcome()).await.unwrap().unwrap(), Outcome::Trained { .. }));
    }
    for record in records {
        let record = record.lock().unwrap();
        assert!(record.len() >= ROUNDS as usize / 2, "{record:?}");
        let (mut z, mut before) = (0.0, 0.0);
        for (round, began_with) in record.iter().enumerate() {
            assert!((f64::from(*began_with) - z).abs() < 1e-5, "round {round}: {began_with} and {z}");
            let y = z + PULL * (TARGET - z);
            z = y + MOMENTUM * (y - before);
            before = y;
        }
    }
}

#[tokio::test]
async fn a_peer_refuses_a_plan_that_does_not_bear_its_momentum() {
    let folder = tempfile::tempdir().unwrap();
    let homes = homes(folder.path());
    // Two nodes that nearly swap what they have: an eigenvalue of -0.8.
    let link = |from, to| WeightedLink { from, to, weight: 0.9 };
    let step = StepDraft { keep: vec![0.1, 0.1], links: vec![link(0, 1), link(1, 0)], slots: Vec::new() };
    let draft = PlanDraft {
        base: Topology::generate("complete:n=2").unwrap(),
        method: "swap".to_owned(),
        parameters: BTreeMap::new(),
        medium: Medium::PointToPoint,
        network: None,
        steps: vec![step],
        local_steps: 1,
        round_length: None,
    };
    let plan = bound(Plan::new(draft).unwrap(), &homes);
    let peer = timeout(PATIENCE, builder(&homes[0], &plan, MOMENTUM).0.start()).await.unwrap();
    let refused = match peer {
        Ok(peer) => timeout(PATIENCE, peer.outcome()).await.unwrap().err().unwrap(),
        Err(refused) => refused,
    };
    assert_eq!(refused.kind(), ErrorKind::BadInput, "{refused:#}");
    let words = format!("{refused:#}");
    assert!(words.contains("0.8 is too much") && words.contains("above 0.12"), "{words}");
    assert!(refused.next_step().unwrap().contains("plan compare"), "{refused:?}");
}
