//! A bottleneck block: three layers and a shortcut.
//!
//! ```text
//! x -> convolution 1x1 -> norm -> relu -> convolution 3x3 -> norm -> relu -> convolution 1x1 -> norm -> + -> relu
//! x -------------------------- or: convolution 1x1 -> norm ---------------------------------------------^
//! ```

use std::sync::Arc;

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::group_norm::{Statistics, of_rectifier};
use super::layer::{ConvNorm, Gradients, Weights};
use super::patches::Geometry;
use super::stem::{IMAGES_AT_ONCE, summed};
use super::{LANES, Normed};
use crate::kernels::recycled::Recycled;
use crate::kernels::tape::{Operation, apply_all};
use crate::kernels::tensors::{floats, tensor};

/// The tensors of a layer: weight, scale and shift.
const OF_LAYER: usize = 3;

/// A block's output for its input: planes `[batch, planes, height * width, LANES]` of images of `[height, width]` to planes
/// of images whose sides are divided by the steps of the layers. `None` for tensors that are not on burn's flex device.
pub(crate) fn bottleneck(
    input: Tensor<4>,
    sides: [usize; 2],
    layers: [Normed<'_>; 3],
    shortcut: Option<Normed<'_>>,
) -> Option<Tensor<4>> {
    let [one, two, three] = layers.map(Normed::tensors);
    let one = one?;
    let two = two?;
    let three = three?;
    let [narrow, within, wide] = [&one, &two, &three].map(|[weight, ..]| weight.dims());
    let step = layers[1].convolution.stride[0];
    let [height, width] = sides;
    let layer = |[to, from, side, _]: [usize; 4], step, by: usize| {
        let height = height / by;
        let width = width / by;
        ConvNorm::new(Geometry { from, lanes: LANES, to, side, step, height, width })
    };
    let mut block =
        Block { layers: [layer(narrow, 1, 1), layer(within, step, 1), layer(wide, 1, step)], shortcut: None };
    let [[a, b, c], [d, e, f], [g, h, i]] = [one, two, three];
    let Some(shortcut) = shortcut else { return apply_all(block, [input, a, b, c, d, e, f, g, h, i]) };
    let [j, k, l] = shortcut.tensors()?;
    block.shortcut = Some(layer(j.dims(), step, 1));
    apply_all(block, [input, a, b, c, d, e, f, g, h, i, j, k, l])
}

#[derive(Clone, Debug)]
struct Block {
    layers: [ConvNorm; 3],
    /// The layer that brings the input to the shape of the output, where the two differ.
    shortcut: Option<ConvNorm>,
}

/// The tensors that the backward pass needs.
#[derive(Clone, Debug)]
struct Seen<const N: usize> {
    tensors: [FlexTensor; N],
    output: FlexTensor,
    /// The outputs of all convolutions, image by image.
    convolved: Arc<Recycled>,
    statistics: Vec<Statistics>,
}

/// The values between the layers of an image, and their gradients. Margins stay zero.
struct Workspace {
    /// The rectified outputs of the first two layers, with the margins that the next one needs.
    rectified: [Vec<f32>; 2],
    /// The gradients of both, without margins.
    of_rectified: [Vec<f32>; 2],
    /// The gradients of the outputs of each convolution, with margins.
    of_convolved: Vec<Vec<f32>>,
    /// The gradient of the sum before the last rectifier.
    of_sum: Vec<f32>,
}

impl<const N: usize> Operation<N> for Block {
    type Seen = Seen<N>;

    fn forward(&self, tensors: [FlexTensor; N]) -> (FlexTensor, Seen<N>) {
        let inputs = tensors.each_ref().map(floats);
        let weights = self.weights(&inputs, false);
        let batch = inputs[0].len() / self.input();
        let mut values = vec![0.0; batch * self.output()];
        let mut convolved = Recycled::any(batch * self.convolved());
        let mut statistics = vec![Statistics::default(); batch * self.planes()];
        let seen = convolved.numbers_mut().par_chunks_exact_mut(self.convolved());
        let seen = seen.zip(statistics.par_chunks_exact_mut(self.planes()));
        let images = inputs[0].par_chunks_exact(self.input()).zip(values.par_chunks_exact_mut(self.output()));
        images.zip(seen).for_each_init(
            || self.rectified(),
            |rectified, ((image, values), seen)| self.forward_image(&weights, image, seen, rectified, values),
        );
        let output = tensor(values, self.shape(batch));
        (output.clone(), Seen { tensors, output, convolved: convolved.into(), statistics })
    }

    fn infer(&self, tensors: [FlexTensor; N]) -> FlexTensor {
        let inputs = tensors.each_ref().map(floats);
        let weights = self.weights(&inputs, false);
        let batch = inputs[0].len() / self.input();
        let mut values = vec![0.0; batch * self.output()];
        let images = inputs[0].par_chunks_exact(self.input()).zip(values.par_chunks_exact_mut(self.output()));
        images.for_each_init(
            || (self.rectified(), vec![0.0; self.convolved()], vec![Statistics::default(); self.planes()]),
            |(rectified, convolved, statistics), (image, values)| {
                self.forward_image(&weights, image, (convolved, statistics), rectified, values);
            },
        );
        tensor(values, self.shape(batch))
    }

    fn backward(&self, seen: &Seen<N>, gradient: &FlexTensor, _: [bool; N]) -> [Option<FlexTensor>; N] {
        let inputs = seen.tensors.each_ref().map(floats);
        let weights = self.weights(&inputs, true);
        let mut of_images = vec![0.0; inputs[0].len()];
        let outputs = floats(&seen.output).par_chunks(IMAGES_AT_ONCE * self.output());
        let outputs = outputs.zip(floats(gradient).par_chunks(IMAGES_AT_ONCE * self.output()));
        let convolved = seen.convolved.numbers().par_chunks(IMAGES_AT_ONCE * self.convolved());
        let convolved = convolved.zip(seen.statistics.par_chunks(IMAGES_AT_ONCE * self.planes()));
        let images = inputs[0].par_chunks(IMAGES_AT_ONCE * self.input());
        let images = images.zip(of_images.par_chunks_mut(IMAGES_AT_ONCE * self.input()));
        let parts = images.zip(outputs).zip(convolved).map_init(
            || self.workspace(),
            |workspace, (((images, of_images), (outputs, gradients)), (convolved, statistics))| {
                let mut sums: Vec<Gradients> = self.all().map(ConvNorm::no_gradients).collect();
                let images = images.chunks_exact(self.input()).zip(of_images.chunks_exact_mut(self.input()));
                let outputs = outputs.chunks_exact(self.output()).zip(gradients.chunks_exact(self.output()));
                let seen = convolved.chunks_exact(self.convolved()).zip(statistics.chunks_exact(self.planes()));
                for (((image, of_image), (output, gradient)), (convolved, statistics)) in images.zip(outputs).zip(seen)
                {
                    of_rectifier(output, gradient, &mut workspace.of_sum);
                    let image = Image { image, convolved, statistics };
                    self.backward_image(&weights, image, workspace, of_image, &mut sums);
                }
                sums
            },
        );
        let parts: Vec<Vec<Gradients>> = parts.collect();
        let sums = summed(parts, || self.all().map(ConvNorm::no_gradients).collect());
        let of_layers = self.all().zip(&sums).flat_map(|(layer, sums)| layer.in_given_order(sums));
        let mut gradients = std::iter::once(of_images).chain(of_layers).zip(&seen.tensors);
        std::array::from_fn(|_| gradients.next().map(|(values, of)| tensor(values, of.layout().shape().clone())))
    }
}

/// An image, and its values in the forward pass.
#[derive(Clone, Copy)]
struct Image<'a> {
    image: &'a [f32],
    convolved: &'a [f32],
    statistics: &'a [Statistics],
}

