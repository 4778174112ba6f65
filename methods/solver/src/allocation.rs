//! Shared budgets: each node chooses one number, and cliques of nodes have budgets that the numbers of their members
//! add up to.
//!
//! ```text
//!   min   sum over nodes   weight/2 (x - wish)^2 + price x           lower <= x <= upper
//!       + sum over cliques  weight/2 (mean of its x - target)^2       the x of a clique sum to its budget
//! ```
//!
//! A resource of several kinds is a separate problem for each kind: they are not coupled.

mod feasibility;

use std::collections::BTreeSet;
use std::sync::Arc;

use thiserror::Error;

use crate::{Bounds, CliqueCost, CliqueCoupling, CliqueTerm, ConsensusTerms, MeanCost, PricedQuadratic, SumTo};

/// The largest absolute value in a problem: squares and sums stay far from the largest f64.
const LARGEST: f64 = 1e100;

/// One node's preference for its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preference {
    /// The weight of the distance from the wish; not negative.
    pub weight: f64,
    /// The preferred number.
    pub wish: f64,
    /// The cost of each unit.
    pub price: f64,
    /// The lower bound.
    pub lower: f64,
    /// The upper bound.
    pub upper: f64,
}

impl Default for Preference {
    /// A wish of zero, and no negative number.
    fn default() -> Self {
        Self { weight: 1.0, wish: 0.0, price: 0.0, lower: 0.0, upper: f64::INFINITY }
    }
}

impl Preference {
    /// Checks the preference of the node of this name.
    ///
    /// # Errors
    ///
    /// A number that is not finite or makes the problem non-convex, or bounds without a number between them.
    pub fn check(&self, node: &str) -> Result<(), AllocationError> {
        let Self { weight, wish, price, lower, upper } = *self;
        let of = || format!("node {node}");
        number(of, "weight", weight, WantedRange::NotNegative)?;
        number(of, "wish", wish, WantedRange::Finite)?;
        number(of, "price", price, WantedRange::Finite)?;
        number(of, "lower", lower, WantedRange::Bound)?;
        number(of, "upper", upper, WantedRange::Bound)?;
        if lower > upper || lower == f64::INFINITY || upper == f64::NEG_INFINITY {
            return Err(AllocationError::Bounds { node: node.to_owned(), lower, upper });
        }
        Ok(())
    }

    /// The terms of a node with a number of several components, and a preference for each.
    #[must_use]
    pub fn terms_of(components: &[Self]) -> ConsensusTerms {
        let smooth: Vec<PricedQuadratic> = components.iter().map(Self::smooth).collect();
        let nonsmooth: Vec<Bounds> = components.iter().map(Self::bounds).collect();
        ConsensusTerms { smooth: Box::new(smooth), nonsmooth: Box::new(nonsmooth) }
    }

    fn smooth(&self) -> PricedQuadratic {
        PricedQuadratic { weight: self.weight, target: self.wish, price: self.price }
    }

    fn bounds(&self) -> Bounds {
        Bounds { lower: self.lower, upper: self.upper }
    }

    /// The node's terms of the problem.
    #[must_use]
    pub fn terms(&self) -> ConsensusTerms {
        ConsensusTerms { smooth: Box::new(self.smooth()), nonsmooth: Box::new(self.bounds()) }
    }
}

/// A clique of nodes that all communicate with one another.
#[derive(Clone, Debug, PartialEq)]
pub struct SharingClique {
    /// The name, for error messages.
    pub name: String,
    /// The nodes of the clique.
    pub members: BTreeSet<usize>,
    /// The sum of the members' numbers, if it is prescribed.
    pub budget: Option<f64>,
    /// The weight of the distance of their mean from the target; not negative.
    pub weight: f64,
    /// The preferred mean.
    pub target: f64,
}

/// Errors of a problem of budgets.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum AllocationError {
    /// A number is not finite, or makes the problem non-convex.
    #[error("{of}: {what} is {value:?}; it must be {wanted}")]
    Number { of: String, what: &'static str, value: f64, wanted: &'static str },
    /// No number is between the bounds.
    #[error("node {node}: no number is at least {lower} and at most {upper}")]
    Bounds { node: String, lower: f64, upper: f64 },
    /// A clique has no members.
    #[error("clique {clique} has no members")]
    Nobody { clique: String },
    /// A node is in no clique.
    #[error("node {node} is in no clique: nothing couples it to the others")]
    Alone { node: String },
    /// A budget is out of reach within the bounds of the members.
    #[error("clique {clique} cannot share out {budget}: the bounds of its members let it have {least} to {most}")]
    Budget {
        /// The clique.
        clique: String,
        /// Its budget.
        budget: f64,
        /// The sum of its members' lower bounds.
        least: f64,
        /// The sum of their upper bounds.
        most: f64,
    },
    /// Budgets contradict each other; the contradiction needs all of those named.
    #[error("the budgets of {} contradict each other, with the bounds of their members: no numbers keep all of them", .cliques.join(", "))]
    Infeasible { cliques: Vec<String> },
    /// A cost falls without bound, with nothing to limit it.
    #[error("the costs have no least value: they fall for ever with the numbers of {}; give them a weight or bounds", .nodes.join(", "))]
    Unbounded {
        /// The nodes whose numbers grow without bound.
        nodes: Vec<String>,
    },
    /// The linear program of the check could not be solved.
    #[error("whether the budgets can be kept could not be found out: {reason}")]
    Undecided { reason: String },
}

