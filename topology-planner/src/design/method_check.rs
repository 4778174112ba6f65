//! Checks that the matrices of a plan are those of its method, as far as the method defines them.
//!
//! Some designs are a formula of the topology: their matrix is computed again and compared link by link. Others search
//! or draw: the properties of all their results are checked, and those that cannot be checked without the search are
//! named.

use super::{Method, exponential_offsets, exponential_step, laplacian_weight, scaled_laplacian_weight};
use crate::{
    cliques::Cliques,
    digraph::{Digraph, Link},
    mixing_matrix::MixingMatrix,
    plan::{Parameter, Plan},
    spectrum::MAX_DENSE_NODES,
    step::MixingStep,
};

/// The largest difference between equal weights: eigenvalue solvers and orders of summation differ in their last bits.
const SAME: f64 = 1e-9;

/// The result of checking a plan against its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodCheck {
    /// The properties that the matrices were checked for; `None` where the method defines none.
    pub verified: Option<&'static str>,
    /// The properties that the method claims besides, and that the plan does not show.
    pub not_verified: Option<&'static str>,
}

/// A plan whose matrices are not those of its method.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum MethodMismatch {
    /// A period of another length.
    #[error("a {method} plan on this topology has a period of {expected} steps, not of {steps}")]
    Period { method: Method, steps: usize, expected: usize },
    /// A link that the method does not use, or that is missing.
    #[error("step {step}: a {method} plan on this topology {} a link from node {from} to node {to}", if *.is_missing { "has" } else { "does not have" })]
    Links {
        /// The method.
        method: Method,
        /// The step.
        step: usize,
        /// The transmitter.
        from: usize,
        /// The receiver.
        to: usize,
        /// `true` if the plan lacks the link.
        is_missing: bool,
    },
    /// A weight that differs; a node's own share where both ends are that node.
    #[error("step {step}: the weight from node {from} to node {to} is {weight}, and by {method} it is {expected}")]
    Weight { method: Method, step: usize, from: usize, to: usize, weight: f64, expected: f64 },
    /// A period that does not average exactly.
    #[error(
        "an exact-average plan averages in one period, and this one leaves {left:.1e} of a difference at node {node}"
    )]
    NotExact {
        /// The node.
        node: usize,
        /// The distance from the mean, relative to the inputs.
        left: f64,
    },
}

impl Plan {
    /// Checks that the matrices are those of the plan's method, as far as the method defines them.
    ///
    /// ```
    /// use mingle_planner::{DesignOptions, Method, Plan, Topology, design};
    /// let honest = design(&Topology::generate("ring:n=5")?, Method::DPsgd, &DesignOptions::default())?;
    /// assert!(honest.check_method()?.verified.is_some());
    /// let forged = Plan::from_json(&honest.to_json().replace("d-psgd", "clique-phi"))?;
    /// assert!(forged.check_method().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first step, link or weight that differs.
    ///
    /// # Complexity
    ///
    /// The cost of the formula: for `clique-phi` the search for maximal cliques, for `scaled-laplacian` O(n^3), else
    /// O(links).
    pub fn check_method(&self) -> Result<MethodCheck, MethodMismatch> {
        let Ok(method) = self.method().parse::<Method>() else {
            let not_verified = Some("the method is none of this program's, so nothing is known of its matrices");
            return Ok(MethodCheck { verified: None, not_verified });
        };
        let formula = MethodCheck {
            verified: Some("every weight is the one that the method gives on this topology"),
            not_verified: None,
        };
        match method {
            Method::Auto | Method::Tuned => {
                if method == Method::Tuned {
                    self.has_steps(method, 1)?;
                }
                let not_verified = Some("links and weights come from a search, of which nothing shows in the plan");
                Ok(MethodCheck { verified: None, not_verified })
            }
            Method::NguyenHe => self.uniform_columns(method),
            Method::ExactAverage => self.averages_exactly(self.steps().chunks(self.round_length())),
            Method::PeriodicAverage(_) => self.averages_in_the_last_round(method),
            Method::BaseGraph(_) => self.base_graph(method),
            Method::BassHeuristic | Method::BassOptimised | Method::Matcha => self.symmetric_steps(method),
            Method::Exponential | Method::OnePeerExponential => self.exponential(method).map(|()| formula),
            Method::ScaledLaplacian if self.node_count() > MAX_DENSE_NODES => {
                self.symmetric_steps(method)?;
                Ok(MethodCheck {
                    verified: Some("the matrix is symmetric, with one weight on all links"),
                    not_verified: Some("the weight, one over the largest eigenvalue of the Laplacian: too many nodes"),
                })
            }
            _ => {
                self.has_steps(method, 1)?;
                let Some(expected) = self.formula(method) else { return Ok(formula) };
                compare(method, 0, &self.steps()[0], expected).map(|()| formula)
            }
        }
    }

