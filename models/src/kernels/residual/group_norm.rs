//! Group norms (Wu and He 2018) of one image, plane by plane: with the mean and the variance of a plane,
//!
//! ```text
//! y = (x - mean) / sqrt(variance + epsilon) * scale + shift
//! ```

use pulp::{Arch, Simd, WithSimd};

use super::patches::Planes;
use super::{LANES, Lanes};

/// The epsilon of PyTorch and burn.
const EPSILON: f32 = 1e-5;
/// The vectors added up side by side.
const SUMS: usize = 8;

/// The mean of a plane, and the inverse of its deviation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    mean: f32,
    factor: f32,
}

impl Statistics {
    pub(super) fn of(plane: &[f32]) -> Self {
        Arch::new().dispatch(OfPlane(plane))
    }

    /// The factor and the term of each lane, by which a value becomes a normalized one.
    pub(super) fn line(&self, scale: &[f32], shift: &[f32]) -> LaneLine {
        let factors: Lanes = std::array::from_fn(|lane| scale[lane] * self.factor);
        LaneLine { factors, terms: std::array::from_fn(|lane| shift[lane] - self.mean * factors[lane]) }
    }
}

struct OfPlane<'a>(&'a [f32]);

impl WithSimd for OfPlane<'_> {
    type Output = Statistics;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Statistics {
        let count = self.0.len() as f32;
        let mean = self.sum_of_powers::<S, 1>(simd, 0.0) / count;
        let variance = self.sum_of_powers::<S, 2>(simd, mean) / count;
        Statistics { mean, factor: 1.0 / (variance + EPSILON).sqrt() }
    }
}

impl OfPlane<'_> {
    /// The sum of the first or second powers of all values less `mean`.
    #[inline(always)]
    fn sum_of_powers<S: Simd, const POWER: usize>(&self, simd: S, mean: f32) -> f32 {
        let mean = simd.splat_f32s(mean);
        let mut sums = [simd.splat_f32s(0.0); SUMS];
        let (vectors, _) = S::as_simd_f32s(self.0);
        let (parts, rest) = vectors.as_chunks::<SUMS>();
        for part in parts {
            for (sum, value) in sums.iter_mut().zip(part) {
                *sum = add_power::<S, POWER>(simd, *sum, simd.sub_f32s(*value, mean));
            }
        }
        for value in rest {
            sums[0] = add_power::<S, POWER>(simd, sums[0], simd.sub_f32s(*value, mean));
        }
        let sum = sums.into_iter().reduce(|sum, other| simd.add_f32s(sum, other));
        sum.map_or(0.0, |sum| simd.reduce_sum_f32s(sum))
    }
}

#[inline(always)]
fn add_power<S: Simd, const POWER: usize>(simd: S, sum: S::f32s, value: S::f32s) -> S::f32s {
    if POWER == 1 { simd.add_f32s(sum, value) } else { simd.mul_add_f32s(value, value, sum) }
}

/// A straight line for each lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneLine {
    factors: Lanes,
    terms: Lanes,
}

impl LaneLine {
    /// Writes the rectified values of a plane into the middle of another.
    pub(super) fn rectified(&self, plane: &[f32], planes: Planes, output: &mut [f32]) {
        for (from, to) in plane.chunks_exact(planes.width * LANES).zip(planes.rows_mut(output)) {
            Arch::new().dispatch(Rectified { line: self, from, residual: None, to });
        }
    }

    /// Writes the rectified sum of a plane and another, whose values go through `other` if it is given.
    pub(super) fn rectified_sum(&self, plane: &[f32], residual: &[f32], other: Option<&Self>, output: &mut [f32]) {
        let one = Self { factors: [1.0; LANES], terms: [0.0; LANES] };
        let residual = Some((residual, other.unwrap_or(&one)));
        Arch::new().dispatch(Rectified { line: self, from: plane, residual, to: output });
    }

    /// The vectors of a pixel.
    #[inline(always)]
    fn vectors<S: Simd>(&self) -> (&[S::f32s], &[S::f32s]) {
        (S::as_simd_f32s(&self.factors).0, S::as_simd_f32s(&self.terms).0)
    }
}

