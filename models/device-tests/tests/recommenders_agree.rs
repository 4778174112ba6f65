//! A recommender trains on a graphics device as on the default one, up to rounding; see `devices_agree.rs` for what that needs.

#![allow(clippy::unwrap_used)]

use mingle_models::{Device, DeviceName};
use mingle_recommend::{Client, ClientOptions, Filtering, LossKind, Planted, Quality};

const EPOCHS: usize = 10;
/// Of the mean loss of an epoch.
const LOSS_TOLERANCE: f64 = 1e-3;
/// Of what is shared, by its L2 norm. RMSProp divides small slopes by their own size: where a slope is nearly 0, its rounding decides
/// which way a number goes.
const SHARED_TOLERANCE: f64 = 2e-2;

/// The losses of all epochs, what is shared after them, and how good it is.
fn trained(device: &Device, options: ClientOptions) -> (Vec<f64>, Vec<f32>, Quality) {
    let planted = Planted { communities: 1, users: 60, items: 50, ..Planted::default() };
    let mut client = Client::new(planted.draw(), options, 1, device, None).unwrap();
    let losses = (0..EPOCHS).map(|_| client.train(1).unwrap()).collect();
    (losses, client.shared().unwrap(), client.evaluate().unwrap())
}

fn agrees(name: DeviceName) {
    let usual = ClientOptions { frequencies: 16, batch_size: 200, learning_rate: 2e-3, ..ClientOptions::default() };
    let bare = ClientOptions { loss: LossKind::Bpr, filter: Filtering::None, ..usual };
    for options in [usual, bare] {
        let (expected, expected_shared, expected_quality) = trained(&DeviceName::Cpu.open().unwrap(), options);
        let (losses, shared, quality) = trained(&name.open().unwrap(), options);
        println!("{losses:?} {expected:?}");
        for (loss, expected) in losses.iter().zip(&expected) {
            assert!((loss - expected).abs() < LOSS_TOLERANCE * expected, "{losses:?} {expected:?}");
        }
        assert!(losses[EPOCHS - 1] < 0.98 * losses[0], "nothing was learned: {losses:?}");
        let norm = |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let distance = norm(&mut shared.iter().zip(&expected_shared).map(|(one, other)| one - other));
        let share = distance / norm(&mut expected_shared.iter().copied());
        println!("{share}, {quality:?} {expected_quality:?}");
        assert!(share < SHARED_TOLERANCE, "{share}");
        let (found, expected) = (quality.ndcg.unwrap(), expected_quality.ndcg.unwrap());
        assert!((found - expected).abs() < 0.03, "{found} {expected}");
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
