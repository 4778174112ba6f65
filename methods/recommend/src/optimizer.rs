//! RMSProp (Tieleman and Hinton 2012), without momentum.

/// The parameters of RMSProp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RmsPropParameters {
    /// Step size.
    pub(crate) learning_rate: f64,
}

/// The share of the old mean of squares that is kept; `EPSILON` is added to its root.
pub(crate) const KEPT: f64 = 0.99;
pub(crate) const EPSILON: f64 = 1e-8;

impl RmsPropParameters {
    pub(crate) fn step(self, values: &mut [f64], squares: &mut [f64], gradient: &[f64]) {
        for ((value, square), slope) in values.iter_mut().zip(squares).zip(gradient) {
            *square = KEPT * *square + (1.0 - KEPT) * slope * slope;
            *value -= self.learning_rate * slope / (square.sqrt() + EPSILON);
        }
    }
}
