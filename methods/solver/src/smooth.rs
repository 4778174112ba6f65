//! Smooth convex functions.

/// A convex function with a gradient that is Lipschitz continuous.
pub trait Smooth: Send + Sync {
    /// The number of variables.
    fn dimension(&self) -> usize;
    /// The value at `x`.
    fn value(&self, x: &[f64]) -> f64;
    /// Writes the gradient at `x`, `[dimension]`.
    fn gradient(&self, x: &[f64], gradient: &mut [f64]);
    /// A Lipschitz constant of the gradient: an upper bound of its rate of change, whose inverse is a safe step size.
    fn smoothness(&self) -> f64;
}

/// `1/2 || A x - b ||^2 + ridge/2 || x ||^2`.
#[derive(Clone, Debug, PartialEq)]
pub struct LeastSquares {
    columns: usize,
    /// The matrix in row-major order.
    matrix: Vec<f64>,
    target: Vec<f64>,
    ridge: f64,
    smoothness: f64,
}

impl LeastSquares {
    /// The term of a matrix of `columns` columns, in row-major order, and one target for each of its rows.
    ///
    /// # Panics
    ///
    /// When the lengths do not fit.
    #[must_use]
    pub fn new(columns: usize, matrix: Vec<f64>, target: Vec<f64>) -> Self {
        assert_eq!(matrix.len(), columns * target.len(), "{columns} columns and {} rows", target.len());
        let smoothness = crate::spectral_bound::largest_eigenvalue(columns, &matrix);
        Self { columns, matrix, target, ridge: 0.0, smoothness }
    }

    /// Sets the weight of the ridge term, which is 0 at first.
    #[must_use]
    pub fn with_ridge(mut self, ridge: f64) -> Self {
        self.smoothness += ridge - self.ridge;
        self.ridge = ridge;
        self
    }

    /// `A' A vector`: the product with the second derivative, without the ridge term.
    #[must_use]
    pub fn curvature(&self, vector: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; vector.len()];
        for (row, _) in self.rows() {
            crate::vector::add(&mut product, crate::vector::dot(row, vector), row);
        }
        product
    }

    /// The trace of `A' A`.
    #[must_use]
    pub fn trace(&self) -> f64 {
        crate::vector::dot(&self.matrix, &self.matrix)
    }

    fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.matrix.chunks_exact(self.columns).zip(self.target.iter().copied())
    }
}

impl Smooth for LeastSquares {
    fn dimension(&self) -> usize {
        self.columns
    }

    fn value(&self, x: &[f64]) -> f64 {
        let residual = |(row, target): (&[f64], f64)| row.iter().zip(x).map(|(a, x)| a * x).sum::<f64>() - target;
        let square: f64 = self.rows().map(residual).map(|residual| residual * residual).sum();
        (square + self.ridge * x.iter().map(|x| x * x).sum::<f64>()) / 2.0
    }

    fn gradient(&self, x: &[f64], gradient: &mut [f64]) {
        gradient.iter_mut().zip(x).for_each(|(gradient, x)| *gradient = self.ridge * x);
        for (row, target) in self.rows() {
            let residual = row.iter().zip(x).map(|(a, x)| a * x).sum::<f64>() - target;
            crate::vector::add(gradient, residual, row);
        }
    }

    fn smoothness(&self) -> f64 {
        self.smoothness
    }
}

/// `weight / 2 || x - center ||^2`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quadratic {
    /// Not negative.
    pub weight: f64,
    /// The minimiser.
    pub center: Vec<f64>,
}

/// `weight / 2 (x - target)^2 + price x`, of one variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PricedQuadratic {
    /// Not negative.
    pub weight: f64,
    /// The minimiser of the quadratic part.
    pub target: f64,
    /// The cost of each unit.
    pub price: f64,
}

impl Smooth for PricedQuadratic {
    fn dimension(&self) -> usize {
        1
    }

    fn value(&self, x: &[f64]) -> f64 {
        x.iter().map(|x| self.weight / 2.0 * (x - self.target) * (x - self.target) + self.price * x).sum()
    }

