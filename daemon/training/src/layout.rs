//! The layout of a model: the tensors in the coordinates of a flat vector.

use std::collections::BTreeSet;
use std::fmt::Write;

/// The tensors of a model, in the order in which a flat vector holds them, each in row-major order.
///
/// ```
/// use mingle_training::Layout;
///
/// let layout = Layout::new([("weight", vec![10, 64]), ("bias", vec![10])]);
/// assert_eq!(layout.dimension(), 650);
/// let other = Layout::new([("weight", vec![10, 32]), ("bias", vec![10])]);
/// assert_eq!(layout.difference(&other).unwrap(), "tensor `weight` has shape [10, 64] here and [10, 32] there");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Layout {
    tensors: Vec<Tensor>,
}

/// One tensor of a model.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its shape; empty for a single number.
    pub shape: Vec<usize>,
}

impl Tensor {
    /// Number of coordinates; saturates at `usize::MAX`.
    pub fn len(&self) -> usize {
        self.shape.iter().fold(1, |product: usize, length| product.saturating_mul(*length))
    }

    /// Returns `true` if it has no coordinate.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Layout {
    /// The layout with these tensors.
    pub fn new<N: Into<String>>(tensors: impl IntoIterator<Item = (N, Vec<usize>)>) -> Self {
        let tensors = tensors.into_iter().map(|(name, shape)| Tensor { name: name.into(), shape });
        Self { tensors: tensors.collect() }
    }

    /// The layout of one vector of `dimension` numbers without further structure.
    pub fn flat(dimension: usize) -> Self {
        Self::new([("parameters", vec![dimension])])
    }

    /// The tensors, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Number of coordinates of all tensors; saturates at `usize::MAX`.
    pub fn dimension(&self) -> usize {
        self.tensors.iter().fold(0, |sum: usize, tensor| sum.saturating_add(tensor.len()))
    }

    /// The first difference to another layout, in a sentence with "here" and "there"; `None` if they are equal.
    pub fn difference(&self, there: &Self) -> Option<String> {
        let pairs = self.tensors.iter().zip(&there.tensors).enumerate();
        for (index, (here, there)) in pairs {
            if here.name != there.name {
                let number = index + 1;
                return Some(format!("tensor {number} is `{}` here and `{}` there", here.name, there.name));
            }
            if here.shape != there.shape {
                let name = &here.name;
                let here = &here.shape;
                let there = &there.shape;
                return Some(format!("tensor `{name}` has shape {here:?} here and {there:?} there"));
            }
        }
        let ours = self.tensors.len();
        let theirs = there.tensors.len();
        let (longer, side) = if ours > theirs { (self, "here") } else { (there, "there") };
        let extra = longer.tensors.get(ours.min(theirs))?;
        Some(format!("the model has {ours} tensors here and {theirs} there: `{}` is only {side}", extra.name))
    }

    /// The first name that two tensors share.
    pub fn first_repeated(&self) -> Option<&str> {
        let mut seen = BTreeSet::new();
        self.tensors.iter().map(|tensor| tensor.name.as_str()).find(|name| !seen.insert(*name))
    }

    /// A short description, such as `weight[10, 64], bias[10]`; the first four tensors are named.
    pub fn describe(&self) -> String {
        const SHOWN: usize = 4;
        let mut text = String::new();
        for tensor in self.tensors.iter().take(SHOWN) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{:?}, ", tensor.name, tensor.shape);
        }
        let hidden = self.tensors.len().saturating_sub(SHOWN);
        if hidden > 0 {
            let _ = write!(text, "{hidden} more, ");
        }
        text.truncate(text.trim_end_matches(", ").len());
        text
    }
}
