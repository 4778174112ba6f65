//! Small modules as the local training of peers in one process.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use burn::Tensor;
use burn::module::Module;
use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{ModuleOptimizer, SgdConfig};
use burn::tensor::{Device, TensorData};
use mingle_burn::{BurnError, BurnTrainer};
use mingle_peer::training::{Budget, FederatedSettings, MomentumStep, Patience};
use mingle_peer::{Home, LocalTraining, Outcome, Peer, PeerBuilder};
use mingle_planner::{DesignOptions, Method, Topology, design};

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_secs(60);

type Batch = (Tensor<2>, Tensor<2>);

#[derive(Module, Debug)]
struct Net {
    first: Linear,
    norm: BatchNorm,
    last: Vec<Linear>,
}

fn device() -> Device {
    Device::flex().autodiff()
}

fn net() -> Net {
    let device = device();
    let last = vec![LinearConfig::new(3, 1).with_bias(false).init(&device)];
    Net { first: LinearConfig::new(2, 3).init(&device), norm: BatchNormConfig::new(3).init(&device), last }
}

fn matrix(values: &[f32], columns: usize) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len() / columns, columns]), &device())
}

/// Rows whose second column is always `second`, and `y = 2 a - b`.
fn batches(second: f32) -> impl Iterator<Item = Batch> + Send {
    (0_u16..).map(move |index| {
        let rows: Vec<[f32; 2]> = (0..8_u16).map(|row| [f32::from((index + row) % 5) / 5.0, second]).collect();
        let wanted: Vec<f32> = rows.iter().map(|[a, b]| 2.0 * a - b).collect();
        (matrix(rows.as_flattened(), 2), matrix(&wanted, 1))
    })
}

fn loss(net: &Net, (rows, wanted): Batch) -> Tensor<1> {
    let hidden = net.norm.forward(net.first.forward(rows));
    MseLoss::new().forward(net.last[0].forward(hidden), wanted, Reduction::Mean)
}

fn momentum() -> ModuleOptimizer {
    SgdConfig::new().with_momentum(Some(MomentumConfig::new().with_momentum(0.9).with_dampening(0.0))).init()
}

fn trainer(net: Net) -> BurnTrainer<Net, Batch> {
    BurnTrainer::new(net, momentum(), 0.05, batches(0.5), loss).unwrap()
}

fn budget(local_steps: u32) -> Budget {
    Budget {
        round: 0,
        local_steps,
        rounds_left: 1,
        last_factor: 1.0,
        momentum: MomentumStep::default(),
        noise: None,
        patience: Patience::default(),
    }
}

#[test]
fn tensors_are_exchanged_under_their_paths_and_those_left_out_stay_as_they_are() {
    let mut all = trainer(net());
    let names: Vec<String> = all.layout().tensors().iter().map(|tensor| tensor.name.clone()).collect();
    let expected = [
        "first.weight",
        "first.bias",
        "norm.gamma",
        "norm.beta",
        "norm.running_mean",
        "norm.running_var",
        "last.0.weight",
    ];
    assert_eq!(names, expected);
    let from = all.initial().unwrap();
    assert_eq!(from.len(), all.layout().dimension());
    let trained = all.train(&from, &budget(3)).unwrap();
    assert_eq!(trained.steps, 3);
    assert!(trained.loss.unwrap() > 0.0 && trained.change.iter().any(|value| *value != 0.0));
    let mut some = trainer(net()).exchanging(|path| path.starts_with("last.")).unwrap();
    assert_eq!((some.layout().tensors().len(), some.layout().dimension()), (1, 3));
    let from = some.initial().unwrap();
    assert_eq!(some.train(&from, &budget(2)).unwrap().change.len(), 3);
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let plain = net().valid();
    let refused = BurnTrainer::new(plain, momentum(), 0.1, batches(0.0), loss).err().unwrap();
    assert_eq!(refused, BurnError::NoGradients);
    let refused = trainer(net()).exchanging(|_| false).err().unwrap();
    assert_eq!(refused, BurnError::NoTensor);
    let mut short = BurnTrainer::new(net(), momentum(), 0.1, batches(0.0).take(1), loss).unwrap();
    let from = short.initial().unwrap();
    let error = short.train(&from, &budget(2)).unwrap_err();
    assert!(error.to_string().contains("no more batches"), "{error}");
}