    /// The matrix of a method that is a formula of the topology.
    fn formula(&self, method: Method) -> Option<MixingMatrix> {
        let base = self.base();
        Some(match method {
            Method::DPsgd => MixingMatrix::metropolis_hastings(base),
            Method::SgpUniform => {
                let links = base.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
                MixingMatrix::uniform_columns(&Digraph::new(base.node_count(), links))
            }
            Method::CliquePhi => MixingMatrix::phi(&Cliques::maximal_or_edges(base).0),
            Method::EdgePhi => MixingMatrix::phi(&Cliques::edges(base)),
            Method::LazyMetropolis => MixingMatrix::metropolis_hastings(base).lazy(),
            Method::LazyLaplacian => MixingMatrix::laplacian(base, laplacian_weight(base)).lazy(),
            Method::ScaledLaplacian => MixingMatrix::laplacian(base, scaled_laplacian_weight(base).ok()?),
            _ => return None,
        })
    }

    fn has_steps(&self, method: Method, expected: usize) -> Result<(), MethodMismatch> {
        let steps = self.steps().len();
        if steps == expected { Ok(()) } else { Err(MethodMismatch::Period { method, steps, expected }) }
    }

    /// Checks that each column has equal weights, as Algorithm 1 gives them.
    fn uniform_columns(&self, method: Method) -> Result<MethodCheck, MethodMismatch> {
        self.has_steps(method, 1)?;
        let step = &self.steps()[0];
        let graph = Digraph::new(self.node_count(), step.links().iter().map(|link| link.link()));
        compare(method, 0, step, MixingMatrix::uniform_columns(&graph))?;
        Ok(MethodCheck {
            verified: Some("each node keeps as much as it gives each of its receivers"),
            not_verified: Some("that the links are those that Algorithm 1 chooses"),
        })
    }

    fn exponential(&self, method: Method) -> Result<(), MethodMismatch> {
        let offsets = exponential_offsets(self.node_count());
        let groups: Vec<&[usize]> = if method == Method::Exponential {
            vec![&offsets]
        } else {
            offsets.iter().map(std::slice::from_ref).collect()
        };
        self.has_steps(method, groups.len())?;
        for (number, (step, group)) in self.steps().iter().zip(groups).enumerate() {
            compare(method, number, step, exponential_step(self.node_count(), group))?;
        }
        Ok(())
    }

    /// Checks that both directions of an edge have one weight in each step, and all edges where the method has one
    /// weight for all.
    fn symmetric_steps(&self, method: Method) -> Result<MethodCheck, MethodMismatch> {
        let mut common = None;
        self.check_both_directions(method, |there, back| {
            if method == Method::BassOptimised { back } else { *common.get_or_insert(there) }
        })?;
        Ok(MethodCheck {
            verified: Some(if method == Method::BassOptimised {
                "the matrix of every step is symmetric"
            } else {
                "the matrix of every step is symmetric, with one weight on all links"
            }),
            not_verified: Some("that the steps are drawn with the probabilities of the method"),
        })
    }

    /// Checks that every link has one in the other direction in its step, and the weight that is wanted of a link with its
    /// own weight and that of the other direction.
    fn check_both_directions(
        &self,
        method: Method,
        mut wanted: impl FnMut(f64, f64) -> f64,
    ) -> Result<(), MethodMismatch> {
        for (number, step) in self.steps().iter().enumerate() {
            for link in step.links() {
                let from = link.from;
                let to = link.to;
                let Some(back) = step.position(Link::new(to, from)) else {
                    return Err(MethodMismatch::Links { method, step: number, from: to, to: from, is_missing: true });
                };
                let back = step.links()[back].weight;
                same(method, number, (from, to), link.weight, wanted(link.weight, back))?;
            }
        }
        Ok(())
    }

