//! CPGD: a gradient step, then the average of the projections onto the constraints of a node's cliques (\[WS\],
//! appendix F).
//!
//! ```text
//!   x^(k+1) = T( x^k - lambda_k grad fh(x^k) )          T = average of copies . projection onto each clique's constraint
//! ```
//!
//! `T` is firmly nonexpansive, and its fixed points are those that satisfy all constraints. With a fixed step the
//! solution has an error of the order of the step; with steps that shrink like `1 / k` it converges. The accelerated
//! form takes the next step from an extrapolated point (\[WS\] print a minus before the momentum, which slows it down
//! instead).

use std::collections::BTreeMap;

use crate::{CliqueTerm, ConsensusTerms, Local, Nothing, Smooth, SolverNode};

/// The point from which the next step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descent {
    /// The last point.
    Plain,
    /// A point extrapolated with Nesterov's momentum.
    Accelerated,
}

/// A node of CPGD.
pub struct ProjectedNode {
    id: usize,
    local: Local,
    cliques: Vec<CliqueTerm>,
    descent: Descent,
    /// The point of the next gradient.
    ahead: Vec<f64>,
    momentum: f64,
}

impl ProjectedNode {
    /// A node that begins at zero, with all cliques that it is in. Their costs are not used.
    ///
    /// # Panics
    ///
    /// When it is in no clique.
    #[must_use]
    pub fn new(id: usize, smooth: Box<dyn Smooth>, cliques: Vec<CliqueTerm>, descent: Descent) -> Self {
        assert!(!cliques.is_empty(), "node {id} is in no clique");
        let local = Local::new(ConsensusTerms { smooth, nonsmooth: Box::new(Nothing) });
        Self { id, ahead: local.x().to_vec(), local, cliques, descent, momentum: 1.0 }
    }

    /// Takes a gradient step of this size and returns the message to the members of its cliques.
    pub fn message(&self, step: f64) -> Vec<f64> {
        self.local.descended(step, &self.ahead)
    }

    /// Takes the messages of the members of its cliques in this iteration, its own included.
    ///
    /// # Errors
    ///
    /// A member whose message is missing or has another length; the node is then unchanged.
    pub fn absorb(&mut self, messages: &BTreeMap<usize, Vec<f64>>) -> Result<(), usize> {
        let x = self.projected(messages)?;
        self.ahead.clone_from(&x);
        if self.descent == Descent::Accelerated {
            let next = f64::midpoint(1.0, (1.0 + 4.0 * self.momentum * self.momentum).sqrt());
            let factor = (self.momentum - 1.0) / next;
            self.ahead.iter_mut().zip(self.local.x()).for_each(|(new, old)| *new += factor * (*new - old));
            self.momentum = next;
        }
        self.local.go_to(x);
        Ok(())
    }

    /// The mean over its cliques of its own variables after the projection onto each constraint.
    fn projected(&self, messages: &BTreeMap<usize, Vec<f64>>) -> Result<Vec<f64>, usize> {
        let mut x = vec![0.0; self.local.x().len()];
        for clique in &self.cliques {
            let weights: Vec<f64> = clique.memberships.iter().map(|&count| count as f64).collect();
            let said = |member: &usize| messages.get(member).filter(|said| said.len() == x.len()).ok_or(*member);
            let said: Vec<&Vec<f64>> = clique.members.iter().map(said).collect::<Result<_, usize>>()?;
            let Ok(own) = clique.members.binary_search(&self.id) else { continue };
            for (at, x) in x.iter_mut().enumerate() {
                let mut component: Vec<f64> = said.iter().map(|said| said[at]).collect();
                clique.project(&weights, &mut component);
                *x += component[own];
            }
        }
        x.iter_mut().for_each(|x| *x /= self.cliques.len() as f64);
        Ok(x)
    }
}

impl SolverNode for ProjectedNode {
    fn local(&self) -> &Local {
        &self.local
    }
}
