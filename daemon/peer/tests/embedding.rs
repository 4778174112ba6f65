//! Peers in this process, on loopback, with a training of the test's own.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mingle_peer::events::{Event, EventLine, Read};
use mingle_peer::results::{MODEL_CHECKSUM, Summary};
use mingle_peer::training::{
    Budget, Evaluation, Layout, LocalTraining, ModelEncoder, Patience, Trained, TrainingError,
};
use mingle_peer::{ErrorKind, Home, Outcome, Peer, PeerBuilder, RunningPeer};
use mingle_planner::{DesignOptions, Method, Plan, Topology, design};
use mingle_protocol::{NodeId, audit};
use safetensors::SafeTensors;
use tokio::time::timeout;

/// Timeout of every wait here.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: f32 = 0.02;
const TARGETS: [[f32; 2]; 3] = [[0.0, 3.0], [3.0, 0.0], [3.0, 3.0]];

/// Pulls a vector of two towards its target, and records its calls.
struct Pull {
    layout: Layout,
    target: [f32; 2],
    notes: Arc<Notes>,
    /// Encoder of the model, if not the default.
    encoder: Option<ModelEncoder>,
}

#[derive(Default)]
struct Notes {
    /// Set while its training does not answer.
    hangs: AtomicBool,
    trained: AtomicU64,
    restored: Mutex<Vec<u64>>,
    factors: Mutex<Vec<f64>>,
}

impl Pull {
    fn new(target: [f32; 2]) -> Self {
        Self { layout: Layout::new([("x", vec![1]), ("y", vec![1])]), target, notes: Arc::default(), encoder: None }
    }
}

impl LocalTraining for Pull {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn model_encoder(&self) -> ModelEncoder {
        let layout = self.layout.clone();
        self.encoder.clone().unwrap_or_else(|| layout.encoder())
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        Ok(vec![0.0; self.layout.dimension()])
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        while self.notes.hangs.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        self.notes.trained.fetch_add(1, Ordering::Relaxed);
        self.notes.factors.lock().unwrap_or_else(PoisonError::into_inner).push(budget.last_factor);
        let change = from.iter().zip(self.target).map(|(x, target)| STEP * (target - x)).collect();
        Ok(Trained { change, steps: budget.local_steps, loss: None })
    }

    fn evaluate(&mut self, x: &[f32], _: &Patience) -> Result<Evaluation, TrainingError> {
        let distance = x.iter().zip(self.target).map(|(x, target)| f64::from(x - target).powi(2)).sum::<f64>().sqrt();
        Ok(Evaluation { metrics: [("distance", distance)].into_iter().collect(), samples: 1, is_whole: true })
    }

    fn state(&self) -> Vec<u8> {
        self.notes.trained.load(Ordering::Relaxed).to_le_bytes().to_vec()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
        let count = u64::from_le_bytes(state.try_into()?);
        self.notes.restored.lock().unwrap_or_else(PoisonError::into_inner).push(count);
        Ok(())
    }
}

/// An encoder whose file other programs would not write: it has no header.
fn no_safetensors() -> ModelEncoder {
    Arc::new(|_| Ok(b"GGUF".to_vec()))
}

fn homes(folder: &Path) -> Vec<Home> {
    (0..3).map(|node: u32| Home::create(Some(&folder.join(node.to_string()))).unwrap()).collect()
}

fn plan_of(homes: &[Home]) -> Plan {
    let topology = Topology::generate("ring:n=3").unwrap();
    let mut plan = design(&topology, Method::NguyenHe, &DesignOptions::default()).unwrap();
    for (node, home) in homes.iter().enumerate() {
        plan.bind(node, &home.peer_id().unwrap().to_string()).unwrap();
    }
    plan
}

fn builder(home: &Home, plan: &Plan, rounds: u64) -> PeerBuilder {
    Peer::builder(home.clone()).plan(plan.clone()).rounds(rounds).options(|options| {
        options.listen = vec!["/ip4/127.0.0.1/tcp/0".parse().unwrap()];
        options.training_deadline = Duration::from_millis(500);
    })
}

/// Starts all peers, the later ones with the addresses of the earlier ones.
async fn start(builders: Vec<PeerBuilder>) -> Vec<RunningPeer> {
    let (mut peers, mut known) = (Vec::<RunningPeer>::new(), Vec::new());
    for builder in builders {
        let peer = timeout(PATIENCE, builder.bootstrap(&known).start()).await.unwrap().unwrap();
        known.extend_from_slice(peer.addresses());
        peers.push(peer);
    }
    peers
}

async fn ended(peer: RunningPeer) -> mingle_peer::Result<Outcome> {
    timeout(PATIENCE, peer.outcome()).await.unwrap()
}

