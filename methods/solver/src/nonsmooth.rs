//! Convex functions that need not be smooth, by their proximal operators
//! `prox(v) = argmin_x g(x) + 1/(2 step) || x - v ||^2`.

/// A closed convex function with a cheap proximal operator.
pub trait Nonsmooth: Send + Sync {
    /// The value; infinite outside of the domain.
    fn value(&self, x: &[f64]) -> f64;
    /// Replaces `x` by the proximal operator of `step` times the function.
    fn prox(&self, step: f64, x: &mut [f64]);
}

/// The violation of a constraint that counts as rounding.
const TOLERANCE: f64 = 1e-9;

fn indicator(is_inside: bool) -> f64 {
    if is_inside { 0.0 } else { f64::INFINITY }
}

/// The zero function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nothing;

impl Nonsmooth for Nothing {
    fn value(&self, _: &[f64]) -> f64 {
        0.0
    }

    fn prox(&self, _: f64, _: &mut [f64]) {}
}

/// The sum of functions of one variable each.
impl<T: Nonsmooth> Nonsmooth for Vec<T> {
    fn value(&self, x: &[f64]) -> f64 {
        self.iter().zip(x.chunks_exact(1)).map(|(part, x)| part.value(x)).sum()
    }

    fn prox(&self, step: f64, x: &mut [f64]) {
        self.iter().zip(x.chunks_exact_mut(1)).for_each(|(part, x)| part.prox(step, x));
    }
}

/// `weight || x ||_1`, whose minima have many zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct L1 {
    /// Not negative.
    pub weight: f64,
}

impl Nonsmooth for L1 {
    fn value(&self, x: &[f64]) -> f64 {
        self.weight * x.iter().map(|x| x.abs()).sum::<f64>()
    }

    fn prox(&self, step: f64, x: &mut [f64]) {
        let threshold = step * self.weight;
        x.iter_mut().for_each(|x| *x = if *x > threshold { *x - threshold } else { (*x + threshold).min(0.0) });
    }
}

/// `weight || x ||_1` and `x >= 0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NonnegativeL1 {
    /// Not negative.
    pub weight: f64,
}

impl Nonsmooth for NonnegativeL1 {
    fn value(&self, x: &[f64]) -> f64 {
        Nonnegative.value(x) + self.weight * x.iter().sum::<f64>()
    }

    fn prox(&self, step: f64, x: &mut [f64]) {
        x.iter_mut().for_each(|x| *x = (*x - step * self.weight).max(0.0));
    }
}

/// `weight sum over groups sqrt(size) || x_group ||_2`: variables that are zero together (Yuan and Lin, 2006).
#[derive(Clone, Debug, PartialEq)]
pub struct SparseGroups {
    /// Not negative.
    pub weight: f64,
    /// The variables of each group; none is in two groups.
    pub groups: Vec<Vec<usize>>,
}

impl SparseGroups {
    fn each<'a>(&'a self, x: &'a [f64]) -> impl Iterator<Item = (&'a [usize], GroupLasso, Vec<f64>)> {
        self.groups.iter().map(|group| {
            let penalty = GroupLasso { weight: self.weight * (group.len() as f64).sqrt() };
            (group.as_slice(), penalty, group.iter().map(|&at| x[at]).collect())
        })
    }
}

impl Nonsmooth for SparseGroups {
    fn value(&self, x: &[f64]) -> f64 {
        self.each(x).map(|(_, penalty, part)| penalty.value(&part)).sum()
    }

    fn prox(&self, step: f64, x: &mut [f64]) {
        let parts: Vec<_> = self.each(x).map(|(group, penalty, part)| (group.to_vec(), penalty, part)).collect();
        for (group, penalty, mut part) in parts {
            penalty.prox(step, &mut part);
            group.into_iter().zip(part).for_each(|(at, part)| x[at] = part);
        }
    }
}

/// `weight || x ||_2`, whose minima have all variables zero or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupLasso {
    /// Not negative.
    pub weight: f64,
}

impl Nonsmooth for GroupLasso {
    fn value(&self, x: &[f64]) -> f64 {
        self.weight * norm(x)
    }

    fn prox(&self, step: f64, x: &mut [f64]) {
        let norm = norm(x);
        let threshold = step * self.weight;
        let factor = if norm > threshold { 1.0 - threshold / norm } else { 0.0 };
        x.iter_mut().for_each(|x| *x *= factor);
    }
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// `x >= 0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nonnegative;

impl Nonsmooth for Nonnegative {
    fn value(&self, x: &[f64]) -> f64 {
        indicator(x.iter().all(|x| *x >= -TOLERANCE))
    }

    fn prox(&self, _: f64, x: &mut [f64]) {
        x.iter_mut().for_each(|x| *x = x.max(0.0));
    }
}

/// `lower <= x <= upper`, for each variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Not above the upper bound.
    pub lower: f64,
    /// Not below the lower bound.
    pub upper: f64,
}

impl Nonsmooth for Bounds {
    fn value(&self, x: &[f64]) -> f64 {
        indicator(x.iter().all(|x| (self.lower - TOLERANCE..=self.upper + TOLERANCE).contains(x)))
    }

    fn prox(&self, _: f64, x: &mut [f64]) {
        x.iter_mut().for_each(|x| *x = x.max(self.lower).min(self.upper));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn functions() -> Vec<Box<dyn Nonsmooth>> {
        vec![
            Box::new(Nothing),
            Box::new(L1 { weight: 0.7 }),
            Box::new(NonnegativeL1 { weight: 0.7 }),
            Box::new(GroupLasso { weight: 0.7 }),
            Box::new(SparseGroups { weight: 0.7, groups: vec![vec![2, 0], vec![1]] }),
            Box::new(Nonnegative),
            Box::new(Bounds { lower: -0.5, upper: 1.0 }),
        ]
    }

    proptest! {
        #[test]
        fn no_point_nearby_is_better_than_the_proximal_one(
            v in proptest::collection::vec(-3.0_f64..3.0, 3),
            to in proptest::collection::vec(-1.0_f64..1.0, 3),
            step in 0.1_f64..2.0,
        ) {
            for function in functions() {
                let mut x = v.clone();
                function.prox(step, &mut x);
                let cost = |x: &[f64]| {
                    let far: f64 = x.iter().zip(&v).map(|(x, v)| (x - v) * (x - v)).sum();
                    function.value(x) + far / (2.0 * step)
                };
                let least = cost(&x);
                prop_assert!(least.is_finite());
                for length in [1e-3, 0.1, 1.0] {
                    let mut other: Vec<f64> = x.iter().zip(&to).map(|(x, to)| x + length * to).collect();
                    prop_assert!(cost(&other) >= least - 1e-9);
                    // Also within the constraint.
                    function.prox(1e-9, &mut other);
                    prop_assert!(cost(&other) >= least - 1e-7);
                }
            }
        }
    }
}