#[test]
fn a_trainer_that_got_the_state_of_another_takes_the_same_steps() {
    let mut first = trainer(net()).keeping_optimizer(1);
    let from = first.initial().unwrap();
    let change = first.train(&from, &budget(4)).unwrap().change;
    let from: Vec<f32> = from.iter().zip(change).map(|(before, change)| before + change).collect();
    let state = first.state();
    assert!(state.len() > 4 * 3 && state.len() <= first.largest_state(), "{}", state.len());
    // The same module with other initial weights, at the same place in the stream of batches.
    let again = |state: Option<&[u8]>| {
        let mut second = BurnTrainer::new(net(), momentum(), 0.05, batches(0.5).skip(4), loss).unwrap();
        state.into_iter().for_each(|state| second.restore(state).unwrap());
        second.train(&from, &budget(2)).unwrap().change
    };
    let expected = first.train(&from, &budget(2)).unwrap().change;
    assert_eq!(again(Some(&state)), expected);
    assert_ne!(again(None), expected, "the momentum counts");
    assert!(first.restore(b"no state").unwrap_err().to_string().contains("no state of the optimizer"));
}

/// The final models of three peers of which each trains its own module, set up by `change`.
async fn models_of_three(change: impl Fn(PeerBuilder) -> PeerBuilder) -> Vec<Arc<[f32]>> {
    let mut plan =
        design(&Topology::generate("ring:n=3").unwrap(), Method::NguyenHe, &DesignOptions::default()).unwrap();
    let folder = [(); 3].map(|()| Home::temporary().unwrap());
    for (node, home) in folder.iter().enumerate() {
        plan.bind(node, &home.peer_id().unwrap().to_string()).unwrap();
    }
    let (mut peers, mut known) = (Vec::new(), Vec::new());
    for (index, home) in folder.into_iter().enumerate() {
        let training = BurnTrainer::new(net(), momentum(), 0.02, batches(index as f32 / 4.0), loss).unwrap();
        let builder = change(Peer::builder(home).plan(plan.clone()).bootstrap(&known).training(training));
        let builder = builder.options(|options| options.listen = vec!["/ip4/127.0.0.1/tcp/0".parse().unwrap()]);
        peers.push(builder.start().await.unwrap());
        known.extend_from_slice(peers[peers.len() - 1].addresses());
    }
    let mut models = Vec::new();
    for peer in peers {
        match tokio::time::timeout(PATIENCE, peer.outcome()).await.unwrap().unwrap() {
            Outcome::Trained { parameters, .. } | Outcome::Averaged { parameters, .. } => models.push(parameters),
            other => panic!("{other:?}"),
        }
    }
    models
}

#[tokio::test]
async fn peers_with_modules_of_different_weights_begin_with_one_of_them_and_agree() {
    let models = models_of_three(|peer| peer.rounds(150)).await;
    // Peers that began with different weights would not be this near: their hidden units would be in another order.
    let distance = |other: &[f32]| models[0].iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
    let norm = distance(&vec![0.0; models[0].len()]);
    for model in &models {
        assert!(distance(model) < 0.2 * norm, "{} of {norm}", distance(model));
    }
}

#[tokio::test]
async fn modules_that_are_averaged_over_masked_sums_are_one_model_that_has_learned() {
    let models = models_of_three(|peer| peer.federated(FederatedSettings::new(30, 5))).await;
    assert!(models.iter().all(|model| *model == models[0]), "{models:?}");
    let untrained = trainer(net()).initial().unwrap();
    // The second column, which the norm hides from a module, is 0, 0.25 and 0.5 at the peers: their mean fits the middle.
    let loss_of = |model: &[f32]| {
        let mut judge = BurnTrainer::new(net(), momentum(), 0.05, batches(0.25), loss).unwrap();
        judge.train(model, &budget(1)).unwrap().loss.unwrap()
    };
    assert!(loss_of(&models[0]) < 0.2 * loss_of(&untrained), "{} of {}", loss_of(&models[0]), loss_of(&untrained));
}
