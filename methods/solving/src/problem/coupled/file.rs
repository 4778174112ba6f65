//! The file of coupled variables: its keys, their defaults, and the task that results.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_planner::Plan;
use mingle_solver::{
    CliqueCost, CliqueCoupling, Equal, Formation, FormationCost, MeanCost, NetworkLasso, Preference, SumTo, Within,
};
use serde::{Deserialize, Serialize};

use super::{CoupledClique, CoupledTask, OwnTerms};
use crate::problem::coupling_error::CouplingError;
use crate::problem::file_defaults::{DistanceName, usual_iterations, usual_tolerance};
use crate::problem::file_error::FileError;
use crate::problem::kinds::COUPLED;
use crate::problem::node_name::NodeName;
use crate::problem::{ProblemTask, StoppingCriteria};

/// The largest magnitude of a number.
const LARGEST: f64 = 1e100;

/// The file of coupled variables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::problem) struct CoupledFile {
    #[serde(rename = "kind")]
    _kind: String,
    components: Vec<String>,
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
    coupling: CouplingName,
    budget: Option<Numbers>,
    target: Option<Numbers>,
    weight: Option<f64>,
    distance: Option<f64>,
    offsets: Option<Vec<Numbers>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CouplingName {
    Budget,
    Mean,
    Equal,
    Formation,
    NetworkLasso,
    Within,
}

/// A number for each component: one for all of them, or a list.
#[derive(Clone, Deserialize, Serialize)]
#[serde(untagged)]
enum Numbers {
    All(f64),
    Each(Vec<f64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct NodeEntry {
    node: NodeName,
    weight: Option<Numbers>,
    wish: Option<Numbers>,
    price: Option<Numbers>,
    lower: Option<Numbers>,
    upper: Option<Numbers>,
}

impl CouplingName {
    /// The keys that it needs, and those that it takes besides.
    fn keys(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Budget => (&["budget"], &[]),
            Self::Mean => (&["weight", "target"], &[]),
            Self::Equal => (&[], &[]),
            Self::Formation => (&["offsets"], &["weight"]),
            Self::NetworkLasso => (&["weight"], &[]),
            Self::Within => (&["distance"], &[]),
        }
    }

    /// Returns `true` if it couples every two members by themselves.
    fn is_of_pairs(self) -> bool {
        matches!(self, Self::NetworkLasso | Self::Within)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Mean => "mean",
            Self::Equal => "equal",
            Self::Formation => "formation",
            Self::NetworkLasso => "network-lasso",
            Self::Within => "within",
        }
    }
}

impl Numbers {
    /// One number for each component.
    fn resolve(&self, components: &[String], place: &str, key: &'static str) -> Result<Vec<f64>, FileError> {
        match self {
            Self::All(number) => Ok(vec![*number; components.len()]),
            Self::Each(numbers) if numbers.len() == components.len() => Ok(numbers.clone()),
            Self::Each(numbers) => Err(FileError::Components {
                place: place.to_owned(),
                key,
                numbers: numbers.len(),
                components: components.to_vec(),
            }),
        }
    }
}

/// A number that may not be negative; 0 where there is none.
fn positive(place: &str, key: &'static str, number: Option<f64>) -> Result<f64, FileError> {
    let number = number.unwrap_or(0.0);
    let is_good = (0.0..=LARGEST).contains(&number);
    if is_good { Ok(number) } else { Err(FileError::CouplingNumber { place: place.to_owned(), key, number }) }
}

/// Numbers of any sign, one for each component; none where there are none.
fn numbers(
    place: &str,
    key: &'static str,
    numbers: Option<&Numbers>,
    components: &[String],
) -> Result<Vec<f64>, FileError> {
    let numbers = numbers.map_or(Ok(Vec::new()), |numbers| numbers.resolve(components, place, key))?;
    match numbers.iter().find(|number| !(-LARGEST..=LARGEST).contains(*number)) {
        Some(&number) => Err(FileError::CouplingNumber { place: place.to_owned(), key, number }),
        None => Ok(numbers),
    }
}

/// A cost and a coupling.
type Coupled = (Option<Arc<dyn CliqueCost>>, Option<Arc<dyn CliqueCoupling>>);

