//! Shared budgets: each node decides one number, and cliques of nodes have a budget that they share out among them.
//!
//! ```text
//!   min   sum over nodes   weight/2 (x - wish)^2 + price x           lower <= x <= upper
//!       + sum over cliques  weight/2 (mean of its x - target)^2       the x of a clique sum to its budget
//! ```
//!
//! A resource of several kinds is as many problems, one for each kind: nothing couples them.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::{Bounds, CliqueCost, CliqueTerm, ConsensusTerms, Constraint, PricedQuadratic};

/// No number of a problem is larger: squares and sums stay far from the end of f64.
const LARGEST: f64 = 1e100;

/// What one node wants of its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preference {
    /// How much it matters; not negative.
    pub weight: f64,
    /// What it would like to have.
    pub wish: f64,
    /// What each unit costs it.
    pub price: f64,
    /// It takes no less.
    pub lower: f64,
    /// It takes no more.
    pub upper: f64,
}

impl Default for Preference {
    /// Would like nothing, and takes nothing negative.
    fn default() -> Self {
        Self { weight: 1.0, wish: 0.0, price: 0.0, lower: 0.0, upper: f64::INFINITY }
    }
}

impl Preference {
    /// Its part of the problem.
    #[must_use]
    pub fn terms(&self) -> ConsensusTerms {
        let Self { weight, wish, price, lower, upper } = *self;
        ConsensusTerms {
            smooth: Box::new(PricedQuadratic { weight, target: wish, price }),
            nonsmooth: Box::new(Bounds { lower, upper }),
        }
    }
}

/// A clique of nodes that all can hear one another.
#[derive(Clone, Debug, PartialEq)]
pub struct SharingClique {
    /// For error messages.
    pub name: String,
    /// Its nodes.
    pub members: BTreeSet<usize>,
    /// What their numbers sum to, if that is given.
    pub budget: Option<f64>,
    /// How much it matters to the clique that their mean is the target; not negative.
    pub weight: f64,
    /// What it would like their mean to be.
    pub target: f64,
}

/// What is wrong with a problem of budgets.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AllocationError {
    /// A number that is none, or makes the problem non-convex.
    #[error("{of}: {what} is {value:?}; it must be {wanted}")]
    Number {
        /// The node or clique.
        of: String,
        /// Which number.
        what: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        wanted: &'static str,
    },
    /// No number is between the bounds.
    #[error("node {node}: no number is at least {lower} and at most {upper}")]
    Bounds {
        /// The node.
        node: String,
        /// Its lower bound.
        lower: f64,
        /// Its upper bound.
        upper: f64,
    },
    /// A clique of nobody.
    #[error("clique {clique} has no members")]
    Nobody {
        /// The clique.
        clique: String,
    },
    /// A node that shares nothing.
    #[error("node {node} is in no clique: nothing couples it to the others")]
    Alone {
        /// The node.
        node: String,
    },
    /// A budget that the bounds of the members rule out.
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
    /// Budgets that contradict each other, none of which can be left out of the contradiction.
    #[error("the budgets of {} contradict each other, with the bounds of their members: no numbers keep all of them", .cliques.join(", "))]
    Infeasible {
        /// The cliques.
        cliques: Vec<String>,
    },
    /// Something costs less and less the further it goes, and nothing holds it.
    #[error("the costs have no least value: they fall for ever with the numbers of {}; give them a weight or bounds", .nodes.join(", "))]
    Unbounded {
        /// The nodes whose numbers run off.
        nodes: Vec<String>,
    },
    /// The linear program of the check could not be solved.
    #[error("whether the budgets can be kept could not be found out: {reason}")]
    Undecided {
        /// Why.
        reason: String,
    },
}

/// Groups, by the numbers of their nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Budgets {
    /// In the order that all nodes have them in.
    cliques: Vec<SharingClique>,
    names: Vec<String>,
}

impl Budgets {
    /// The cliques of nodes with these names.
    ///
    /// # Errors
    ///
    /// [`AllocationError`] names what cannot be.
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
            number(of, "budget", clique.budget.unwrap_or(0.0), Wanted::Finite)?;
            number(of, "weight", clique.weight, Wanted::NotNegative)?;
            number(of, "target", clique.target, Wanted::Finite)?;
        }
        let is_alone = |node: &usize| !cliques.iter().any(|clique| clique.members.contains(node));
        if let Some(node) = (0..names.len()).find(is_alone) {
            return Err(AllocationError::Alone { node: names[node].clone() });
        }
        Ok(Self { cliques, names })
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[SharingClique] {
        &self.cliques
    }

    /// As the terms of a problem over cliques.
    #[must_use]
    pub fn terms(&self) -> Vec<CliqueTerm> {
        let memberships = |node: &usize| self.cliques.iter().filter(|clique| clique.members.contains(node)).count();
        let term = |clique: &SharingClique| CliqueTerm {
            members: clique.members.iter().copied().collect(),
            memberships: clique.members.iter().map(memberships).collect(),
            cost: match clique.weight {
                0.0 => CliqueCost::None,
                weight => CliqueCost::Mean { weight, target: clique.target },
            },
            constraint: clique.budget.map_or(Constraint::None, Constraint::Sum),
        };
        self.cliques.iter().map(term).collect()
    }

    /// Checks what one node wants.
    ///
    /// # Errors
    ///
    /// A number that is none or makes the problem non-convex, or bounds that nothing is between.
    pub fn check_one(&self, node: usize, preference: &Preference) -> Result<(), AllocationError> {
        let Preference { weight, wish, price, lower, upper } = *preference;
        let of = || format!("node {}", self.names[node]);
        number(of, "weight", weight, Wanted::NotNegative)?;
        number(of, "wish", wish, Wanted::Finite)?;
        number(of, "price", price, Wanted::Finite)?;
        number(of, "lower", lower, Wanted::Bound)?;
        number(of, "upper", upper, Wanted::Bound)?;
        if lower > upper || lower == f64::INFINITY || upper == f64::NEG_INFINITY {
            return Err(AllocationError::Bounds { node: self.names[node].clone(), lower, upper });
        }
        Ok(())
    }

    /// Checks that a clique can share out its budget between the bounds of its members, which are in their order.
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

    /// Checks the whole problem, where what all nodes want is known: whether some numbers keep all budgets, and whether the
    /// costs have a least value.
    ///
    /// # Errors
    ///
    /// [`AllocationError`] names the nodes or cliques.
    pub fn check_all(&self, preferences: &[Preference]) -> Result<(), AllocationError> {
        preferences.iter().enumerate().try_for_each(|(node, preference)| self.check_one(node, preference))?;
        for (at, clique) in self.cliques.iter().enumerate() {
            let bounds = clique.members.iter().map(|&node| (preferences[node].lower, preferences[node].upper));
            self.check_budget(at, bounds)?;
        }
        crate::feasibility::check(&self.cliques, &self.names, preferences)
    }
}

#[derive(Clone, Copy)]
enum Wanted {
    Finite,
    NotNegative,
    Bound,
}

fn number(of: impl Fn() -> String, what: &'static str, value: f64, wanted: Wanted) -> Result<(), AllocationError> {
    let (is_good, wanted) = match wanted {
        Wanted::Finite => (value.abs() <= LARGEST, "a number up to 1e100 in magnitude"),
        Wanted::NotNegative => {
            ((0.0..=LARGEST).contains(&value), "zero or a positive number up to 1e100, or nothing is least")
        }
        Wanted::Bound => {
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
        // The same price for both: what one takes the other gives.
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