    /// Checks that the rounds that its parameters say are followed by one that averages exactly, again and again.
    fn averages_in_the_last_round(&self, method: Method) -> Result<MethodCheck, MethodMismatch> {
        let gossip_rounds = match self.parameters().get("gossip_rounds") {
            Some(Parameter::Whole(rounds)) => usize::try_from(*rounds).unwrap_or(usize::MAX),
            _ => 1,
        };
        let one = gossip_rounds.saturating_add(1).saturating_mul(self.round_length());
        self.has_steps(method, self.steps().len().next_multiple_of(one).max(one))?;
        self.averages_exactly(self.steps().chunks(one).map(|steps| &steps[one - self.round_length()..]))?;
        Ok(MethodCheck {
            verified: Some("the last round of a period brings every node to the mean"),
            not_verified: Some("that the rounds before are those of the gossip that the plan names"),
        })
    }

    /// Checks that a period brings every node to the mean by symmetric steps.
    fn base_graph(&self, method: Method) -> Result<MethodCheck, MethodMismatch> {
        self.check_both_directions(method, |_, back| back)?;
        self.averages_exactly([self.steps()].into_iter())?;
        Ok(MethodCheck {
            verified: Some("a period of symmetric steps brings every node to the mean"),
            not_verified: Some("that no shorter sequence does"),
        })
    }

    /// Checks that each of these rounds brings all nodes to the mean of their values, tried with values of which no two
    /// are equal.
    fn averages_exactly<'s>(
        &self,
        rounds: impl Iterator<Item = &'s [MixingStep]>,
    ) -> Result<MethodCheck, MethodMismatch> {
        let nodes = self.node_count();
        // Multiples of the golden ratio modulo 1.
        let first: Vec<f64> = (0..nodes).map(|node| (node as f64 * 0.618_033_988_749_894_9).fract()).collect();
        let mean = first.iter().sum::<f64>() / nodes as f64;
        for round in rounds {
            let mut weights = vec![1.0; nodes];
            let mut values = first.clone();
            let mut scratch = vec![0.0; nodes];
            for step in round {
                step.mix(&mut weights, &mut scratch);
                step.mix(&mut values, &mut scratch);
            }
            for (node, (value, weight)) in values.iter().zip(&weights).enumerate() {
                let left = (value / weight - mean).abs();
                if *weight > SAME && left > SAME {
                    return Err(MethodMismatch::NotExact { node, left });
                }
            }
        }
        Ok(MethodCheck {
            verified: Some("every round brings every node to the mean"),
            not_verified: Some("that no other schedule takes less time"),
        })
    }
}

/// Compares the links and weights of a step with those of a formula.
fn compare(method: Method, number: usize, step: &MixingStep, expected: MixingMatrix) -> Result<(), MethodMismatch> {
    let (keep, mut links) = expected.into_parts();
    links.sort_unstable_by_key(|link| link.link());
    let links_differ = |link: Link, is_missing| MethodMismatch::Links {
        method,
        step: number,
        from: link.from,
        to: link.to,
        is_missing,
    };
    for wanted in &links {
        let Some(at) = step.position(wanted.link()) else { return Err(links_differ(wanted.link(), true)) };
        same(method, number, (wanted.from, wanted.to), step.links()[at].weight, wanted.weight)?;
    }
    let is_known = |link: Link| links.binary_search_by_key(&link, |known| known.link()).is_ok();
    if let Some(link) = step.links().iter().map(|link| link.link()).find(|&link| !is_known(link)) {
        return Err(links_differ(link, false));
    }
    for (node, (&share, wanted)) in step.keep().iter().zip(keep).enumerate() {
        same(method, number, (node, node), share, wanted)?;
    }
    Ok(())
}