impl CliqueEntry {
    /// Checks that the keys are those of the coupling.
    fn check_keys(&self, place: &str) -> Result<(), FileError> {
        let present = [
            ("budget", self.budget.is_some()),
            ("target", self.target.is_some()),
            ("weight", self.weight.is_some()),
            ("distance", self.distance.is_some()),
            ("offsets", self.offsets.is_some()),
        ];
        let (needed, taken) = self.coupling.keys();
        for (key, is_present) in present {
            let is_needed = needed.contains(&key);
            if is_present != is_needed && !(is_present && taken.contains(&key)) {
                let coupling = self.coupling.word();
                return Err(FileError::CouplingKey { place: place.to_owned(), coupling, key, is_needed });
            }
        }
        Ok(())
    }

    /// The cliques of the entry: itself, or one for every two of its members.
    fn cliques(
        &self,
        components: &[String],
        members: &[usize],
        names: &[String],
    ) -> Result<Vec<CoupledClique>, FileError> {
        let (cost, coupling) = self.coupled(components, members)?;
        let clique = |name: String, members: BTreeSet<usize>| CoupledClique {
            name,
            word: self.coupling.word().to_owned(),
            members,
            cost: cost.clone(),
            coupling: coupling.clone(),
        };
        if !self.coupling.is_of_pairs() || members.len() == 2 {
            return Ok(vec![clique(self.name.clone(), members.iter().copied().collect())]);
        }
        let all: BTreeSet<usize> = members.iter().copied().collect();
        let pairs = all.iter().flat_map(|&one| all.range(one + 1..).map(move |&other| (one, other)));
        let named = |(one, other): (usize, usize)| {
            clique(format!("{} ({}, {})", self.name, names[one], names[other]), BTreeSet::from([one, other]))
        };
        Ok(pairs.map(named).collect())
    }

    fn coupled(&self, components: &[String], members: &[usize]) -> Result<Coupled, FileError> {
        let place = format!("clique {}", self.name);
        self.check_keys(&place)?;
        let weight = positive(&place, "weight", self.weight)?;
        Ok(match self.coupling {
            CouplingName::Budget => {
                let budget = numbers(&place, "budget", self.budget.as_ref(), components)?;
                (None, Some(Arc::new(SumTo(budget))))
            }
            CouplingName::Mean => {
                let target = numbers(&place, "target", self.target.as_ref(), components)?;
                (Some(Arc::new(MeanCost { weight, target })), None)
            }
            CouplingName::Equal => (None, Some(Arc::new(Equal))),
            CouplingName::Formation => {
                let offsets = self.offsets(components, members, &place)?;
                match self.weight {
                    Some(weight) => (Some(Arc::new(FormationCost { weight, offsets })), None),
                    None => (None, Some(Arc::new(Formation { offsets }))),
                }
            }
            CouplingName::NetworkLasso => (None, Some(Arc::new(NetworkLasso { weight }))),
            CouplingName::Within => {
                let distance = positive(&place, "distance", self.distance)?;
                (None, Some(Arc::new(Within { distance })))
            }
        })
    }

    /// The offsets in ascending order of the members; the file has them in its own.
    fn offsets(&self, components: &[String], members: &[usize], place: &str) -> Result<Vec<Vec<f64>>, FileError> {
        let given = self.offsets.as_deref().unwrap_or_default();
        if given.len() != members.len() {
            return Err(FileError::Offsets { place: place.to_owned(), offsets: given.len(), members: members.len() });
        }
        let one = |offset: &Numbers| numbers(place, "offsets", Some(offset), components);
        let offsets = given.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let mut of_members: Vec<(usize, Vec<f64>)> = members.iter().copied().zip(offsets).collect();
        of_members.sort_by_key(|(member, _)| *member);
        Ok(of_members.into_iter().map(|(_, offsets)| offsets).collect())
    }
}

