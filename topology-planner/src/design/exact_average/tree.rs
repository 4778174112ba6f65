//! Without a shared channel: up and down a tree of least depth, all nodes of a level at once.

use super::Schedule;
use crate::{
    design::{Design, DesignError, Request},
    digraph::Link,
    plan::{Parameter, StepDraft},
    topology::Topology,
};

/// The most roots that are tried.
const MAX_ROOTS: usize = 256;

/// Twice the depth of the tree in steps. With a degree limit, no node serves more than that many others.
pub(super) fn design(request: &Request<'_>) -> Result<Design, DesignError> {
    let topology = request.topology;
    let limit = request.options.max_out_degree.unwrap_or(usize::MAX);
    let nodes = topology.node_count();
    let roots = super::spread(nodes, nodes.min(MAX_ROOTS));
    let trees = roots.filter_map(|root| Tree::grow(topology, root, limit));
    let Some(tree) = trees.min_by_key(|tree| (tree.levels.len(), tree.root)) else {
        return Err(DesignError::DegreeLimit { method: request.method, limit, needed: least_degree(topology) });
    };
    let parameters = vec![("root", Parameter::Whole(request.original(tree.root) as u64))];
    Ok(Design { steps: tree.into_steps(nodes), round_length: None, parameters })
}

/// The least limit under which a tree is found.
fn least_degree(topology: &Topology) -> usize {
    let roots = || super::spread(topology.node_count(), topology.node_count().min(MAX_ROOTS));
    let is_enough = |&limit: &usize| roots().any(|root| Tree::grow(topology, root, limit).is_some());
    (1..topology.node_count()).find(is_enough).unwrap_or(topology.node_count())
}

struct Tree {
    root: usize,
    /// Links from parent to child, the level next to the root first.
    levels: Vec<Vec<Link>>,
}

impl Tree {
    /// Breadth first; nodes with few other ways into the tree are taken first. None if the limit leaves somebody out.
    fn grow(topology: &Topology, root: usize, limit: usize) -> Option<Self> {
        let mut is_in = vec![false; topology.node_count()];
        is_in[root] = true;
        let (mut reached, mut level, mut levels) = (1, vec![root], Vec::new());
        let mut open: Vec<(usize, usize)> = vec![(root, 0)];
        while reached < topology.node_count() {
            let mut links = Vec::new();
            for (parent, children) in &mut open {
                for &child in topology.neighbors(*parent) {
                    // One of the links of every node but the root leads to its parent.
                    let room = if *parent == root { limit } else { limit.saturating_sub(1) };
                    if *children < room && !is_in[child] {
                        is_in[child] = true;
                        *children += 1;
                        links.push(Link::new(*parent, child));
                    }
                }
            }
            if links.is_empty() {
                return None;
            }
            reached += links.len();
            level.clear();
            level.extend(links.iter().map(|link| link.to));
            open.retain(|&(parent, _)| topology.neighbors(parent).iter().any(|&child| !is_in[child]));
            open.extend(level.iter().map(|&node| (node, 0)));
            levels.push(links);
        }
        Some(Self { root, levels })
    }

    fn into_steps(self, nodes: usize) -> Vec<StepDraft> {
        let up = |level: &Vec<Link>| level.iter().map(|link| link.reversed()).collect::<Vec<_>>();
        let gathering = self.levels.iter().rev().map(up).collect();
        let schedule = Schedule { root: self.root, gathering, scattering: self.levels };
        let mut steps = schedule.into_steps(nodes);
        steps.iter_mut().for_each(|step| step.slots.clear());
        steps
    }
}
