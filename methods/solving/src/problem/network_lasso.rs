//! The network lasso: the file, and the task that all nodes share.
//!
//! ```text
//!   min   sum over nodes  n/(2N) || A_i x_i - b_i ||^2 + ridge/2 || x_i ||^2   +   lambda sum over links  w || x_i - x_j ||_2
//! ```
//!
//! for `n` nodes with `N` rows in all; the ridge leaves out the constant, which is the last coefficient.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_planner::Plan;
use mingle_solver::{CliqueTerm, DistanceMetric, NetworkLasso, Selection};
use serde::Deserialize;

use super::file_defaults::{usual_iterations, usual_tolerance, yes};
use super::file_error::FileError;
use super::kinds::NETWORK_LASSO;
use super::node_name::NodeName;
use super::{ProblemTask, StoppingCriteria, TableSource};

/// The largest weight.
const LARGEST: f64 = 1e100;

/// The file of a network lasso.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct NetworkLassoFile {
    #[serde(rename = "kind")]
    _kind: String,
    data: String,
    #[serde(default)]
    deal: bool,
    target: String,
    #[serde(default)]
    columns: Vec<String>,
    lambda: f64,
    #[serde(default)]
    ridge: f64,
    #[serde(default = "yes")]
    standardize: bool,
    #[serde(default)]
    link: Vec<LinkEntry>,
    #[serde(default = "usual_tolerance")]
    tolerance: f64,
    #[serde(default = "usual_iterations")]
    iterations: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LinkEntry {
    nodes: [NodeName; 2],
    weight: f64,
}

/// A network lasso: each node has a linear model, and links draw the models of two nodes together.
#[derive(Clone, Debug)]
pub struct NetworkLassoTask {
    /// The weight of the distance of two linked models; not negative.
    pub lambda: f64,
    /// The weight of half the squares of the coefficients; not negative.
    pub ridge: f64,
    /// `true` if columns are scaled to mean 0 and deviation 1 over all nodes.
    pub standardize: bool,
    /// The links, with their weights.
    links: Vec<([usize; 2], f64)>,
    pub(super) source: TableSource,
}

impl NetworkLassoTask {
    /// The number of links.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// The name of the column that is explained.
    pub fn target(&self) -> &str {
        &self.source.selection.target
    }

    /// The metric in which distances are measured: the step on a node's own terms does not depend on its links.
    pub(crate) fn metric(&self) -> DistanceMetric {
        DistanceMetric::Memberships
    }

    /// A clique for each link.
    pub(crate) fn terms(&self) -> Vec<CliqueTerm> {
        let degree = |node: &usize| self.links.iter().filter(|(nodes, _)| nodes.contains(node)).count();
        let term = |(nodes, weight): &([usize; 2], f64)| CliqueTerm {
            members: nodes.to_vec(),
            memberships: nodes.iter().map(degree).collect(),
            cost: None,
            coupling: Some(Arc::new(NetworkLasso { weight: self.lambda * weight })),
        };
        self.links.iter().map(term).collect()
    }
}

impl NetworkLassoFile {
    pub(super) fn resolve(
        self,
        plan: &Plan,
        names: &[String],
    ) -> Result<(ProblemTask, StoppingCriteria, serde_json::Value), FileError> {
        let Self { data, deal, target, columns, lambda, ridge, standardize, .. } = self;
        let limits = StoppingCriteria { tolerance: self.tolerance, iterations: self.iterations };
        let mut links: Vec<([usize; 2], f64)> = links_both_ways(plan).into_iter().map(|link| (link, 1.0)).collect();
        if let Some(node) = (0..names.len()).find(|node| !links.iter().any(|(nodes, _)| nodes.contains(node))) {
            return Err(FileError::NoLinkBothWays(names[node].clone()));
        }
        let mut entered = BTreeSet::new();
        for LinkEntry { nodes, weight } in &self.link {
            let find = |name: &NodeName| name.find(plan, names, &|| "[[link]]".to_owned());
            let mut ends = [find(&nodes[0])?, find(&nodes[1])?];
            ends.sort_unstable();
            let [one, other] = ends.map(|node| names[node].clone());
            let Some((_, of_link)) = links.iter_mut().find(|(link, _)| *link == ends) else {
                return Err(FileError::NotLinked { one, other });
            };
            if !entered.insert(ends) {
                return Err(FileError::LinkTwice { one, other });
            }
            *of_link = *weight;
        }
        let weights = links.iter().map(|(_, weight)| ("the weight of a [[link]]", *weight));
        for (key, number) in [("lambda", lambda), ("ridge", ridge)].into_iter().chain(weights) {
            if !(0.0..=LARGEST).contains(&number) {
                return Err(FileError::CouplingNumber { place: "network lasso".to_owned(), key, number });
            }
        }
        let shared = serde_json::json!({
            "kind": NETWORK_LASSO, "target": target, "columns": columns, "lambda": lambda, "ridge": ridge,
            "standardize": standardize, "links": links, "limits": limits,
        });
        let source = TableSource::new(data, deal, Selection { target, columns })?;
        let task = NetworkLassoTask { lambda, ridge, standardize, links, source };
        Ok((ProblemTask::NetworkLasso(Arc::new(task)), limits, shared))
    }
}

/// The pairs of nodes that the plan links both ways, ascending.
fn links_both_ways(plan: &Plan) -> Vec<[usize; 2]> {
    let links: BTreeSet<(usize, usize)> =
        plan.steps().iter().flat_map(|step| step.links().iter().map(|link| (link.from, link.to))).collect();
    let both = links.iter().filter(|(from, to)| from < to && links.contains(&(*to, *from)));
    both.map(|(from, to)| [*from, *to]).collect()
}
