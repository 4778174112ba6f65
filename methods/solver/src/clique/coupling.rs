//! Costs and couplings of cliques: any smooth convex cost, and any closed convex function with a proximal operator.
//!
//! The functions see the variables of all members, `[member][component]`, in ascending order of the members.

use std::fmt::Debug;

/// A smooth convex cost of a clique, `f_l`.
pub trait CliqueCost: Debug + Send + Sync {
    /// A Lipschitz constant of the gradient, for so many members.
    fn smoothness(&self, members: usize) -> f64;

    /// The value at `x`.
    fn value(&self, x: &[&[f64]]) -> f64;

    /// The gradient at `x`, `[member][component]`.
    fn gradient(&self, x: &[&[f64]]) -> Vec<Vec<f64>>;

    /// Returns `true` if it is for so many members with so many components each.
    fn is_for(&self, _members: usize, _components: usize) -> bool {
        true
    }
}

/// A closed convex function of a clique's variables with a cheap proximal operator, `g_l`: a penalty or a constraint.
///
/// A coupling of one's own needs [`prox`](Self::prox); a penalty its [`value`](Self::value) too, and a constraint its
/// [`violation`](Self::violation).
pub trait CliqueCoupling: Debug + Send + Sync {
    /// Replaces `v` by the minimiser `y` of `step g(y) + sum over members of ||y_j - v_j||^2 / (2 weights_j)`.
    fn prox(&self, step: f64, weights: &[f64], v: &mut [Vec<f64>]);

    /// The value at `x`, of a penalty.
    fn value(&self, _x: &[&[f64]]) -> f64 {
        0.0
    }

    /// The violation of a constraint at `x`, in units of `x`.
    fn violation(&self, _x: &[&[f64]]) -> f64 {
        0.0
    }

    /// Returns `true` if it couples so many members with so many components each.
    fn is_for(&self, _members: usize, _components: usize) -> bool {
        true
    }

    /// Replaces the subgradients that the members took by those of one element of the subdifferential near `x`; returns
    /// the distance of `x` from the point that this element belongs to.
    ///
    /// By default that point is `prox(x + taken)` with step and weights 1, where Moreau's decomposition leaves a
    /// subgradient.
    fn subgradients(&self, x: &[&[f64]], taken: &mut [Vec<f64>]) -> f64 {
        let moved = |(x, taken): (&&[f64], &Vec<f64>)| x.iter().zip(taken).map(|(x, taken)| x + taken).collect();
        let sums: Vec<Vec<f64>> = x.iter().zip(&*taken).map(moved).collect();
        let mut point = sums.clone();
        self.prox(1.0, &vec![1.0; x.len()], &mut point);
        let mut apart: f64 = 0.0;
        for (((taken, sum), point), x) in taken.iter_mut().zip(sums).zip(point).zip(x) {
            apart = apart.max(crate::vector::distance(&point, x));
            *taken = sum.iter().zip(&point).map(|(sum, point)| sum - point).collect();
        }
        apart
    }

    /// For each component, the growth of the least total cost per unit of the clique's budget, from the subgradients of
    /// its members; empty without a budget.
    fn prices(&self, _subgradients: &[Vec<f64>]) -> Vec<f64> {
        Vec::new()
    }
}

/// `weight / 2 || mean of the variables - target ||^2`.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanCost {
    /// Not negative.
    pub weight: f64,
    /// The preferred mean, `[component]`.
    pub target: Vec<f64>,
}

impl CliqueCost for MeanCost {
    fn is_for(&self, _: usize, components: usize) -> bool {
        self.target.len() == components
    }

    fn smoothness(&self, members: usize) -> f64 {
        self.weight / members as f64
    }

    fn value(&self, x: &[&[f64]]) -> f64 {
        let off = mean(x).into_iter().zip(&self.target).map(|(mean, target)| mean - target);
        off.map(|off| self.weight / 2.0 * off.powi(2)).sum()
    }

    fn gradient(&self, x: &[&[f64]]) -> Vec<Vec<f64>> {
        let members = x.len() as f64;
        let off = mean(x).into_iter().zip(&self.target).map(|(mean, target)| mean - target);
        vec![off.map(|off| self.weight * off / members).collect(); x.len()]
    }
}