/// Pixels that become rectified values, with others that are added before.
struct Rectified<'a> {
    line: &'a LaneLine,
    from: &'a [f32],
    residual: Option<(&'a [f32], &'a LaneLine)>,
    to: &'a mut [f32],
}

impl WithSimd for Rectified<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let zero = simd.splat_f32s(0.0);
        let (from, _) = S::as_simd_f32s(self.from);
        let (to, _) = S::as_mut_simd_f32s(self.to);
        let vectors = LANES / S::F32_LANES;
        let (factors, terms) = self.line.vectors::<S>();
        for place in 0..vectors {
            let factor = factors[place];
            let term = terms[place];
            let pixels = from.iter().skip(place).step_by(vectors).zip(to.iter_mut().skip(place).step_by(vectors));
            let Some((residual, other)) = self.residual else {
                pixels.for_each(|(from, to)| *to = rectify(simd, simd.mul_add_f32s(*from, factor, term), zero));
                continue;
            };
            let (residual, _) = S::as_simd_f32s(residual);
            let (factors, terms) = other.vectors::<S>();
            let other_factor = factors[place];
            let other_term = terms[place];
            for ((from, to), residual) in pixels.zip(residual.iter().skip(place).step_by(vectors)) {
                let residual = simd.mul_add_f32s(*residual, other_factor, other_term);
                *to = rectify(simd, simd.add_f32s(simd.mul_add_f32s(*from, factor, term), residual), zero);
            }
        }
    }
}

/// Zero for what is below it; NaN stays.
#[inline(always)]
fn rectify<S: Simd>(simd: S, value: S::f32s, zero: S::f32s) -> S::f32s {
    simd.select_f32s(simd.less_than_or_equal_f32s(value, zero), zero, value)
}

/// The gradients of the scale and the shift of each lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfNorm {
    pub(super) scale: Lanes,
    pub(super) shift: Lanes,
}

impl OfNorm {
    pub(super) fn add(&mut self, other: &Self) {
        self.scale.iter_mut().zip(other.scale).for_each(|(sum, term)| *sum += term);
        self.shift.iter_mut().zip(other.shift).for_each(|(sum, term)| *sum += term);
    }
}

/// Sets the gradients of a rectified sum to zero where the sum was.
pub(super) fn of_rectifier(output: &[f32], gradient: &[f32], of_sum: &mut [f32]) {
    Arch::new().dispatch(|| {
        for ((value, gradient), of_sum) in output.iter().zip(gradient).zip(of_sum) {
            *of_sum = if *value > 0.0 { *gradient } else { 0.0 };
        }
    });
}

/// The backward pass of the norm of a plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct NormGradient<'a> {
    pub(super) plane: &'a [f32],
    pub(super) statistics: Statistics,
    pub(super) scale: &'a [f32],
    pub(super) shift: &'a [f32],
    /// If the output was rectified.
    pub(super) rectified: bool,
}

impl NormGradient<'_> {
    /// Writes the gradient of the plane, given that of the output, into the middle of `of_plane`; returns those of scale
    /// and shift.
    pub(super) fn write(&self, gradient: &[f32], planes: Planes, of_plane: &mut [f32]) -> OfNorm {
        let Statistics { mean, factor } = self.statistics;
        let mut line = self.statistics.line(self.scale, self.shift);
        if !self.rectified {
            // Above zero everywhere.
            line = LaneLine { factors: [0.0; LANES], terms: [1.0; LANES] };
        }
        let of_norm = Arch::new().dispatch(SumsOfGradients { plane: self.plane, gradient, mean, line: &line });
        let of_norm = OfNorm { scale: of_norm.scale.map(|sum| sum * factor), shift: of_norm.shift };
        let count = self.plane.len() as f32;
        let weighted = |sums: &Lanes| sums.iter().zip(self.scale).map(|(sum, scale)| sum * scale).sum::<f32>() / count;
        let constant = weighted(&of_norm.shift);
        let along = weighted(&of_norm.scale);
        // factor (scale g - constant - along (x - mean) factor)
        let slope = -factor * factor * along;
        let term = -factor * constant - slope * mean;
        let factors: Lanes = std::array::from_fn(|lane| self.scale[lane] * factor);
        let row = planes.width * LANES;
        let rows = self.plane.chunks_exact(row).zip(gradient.chunks_exact(row)).zip(planes.rows_mut(of_plane));
        for ((plane, gradient), to) in rows {
            Arch::new().dispatch(GradientOfRow { plane, gradient, line: &line, factors: &factors, slope, term, to });
        }
        of_norm
    }
}

