//! CPGD, beside which CD-DYS is measured: a gradient step, then the average of the projections onto the constraints of a
//! node's cliques (\[WS\], appendix F).
//!
//! ```text
//!   x^(k+1) = T( x^k - lambda_k grad fh(x^k) )          T = average of copies . projection onto each clique's constraint
//! ```
//!
//! `T` is firmly nonexpansive, and its fixed points are those that satisfy all constraints. With a fixed step the
//! solution has an error of the order of the step; with steps that shrink like `1 / k` it converges. The accelerated
//! form takes the next step from an extrapolated point (\[WS\] print a minus before the momentum, which slows it down
//! instead).

use mingle_solver::{CliqueTerm, Smooth};

/// The point from which the next step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descent {
    /// The last point.
    Plain,
    /// A point extrapolated with Nesterov's momentum.
    Accelerated,
}

/// All nodes of CPGD, each with one variable.
pub(crate) struct ProjectedNodes<'a> {
    smooth: Vec<Box<dyn Smooth>>,
    cliques: &'a [CliqueTerm],
    descent: Descent,
    pub(crate) x: Vec<f64>,
    /// The length of the last move of each node.
    pub(crate) moved: Vec<f64>,
    /// The points of the next gradients.
    ahead: Vec<f64>,
    momentum: f64,
}

impl<'a> ProjectedNodes<'a> {
    /// Nodes that begin at zero. The costs of the cliques are not used.
    pub(crate) fn new(smooth: Vec<Box<dyn Smooth>>, cliques: &'a [CliqueTerm], descent: Descent) -> Self {
        let zeros = vec![0.0; smooth.len()];
        Self { smooth, cliques, descent, x: zeros.clone(), moved: zeros.clone(), ahead: zeros, momentum: 1.0 }
    }

    /// One iteration with this step size.
    pub(crate) fn iterate(&mut self, step: f64) {
        let descended: Vec<f64> = self
            .smooth
            .iter()
            .zip(&self.ahead)
            .map(|(smooth, x)| {
                let mut gradient = [0.0];
                smooth.gradient(&[*x], &mut gradient);
                x - step * gradient[0]
            })
            .collect();
        let next = projected(&descended, self.cliques);
        self.ahead.clone_from(&next);
        if self.descent == Descent::Accelerated {
            let momentum = f64::midpoint(1.0, (1.0 + 4.0 * self.momentum * self.momentum).sqrt());
            let factor = (self.momentum - 1.0) / momentum;
            self.ahead.iter_mut().zip(&self.x).for_each(|(new, old)| *new += factor * (*new - old));
            self.momentum = momentum;
        }
        self.moved = next.iter().zip(&self.x).map(|(next, x)| (next - x).abs()).collect();
        self.x = next;
    }
}

/// `T x`: each node's mean over its cliques of its number after the projection onto their constraints.
pub(crate) fn projected(x: &[f64], cliques: &[CliqueTerm]) -> Vec<f64> {
    let mut sums = vec![0.0; x.len()];
    let mut counts = vec![0.0; x.len()];
    for clique in cliques {
        let weights: Vec<f64> = clique.memberships.iter().map(|&count| count as f64).collect();
        let mut numbers: Vec<Vec<f64>> = clique.members.iter().map(|&node| vec![x[node]]).collect();
        clique.prox(1.0, &weights, &mut numbers);
        for (&node, number) in clique.members.iter().zip(numbers) {
            sums[node] += number[0];
            counts[node] += 1.0;
        }
    }
    sums.iter().zip(counts).map(|(sum, count)| sum / count).collect()
}