/// `weight / 2 sum over pairs of members of || (x_i - offset_i) - (x_j - offset_j) ||^2`: a formation that members keep
/// as well as their own terms let them.
#[derive(Clone, Debug, PartialEq)]
pub struct FormationCost {
    /// Not negative.
    pub weight: f64,
    /// The places of the members in the formation, `[member][component]`.
    pub offsets: Vec<Vec<f64>>,
}

impl CliqueCost for FormationCost {
    fn is_for(&self, members: usize, components: usize) -> bool {
        are_for(&self.offsets, members, components)
    }

    fn smoothness(&self, members: usize) -> f64 {
        self.weight * members as f64
    }

    fn value(&self, x: &[&[f64]]) -> f64 {
        let apart = from_mean(&less(x, &self.offsets));
        self.smoothness(x.len()) / 2.0 * apart.iter().flatten().map(|apart| apart * apart).sum::<f64>()
    }

    fn gradient(&self, x: &[&[f64]]) -> Vec<Vec<f64>> {
        let mut gradient = from_mean(&less(x, &self.offsets));
        let factor = self.smoothness(x.len());
        gradient.iter_mut().flatten().for_each(|apart| *apart *= factor);
        gradient
    }
}

/// The constraint that all variables are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equal;

impl CliqueCoupling for Equal {
    fn prox(&self, _: f64, weights: &[f64], v: &mut [Vec<f64>]) {
        for at in 0..components(v) {
            let parts = v.iter().zip(weights);
            let (sum, inverse) = parts.fold((0.0, 0.0), |(sum, inverse), (v, q)| (sum + v[at] / q, inverse + 1.0 / q));
            v.iter_mut().for_each(|v| v[at] = sum / inverse);
        }
    }

    fn violation(&self, x: &[&[f64]]) -> f64 {
        let range = |at: usize| {
            let numbers = x.iter().map(|x| x[at]);
            let (least, most) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
            (most - least).max(0.0)
        };
        (0..x.first().map_or(0, |x| x.len())).map(range).fold(0.0, f64::max)
    }

    fn subgradients(&self, _: &[&[f64]], taken: &mut [Vec<f64>]) -> f64 {
        let apart = from_mean(taken);
        taken.iter_mut().zip(apart).for_each(|(taken, apart)| *taken = apart);
        0.0
    }
}

/// The constraint that each member is at its place in a formation, wherever that is: the variables less the offsets are
/// equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Formation {
    /// The places of the members in the formation, `[member][component]`.
    pub offsets: Vec<Vec<f64>>,
}

impl CliqueCoupling for Formation {
    fn prox(&self, step: f64, weights: &[f64], v: &mut [Vec<f64>]) {
        for (v, offset) in v.iter_mut().zip(&self.offsets) {
            crate::vector::add(v, -1.0, offset);
        }
        Equal.prox(step, weights, v);
        for (v, offset) in v.iter_mut().zip(&self.offsets) {
            crate::vector::add(v, 1.0, offset);
        }
    }

    fn violation(&self, x: &[&[f64]]) -> f64 {
        let less = less(x, &self.offsets);
        Equal.violation(&less.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn is_for(&self, members: usize, components: usize) -> bool {
        are_for(&self.offsets, members, components)
    }

    fn subgradients(&self, x: &[&[f64]], taken: &mut [Vec<f64>]) -> f64 {
        Equal.subgradients(x, taken)
    }
}

/// The constraint that the variables sum to this, `[component]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SumTo(pub Vec<f64>);

impl CliqueCoupling for SumTo {
    fn prox(&self, _: f64, weights: &[f64], v: &mut [Vec<f64>]) {
        for (at, total) in self.0.iter().enumerate() {
            let share = (total - v.iter().map(|v| v[at]).sum::<f64>()) / weights.iter().sum::<f64>();
            v.iter_mut().zip(weights).for_each(|(v, q)| v[at] += q * share);
        }
    }

    fn violation(&self, x: &[&[f64]]) -> f64 {
        let missed = |(at, total): (usize, &f64)| (x.iter().map(|x| x[at]).sum::<f64>() - total).abs();
        self.0.iter().enumerate().map(missed).fold(0.0, f64::max)
    }

    fn subgradients(&self, _: &[&[f64]], taken: &mut [Vec<f64>]) -> f64 {
        let mean = mean(taken);
        taken.iter_mut().for_each(|taken| taken.clone_from(&mean));
        0.0
    }

    fn is_for(&self, _: usize, components: usize) -> bool {
        self.0.len() == components
    }

    fn prices(&self, subgradients: &[Vec<f64>]) -> Vec<f64> {
        subgradients.first().map_or_else(Vec::new, |same| same.iter().map(|price| -price).collect())
    }
}

/// `weight || x_1 - x_2 ||_2` of two members: the network lasso (Hallac, Leskovec and Boyd, 2015). Members that are
/// near each other become equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkLasso {
    /// Not negative.
    pub weight: f64,
}

impl CliqueCoupling for NetworkLasso {
    fn prox(&self, step: f64, weights: &[f64], v: &mut [Vec<f64>]) {
        approach(weights, v, |_| step * self.weight);
    }

