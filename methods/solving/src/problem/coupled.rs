//! Variables of nodes that cliques couple: the task, for any costs and couplings.

mod file;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

pub(super) use file::CoupledFile;
use mingle_solver::{CliqueCost, CliqueCoupling, CliqueTerm, ConsensusTerms, DistanceMetric, Preference};

use super::coupling_error::CouplingError;
use super::{Problem, ProblemTask, StoppingCriteria};

/// A node's own terms.
pub trait OwnTerms: Debug + Send + Sync {
    /// The terms, of as many variables as the task has components.
    fn terms(&self) -> ConsensusTerms;
}

/// A preference for each component.
impl OwnTerms for Vec<Preference> {
    fn terms(&self) -> ConsensusTerms {
        Preference::terms_of(self)
    }
}

/// A clique of nodes with a cost and a coupling of their variables.
#[derive(Clone, Debug)]
pub struct CoupledClique {
    /// The name, for reports.
    pub name: String,
    /// The word for the coupling in reports.
    pub word: String,
    /// The nodes.
    pub members: BTreeSet<usize>,
    /// The cost of their variables, `f_l`.
    pub cost: Option<Arc<dyn CliqueCost>>,
    /// The coupling of their variables, `g_l`.
    pub coupling: Option<Arc<dyn CliqueCoupling>>,
}

/// A problem of variables that cliques couple.
#[derive(Clone, Debug)]
pub struct CoupledTask {
    /// The metric in which distances are measured.
    pub metric: DistanceMetric,
    components: Vec<String>,
    cliques: Vec<CoupledClique>,
    own: Vec<Arc<dyn OwnTerms>>,
    /// The nodes that have an entry in a file.
    pub(super) entered: BTreeSet<usize>,
}

impl CoupledClique {
    /// Its terms, with the number of cliques that each member is in.
    fn term(&self, memberships: Vec<usize>) -> CliqueTerm {
        let members = self.members.iter().copied().collect();
        CliqueTerm { members, memberships, cost: self.cost.clone(), coupling: self.coupling.clone() }
    }
}

impl CoupledTask {
    /// The task of nodes with these own terms, each with a variable for each component.
    ///
    /// # Errors
    /// [`CouplingError`] with the clique or node at fault.
    pub fn new(
        components: Vec<String>,
        cliques: Vec<CoupledClique>,
        own: Vec<Arc<dyn OwnTerms>>,
        metric: DistanceMetric,
    ) -> Result<Self, CouplingError> {
        if components.is_empty() {
            return Err(CouplingError::NoComponents);
        }
        let mut names = BTreeSet::new();
        for clique in &cliques {
            let name = || clique.name.clone();
            if let Some(&member) = clique.members.iter().find(|member| **member >= own.len()) {
                return Err(CouplingError::Member { clique: name(), member, last: own.len().saturating_sub(1) });
            }
            if clique.members.is_empty() || !clique.term(Vec::new()).is_for(components.len()) {
                let members = clique.members.len();
                return Err(CouplingError::Unfit { clique: name(), members, components: components.len() });
            }
            if !names.insert(&clique.name) {
                return Err(CouplingError::Twice { clique: name() });
            }
        }
        let is_of_other_length = |terms: &Arc<dyn OwnTerms>| terms.terms().smooth.dimension() != components.len();
        if let Some(node) = own.iter().position(is_of_other_length) {
            return Err(CouplingError::Dimension { node, components: components.len() });
        }
        let is_coupled = |node: &usize| cliques.iter().any(|clique| clique.members.contains(node));
        if let Some(node) = (0..own.len()).find(|node| !is_coupled(node)) {
            return Err(CouplingError::Uncoupled { node });
        }
        Ok(Self { metric, components, cliques, own, entered: BTreeSet::new() })
    }

    /// The names of the components of a node's variables.
    pub fn components(&self) -> &[String] {
        &self.components
    }

    /// The cliques, in the order that is the same at all nodes.
    pub fn cliques(&self) -> &[CoupledClique] {
        &self.cliques
    }

    /// The terms of the cliques.
    pub(crate) fn terms(&self) -> Vec<CliqueTerm> {
        let memberships = |node: &usize| self.cliques.iter().filter(|clique| clique.members.contains(node)).count();
        let term = |clique: &CoupledClique| clique.term(clique.members.iter().map(memberships).collect());
        self.cliques.iter().map(term).collect()
    }

    /// A node's own terms.
    pub(super) fn own(&self, node: usize) -> Arc<dyn OwnTerms> {
        Arc::clone(&self.own[node])
    }
}

impl Problem {
    /// A problem of nodes with these names whose variables cliques couple. `subject` stands for all that the nodes have to
    /// agree on, such as the cliques and their couplings: nodes with another one refuse each other's messages.
    pub fn coupled(task: CoupledTask, names: Vec<String>, limits: StoppingCriteria, subject: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"mingle coupled variables 1").update(subject.as_bytes());
        Self {
            task: ProblemTask::Coupled(Arc::new(task)),
            limits,
            hash: *hasher.finalize().as_bytes(),
            names: Arc::new(names),
            file: std::path::PathBuf::new(),
        }
    }
}