/// The budgets of cliques, by the numbers of their nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Budgets {
    /// The cliques, in the order that is the same at all nodes.
    cliques: Vec<SharingClique>,
    names: Vec<String>,
}

impl Budgets {
    /// The cliques of nodes with these names.
    ///
    /// # Errors
    ///
    /// [`AllocationError`] with the first clique or node that is not valid.
    ///
    /// # Panics
    ///
    /// When a member has no name.
    pub fn new(cliques: Vec<SharingClique>, names: Vec<String>) -> Result<Self, AllocationError> {
        for clique in &cliques {
            let of = || format!("clique {}", clique.name);
            if clique.members.is_empty() {
                return Err(AllocationError::Nobody { clique: clique.name.clone() });
            }
            assert!(clique.members.iter().all(|member| *member < names.len()), "{} has a member without a name", of());
            number(of, "budget", clique.budget.unwrap_or(0.0), WantedRange::Finite)?;
            number(of, "weight", clique.weight, WantedRange::NotNegative)?;
            number(of, "target", clique.target, WantedRange::Finite)?;
        }
        let is_alone = |node: &usize| !cliques.iter().any(|clique| clique.members.contains(node));
        if let Some(node) = (0..names.len()).find(is_alone) {
            return Err(AllocationError::Alone { node: names[node].clone() });
        }
        Ok(Self { cliques, names })
    }

    /// All cliques.
    #[must_use]
    pub fn all(&self) -> &[SharingClique] {
        &self.cliques
    }

    /// The terms of a problem over cliques.
    #[must_use]
    pub fn terms(&self) -> Vec<CliqueTerm> {
        let memberships = |node: &usize| self.cliques.iter().filter(|clique| clique.members.contains(node)).count();
        let term = |clique: &SharingClique| CliqueTerm {
            members: clique.members.iter().copied().collect(),
            memberships: clique.members.iter().map(memberships).collect(),
            cost: (clique.weight != 0.0).then(|| {
                Arc::new(MeanCost { weight: clique.weight, target: vec![clique.target] }) as Arc<dyn CliqueCost>
            }),
            coupling: clique.budget.map(|budget| Arc::new(SumTo(vec![budget])) as Arc<dyn CliqueCoupling>),
        };
        self.cliques.iter().map(term).collect()
    }

    /// Checks the preference of one node.
    ///
    /// # Errors
    ///
    /// A number that is not finite or makes the problem non-convex, or bounds without a number between them.
    pub fn check_one(&self, node: usize, preference: &Preference) -> Result<(), AllocationError> {
        preference.check(&self.names[node])
    }

    /// Checks that the budget of a clique is in reach between the bounds of its members, which are in their order.
    ///
    /// # Errors
    ///
    /// [`AllocationError::Budget`].
    pub fn check_budget(&self, clique: usize, bounds: impl Iterator<Item = (f64, f64)>) -> Result<(), AllocationError> {
        let clique = &self.cliques[clique];
        let (least, most) = bounds.fold((0.0, 0.0), |(least, most), (lower, upper)| (least + lower, most + upper));
        match clique.budget {
            Some(budget) if budget < least || budget > most => {
                Err(AllocationError::Budget { clique: clique.name.clone(), budget, least, most })
            }
            _ => Ok(()),
        }
    }

    /// Checks the whole problem, given the preferences of all nodes: that some numbers keep all budgets, and that the
    /// costs have a least value.
    ///
    /// # Errors
    ///
    /// [`AllocationError`] with the nodes or cliques at fault.
    pub fn check_all(&self, preferences: &[Preference]) -> Result<(), AllocationError> {
        preferences.iter().enumerate().try_for_each(|(node, preference)| self.check_one(node, preference))?;
        for (at, clique) in self.cliques.iter().enumerate() {
            let bounds = clique.members.iter().map(|&node| (preferences[node].lower, preferences[node].upper));
            self.check_budget(at, bounds)?;
        }
        feasibility::check(&self.cliques, &self.names, preferences)
    }
}

#[derive(Clone, Copy)]
enum WantedRange {
    Finite,
    NotNegative,
    Bound,
}

