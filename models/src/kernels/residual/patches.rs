//! The sides of a convolution, and the places of its inputs in memory.

use super::LANES;

/// A convolution with a square kernel of odd side and zeros around the image. Height and width are multiples of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Channels of the input.
    pub(super) from: usize,
    /// Channels of the input in a plane.
    pub(super) lanes: usize,
    /// Channels of the output, a multiple of [`LANES`].
    pub(super) to: usize,
    /// The side of the kernel.
    pub(super) side: usize,
    pub(super) step: usize,
    /// Of the input.
    pub(super) height: usize,
    pub(super) width: usize,
}

impl Geometry {
    /// Zeros on each side of an image.
    pub(super) fn margin(&self) -> usize {
        self.side / 2
    }

    /// Pixels of the output.
    pub(super) fn pixels(&self) -> usize {
        self.out_height() * self.out_width()
    }

    pub(super) fn out_height(&self) -> usize {
        self.height / self.step
    }

    pub(super) fn out_width(&self) -> usize {
        self.width / self.step
    }

    /// Values of the output of an image.
    pub(super) fn output(&self) -> usize {
        self.to * self.pixels()
    }

    /// Values of the input of an image.
    pub(super) fn input(&self) -> usize {
        self.from * self.height * self.width
    }

    /// Planes of the input.
    pub(super) fn planes(&self) -> usize {
        self.from / self.lanes
    }

    /// The input with its margins.
    pub(super) fn padded_input(&self) -> Planes {
        Planes { lanes: self.lanes, height: self.height, width: self.width, margin: self.margin() }
    }

    /// The output with as many zeros around it as the input has.
    pub(super) fn padded_output(&self) -> Planes {
        Planes { lanes: LANES, height: self.out_height(), width: self.out_width(), margin: self.margin() }
    }

    /// Entries of a kernel for one output.
    pub(super) fn entries(&self) -> usize {
        self.side * self.side * self.from
    }
}

/// A plane of pixels with zeros around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planes {
    pub(super) lanes: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) margin: usize,
}

impl Planes {
    /// Values of a plane.
    pub(super) fn size(&self) -> usize {
        (self.height + 2 * self.margin) * (self.width + 2 * self.margin) * self.lanes
    }

    /// The place of a pixel of the plane, counted from the corner of its margin.
    fn place(&self, row: usize, column: usize) -> u32 {
        ((row * (self.width + 2 * self.margin) + column) * self.lanes) as u32
    }

    /// The place of each pixel within the margins.
    pub(super) fn places(&self) -> Vec<u32> {
        self.each(|row, column| self.place(row + self.margin, column + self.margin))
    }

    fn each(&self, place: impl Fn(usize, usize) -> u32) -> Vec<u32> {
        (0..self.height * self.width).map(|pixel| place(pixel / self.width, pixel % self.width)).collect()
    }

    /// Each row of pixels within the margins of a plane, from top to bottom.
    pub(super) fn rows_mut<'a>(&self, plane: &'a mut [f32]) -> impl Iterator<Item = &'a mut [f32]> + use<'a> {
        let left = self.margin * self.lanes;
        let row = self.width * self.lanes;
        let rows = plane.chunks_exact_mut(row + 2 * left).skip(self.margin).take(self.height);
        rows.map(move |line| &mut line[left..][..row])
    }
}

/// The inputs of each pixel of a product, and the places of its outputs.
#[derive(Clone, Debug)]
pub(super) struct Patches {
    pub(super) starts: Vec<u32>,
    pub(super) runs: Vec<u32>,
    /// The length of a run.
    pub(super) length: usize,
    /// The place of each output in its plane.
    pub(super) places: Vec<u32>,
    /// The entry of the convolution's kernel, `[from, side, side]`, and the output for each row and lane of the weights.
    pub(super) weights: Vec<Tap>,
}

/// The place of one row of weights in the kernels, `[to, from, side, side]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tap {
    pub(super) channel: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl Patches {
    /// The way from inputs to outputs: a row of weights is an input.
    pub(super) fn forward(geometry: &Geometry) -> Self {
        let Geometry { from, side, step, .. } = *geometry;
        let inputs = geometry.padded_input();
        let outputs = geometry.padded_output();
        let mut patches = Self {
            starts: outputs.each(|row, column| inputs.place(row * step, column * step)),
            runs: Vec::new(),
            length: side * inputs.lanes,
            places: Planes { margin: 0, ..outputs }.places(),
            weights: Vec::new(),
        };
        for plane in 0..from / inputs.lanes {
            for row in 0..side {
                patches.runs.push((plane * inputs.size()) as u32 + inputs.place(row, 0));
                for column in 0..side {
                    let channels = (0..inputs.lanes).map(|lane| plane * inputs.lanes + lane);
                    patches.weights.extend(channels.map(|channel| Tap { channel, row, column }));
                }
            }
        }
        patches
    }

    /// The way from gradients of outputs back to those of inputs: a row of weights is an output. Inputs whose places are
    /// equal modulo the step meet the same entries of the kernel: there is one product for each class of them that meets
    /// any.
    pub(super) fn backward(geometry: &Geometry) -> Vec<Self> {
        let classes = (0..geometry.step).flat_map(|row| (0..geometry.step).map(move |column| (row, column)));
        classes.filter_map(|class| Self::backward_of(geometry, class)).collect()
    }

    fn backward_of(geometry: &Geometry, (row, column): (usize, usize)) -> Option<Self> {
        let Geometry { to, step, .. } = *geometry;
        let rows = met(geometry, row);
        let columns = met(geometry, column);
        let top = rows.first()?.1;
        let left = columns.first()?.1;
        let outputs = geometry.padded_output();
        let inputs = Planes { margin: 0, lanes: LANES, ..geometry.padded_input() };
        let mut patches = Self {
            starts: outputs.each(|y, x| outputs.place(y + top, x + left)),
            runs: Vec::new(),
            length: columns.len() * LANES,
            places: outputs.each(|y, x| inputs.place(y * step + row, x * step + column)),
            weights: Vec::new(),
        };
        for plane in 0..to / LANES {
            for &(row, at) in &rows {
                patches.runs.push((plane * outputs.size()) as u32 + outputs.place(at - top, 0));
                for &(column, _) in &columns {
                    let channels = (0..LANES).map(|lane| plane * LANES + lane);
                    patches.weights.extend(channels.map(|channel| Tap { channel, row, column }));
                }
            }
        }
        Some(patches)
    }
}

/// The entries along one side of the kernel that the inputs of a class meet, with the place of the output from which
/// they do, counted from that of the same number in the margin. In order of these places.
fn met(geometry: &Geometry, class: usize) -> Vec<(usize, usize)> {
    let margin = geometry.margin();
    let step = geometry.step;
    let meets = |entry: &usize| (class + margin + step * geometry.side - entry).is_multiple_of(step);
    let entries = (0..geometry.side).rev().filter(meets);
    // An input at `step i + class` meets entry `e` of the output at `i + (class + margin - e) / step`.
    entries.map(|entry| (entry, (class + margin + step * margin - entry) / step)).collect()
}