fn same(
    method: Method,
    step: usize,
    (from, to): (usize, usize),
    weight: f64,
    expected: f64,
) -> Result<(), MethodMismatch> {
    if (weight - expected).abs() <= SAME {
        return Ok(());
    }
    Err(MethodMismatch::Weight { method, step, from, to, weight, expected })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{DesignOptions, Medium, Topology, design};

    const TOPOLOGIES: [&str; 3] = ["exponential:n=8", "rg:n=8,r=0.6,seed=3", "windmill:cliques=2,size=4"];

    /// Every method on every topology and medium that it takes.
    fn plans() -> Vec<Plan> {
        let mut plans = Vec::new();
        for expression in TOPOLOGIES {
            let topology = Topology::generate(expression).unwrap();
            for method in Method::ALL.into_iter().filter(|method| *method != Method::Auto) {
                for (medium, seed) in [(Medium::Broadcast, 0), (Medium::PointToPoint, 5)] {
                    let options = DesignOptions { medium, seed, effort: 1, ..DesignOptions::default() };
                    plans.extend(design(&topology, method, &options));
                }
            }
        }
        plans
    }

    #[test]
    fn what_a_design_makes_is_what_it_says_whatever_the_medium_and_the_seed() {
        let plans = plans();
        for method in Method::ALL.into_iter().filter(|method| *method != Method::Auto) {
            assert!(plans.iter().any(|plan| plan.method() == method.name()), "{method} was not tried");
        }
        for plan in plans {
            let found = plan.check_method();
            assert!(found.is_ok(), "{} on {} nodes: {found:?}", plan.method(), plan.node_count());
        }
    }

    /// The plan under the name of another method, all else unchanged.
    fn renamed(plan: &Plan, method: Method) -> Plan {
        let named = |name: &str| format!("\"method\": \"{name}\"");
        let text = plan.to_json();
        assert!(text.contains(&named(plan.method())));
        Plan::from_json(&text.replace(&named(plan.method()), &named(method.name()))).unwrap()
    }

    #[test]
    fn a_plan_under_the_name_of_a_formula_is_refused_unless_it_has_its_matrix() {
        let formulas = Method::ALL.into_iter().filter(|method| {
            method.is_for_solvers() || matches!(method, Method::DPsgd | Method::SgpUniform | Method::Exponential)
        });
        let plans = plans();
        for method in formulas {
            for plan in plans.iter().filter(|plan| plan.method() != method.name()) {
                let forged = renamed(plan, method);
                let same_matrix = plans.iter().any(|honest| {
                    honest.method() == method.name()
                        && honest.base() == plan.base()
                        && honest.steps().len() == plan.steps().len()
                        && is_close(&honest.steps()[0], &plan.steps()[0])
                });
                assert_eq!(forged.check_method().is_ok(), same_matrix, "{} called {method}", plan.method());
            }
        }
    }

    fn is_close(a: &MixingStep, b: &MixingStep) -> bool {
        let links = a.links().len() == b.links().len()
            && a.links().iter().zip(b.links()).all(|(a, b)| a.link() == b.link() && (a.weight - b.weight).abs() < SAME);
        links && a.keep().iter().zip(b.keep()).all(|(a, b)| (a - b).abs() < SAME)
    }

    #[test]
    fn the_step_link_or_weight_that_is_another_is_named() {
        let topology = Topology::generate("grid:rows=3,cols=3").unwrap();
        let options = DesignOptions { effort: 1, ..DesignOptions::default() };
        let plan = |method| design(&topology, method, &options).unwrap();
        let refused = |plan: &Plan, method| renamed(plan, method).check_method().unwrap_err();
        let words = refused(&plan(Method::DPsgd), Method::CliquePhi).to_string();
        assert!(words.starts_with("step 0: the weight from node") && words.contains("by clique-phi it is"), "{words}");
        assert!(matches!(
            refused(&plan(Method::NguyenHe), Method::DPsgd),
            MethodMismatch::Links { is_missing: true, .. }
        ));
        assert!(matches!(refused(&plan(Method::Matcha), Method::EdgePhi), MethodMismatch::Period { expected: 1, .. }));
        assert!(matches!(refused(&plan(Method::DPsgd), Method::ExactAverage), MethodMismatch::NotExact { .. }));
        assert!(matches!(refused(&plan(Method::NguyenHe), Method::Matcha), MethodMismatch::Links { .. }));
        assert_eq!(plan(Method::Tuned).check_method().unwrap().verified, None);
    }
}
