//! Your own module on three peers in one process: each has a third of the points, and all learn the whole spiral.
//! Run it with: cargo run --release -p mingle-burn --example own_module
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig, Relu};
use burn::optim::SgdConfig;
use burn::optim::momentum::MomentumConfig;
use burn::tensor::{Device, Int, TensorData};
use burn::{Tensor, tensor::activation::softmax};
use mingle_burn::{BurnTrainer, prefetch};
use mingle_peer::training::Evaluation;
use mingle_peer::{Home, Outcome, Peer};
use mingle_planner::{DesignOptions, Method, Topology, design};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Points `[batch, 2]`, and the number of their spiral, `[batch]`.
type Batch = (Tensor<2>, Tensor<1, Int>);

#[derive(Module, Debug)]
struct Net {
    hidden: Linear,
    output: Linear,
}

impl Net {
    fn new(device: &Device) -> Self {
        Self { hidden: LinearConfig::new(2, 64).init(device), output: LinearConfig::new(64, 2).init(device) }
    }

    /// Points `[batch, 2]` to logits `[batch, 2]`.
    fn forward(&self, points: Tensor<2>) -> Tensor<2> {
        self.output.forward(Relu::new().forward(self.hidden.forward(points)))
    }
}

/// Points of two spirals with `share` of the way from the middle, and the number of their spiral.
fn points(count: usize, share: std::ops::Range<f32>, generator: &mut ChaCha8Rng) -> (Vec<f32>, Vec<i32>) {
    let mut all = (Vec::new(), Vec::new());
    for index in 0..count {
        let (class, way) = ((index % 2) as i32, generator.random_range(share.clone()));
        let angle = 4.0 * way + std::f32::consts::PI * class as f32;
        all.0.extend([3.0 * way * angle.cos(), 3.0 * way * angle.sin()]);
        all.1.push(class);
    }
    all
}

fn tensors((points, classes): (Vec<f32>, Vec<i32>), device: &Device) -> Batch {
    let count = classes.len();
    let points = Tensor::from_data(TensorData::new(points, [count, 2]), device);
    (points, Tensor::from_data(TensorData::new(classes, [count]), device))
}

/// The trainer of the peer that has this third of the spirals.
fn training(third: usize) -> Result<BurnTrainer<Net, Batch>, Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    let mut generator = ChaCha8Rng::seed_from_u64(third as u64);
    let share = third as f32 / 3.0..(third + 1) as f32 / 3.0;
    let on = device.clone();
    let batches = prefetch(move |take| take(tensors(points(64, share.clone(), &mut generator), &on)));
    let sgd = SgdConfig::new().with_momentum(Some(MomentumConfig::new().with_momentum(0.9).with_dampening(0.0)));
    let loss = move |net: &Net, (points, classes)| {
        CrossEntropyLossConfig::new().init(&device).forward(net.forward(points), classes)
    };
    let test = points(600, 0.0..1.0, &mut ChaCha8Rng::seed_from_u64(99));
    let trainer = BurnTrainer::new(Net::new(&Device::flex().autodiff()), sgd.init(), 0.05, batches, loss)?;
    Ok(trainer.keeping_optimizer(1).evaluating(move |net, _| {
        let (points, classes) = tensors(test.clone(), &Device::flex());
        let right = softmax(net.forward(points), 1).argmax(1).flatten::<1>(0, 1).equal(classes);
        let right = right.int().sum().into_scalar::<i32>();
        let accuracy = f64::from(right) / test.1.len() as f64;
        Evaluation { metrics: [("accuracy", accuracy)].into_iter().collect(), samples: test.1.len(), is_whole: true }
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut plan = design(&Topology::generate("ring:n=3")?, Method::NguyenHe, &DesignOptions::default())?;
    let homes = [Home::temporary()?, Home::temporary()?, Home::temporary()?];
    for (node, home) in homes.iter().enumerate() {
        plan.bind(node, &home.peer_id()?.to_string())?;
    }
    let (mut peers, mut known) = (Vec::new(), Vec::new());
    for (third, home) in homes.into_iter().enumerate() {
        let builder = Peer::builder(home).plan(plan.clone()).bootstrap(&known).rounds(600);
        peers.push(builder.name("spirals").training(training(third)?).start().await?);
        known.extend_from_slice(peers[peers.len() - 1].addresses());
    }
    for peer in peers {
        if let Outcome::Trained { summary, .. } = peer.outcome().await? {
            println!("node {}: {} on both spirals, of which it saw a third", summary.node, summary.metrics);
        }
    }
    Ok(())
}