    fn value(&self, x: &[&[f64]]) -> f64 {
        self.weight * apart(x)
    }

    fn is_for(&self, members: usize, _: usize) -> bool {
        members == 2
    }
}

/// The constraint that two members are no further apart than this, `|| x_1 - x_2 ||_2 <= distance`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Within {
    /// Not negative.
    pub distance: f64,
}

impl CliqueCoupling for Within {
    fn prox(&self, _: f64, weights: &[f64], v: &mut [Vec<f64>]) {
        let reach: f64 = weights.iter().sum();
        approach(weights, v, |apart| (apart - self.distance).max(0.0) / reach);
    }

    fn violation(&self, x: &[&[f64]]) -> f64 {
        (apart(x) - self.distance).max(0.0)
    }

    fn is_for(&self, members: usize, _: usize) -> bool {
        members == 2
    }
}

/// Returns `true` if there is an offset for each of so many members and components.
fn are_for(offsets: &[Vec<f64>], members: usize, components: usize) -> bool {
    offsets.len() == members && offsets.iter().all(|offset| offset.len() == components)
}

/// Moves two points towards each other, each by its weight times `force` of their distance, and no further than until
/// they meet.
fn approach(weights: &[f64], v: &mut [Vec<f64>], force: impl FnOnce(f64) -> f64) {
    let [first, second] = v else { return };
    let difference: Vec<f64> = first.iter().zip(&*second).map(|(a, b)| a - b).collect();
    let apart = crate::vector::euclidean(first, second);
    if apart == 0.0 {
        return;
    }
    let meeting = apart / weights.iter().sum::<f64>();
    let force = force(apart).min(meeting) / apart;
    crate::vector::add(first, -weights[0] * force, &difference);
    crate::vector::add(second, weights[1] * force, &difference);
}

/// The Euclidean distance of two points.
fn apart(x: &[&[f64]]) -> f64 {
    let [first, second] = x else { return 0.0 };
    crate::vector::euclidean(first, second)
}

fn components(v: &[Vec<f64>]) -> usize {
    v.first().map_or(0, Vec::len)
}

/// The mean over members, `[component]`.
fn mean<T: AsRef<[f64]>>(x: &[T]) -> Vec<f64> {
    let components = x.first().map_or(0, |x| x.as_ref().len());
    (0..components).map(|at| x.iter().map(|x| x.as_ref()[at]).sum::<f64>() / x.len() as f64).collect()
}

/// The differences from the mean over members.
fn from_mean(x: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mean = mean(x);
    x.iter().map(|x| x.iter().zip(&mean).map(|(x, mean)| x - mean).collect()).collect()
}

