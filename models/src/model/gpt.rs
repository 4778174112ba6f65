//! A language model of the GPT-2 kind (Radford et al. 2019), as nanoGPT trains it: without biases, and with the weights
//! of the token embedding tied to those of the last layer.
//!
//! ```text
//! tokens [batch, context] -> wte + wpe -> layers x block -> ln_f -> x wte^T = logits [batch * context, vocabulary]
//! block: + attention(ln_1) -> + mlp(ln_2)
//! attention: queries, keys, values of each head -> softmax(q k^T / sqrt(width / heads)) v, of earlier tokens and itself
//! mlp: width -> 4 width -> gelu -> width
//! ```
//!
//! Fields have GPT-2's names, which checkpoints carry. The tied weights are one tensor: they occur once in the flat
//! parameters and in files.

use burn::Tensor;
use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Device, Int};

use super::GptSize;
use crate::kernels::{causal_attention, gelu, layer_norm, linear, product};

/// A language model.
#[derive(Module, Debug)]
pub(crate) struct Gpt {
    wte: Embedding,
    wpe: Embedding,
    h: Vec<Block>,
    ln_f: LayerNorm,
}

impl Gpt {
    /// A blank model; its tensors exist only once parameters are loaded.
    pub(crate) fn blank(size: GptSize, vocabulary: usize, device: &Device) -> Self {
        Self {
            wte: EmbeddingConfig::new(vocabulary, size.width()).init(device),
            wpe: EmbeddingConfig::new(size.context(), size.width()).init(device),
            h: (0..size.layers()).map(|_| Block::blank(size, device)).collect(),
            ln_f: norm(size.width(), device),
        }
    }

    /// Logits `[batch * length, vocabulary]` of rows of tokens `[batch, length]`, each a whole number. A row has at
    /// most as many tokens as the context.
    pub(crate) fn forward(&self, tokens: Tensor<2>) -> Tensor<2> {
        let [batch, length] = tokens.dims();
        let positions = Tensor::<1, Int>::arange(0..length as i64, &tokens.device()).unsqueeze::<2>();
        let embedded = self.wte.forward(tokens.int()) + self.wpe.forward(positions);
        let mut seen = embedded.flatten::<2>(0, 1);
        for block in &self.h {
            seen = block.forward(seen, batch);
        }
        product(layer_norm(&self.ln_f, seen), self.wte.weight.val().transpose())
    }
}

/// Attention and a perceptron, each with a residual connection.
#[derive(Module, Debug)]
struct Block {
    ln_1: LayerNorm,
    attn: Attention,
    ln_2: LayerNorm,
    mlp: Perceptron,
}

impl Block {
    fn blank(size: GptSize, device: &Device) -> Self {
        let width = size.width();
        Self {
            ln_1: norm(width, device),
            attn: Attention {
                c_attn: without_bias(width, 3 * width, device),
                c_proj: without_bias(width, width, device),
                heads: size.heads(),
            },
            ln_2: norm(width, device),
            mlp: Perceptron {
                c_fc: without_bias(width, 4 * width, device),
                c_proj: without_bias(4 * width, width, device),
            },
        }
    }

    /// The block's output for its input, both `[batch * length, width]`.
    fn forward(&self, input: Tensor<2>, batch: usize) -> Tensor<2> {
        let seen = self.attn.forward(layer_norm(&self.ln_1, input.clone()), batch) + input;
        self.mlp.forward(layer_norm(&self.ln_2, seen.clone())) + seen
    }
}

/// Causal self-attention: each token attends to itself and those before it.
#[derive(Module, Debug)]
struct Attention {
    /// Queries, keys and values of all heads, side by side.
    c_attn: Linear,
    c_proj: Linear,
    heads: usize,
}

impl Attention {
    /// The output for an input, both `[batch * length, width]`.
    fn forward(&self, input: Tensor<2>, batch: usize) -> Tensor<2> {
        let projected = linear(&self.c_attn, input);
        let mixed = causal_attention(projected.clone(), batch, self.heads)
            .unwrap_or_else(|| attention(&projected, batch, self.heads));
        linear(&self.c_proj, mixed)
    }
}

/// Causal attention from burn's operations: queries, keys and values `[batch * length, 3 * width]` to `[batch * length, width]`.
pub(crate) fn attention(projected: &Tensor<2>, batch: usize, heads: usize) -> Tensor<2> {
    let [rows, columns] = projected.dims();
    let length = rows / batch;
    let width = columns / 3;
    let head = width / heads;
    let part = |index: usize| {
        let part = projected.clone().narrow(1, index * width, width);
        part.reshape([batch, length, heads, head]).swap_dims(1, 2)
    };
    let later = Tensor::<2, Bool>::tril_mask([length, length], 0, &projected.device());
    let scores = part(0).matmul(part(1).transpose()).div_scalar((head as f32).sqrt());
    let shares = softmax(scores.mask_fill(later.unsqueeze::<4>(), f32::NEG_INFINITY), 3);
    shares.matmul(part(2)).swap_dims(1, 2).reshape([rows, width])
}

/// A perceptron with one hidden layer, four times as wide.
#[derive(Module, Debug)]
struct Perceptron {
    c_fc: Linear,
    c_proj: Linear,
}

impl Perceptron {
    /// The output for an input, both `[batch * length, width]`.
    fn forward(&self, input: Tensor<2>) -> Tensor<2> {
        linear(&self.c_proj, gelu(linear(&self.c_fc, input)))
    }
}

fn without_bias(from: usize, to: usize, device: &Device) -> Linear {
    LinearConfig::new(from, to).with_bias(false).init(device)
}

fn norm(width: usize, device: &Device) -> LayerNorm {
    LayerNormConfig::new(width).with_bias(false).init(device)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use burn::tensor::TensorData;

    use super::*;
    use crate::flatten::unflatten;
    use crate::initialization::gpt2_parameters;

    const VOCABULARY: usize = 11;

    fn logits(network: &Gpt, tokens: &[f32]) -> Vec<f32> {
        let tokens = Tensor::from_data(TensorData::new(tokens.to_vec(), [1, tokens.len()]), &Device::flex());
        network.forward(tokens).into_data().try_into_vec().unwrap()
    }

    #[test]
    fn a_later_token_changes_no_earlier_output() {
        let size: GptSize = "layers=2,heads=2,width=16,context=8".parse().unwrap();
        let blank = Gpt::blank(size, VOCABULARY, &Device::flex());
        let parameters: Vec<f32> = gpt2_parameters(&blank, 2, 1).iter().map(|value| value * 10.0).collect();
        let network = unflatten(blank, &parameters, &Device::flex());
        let tokens = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let whole = logits(&network, &tokens);
        assert_eq!(whole.len(), tokens.len() * VOCABULARY);
        for changed in 0..tokens.len() {
            let mut other = tokens;
            other[changed] = 10.0;
            let other = logits(&network, &other);
            let (earlier, later) = whole.split_at(changed * VOCABULARY);
            assert_eq!(earlier, &other[..earlier.len()], "token {changed}");
            assert_ne!(later, &other[earlier.len()..], "token {changed}");
            // A window that ends there gives the same logits.
            let begun = logits(&network, &tokens[..=changed]);
            let apart = begun.iter().zip(&whole).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
            assert!(apart < 1e-4, "{apart}");
        }
    }
}
