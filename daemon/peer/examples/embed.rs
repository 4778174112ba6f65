//! Three peers in one process agree on a vector: each prefers its own, and they converge to the mean.
//! Run it with: cargo run --release -p mingle-peer --example embed
use mingle_peer::training::{Budget, Evaluation, Layout, LocalTraining, Patience, Trained, TrainingError};
use mingle_peer::{Home, Outcome, Peer};
use mingle_planner::{DesignOptions, Method, Topology, design};
struct Quadratic(Layout, [f32; 2]); // minimise |x - target|^2 / 2 by gradient steps
impl LocalTraining for Quadratic {
    fn layout(&self) -> &Layout {
        &self.0
    }
    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        Ok(vec![0.0; 2])
    }
    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        let change = from.iter().zip(self.1).map(|(x, target)| 0.05 * (target - x)).collect();
        Ok(Trained { change, steps: budget.local_steps, loss: None })
    }
    fn evaluate(&mut self, x: &[f32], _: &Patience) -> Result<Evaluation, TrainingError> {
        let distance = x.iter().zip(self.1).map(|(x, target)| f64::from(x - target).powi(2)).sum::<f64>().sqrt();
        Ok(Evaluation { metrics: [("distance", distance)].into_iter().collect(), samples: 1, is_whole: true })
    }
}
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut plan = design(&Topology::generate("ring:n=3")?, Method::NguyenHe, &DesignOptions::default())?;
    let homes = [Home::temporary()?, Home::temporary()?, Home::temporary()?];
    for (node, home) in homes.iter().enumerate() {
        plan.bind(node, &home.peer_id()?.to_string())?;
    }
    let (mut peers, mut known) = (Vec::new(), Vec::new());
    for (home, target) in homes.into_iter().zip([[0.0, 3.0], [3.0, 0.0], [3.0, 3.0]]) {
        let mine = Quadratic(Layout::flat(2), target);
        peers.push(Peer::builder(home).plan(plan.clone()).bootstrap(&known).rounds(200).training(mine).start().await?);
        known.extend_from_slice(peers[peers.len() - 1].addresses());
    }
    for peer in peers {
        if let Outcome::Trained { parameters, summary, .. } = peer.outcome().await? {
            println!("node {}: {parameters:.3?}, {}", summary.node, summary.metrics);
        }
    }
    Ok(())
}
