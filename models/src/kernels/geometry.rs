//! The sides of a block, and the layout of its arrays in memory.
//!
//! Images are stored channels last, `[height, width, channels]`: the inputs under one row of the kernel are then one
//! contiguous run, and the outputs of one pixel are vectors to compare and add.

/// The number of inputs under a kernel row from which a matrix product per row is faster.
const DEEP: usize = 32;

/// A convolution with a square kernel of odd side, step 1 and zeros around the image, so that it
/// keeps the sides, which are even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    pub(crate) outputs: usize,
    /// The side of the kernel.
    pub(crate) side: usize,
}

impl Geometry {
    /// Values of one image.
    pub(crate) fn image(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Values of one output before it is pooled.
    pub(crate) fn convolved(&self) -> usize {
        self.height * self.width * self.outputs
    }

    /// Values of one output.
    pub(crate) fn pooled(&self) -> usize {
        self.convolved() / 4
    }

    /// Values of a kernel row: the run of inputs that meets it.
    pub(crate) fn run(&self) -> usize {
        self.side * self.channels
    }

    /// Values of the kernel of one output.
    pub(crate) fn kernel(&self) -> usize {
        self.side * self.run()
    }

    /// Zeros on each side of an image.
    pub(crate) fn margin(&self) -> usize {
        self.side / 2
    }

    /// Values of an image row with zeros on both sides.
    pub(crate) fn padded_row(&self) -> usize {
        (self.width + 2 * self.margin()) * self.channels
    }

    /// Returns `true` if a kernel row has so few inputs that one product over all rows is faster.
    pub(crate) fn is_shallow(&self) -> bool {
        self.run() < DEEP
    }

    /// The index in a padded image at which the kernel of a pixel begins.
    pub(crate) fn corner(&self, pixel: usize) -> usize {
        pixel / self.width * self.padded_row() + pixel % self.width * self.channels
    }

    /// The corners of all pixels.
    pub(crate) fn corners(&self) -> Vec<u32> {
        (0..self.height * self.width).map(|pixel| self.corner(pixel) as u32).collect()
    }

    /// Values of an image with zeros on all sides.
    pub(crate) fn padded(&self) -> usize {
        (self.height + 2 * self.margin()) * self.padded_row()
    }

    /// Copies `image` into the middle of `padded`, whose margins are left alone.
    pub(crate) fn pad(&self, image: &[f32], padded: &mut [f32]) {
        for (to, from) in self.inner_rows_mut(padded).zip(image.chunks_exact(self.width * self.channels)) {
            to.copy_from_slice(from);
        }
    }

    /// Copies the middle of `padded` to `image`.
    pub(crate) fn unpad(&self, padded: &[f32], image: &mut [f32]) {
        let left = self.margin() * self.channels;
        let rows = padded.chunks_exact(self.padded_row()).skip(self.margin());
        for (to, from) in image.chunks_exact_mut(self.width * self.channels).zip(rows) {
            to.copy_from_slice(&from[left..][..to.len()]);
        }
    }

    fn inner_rows_mut<'a>(&self, padded: &'a mut [f32]) -> impl Iterator<Item = &'a mut [f32]> + use<'a> {
        let left = self.margin() * self.channels;
        let row = self.width * self.channels;
        padded
            .chunks_exact_mut(self.padded_row())
            .skip(self.margin())
            .take(self.height)
            .map(move |line| &mut line[left..left + row])
    }

    /// Reorders the weights from `[outputs, channels, side, side]` to one row per output,
    /// `[outputs, side, side, channels]`, the order of the inputs.
    pub(crate) fn by_output(&self, weight: &[f32]) -> Vec<f32> {
        let mut sorted = vec![0.0; weight.len()];
        self.for_each_weight(|original, by_output, _| sorted[by_output] = weight[original]);
        sorted
    }

    /// Reorders the weights from `[outputs, channels, side, side]` to one column per output,
    /// `[side, side, channels, outputs]`.
    pub(crate) fn by_input(&self, weight: &[f32]) -> Vec<f32> {
        let mut sorted = vec![0.0; weight.len()];
        self.for_each_weight(|original, _, by_input| sorted[by_input] = weight[original]);
        sorted
    }

    /// Reorders weights from one row per output to `[outputs, channels, side, side]`: the inverse of
    /// [`by_output`](Self::by_output).
    pub(crate) fn in_given_order(&self, sorted: &[f32]) -> Vec<f32> {
        let mut weight = vec![0.0; sorted.len()];
        self.for_each_weight(|original, by_output, _| weight[original] = sorted[by_output]);
        weight
    }

    /// Calls `visit` with the place of every weight in each of the three orders.
    fn for_each_weight(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let mut original = 0;
        for output in 0..self.outputs {
            for channel in 0..self.channels {
                for place in 0..self.side * self.side {
                    let input = place * self.channels + channel;
                    visit(original, output * self.kernel() + input, input * self.outputs + output);
                    original += 1;
                }
            }
        }
    }
}
