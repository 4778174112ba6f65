//! Personal node classification trains on a graphics device as on the default one, up to rounding. `devices_agree.rs`
//! states the drivers it needs.

#![allow(clippy::unwrap_used)]

use mingle_graphs::{NodeClient, NodeOptions, NodeScores, NodeSplit, two_characters};
use mingle_models::{Device, DeviceName};

/// Single precision keeps 7 digits; some tens of epochs lose some of them to the order of sums.
const TOLERANCE: f32 = 1e-3;
const EPOCHS: u32 = 20;

/// The network after some epochs, and its scores.
fn trained(device: Device) -> (Vec<f32>, NodeScores) {
    let data = two_characters(1).induced(&(0..200).collect::<Vec<u32>>());
    let options = NodeOptions { orders: 3, hidden: 16, layers: 3, ..NodeOptions::default() };
    let split = NodeSplit::random(data.labels(), 1);
    let mut client = NodeClient::new(options, &data, &split, device).unwrap();
    let parameters = client.train(&client.shape().initial_parameters(1), EPOCHS).unwrap();
    let scores = client.evaluate(&parameters).unwrap();
    (parameters, scores)
}

fn agrees(name: DeviceName) {
    let (expected, expected_scores) = trained(DeviceName::Cpu.open().unwrap());
    let (found, scores) = trained(name.open().unwrap());
    let distance = found.iter().zip(&expected).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
    assert!(distance < TOLERANCE, "{distance}");
    let accuracies = [&scores.test, &expected_scores.test].map(|score| score.accuracy.unwrap());
    // A node at the border between two classes may fall to either side.
    assert!((accuracies[0] - accuracies[1]).abs() < 0.03 && accuracies[1] > 0.3, "{accuracies:?}");
}

#[test]
fn on_ndarray() {
    agrees(DeviceName::NdArray);
}

#[test]
#[ignore = "needs a Vulkan driver"]
fn on_vulkan() {
    agrees(DeviceName::Wgpu { index: None });
}
