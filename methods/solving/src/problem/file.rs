//! Problem files as written: TOML, resolved for the nodes of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_planner::Plan;
use mingle_solver::{Budgets, Preference, Regression, Selection, SharingClique};
use serde::Deserialize;

use super::coupled::CoupledFile;
use super::file_defaults::{DistanceName, usual_iterations, usual_tolerance, yes};
use super::file_error::{FINEST_TOLERANCE, FileError};
use super::kinds::{ALLOCATION, COUPLED, NETWORK_LASSO, REGRESSION, ROBUST_CLASSIFICATION, ROBUST_REGRESSION};
use super::network_lasso::NetworkLassoFile;
use super::node_name::NodeName;
use super::robust::RobustFile;
use super::{AllocationTask, NODE, ProblemTask, RegressionTask, StoppingCriteria, TableSource};

/// The task, its limits, and the JSON that the peers have to agree on.
type Resolved = (ProblemTask, StoppingCriteria, serde_json::Value);

#[derive(Deserialize)]
struct KindOnly {
    kind: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RegressionFile {
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
    #[serde(default)]
    nonnegative: bool,
    #[serde(default)]
    groups: Vec<Vec<String>>,
    #[serde(default = "yes")]
    standardize: bool,
    #[serde(default = "usual_tolerance")]
    tolerance: f64,
    #[serde(default = "usual_iterations")]
    iterations: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct AllocationFile {
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(default)]
    metric: DistanceName,
    #[serde(default = "usual_tolerance")]
    tolerance: f64,
    #[serde(default = "usual_iterations")]
    iterations: u64,
    clique: Vec<CliqueEntry>,
    #[serde(default)]
    node: Vec<NodeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CliqueEntry {
    name: String,
    members: Vec<NodeName>,
    budget: Option<f64>,
    #[serde(default)]
    weight: f64,
    #[serde(default)]
    target: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct NodeEntry {
    node: NodeName,
    weight: Option<f64>,
    wish: Option<f64>,
    price: Option<f64>,
    lower: Option<f64>,
    upper: Option<f64>,
}

impl NodeEntry {
    fn preference(&self) -> Preference {
        let usual = Preference::default();
        Preference {
            weight: self.weight.unwrap_or(usual.weight),
            wish: self.wish.unwrap_or(usual.wish),
            price: self.price.unwrap_or(usual.price),
            lower: self.lower.unwrap_or(usual.lower),
            upper: self.upper.unwrap_or(usual.upper),
        }
    }
}

/// Parses a problem file's text for the nodes of a plan.
pub(super) fn resolve(text: &str, plan: &Plan, names: &Arc<Vec<String>>) -> Result<Resolved, FileError> {
    let kind = toml::from_str::<KindOnly>(text)?.kind;
    let resolved = match kind.as_str() {
        REGRESSION => toml::from_str::<RegressionFile>(text)?.resolve()?,
        ALLOCATION => toml::from_str::<AllocationFile>(text)?.resolve(plan, names)?,
        COUPLED => toml::from_str::<CoupledFile>(text)?.resolve(plan, names)?,
        NETWORK_LASSO => toml::from_str::<NetworkLassoFile>(text)?.resolve(plan, names)?,
        ROBUST_CLASSIFICATION | ROBUST_REGRESSION => {
            let (task, limits, shared) = toml::from_str::<RobustFile>(text)?.resolve(plan, names)?;
            (ProblemTask::Robust(Arc::new(task)), limits, shared)
        }
        _ => return Err(FileError::Kind(kind)),
    };
    resolved.1.check()?;
    Ok(resolved)
}

impl TableSource {
    /// A source of tables: one table to deal out, or one for each node.
    pub(super) fn new(data: String, deal: bool, selection: Selection) -> Result<Self, FileError> {
        if deal == data.contains(NODE) {
            return Err(if deal { FileError::DealtTwice(data) } else { FileError::SameTable(data) });
        }
        Ok(Self { selection, data, deal })
    }
}

impl RegressionFile {
    fn resolve(self) -> Result<Resolved, FileError> {
        let Self { data, deal, target, columns, lambda, ridge, nonnegative, groups, standardize, .. } = self;
        let limits = StoppingCriteria { tolerance: self.tolerance, iterations: self.iterations };
        let regression = Regression { lambda, ridge, nonnegative, groups };
        regression.check_weights()?;
        let shared = serde_json::json!({
            "kind": REGRESSION, "target": target, "columns": columns, "regression": regression,
            "standardize": standardize, "limits": limits,
        });
        let source = TableSource::new(data, deal, Selection { target, columns })?;
        let task = RegressionTask { regression, standardize, source };
        Ok((ProblemTask::Regression(Arc::new(task)), limits, shared))
    }
}

impl AllocationFile {
    fn resolve(self, plan: &Plan, names: &Arc<Vec<String>>) -> Result<Resolved, FileError> {
        let limits = StoppingCriteria { tolerance: self.tolerance, iterations: self.iterations };
        let find = |name: &NodeName, place: &dyn Fn() -> String| name.find(plan, names, place);
        let mut cliques = Vec::new();
        for entry in self.clique {
            let place = || format!("clique {}", entry.name);
            let members = entry.members.iter().map(|member| find(member, &place)).collect::<Result<Vec<usize>, _>>()?;
            let distinct: BTreeSet<usize> = members.iter().copied().collect();
            if distinct.len() != members.len() {
                return Err(FileError::MemberTwice(entry.name));
            }
            let CliqueEntry { name, budget, weight, target, .. } = entry;
            if cliques.iter().any(|other: &SharingClique| other.name == name) {
                return Err(FileError::CliqueTwice(name));
            }
            cliques.push(SharingClique { name, members: distinct, budget, weight, target });
        }
        let mut preferences = BTreeMap::new();
        for entry in self.node {
            let node = find(&entry.node, &|| "[[node]]".to_owned())?;
            if preferences.insert(node, entry.preference()).is_some() {
                return Err(FileError::NodeTwice(names[node].clone()));
            }
        }
        let metric = self.metric.metric();
        let clique = |clique: &SharingClique| {
            serde_json::json!([clique.name, clique.members, clique.budget, clique.weight, clique.target])
        };
        let shared = serde_json::json!({
            "kind": ALLOCATION, "metric": format!("{metric:?}"), "limits": limits,
            "cliques": cliques.iter().map(clique).collect::<Vec<_>>(),
        });
        let budgets = Budgets::new(cliques, names.to_vec())?;
        let task = AllocationTask { budgets, metric, preferences };
        Ok((ProblemTask::Allocation(Arc::new(task)), limits, shared))
    }
}

impl StoppingCriteria {
    fn check(&self) -> Result<(), FileError> {
        if !(FINEST_TOLERANCE..1.0).contains(&self.tolerance) {
            return Err(FileError::Tolerance(self.tolerance));
        }
        if self.iterations == 0 {
            return Err(FileError::NoIterations);
        }
        Ok(())
    }
}
