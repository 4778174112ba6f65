//! Branch and bound on DSATUR (Brélaz 1979; Furini, Gabrel and Ternier, "An improved DSATUR-based branch-and-bound
//! algorithm for the vertex coloring problem", 2017): the least number of slots, proven.

use super::stored::StoredConflicts;

/// The outcome of a search with a bounded number of branches.
#[derive(Debug)]
pub(super) struct Proof {
    /// The best colouring met.
    pub(super) colors: Vec<usize>,
    /// `true` if no colouring has fewer colours.
    pub(super) is_optimal: bool,
}

/// Looks for a colouring with fewer colours than `start`, all of `clique` coloured first. Exponential at worst: stops
/// after `branches`.
pub(super) fn prove(graph: &StoredConflicts, start: &[usize], clique: &[usize], branches: usize) -> Proof {
    let best = start.iter().max().map_or(0, |&last| last + 1);
    let mut search = Search::new(graph, start, best, clique.len(), branches);
    for (color, &link) in clique.iter().enumerate() {
        search.set(link, color);
    }
    let is_complete = search.branch(clique.len());
    Proof { is_optimal: is_complete, colors: search.best_colors }
}

const UNCOLORED: usize = usize::MAX;

struct Search<'g> {
    graph: &'g StoredConflicts,
    colors: Vec<usize>,
    /// `around[link * width + color]`: the number of conflicting links that have the colour.
    around: Vec<u16>,
    width: usize,
    /// For each link, the number of different colours around it.
    saturation: Vec<usize>,
    uncolored: usize,
    best_colors: Vec<usize>,
    best: usize,
    lower_bound: usize,
    branches_left: usize,
}

impl<'g> Search<'g> {
    fn new(graph: &'g StoredConflicts, start: &[usize], best: usize, lower_bound: usize, branches: usize) -> Self {
        let links = graph.len();
        Self {
            graph,
            colors: vec![UNCOLORED; links],
            around: vec![0; links * best.max(1)],
            width: best.max(1),
            saturation: vec![0; links],
            uncolored: links,
            best_colors: start.to_vec(),
            best,
            lower_bound,
            branches_left: branches,
        }
    }

    fn set(&mut self, link: usize, color: usize) {
        self.colors[link] = color;
        self.uncolored -= 1;
        for other in self.graph.neighbors(link) {
            let count = &mut self.around[other * self.width + color];
            *count += 1;
            self.saturation[other] += usize::from(*count == 1);
        }
    }

    fn unset(&mut self, link: usize) {
        let color = std::mem::replace(&mut self.colors[link], UNCOLORED);
        self.uncolored += 1;
        for other in self.graph.neighbors(link) {
            let count = &mut self.around[other * self.width + color];
            *count -= 1;
            self.saturation[other] -= usize::from(*count == 0);
        }
    }

    /// Returns `true` if every colouring with fewer than `best` colours below this point has been looked at. Recursion
    /// is as deep as there are links, which the caller bounds.
    fn branch(&mut self, used: usize) -> bool {
        if used >= self.best || self.best <= self.lower_bound {
            return true;
        }
        if self.uncolored == 0 {
            self.best = used;
            self.best_colors.clone_from(&self.colors);
            return true;
        }
        if self.branches_left == 0 {
            return false;
        }
        self.branches_left -= 1;
        let link = self.most_saturated();
        let mut color = 0;
        // A new colour is as good as any other new colour; `best` shrinks while this runs.
        while color <= used && color + 1 < self.best {
            if self.around[link * self.width + color] == 0 {
                self.set(link, color);
                let is_complete = self.branch(used.max(color + 1));
                self.unset(link);
                if !is_complete {
                    return false;
                }
            }
            color += 1;
        }
        true
    }

    fn most_saturated(&self) -> usize {
        let open = (0..self.colors.len()).filter(|&link| self.colors[link] == UNCOLORED);
        let key = |&link: &usize| (self.saturation[link], self.graph.degree(link), std::cmp::Reverse(link));
        open.max_by_key(key).unwrap_or(0)
    }
}
