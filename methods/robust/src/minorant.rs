//! Lower bounds of the worst loss.

/// A lower bound of a convex function of the model: `constant + <slope, w>` for every model `w`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Minorant {
    /// The bound for the zero model.
    pub constant: f64,
    /// The subgradient, `[columns]`.
    pub slope: Vec<f64>,
}

impl Minorant {
    pub(crate) fn zero(columns: usize) -> Self {
        Self { constant: 0.0, slope: vec![0.0; columns] }
    }

    /// The quotient by a sum of multipliers; 0 where that is below `least`: no loss is negative.
    pub(crate) fn over(&self, price: f64, least: f64) -> Self {
        if price < least || price <= 0.0 {
            return Self::zero(self.slope.len());
        }
        Self { constant: self.constant / price, slope: self.slope.iter().map(|slope| slope / price).collect() }
    }

    /// The least value within the reach of a model.
    pub(crate) fn least_near(&self, model: &[f64], reach: f64) -> f64 {
        let terms = self.slope.iter().zip(model);
        self.constant + terms.map(|(slope, value)| slope * value - reach * slope.abs()).sum::<f64>()
    }
}