impl NodeEntry {
    /// A preference for each component.
    fn preferences(&self, components: &[String], name: &str) -> Result<Vec<Preference>, FileError> {
        let place = format!("node {name}");
        let each = |key: &'static str, numbers: &Option<Numbers>, usual: f64| {
            numbers.as_ref().unwrap_or(&Numbers::All(usual)).resolve(components, &place, key)
        };
        let usual = usual();
        let weights = each("weight", &self.weight, usual.weight)?;
        let wishes = each("wish", &self.wish, usual.wish)?;
        let prices = each("price", &self.price, usual.price)?;
        let lower = each("lower", &self.lower, usual.lower)?;
        let upper = each("upper", &self.upper, usual.upper)?;
        let preference = |at: usize| Preference {
            weight: weights[at],
            wish: wishes[at],
            price: prices[at],
            lower: lower[at],
            upper: upper[at],
        };
        let preferences: Vec<Preference> = (0..components.len()).map(preference).collect();
        for preference in &preferences {
            preference.check(name)?;
            if preference.weight == 0.0 {
                return Err(FileError::NoWeight { place });
            }
        }
        Ok(preferences)
    }
}

/// The preference of a node without an entry: near zero, without bounds.
fn usual() -> Preference {
    Preference { lower: f64::NEG_INFINITY, ..Preference::default() }
}

/// The terms of each node, and the nodes that have an entry.
type NodesTerms = (Vec<Arc<dyn OwnTerms>>, BTreeSet<usize>);

impl CoupledFile {
    pub(in crate::problem) fn resolve(
        self,
        plan: &Plan,
        names: &[String],
    ) -> Result<(ProblemTask, StoppingCriteria, serde_json::Value), FileError> {
        if self.components.is_empty() {
            return Err(CouplingError::NoComponents.into());
        }
        let limits = StoppingCriteria { tolerance: self.tolerance, iterations: self.iterations };
        let mut cliques = Vec::new();
        let mut shared = Vec::new();
        for entry in &self.clique {
            let members = self.members(entry, plan, names)?;
            cliques.extend(entry.cliques(&self.components, &members, names)?);
            let CliqueEntry { name, coupling, budget, target, weight, distance, offsets, .. } = entry;
            shared.push(serde_json::json!([name, members, coupling, budget, target, weight, distance, offsets]));
        }
        let metric = self.metric.metric();
        let shared = serde_json::json!({
            "kind": COUPLED, "components": self.components, "metric": format!("{metric:?}"), "limits": limits,
            "cliques": shared,
        });
        let (own, entered) = self.own_terms(plan, names)?;
        let coupled: BTreeSet<usize> = cliques.iter().flat_map(|clique| clique.members.iter().copied()).collect();
        if let Some(node) = (0..names.len()).find(|node| !coupled.contains(node)) {
            return Err(FileError::Uncoupled(names[node].clone()));
        }
        let task = CoupledTask { entered, ..CoupledTask::new(self.components, cliques, own, metric)? };
        Ok((ProblemTask::Coupled(Arc::new(task)), limits, shared))
    }

    /// The members of a clique, in the order of the file.
    fn members(&self, entry: &CliqueEntry, plan: &Plan, names: &[String]) -> Result<Vec<usize>, FileError> {
        let find = |member: &NodeName| member.find(plan, names, &|| format!("clique {}", entry.name));
        let members = entry.members.iter().map(find).collect::<Result<Vec<usize>, _>>()?;
        if members.iter().collect::<BTreeSet<_>>().len() != members.len() {
            return Err(FileError::MemberTwice(entry.name.clone()));
        }
        let least = if matches!(entry.coupling, CouplingName::Budget | CouplingName::Mean) { 1 } else { 2 };
        if members.len() < least {
            return Err(FileError::FewMembers(entry.name.clone()));
        }
        if self.clique.iter().filter(|other| other.name == entry.name).count() > 1 {
            return Err(FileError::CliqueTwice(entry.name.clone()));
        }
        Ok(members)
    }

    /// The terms of each node, and the nodes that have an entry.
    fn own_terms(&self, plan: &Plan, names: &[String]) -> Result<NodesTerms, FileError> {
        let usual: Arc<dyn OwnTerms> = Arc::new(vec![usual(); self.components.len()]);
        let mut own = vec![usual; names.len()];
        let mut entered = BTreeSet::new();
        for entry in &self.node {
            let node = entry.node.find(plan, names, &|| "[[node]]".to_owned())?;
            if !entered.insert(node) {
                return Err(FileError::NodeTwice(names[node].clone()));
            }
            own[node] = Arc::new(entry.preferences(&self.components, &names[node])?);
        }
        Ok((own, entered))
    }
}
