//! The gradient of a convolution's weight in burn-flex 0.22.1 as it is, and with the patch beside it.
//!
//! Prints the largest difference between both, relative to the largest value, and the median time of each.

use std::time::{Duration, Instant};

use burn_backend::ops::{ConvOptions, FloatTensorOps, ModuleOps};
use burn_backend::{FloatDType, Slice, TensorData, TensorMetadata};
use burn_flex::{Flex, FlexTensor};

/// A convolution: its name, images, channels in and out, groups, side of the image, kernel, stride, padding, dilation.
type Case = (&'static str, usize, usize, usize, usize, usize, usize, usize, usize, usize);

const CASES: [Case; 9] = [
    ("first layer, 3 x 3", 64, 3, 16, 1, 32, 3, 1, 1, 1),
    ("3 x 3", 64, 16, 16, 1, 32, 3, 1, 1, 1),
    ("3 x 3, stride 2", 64, 16, 32, 1, 32, 3, 2, 1, 1),
    ("3 x 3, many channels", 64, 64, 64, 1, 8, 3, 1, 1, 1),
    ("5 x 5", 64, 8, 16, 1, 28, 5, 1, 2, 1),
    ("1 x 1", 64, 64, 128, 1, 16, 1, 1, 0, 1),
    ("3 x 3, dilated", 16, 16, 16, 1, 32, 3, 1, 2, 2),
    ("3 x 3, 4 groups", 64, 32, 32, 4, 16, 3, 1, 1, 1),
    ("3 x 3, photographs", 8, 64, 64, 1, 56, 3, 1, 1, 1),
];

fn tensor(shape: [usize; 4], seed: u64) -> FlexTensor {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
    FlexTensor::from_data(TensorData::new(values, shape))
}

/// The gradient as burn-backend computes it for backends without one of their own.
fn usual(x: FlexTensor, weight: FlexTensor, grad: FlexTensor, options: ConvOptions<2>) -> FlexTensor {
    let [channels_out, channels_in, kernel_h, kernel_w] = weight.shape().dims();
    let groups = options.groups;
    let swapped = |tensor| Flex::float_swap_dims(tensor, 0, 1);
    let x = swapped(x);
    let grad = swapped(grad);
    let of_group = |group: usize| {
        let part = |tensor: &FlexTensor, channels: usize| {
            let from = group * channels;
            Flex::float_slice(tensor.clone(), &[Slice::from(from..from + channels)])
        };
        let options = ConvOptions::new(options.dilation, options.padding_begin(), options.stride, 1);
        let product = Flex::conv2d(part(&x, channels_in), part(&grad, channels_out / groups), None, options);
        Flex::float_slice(
            swapped(product),
            &[
                Slice::from(0..channels_out / groups),
                Slice::from(0..channels_in),
                Slice::from(0..kernel_h),
                Slice::from(0..kernel_w),
            ],
        )
    };
    Flex::float_cat((0..groups).map(of_group).collect(), 0)
}

fn values(tensor: FlexTensor) -> Vec<f32> {
    tensor.to_contiguous().storage::<f32>().to_vec()
}

/// The largest difference between two gradients, relative to the largest value.
fn difference(expected: &[f32], found: &[f32]) -> f32 {
    assert_eq!(expected.len(), found.len());
    let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    expected.iter().zip(found).fold(0.0_f32, |most, (one, other)| most.max((one - other).abs())) / largest
}

/// Compares gradients in other number formats with those in `f32`.
fn check_formats() {
    let x = tensor([3, 4, 9, 7], 1);
    let weight = tensor([6, 2, 3, 2], 2);
    let grad = tensor([3, 6, 4, 5], 3);
    let options = || ConvOptions::new([2, 1], [0, 1], [1, 4], 2);
    let expected = values(usual(x.clone(), weight.clone(), grad.clone(), options()));
    for (format, tolerance) in [(FloatDType::F64, 1e-5), (FloatDType::F16, 2e-3), (FloatDType::BF16, 2e-2)] {
        let [x, weight, grad] = [&x, &weight, &grad].map(|tensor| Flex::float_cast(tensor.clone(), format));
        let found = Flex::conv2d_weight_backward(x, weight, grad, options());
        let found = difference(&expected, &values(Flex::float_cast(found, FloatDType::F32)));
        assert!(found <= tolerance, "{format:?}: {found}");
    }
}

fn median(compute: &dyn Fn() -> FlexTensor) -> Duration {
    let mut times: Vec<Duration> = (0..15)
        .map(|_| {
            let started = Instant::now();
            std::hint::black_box(compute());
            started.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn main() {
    check_formats();
    let threads = rayon::current_num_threads();
    println!("{threads} threads\n");
    println!("| convolution | burn-flex 0.22.1, ms | with the patch, ms | ratio | difference |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for (name, images, channels_in, channels_out, groups, side, kernel, stride, padding, dilation) in CASES {
        let out = (side + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
        let x = tensor([images, channels_in, side, side], 1);
        let weight = tensor([channels_out, channels_in / groups, kernel, kernel], 2);
        let grad = tensor([images, channels_out, out, out], 3);
        let options = || ConvOptions::new([stride; 2], [padding; 2], [dilation; 2], groups);
        let before = || usual(x.clone(), weight.clone(), grad.clone(), options());
        let after = || Flex::conv2d_weight_backward(x.clone(), weight.clone(), grad.clone(), options());
        let difference = difference(&values(before()), &values(after()));
        assert!(difference <= 1e-5, "{name}: {difference}");
        let [before, after] = [median(&before), median(&after)].map(|time| time.as_secs_f64() * 1e3);
        println!("| {name} | {before:.2} | {after:.2} | {:.1} | {:.1e} |", before / after, difference);
    }
}