impl Block {
    /// All layers, the shortcut last.
    fn all(&self) -> impl Iterator<Item = &ConvNorm> {
        self.layers.iter().chain(&self.shortcut)
    }

    fn weights<'a>(&self, inputs: &[&'a [f32]], backward: bool) -> Vec<Weights<'a>> {
        let (tensors, _) = inputs[1..].as_chunks::<OF_LAYER>();
        self.all().zip(tensors).map(|(layer, tensors)| layer.weights(*tensors, backward)).collect()
    }

    fn forward_image(
        &self,
        weights: &[Weights<'_>],
        image: &[f32],
        (convolved, statistics): (&mut [f32], &mut [Statistics]),
        [first, second]: &mut [Vec<f32>; 2],
        output: &mut [f32],
    ) {
        let [one, two, three] = &self.layers;
        let (c_1, rest) = convolved.split_at_mut(one.geometry.output());
        let (c_2, rest) = rest.split_at_mut(two.geometry.output());
        let (c_3, c_4) = rest.split_at_mut(three.geometry.output());
        let (s_1, rest) = statistics.split_at_mut(one.planes());
        let (s_2, rest) = rest.split_at_mut(two.planes());
        let (s_3, s_4) = rest.split_at_mut(three.planes());
        one.convolve(&weights[0], image, c_1, s_1);
        one.rectified(&weights[0], (c_1, s_1), two.geometry.padded_input(), first);
        two.convolve(&weights[1], first, c_2, s_2);
        two.rectified(&weights[1], (c_2, s_2), three.geometry.padded_input(), second);
        three.convolve(&weights[2], second, c_3, s_3);
        let residual = self.shortcut.as_ref().map(|shortcut| {
            shortcut.convolve(&weights[3], image, c_4, s_4);
            (shortcut, &weights[3], &*c_4, &*s_4)
        });
        three.rectified_sum((&weights[2], c_3, s_3), image, residual, output);
    }

    /// Computes the gradient of an image and adds those of all weights, given that of the sum before the last rectifier.
    fn backward_image(
        &self,
        weights: &[Weights<'_>],
        Image { image, convolved, statistics }: Image<'_>,
        workspace: &mut Workspace,
        of_image: &mut [f32],
        sums: &mut [Gradients],
    ) {
        let [one, two, three] = &self.layers;
        let (c_1, rest) = convolved.split_at(one.geometry.output());
        let (c_2, rest) = rest.split_at(two.geometry.output());
        let (c_3, c_4) = rest.split_at(three.geometry.output());
        let (s_1, rest) = statistics.split_at(one.planes());
        let (s_2, rest) = rest.split_at(two.planes());
        let (s_3, s_4) = rest.split_at(three.planes());
        let Workspace { rectified: [first, second], of_rectified: [of_first, of_second], of_convolved, of_sum } =
            workspace;

        three.of_norm(&weights[2], (c_3, s_3), of_sum, false, (&mut of_convolved[2], &mut sums[2]));
        two.rectified(&weights[1], (c_2, s_2), three.geometry.padded_input(), second);
        three.of_weights(second, &of_convolved[2], &mut sums[2]);
        three.of_image(&weights[2], &of_convolved[2], of_second, false);

        two.of_norm(&weights[1], (c_2, s_2), of_second, true, (&mut of_convolved[1], &mut sums[1]));
        one.rectified(&weights[0], (c_1, s_1), two.geometry.padded_input(), first);
        two.of_weights(first, &of_convolved[1], &mut sums[1]);
        two.of_image(&weights[1], &of_convolved[1], of_first, false);

        one.of_norm(&weights[0], (c_1, s_1), of_first, true, (&mut of_convolved[0], &mut sums[0]));
        one.of_weights(image, &of_convolved[0], &mut sums[0]);
        let Some(shortcut) = &self.shortcut else {
            of_image.copy_from_slice(of_sum);
            one.of_image(&weights[0], &of_convolved[0], of_image, true);
            return;
        };
        one.of_image(&weights[0], &of_convolved[0], of_image, false);
        shortcut.of_norm(&weights[3], (c_4, s_4), of_sum, false, (&mut of_convolved[3], &mut sums[3]));
        shortcut.of_weights(image, &of_convolved[3], &mut sums[3]);
        shortcut.of_image(&weights[3], &of_convolved[3], of_image, true);
    }

    fn rectified(&self) -> [Vec<f32>; 2] {
        let [_, two, three] = &self.layers;
        [two, three].map(|layer| vec![0.0; layer.geometry.planes() * layer.geometry.padded_input().size()])
    }

    fn workspace(&self) -> Workspace {
        let [one, two, three] = &self.layers;
        let padded = |layer: &ConvNorm| vec![0.0; layer.planes() * layer.geometry.padded_output().size()];
        Workspace {
            rectified: self.rectified(),
            of_rectified: [one, two].map(|layer| vec![0.0; layer.geometry.output()]),
            of_convolved: self.all().map(padded).collect(),
            of_sum: vec![0.0; three.geometry.output()],
        }
    }

    fn shape(&self, batch: usize) -> [usize; 4] {
        let [.., last] = &self.layers;
        [batch, last.planes(), last.geometry.pixels(), LANES]
    }

    /// Values of an image.
    fn input(&self) -> usize {
        self.layers[0].geometry.input()
    }

    fn output(&self) -> usize {
        self.layers[2].geometry.output()
    }

    /// Values of the outputs of all convolutions of an image.
    fn convolved(&self) -> usize {
        self.all().map(|layer| layer.geometry.output()).sum()
    }

    /// Planes of all convolutions.
    fn planes(&self) -> usize {
        self.all().map(ConvNorm::planes).sum()
    }
}