fn number(of: impl Fn() -> String, what: &'static str, value: f64, wanted: WantedRange) -> Result<(), AllocationError> {
    let (is_good, wanted) = match wanted {
        WantedRange::Finite => (value.abs() <= LARGEST, "a number up to 1e100 in magnitude"),
        WantedRange::NotNegative => {
            ((0.0..=LARGEST).contains(&value), "zero or a positive number up to 1e100, or nothing is least")
        }
        WantedRange::Bound => {
            (value.abs() <= LARGEST || value.is_infinite(), "a number up to 1e100 in magnitude, or infinite")
        }
    };
    if is_good { Ok(()) } else { Err(AllocationError::Number { of: of(), what, value, wanted }) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn clique(name: &str, members: &[usize], budget: f64) -> SharingClique {
        let members = members.iter().copied().collect();
        SharingClique { name: name.to_owned(), members, budget: Some(budget), weight: 0.0, target: 0.0 }
    }

    fn cliques(cliques: Vec<SharingClique>, nodes: usize) -> Budgets {
        Budgets::new(cliques, (0..nodes).map(|node| format!("n{node}")).collect()).unwrap()
    }

    fn up_to(upper: f64) -> Preference {
        Preference { upper, ..Preference::default() }
    }

    #[test]
    fn budgets_that_can_be_kept_are_taken() {
        let chain = cliques(vec![clique("a", &[0, 1], 2.0), clique("b", &[1, 2], 3.0)], 3);
        assert_eq!(chain.check_all(&[Preference::default(); 3]), Ok(()));
        assert_eq!(chain.check_all(&[up_to(1.0), up_to(1.0), up_to(2.0)]), Ok(()));
    }

    #[test]
    fn budgets_beyond_the_bounds_are_named_with_what_is_possible() {
        let chain = cliques(vec![clique("a", &[0, 1], 2.0), clique("b", &[1, 2], 3.5)], 3);
        let refused = chain.check_all(&[up_to(1.0), up_to(1.0), up_to(2.0)]).unwrap_err();
        assert_eq!(refused, AllocationError::Budget { clique: "b".into(), budget: 3.5, least: 0.0, most: 3.0 });
    }

    #[test]
    fn budgets_that_contradict_each_other_are_named_without_those_that_do_not() {
        // a leaves at most 1 for node 1, c at most 1 for node 2, and b wants 3 of the two.
        let all = vec![
            clique("spare", &[4, 0], 9.0),
            clique("a", &[0, 1], 1.0),
            clique("b", &[1, 2], 3.0),
            clique("c", &[2, 3], 1.0),
        ];
        let refused = cliques(all, 5).check_all(&[Preference::default(); 5]).unwrap_err();
        assert_eq!(refused, AllocationError::Infeasible { cliques: vec!["a".into(), "b".into(), "c".into()] });
    }

    #[test]
    fn costs_without_a_least_value_are_named_by_the_nodes_that_run_off() {
        let free = |price| Preference { weight: 0.0, price, lower: f64::NEG_INFINITY, ..Preference::default() };
        let pair = || cliques(vec![clique("a", &[0, 1], 1.0), clique("b", &[2], 1.0)], 3);
        let held = Preference::default();
        let refused = pair().check_all(&[free(1.0), free(2.0), held]).unwrap_err();
        assert_eq!(refused, AllocationError::Unbounded { nodes: vec!["n0".into(), "n1".into()] });
        // With the same price for both, the cost is constant along the direction.
        assert_eq!(pair().check_all(&[free(1.0), free(1.0), held]), Ok(()));
        assert_eq!(pair().check_all(&[free(1.0), Preference { weight: 1.0, ..free(2.0) }, held]), Ok(()));
        assert_eq!(pair().check_all(&[free(1.0), Preference { lower: -5.0, ..free(2.0) }, held]), Ok(()));
    }

    #[test]
    fn what_is_not_convex_or_no_number_is_named() {
        let one = cliques(vec![clique("a", &[0], 1.0)], 1);
        let refused = |preference| one.check_all(&[preference]).unwrap_err().to_string();
        let usual = Preference::default();
        assert!(refused(Preference { weight: -1.0, ..usual }).starts_with("node n0: weight is -1"));
        assert!(refused(Preference { wish: f64::NAN, ..usual }).starts_with("node n0: wish is NaN"));
        assert!(
            refused(Preference { price: -1e300, ..usual }).contains("price is -1e300; it must be a number up to 1e100")
        );
        assert!(refused(Preference { lower: 2.0, upper: 1.0, ..usual }).contains("at least 2 and at most 1"));
        let bad = SharingClique { weight: -2.0, ..clique("a", &[0], 1.0) };
        let refused = Budgets::new(vec![bad], vec!["n0".into()]).unwrap_err().to_string();
        assert!(refused.starts_with("clique a: weight is -2"), "{refused}");
        let refused = Budgets::new(vec![clique("a", &[0], 1.0)], vec!["n0".into(), "n1".into()]).unwrap_err();
        assert_eq!(refused, AllocationError::Alone { node: "n1".into() });
    }
}