/// Sums over pixels, by lanes: of the gradients, and of their products with the values less the mean.
struct SumsOfGradients<'a> {
    plane: &'a [f32],
    gradient: &'a [f32],
    mean: f32,
    /// Gradients count where it is above zero.
    line: &'a LaneLine,
}

impl WithSimd for SumsOfGradients<'_> {
    type Output = OfNorm;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> OfNorm {
        match S::F32_LANES {
            16 => self.sums::<S, 1>(simd),
            8 => self.sums::<S, 2>(simd),
            4 => self.sums::<S, 4>(simd),
            _ => self.sums::<S, LANES>(simd),
        }
    }
}

impl SumsOfGradients<'_> {
    #[inline(always)]
    fn sums<S: Simd, const VECTORS: usize>(&self, simd: S) -> OfNorm {
        let zero = simd.splat_f32s(0.0);
        let mean = simd.splat_f32s(self.mean);
        let (factors, terms) = self.line.vectors::<S>();
        let plane = S::as_simd_f32s(self.plane).0;
        let gradient = S::as_simd_f32s(self.gradient).0;
        let plane = plane.as_chunks::<VECTORS>().0;
        let gradient = gradient.as_chunks::<VECTORS>().0;
        let mut scales = [zero; VECTORS];
        let mut shifts = [zero; VECTORS];
        for (values, gradients) in plane.iter().zip(gradient) {
            for place in 0..VECTORS {
                let above = simd.less_than_f32s(zero, simd.mul_add_f32s(values[place], factors[place], terms[place]));
                let gradient = simd.select_f32s(above, gradients[place], zero);
                shifts[place] = simd.add_f32s(shifts[place], gradient);
                scales[place] = simd.mul_add_f32s(gradient, simd.sub_f32s(values[place], mean), scales[place]);
            }
        }
        let mut sums = OfNorm::default();
        S::as_mut_simd_f32s(&mut sums.scale).0.copy_from_slice(&scales);
        S::as_mut_simd_f32s(&mut sums.shift).0.copy_from_slice(&shifts);
        sums
    }
}

/// Gradients of a row of pixels: `factors gradient + slope value + term`.
struct GradientOfRow<'a> {
    plane: &'a [f32],
    gradient: &'a [f32],
    /// Gradients count where it is above zero.
    line: &'a LaneLine,
    factors: &'a Lanes,
    slope: f32,
    term: f32,
    to: &'a mut [f32],
}

impl WithSimd for GradientOfRow<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let zero = simd.splat_f32s(0.0);
        let slope = simd.splat_f32s(self.slope);
        let term = simd.splat_f32s(self.term);
        let plane = S::as_simd_f32s(self.plane).0;
        let gradient = S::as_simd_f32s(self.gradient).0;
        let (to, _) = S::as_mut_simd_f32s(self.to);
        let vectors = LANES / S::F32_LANES;
        let (lines, constants) = self.line.vectors::<S>();
        let (factors, _) = S::as_simd_f32s(self.factors);
        for place in 0..vectors {
            let line = lines[place];
            let constant = constants[place];
            let factor = factors[place];
            let pixels = plane.iter().skip(place).step_by(vectors).zip(gradient.iter().skip(place).step_by(vectors));
            for ((value, gradient), to) in pixels.zip(to.iter_mut().skip(place).step_by(vectors)) {
                let above = simd.less_than_f32s(zero, simd.mul_add_f32s(*value, line, constant));
                let gradient = simd.select_f32s(above, *gradient, zero);
                *to = simd.mul_add_f32s(gradient, factor, simd.mul_add_f32s(*value, slope, term));
            }
        }
    }
}