    fn gradient(&self, x: &[f64], gradient: &mut [f64]) {
        gradient.iter_mut().zip(x).for_each(|(gradient, x)| *gradient = self.weight * (x - self.target) + self.price);
    }

    fn smoothness(&self) -> f64 {
        self.weight
    }
}

/// The sum of functions of one variable each.
impl<T: Smooth> Smooth for Vec<T> {
    fn dimension(&self) -> usize {
        self.len()
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.iter().zip(x.chunks_exact(1)).map(|(part, x)| part.value(x)).sum()
    }

    fn gradient(&self, x: &[f64], gradient: &mut [f64]) {
        for ((part, x), gradient) in self.iter().zip(x.chunks_exact(1)).zip(gradient.chunks_exact_mut(1)) {
            part.gradient(x, gradient);
        }
    }

    fn smoothness(&self) -> f64 {
        self.iter().map(Smooth::smoothness).fold(0.0, f64::max)
    }
}

impl Smooth for Quadratic {
    fn dimension(&self) -> usize {
        self.center.len()
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.weight / 2.0 * x.iter().zip(&self.center).map(|(x, c)| (x - c) * (x - c)).sum::<f64>()
    }

    fn gradient(&self, x: &[f64], gradient: &mut [f64]) {
        for ((g, x), c) in gradient.iter_mut().zip(x).zip(&self.center) {
            *g = self.weight * (x - c);
        }
    }

    fn smoothness(&self) -> f64 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Box<dyn Smooth>> {
        vec![
            Box::new(LeastSquares::new(2, vec![1.0, 2.0, -0.5, 3.0, 0.25, 1.0], vec![1.0, -2.0, 0.5]).with_ridge(0.5)),
            Box::new(Quadratic { weight: 3.0, center: vec![0.5, -1.0] }),
            Box::new(vec![
                PricedQuadratic { weight: 2.0, target: 0.5, price: -1.0 },
                PricedQuadratic { weight: 0.5, target: -2.0, price: 0.0 },
            ]),
        ]
    }

    #[test]
    fn gradients_are_those_of_differences() {
        const STEP: f64 = 1e-5;
        for function in some() {
            let (x, mut gradient) = (vec![0.3, -0.7], vec![0.0; 2]);
            function.gradient(&x, &mut gradient);
            for at in 0..2 {
                let moved = |by: f64| {
                    let mut x = x.clone();
                    x[at] += by;
                    function.value(&x)
                };
                let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                assert!((slope - gradient[at]).abs() < 1e-8, "{slope} {gradient:?}");
            }
        }
    }

    #[test]
    fn gradients_change_no_faster_than_they_say() {
        for function in some() {
            for (a, b) in [([1.0, 0.0], [0.0, 0.0]), ([0.3, 0.9], [-0.3, 0.2]), ([0.0, 5.0], [0.1, -5.0])] {
                let (mut at_a, mut at_b) = ([0.0; 2], [0.0; 2]);
                function.gradient(&a, &mut at_a);
                function.gradient(&b, &mut at_b);
                let norm = |u: [f64; 2], v: [f64; 2]| (u[0] - v[0]).hypot(u[1] - v[1]);
                assert!(norm(at_a, at_b) <= function.smoothness() * norm(a, b) * (1.0 + 1e-12));
            }
        }
    }

    /// On this matrix a power iteration from `1 + 0.1 sin(column)` finds only the smaller eigenvalue.
    #[test]
    fn the_lipschitz_constant_is_an_upper_bound_whatever_the_eigenvectors_are() {
        let usual: Vec<f64> = (0..3).map(|at| 1.0 + 0.1 * f64::from(at).sin()).collect();
        let unit = |vector: Vec<f64>| {
            let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
            vector.into_iter().map(|x| x / norm).collect::<Vec<f64>>()
        };
        let orthogonal = unit(vec![usual[1], -usual[0], 0.0]);
        let rows: Vec<f64> = orthogonal.iter().map(|x| x * 1.3_f64.sqrt()).chain(unit(usual)).collect();
        let smoothness = LeastSquares::new(3, rows, vec![0.0; 2]).smoothness();
        assert!((1.3..=1.3 * 1.051).contains(&smoothness), "{smoothness}");
    }
}