fn less(x: &[&[f64]], offsets: &[Vec<f64>]) -> Vec<Vec<f64>> {
    x.iter().zip(offsets).map(|(x, offset)| x.iter().zip(offset).map(|(x, offset)| x - offset).collect()).collect()
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn uniform(dice: &mut ChaCha8Rng) -> f64 {
        (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn points(dice: &mut ChaCha8Rng, members: usize) -> Vec<Vec<f64>> {
        (0..members).map(|_| (0..2).map(|_| 4.0 * uniform(dice) - 2.0).collect()).collect()
    }

    fn views(x: &[Vec<f64>]) -> Vec<&[f64]> {
        x.iter().map(Vec::as_slice).collect()
    }

    fn couplings() -> Vec<(usize, Box<dyn CliqueCoupling>)> {
        let offsets = vec![vec![0.0, 0.0], vec![1.0, -1.0], vec![0.5, 2.0]];
        vec![
            (3, Box::new(Equal)),
            (3, Box::new(Formation { offsets })),
            (3, Box::new(SumTo(vec![1.5, -0.5]))),
            (2, Box::new(NetworkLasso { weight: 0.7 })),
            (2, Box::new(Within { distance: 0.4 })),
        ]
    }

    /// `step g(y) + distance`, where `y` keeps the constraint.
    fn cost(coupling: &dyn CliqueCoupling, step: f64, weights: &[f64], y: &[Vec<f64>], v: &[Vec<f64>]) -> f64 {
        let square = |(y, v): (&Vec<f64>, &Vec<f64>)| y.iter().zip(v).map(|(y, v)| (y - v) * (y - v)).sum::<f64>();
        let far = y.iter().zip(v).map(square).zip(weights).map(|(square, weight)| square / (2.0 * weight));
        step * coupling.value(&views(y)) + far.sum::<f64>()
    }

    #[test]
    fn proximal_points_keep_constraints_and_no_point_that_does_is_better() {
        let mut dice = ChaCha8Rng::seed_from_u64(1);
        for (members, coupling) in couplings() {
            for _ in 0..200 {
                let weights: Vec<f64> = (0..members).map(|_| 1.0 + (uniform(&mut dice) * 3.0).floor()).collect();
                let v = points(&mut dice, members);
                let mut best = v.clone();
                coupling.prox(0.5, &weights, &mut best);
                assert!(coupling.violation(&views(&best)) < 1e-12, "{coupling:?}: {best:?}");
                let least = cost(&*coupling, 0.5, &weights, &best, &v);
                // A point that keeps the constraint: the proximal point of a point near the best one.
                let mut other = best.clone();
                other.iter_mut().flatten().for_each(|x| *x += 0.3 * (uniform(&mut dice) - 0.5));
                coupling.prox(1e-9, &weights, &mut other);
                let found = cost(&*coupling, 0.5, &weights, &other, &v);
                assert!(found >= least - 1e-9, "{coupling:?}: {found} below {least}");
            }
        }
    }

    #[test]
    fn subgradients_of_a_proximal_point_are_found_again() {
        let mut dice = ChaCha8Rng::seed_from_u64(2);
        for (members, coupling) in couplings() {
            for _ in 0..50 {
                let v = points(&mut dice, members);
                let mut x = v.clone();
                coupling.prox(1.0, &vec![1.0; members], &mut x);
                let difference = |(v, x): (&Vec<f64>, &Vec<f64>)| v.iter().zip(x).map(|(v, x)| v - x).collect();
                let wanted: Vec<Vec<f64>> = v.iter().zip(&x).map(difference).collect();
                let mut found = wanted.clone();
                assert!(coupling.subgradients(&views(&x), &mut found) < 1e-12, "{coupling:?}");
                let off = found.iter().flatten().zip(wanted.iter().flatten()).map(|(a, b)| (a - b).abs());
                assert!(off.fold(0.0, f64::max) < 1e-12, "{coupling:?}: {found:?} {wanted:?}");
            }
        }
    }

    #[test]
    fn gradients_of_costs_are_those_of_differences_and_no_steeper_than_they_say() {
        const STEP: f64 = 1e-5;
        let mut dice = ChaCha8Rng::seed_from_u64(3);
        let offsets = vec![vec![0.0, 0.0], vec![1.0, -1.0], vec![0.5, 2.0]];
        let costs: [Box<dyn CliqueCost>; 2] = [
            Box::new(MeanCost { weight: 1.5, target: vec![0.5, -1.0] }),
            Box::new(FormationCost { weight: 0.75, offsets }),
        ];
        for cost in costs {
            let x = points(&mut dice, 3);
            let y = points(&mut dice, 3);
            let gradient = cost.gradient(&views(&x));
            for (member, at) in (0..3).flat_map(|member| [(member, 0), (member, 1)]) {
                let moved = |by: f64| {
                    let mut x = x.clone();
                    x[member][at] += by;
                    cost.value(&views(&x))
                };
                let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                assert!((slope - gradient[member][at]).abs() < 1e-7, "{cost:?}: {slope} {gradient:?}");
            }
            let norm = |a: &[Vec<f64>], b: &[Vec<f64>]| {
                let squares = a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b) * (a - b));
                squares.sum::<f64>().sqrt()
            };
            assert!(norm(&gradient, &cost.gradient(&views(&y))) <= cost.smoothness(3) * norm(&x, &y) * (1.0 + 1e-12));
        }
    }
}