/// Stops all at once, and returns each one's summary and model.
async fn stop(peers: Vec<RunningPeer>) -> Vec<(Summary, Vec<f32>)> {
    peers.iter().for_each(RunningPeer::stop);
    summaries(peers).await
}

async fn summaries(peers: Vec<RunningPeer>) -> Vec<(Summary, Vec<f32>)> {
    let mut all = Vec::new();
    for peer in peers {
        match ended(peer).await.unwrap() {
            Outcome::Trained { summary, parameters, .. } => all.push((*summary, parameters.to_vec())),
            other => panic!("{other:?}"),
        }
    }
    all
}

/// Waits until a peer has reported such an event.
async fn wait_for(peer: &RunningPeer, wanted: impl Fn(&Event) -> bool) {
    let mut reader = peer.events().read(Some(0));
    let seen = async {
        while let Some(read) = reader.next().await {
            let Read::Event(told) = read else { continue };
            let line: EventLine = serde_json::from_str(&told.json).unwrap();
            if wanted(&line.event) {
                return;
            }
        }
        panic!("it ended before");
    };
    timeout(PATIENCE, seen).await.unwrap();
}

fn check_books(done: &[(Summary, Vec<f32>)]) {
    let books: Vec<_> = done.iter().map(|(summary, _)| (NodeId(summary.node), summary.ledger.clone())).collect();
    let report = audit(&books, 3);
    assert!(report.is_exact(), "{report:?}");
}

#[tokio::test]
async fn three_peers_meet_at_the_mean_of_their_targets_and_their_books_balance() {
    let folder = tempfile::tempdir().unwrap();
    let homes = homes(folder.path());
    let plan = plan_of(&homes);
    let builders =
        homes.iter().zip(TARGETS).map(|(home, target)| builder(home, &plan, 600).training(Pull::new(target)));
    let done = summaries(start(builders.collect()).await).await;
    for (summary, x) in &done {
        assert!(x.iter().all(|x| (x - 2.0).abs() < 0.2), "node {} is at {x:?}, not near (2, 2)", summary.node);
        let distance = summary.metrics.get("distance").unwrap();
        assert!((1.0..3.0).contains(&distance), "{}", summary.metrics);
    }
    check_books(&done);
    for home in &homes {
        let file = std::fs::read(home.model()).unwrap();
        let model = SafeTensors::deserialize(&file).unwrap();
        assert_eq!(model.tensor("y").unwrap().shape(), [1]);
    }
}

