//! A recommender trains on a graphics device as on the default one, up to rounding. `devices_agree.rs` states the
//! drivers it needs.

#![allow(clippy::unwrap_used)]

use mingle_models::{Device, DeviceName};
use mingle_recommend::{ClientOptions, Filtering, LossKind, Planted, RecommenderClient};

const EPOCHS: usize = 5;
/// Tolerance of the mean loss of an epoch, relative.
const LOSS_TOLERANCE: f64 = 5e-3;
/// Tolerance of the movement of the shared parameters, relative by the L2 norm. RMSProp divides small slopes by their
/// own size: where a slope is nearly 0, its rounding decides the sign of the step. Two unrelated trainings would be
/// farther apart than either moved.
const MOVED_TOLERANCE: [(DeviceName, f64); 2] = [(DeviceName::NdArray, 0.1), (DeviceName::Wgpu { index: None }, 0.3)];

/// The shared parameters before training, the losses of all epochs, the shared parameters after them, and NDCG@20.
fn trained(device: &Device, options: ClientOptions) -> (Vec<f32>, Vec<f64>, Vec<f32>, f64) {
    let planted = Planted { communities: 1, users: 60, items: 50, ..Planted::default() };
    let mut client = RecommenderClient::new(planted.draw(), options, 1, device, None).unwrap();
    let first = client.shared().unwrap();
    let losses = (0..EPOCHS).map(|_| client.train(1).unwrap()).collect();
    (first, losses, client.shared().unwrap(), client.evaluate().unwrap().ndcg.unwrap())
}

fn distance(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(one, other)| f64::from(one - other).powi(2)).sum::<f64>().sqrt()
}

fn agrees(name: DeviceName) {
    let usual = ClientOptions { frequencies: 16, batch_size: 200, learning_rate: 2e-3, ..ClientOptions::default() };
    let bare = ClientOptions { loss: LossKind::Bpr, filter: Filtering::None, ..usual };
    let tolerance = MOVED_TOLERANCE.into_iter().find(|(device, _)| *device == name).unwrap().1;
    for options in [usual, bare] {
        let (first, expected_losses, expected, expected_ndcg) = trained(&DeviceName::Cpu.open().unwrap(), options);
        let (own_first, losses, shared, ndcg) = trained(&name.open().unwrap(), options);
        assert_eq!(own_first, first);
        for (loss, expected) in losses.iter().zip(&expected_losses) {
            assert!((loss - expected).abs() < LOSS_TOLERANCE * expected, "{losses:?} {expected_losses:?}");
        }
        let (moved, apart) = (distance(&expected, &first), distance(&shared, &expected));
        println!("moved by {moved}, {apart} apart; NDCG@20 {ndcg} and {expected_ndcg}");
        assert!(apart < tolerance * moved, "{apart} of {moved}");
        assert!((ndcg - expected_ndcg).abs() < 0.05, "{ndcg} {expected_ndcg}");
    }
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