#[tokio::test]
async fn a_peer_with_another_layout_is_refused_with_the_first_difference() {
    let folder = tempfile::tempdir().unwrap();
    let homes = homes(folder.path());
    let plan = plan_of(&homes);
    let other = Pull { layout: Layout::new([("x", vec![1]), ("z", vec![1])]), ..Pull::new([1.0; 2]) };
    let builders = vec![
        builder(&homes[0], &plan, 1_000_000).training(Pull::new(TARGETS[0])),
        builder(&homes[1], &plan, 1_000_000).training(Pull::new(TARGETS[1])),
        builder(&homes[2], &plan, 1_000_000).training(other),
    ];
    let mut peers = start(builders).await;
    let refused = ended(peers.pop().unwrap()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused:#}");
    let why = format!("{refused:#}");
    assert!(why.contains("tensor 2 is `z` here and `y` there"), "{why}");
    peers.iter().for_each(RunningPeer::stop);
    for peer in peers {
        // They never met the third, or were stopped: the test needs only that they end.
        let _ = ended(peer).await;
    }
}

#[tokio::test]
async fn a_peer_that_is_started_again_gets_the_state_of_its_training_back() {
    let folder = tempfile::tempdir().unwrap();
    let homes = homes(folder.path());
    let plan = plan_of(&homes);
    let endless = |node: usize, training: Pull| builder(&homes[node], &plan, 1_000_000).training(training);
    let first = Pull::new(TARGETS[2]);
    let notes = Arc::clone(&first.notes);
    let builders = vec![endless(0, Pull::new(TARGETS[0])), endless(1, Pull::new(TARGETS[1])), endless(2, first)];
    let mut peers = start(builders).await;
    let known = peers[0].addresses().to_vec();
    let last = peers.pop().unwrap();
    wait_for(&last, |event| matches!(event, Event::Evaluated { round, .. } if *round >= 40)).await;
    stop(vec![last]).await;
    let trained = notes.trained.load(Ordering::Relaxed);
    assert!(trained >= 40, "{trained}");

    let again = Pull::new(TARGETS[2]);
    let notes = Arc::clone(&again.notes);
    let last = timeout(PATIENCE, endless(2, again).bootstrap(&known).start()).await.unwrap().unwrap();
    wait_for(&last, |event| matches!(event, Event::Evaluated { .. })).await;
    let restored = notes.restored.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // The last round may have been cut short by the stop, and then it is in no record.
    assert!(restored.len() == 1 && (trained - 1..=trained).contains(&restored[0]), "{restored:?} of {trained}");
    peers.push(last);
    check_books(&stop(peers).await);
}

/// Three peers, the last of which hangs in its training from some round on.
async fn with_a_hanging_third(homes: &[Home], hanging: Pull) -> (Vec<RunningPeer>, Arc<Notes>) {
    let plan = plan_of(homes);
    let notes = Arc::clone(&hanging.notes);
    let trainings = [Pull::new(TARGETS[0]), Pull::new(TARGETS[1]), hanging];
    let builders = homes.iter().zip(trainings).map(|(home, pull)| builder(home, &plan, 1_000_000).training(pull));
    let peers = start(builders.collect()).await;
    wait_for(&peers[2], |event| matches!(event, Event::Evaluated { .. })).await;
    notes.hangs.store(true, Ordering::Relaxed);
    wait_for(&peers[2], |event| matches!(event, Event::Warning { message } if message.contains("is late"))).await;
    (peers, notes)
}

#[tokio::test]
async fn a_trainer_that_hangs_holds_neither_its_peer_nor_the_others_and_its_change_still_counts() {
    let folder = tempfile::tempdir().unwrap();
    let homes = homes(folder.path());
    let (peers, notes) = with_a_hanging_third(&homes, Pull::new(TARGETS[2])).await;
    let trained = notes.trained.load(Ordering::Relaxed);
    for node in [0, 2] {
        let mut status = peers[node].status();
        let before = status.borrow().round;
        let goes_on = timeout(PATIENCE, status.wait_for(|status| status.round >= before + 20)).await;
        assert!(goes_on.is_ok_and(|seen| seen.is_ok()), "peer {node} stands still after round {before}");
    }
    assert_eq!(notes.trained.load(Ordering::Relaxed), trained, "it hangs still");
    notes.hangs.store(false, Ordering::Relaxed);
    let mut status = peers[2].status();
    while notes.trained.load(Ordering::Relaxed) < trained + 5 {
        timeout(PATIENCE, status.changed()).await.unwrap().unwrap();
    }
    check_books(&stop(peers).await);
    let factors = notes.factors.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(factors.iter().all(|factor| (0.0..=1.0).contains(factor)), "{factors:?}");
}

#[tokio::test]
async fn a_trainer_that_never_answers_again_keeps_its_peer_neither_from_ending_nor_from_writing_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let homes = homes(folder.path());
    let own = Layout::new([("transposed", vec![2, 1])]).encoder();
    let hanging = Pull { encoder: Some(own), ..Pull::new(TARGETS[2]) };
    let (peers, notes) = with_a_hanging_third(&homes, hanging).await;
    let done = stop(peers).await;
    check_books(&done);
    assert!(done[2].0.metrics.get("distance").is_some(), "what was last measured");
    let file = std::fs::read(homes[2].model()).unwrap();
    assert_eq!(SafeTensors::deserialize(&file).unwrap().names(), ["transposed"]);
    let (_, header) = SafeTensors::read_metadata(&file).unwrap();
    let metadata = header.metadata().clone().unwrap();
    assert!(["plan", "task", "rounds", "distance", MODEL_CHECKSUM].iter().all(|key| metadata.contains_key(*key)));
    notes.hangs.store(false, Ordering::Relaxed);
}

#[tokio::test]
async fn a_model_that_its_training_cannot_encode_is_written_by_its_layout_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let homes = homes(folder.path());
    let plan = plan_of(&homes);
    let panicking: ModelEncoder = Arc::new(|_| panic!("out of ideas"));
    let encoders = [Some(panicking), Some(no_safetensors()), None];
    let builders = homes
        .iter()
        .zip(encoders)
        .zip(TARGETS)
        .map(|((home, encoder), target)| builder(home, &plan, 20).training(Pull { encoder, ..Pull::new(target) }));
    let peers = start(builders.collect()).await;
    let told: Vec<_> = peers.iter().map(|peer| peer.events().read(Some(0))).collect();
    summaries(peers).await;
    for (node, (home, mut reader)) in homes.iter().zip(told).enumerate() {
        let mut is_warned = false;
        while let Ok(Some(Read::Event(told))) = timeout(PATIENCE, reader.next()).await {
            let line: EventLine = serde_json::from_str(&told.json).unwrap();
            is_warned |= matches!(line.event, Event::Warning { message } if message.contains("by its layout"));
        }
        assert_eq!(is_warned, node < 2, "peer {node}");
        let file = std::fs::read(home.model()).unwrap();
        assert_eq!(SafeTensors::deserialize(&file).unwrap().names().len(), 2);
    }
}
