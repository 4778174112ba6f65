//! The pairs of members that share noise, and how much of it each member and each pair adds.

use std::collections::BTreeSet;

/// The most multiplications for all sets of colluders once: all sets of one among 65 members, of two among 32.
const MOST_MULTIPLICATIONS: f64 = 2e7;
/// Relative error that all roundings of a calibration stay below.
const ROUNDING: f64 = 1e-9;

/// Members, and the pairs of them that add opposite noise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseGraph {
    neighbours: Vec<BTreeSet<usize>>,
}

/// Standard deviations of the parts of correlated noise on each coordinate, as multiples of the clip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseParts {
    /// Of the part that a member draws for itself, and that stays in the sum.
    pub own: f64,
    /// Of the part that a pair shares, which one adds and the other subtracts; 0 if the own part does everything.
    pub pair: f64,
}

impl NoiseGraph {
    /// So many members, with these pairs; a pair may come twice, or the other way round, and one of a member with itself is
    /// none.
    ///
    /// # Panics
    /// A pair of a member that there is not.
    pub fn new(members: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut neighbours = vec![BTreeSet::new(); members];
        for (one, other) in pairs.into_iter().filter(|(one, other)| one != other) {
            neighbours[one].insert(other);
            neighbours[other].insert(one);
        }
        Self { neighbours }
    }

    /// The members that share noise with this one, in ascending order.
    pub fn neighbours(&self, member: usize) -> impl Iterator<Item = usize> + '_ {
        self.neighbours[member].iter().copied()
    }

    /// All pairs of so many members.
    pub fn complete(members: usize) -> Self {
        Self::new(members, (0..members).flat_map(|one| (0..one).map(move |other| (one, other))))
    }

    /// The pairs of members with at most one other between them.
    pub fn within_two_links(&self) -> Self {
        let around = |member: usize| {
            let second = self.neighbours(member).flat_map(|neighbour| self.neighbours(neighbour));
            self.neighbours(member).chain(second).map(move |other| (member, other))
        };
        let members = self.neighbours.len();
        Self::new(members, (0..members).flat_map(around))
    }

    /// The number of members.
    pub fn members(&self) -> usize {
        self.neighbours.len()
    }

    /// Each pair once.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let of_member = |member: usize| self.neighbours(member).filter(move |other| *other < member);
        (0..self.members()).flat_map(move |member| of_member(member).map(move |other| (member, other)))
    }

    fn is_complete(&self) -> bool {
        self.neighbours.iter().all(|neighbours| neighbours.len() + 1 == self.members())
    }

    /// The least number of honest members that hang together, whichever `colluders` of all are not honest. `None` if there
    /// are too many sets of them to try.
    pub fn cover(&self, colluders: usize) -> Option<usize> {
        if self.is_complete() {
            return self.members().checked_sub(colluders);
        }
        let all = self.all_honest(colluders)?;
        all.map(|honest| honest.smallest_component()).min()
    }

    /// The noise of pairs with which the noise of each member has at least the standard deviation `noise`, given all that
    /// the other members add and any `colluders` of them know, if each adds a secret part `own`. `None` if no
    /// noise of pairs is enough, or there are too many sets of colluders to try.
    ///
    /// Given the noise of all others, that of an honest member `i` has the variance `1 / (S^-1)_ii`, where
    /// `S = own^2 I + pair^2 L` is the covariance over the honest members and `L` the Laplacian of the pairs among them.
    pub fn calibrate(&self, noise: f64, own: f64, colluders: usize) -> Option<NoiseParts> {
        let cover = self.cover(colluders)?;
        if cover < 2 || own * own * cover as f64 <= noise * noise {
            return None;
        }
        if self.is_complete() {
            return Some(NoiseParts { own, pair: pair_among_all(cover as f64, noise, own) });
        }
        let mut pair = 0.0;
        for honest in self.all_honest(colluders)? {
            if honest.protection(NoiseParts { own, pair }) < noise {
                pair = honest.least_pair(own, pair, noise);
            }
        }
        Some(NoiseParts { own, pair })
    }

    /// The pairs among honest members, for each set of colluders; `None` if those are too many.
    fn all_honest(&self, colluders: usize) -> Option<impl Iterator<Item = Honest> + '_> {
        let members = self.members();
        let is_possible = sets(members, colluders) * (members as f64).powi(3) <= MOST_MULTIPLICATIONS;
        is_possible.then(|| ColluderSets::new(members, colluders).map(|colluding| self.honest(&colluding)))
    }

    /// The graph without these members.
    fn honest(&self, colluding: &[usize]) -> Honest {
        let members: Vec<usize> = (0..self.neighbours.len()).filter(|member| !colluding.contains(member)).collect();
        let place = |member: &usize| members.binary_search(member).ok();
        let neighbours = members.iter().map(|member| self.neighbours[*member].iter().filter_map(place).collect());
        Honest { neighbours: neighbours.collect() }
    }
}

/// The noise of pairs of `honest` members of whom all are pairs: the Laplacian has the eigenvalue 0 once, and `honest` else.
fn pair_among_all(honest: f64, noise: f64, own: f64) -> f64 {
    let rest = (1.0 - 4.0 * ROUNDING) / noise.powi(2) - 1.0 / (honest * own.powi(2));
    let variance = (honest - 1.0) / honest / rest;
    ((variance - own.powi(2)).max(0.0) / honest).sqrt()
}

/// The number of sets of so many members.
fn sets(members: usize, chosen: usize) -> f64 {
    (0..chosen).map(|place| (members - place) as f64 / (place + 1) as f64).product()
}

/// All sets of so many of some members, in lexicographic order.
struct ColluderSets {
    members: usize,
    next: Option<Vec<usize>>,
}

impl ColluderSets {
    fn new(members: usize, chosen: usize) -> Self {
        Self { members, next: (chosen <= members).then(|| (0..chosen).collect()) }
    }
}

impl Iterator for ColluderSets {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let set = self.next.take()?;
        let chosen = set.len();
        let can_rise = (0..chosen).rev().find(|place| set[*place] + chosen - place < self.members);
        self.next = can_rise.map(|place| {
            let mut following = set.clone();
            (place..chosen).for_each(|later| following[later] = set[place] + 1 + later - place);
            following
        });
        Some(set)
    }
}

/// The pairs among honest members, numbered anew.
struct Honest {
    neighbours: Vec<Vec<usize>>,
}

impl Honest {
    /// The number of members that the fewest hang together with, itself included.
    fn smallest_component(&self) -> usize {
        let mut is_found = vec![false; self.neighbours.len()];
        let mut smallest = usize::MAX;
        for start in 0..self.neighbours.len() {
            let mut open = vec![start];
            let mut size = 0;
            while let Some(member) = open.pop() {
                if !std::mem::replace(&mut is_found[member], true) {
                    size += 1;
                    open.extend(&self.neighbours[member]);
                }
            }
            smallest = if size > 0 { smallest.min(size) } else { smallest };
        }
        smallest
    }

    /// The least standard deviation of a member's noise given that of all others.
    fn protection(&self, NoiseParts { own, pair }: NoiseParts) -> f64 {
        let mut covariance: Vec<Vec<f64>> = Vec::with_capacity(self.neighbours.len());
        for (member, neighbours) in self.neighbours.iter().enumerate() {
            let mut row = vec![0.0; member + 1];
            neighbours.iter().filter(|other| **other < member).for_each(|other| row[*other] = -pair * pair);
            row[member] = own * own + pair * pair * neighbours.len() as f64;
            covariance.push(row);
        }
        let precision = largest_diagonal_of_inverse(covariance);
        (1.0 - ROUNDING) / precision.sqrt()
    }

    /// The least noise of pairs, from `too_little` on, that protects each of these members.
    fn least_pair(&self, own: f64, too_little: f64, noise: f64) -> f64 {
        const HALVINGS: u32 = 20;
        let is_enough = |pair| self.protection(NoiseParts { own, pair }) >= noise;
        let mut too_little = too_little;
        let mut enough = noise;
        while !is_enough(enough) {
            too_little = enough;
            enough *= 2.0;
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(too_little, enough);
            if is_enough(middle) { enough = middle } else { too_little = middle }
        }
        enough
    }
}

/// The largest number on the diagonal of the inverse of a positive definite matrix, given by the rows of its lower
/// triangle: the squared norms of the columns of the inverse of its Cholesky factor. Infinite if rounding leaves no factor.
fn largest_diagonal_of_inverse(mut factor: Vec<Vec<f64>>) -> f64 {
    let size = factor.len();
    for row in 0..size {
        for column in 0..=row {
            let (above, below) = factor.split_at(row);
            let other = above.get(column).unwrap_or(&below[0]);
            let sum: f64 = (0..column).map(|place| below[0][place] * other[place]).sum();
            let rest = below[0][column] - sum;
            if column == row && (rest.is_nan() || rest <= 0.0) {
                return f64::INFINITY;
            }
            factor[row][column] = if column == row { rest.sqrt() } else { rest / factor[column][column] };
        }
    }
    let mut largest: f64 = 0.0;
    for start in 0..size {
        let mut solved = vec![0.0; size - start];
        for row in start..size {
            let sum: f64 = (start..row).map(|place| factor[row][place] * solved[place - start]).sum();
            let right = if row == start { 1.0 } else { 0.0 };
            solved[row - start] = (right - sum) / factor[row][row];
        }
        largest = largest.max(solved.iter().map(|value| value * value).sum());
    }
    largest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ring(members: usize) -> NoiseGraph {
        NoiseGraph::new(members, (0..members).map(|member| (member, (member + 1) % members)))
    }

    fn complete(members: usize) -> NoiseGraph {
        NoiseGraph::complete(members)
    }

    /// The least protection that any set of colluders leaves.
    fn least(graph: &NoiseGraph, parts: NoiseParts, colluders: usize) -> f64 {
        let all = ColluderSets::new(graph.members(), colluders);
        all.map(|set| graph.honest(&set).protection(parts)).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn all_sets_of_colluders_are_looked_at_once() {
        let all: Vec<_> = ColluderSets::new(4, 2).collect();
        assert_eq!(all, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        for (members, chosen) in [(5, 0), (5, 1), (5, 5), (7, 3)] {
            let all: BTreeSet<_> = ColluderSets::new(members, chosen).collect();
            assert_eq!(all.len() as f64, sets(members, chosen).round(), "{chosen} of {members}");
        }
    }

    #[test]
    fn the_diagonal_of_an_inverse_is_that_of_known_matrices() {
        // [[2, -1], [-1, 2]]^-1 has 2/3 on its diagonal; an arrow of three has 1 in the middle.
        assert!((largest_diagonal_of_inverse(vec![vec![2.0], vec![-1.0, 2.0]]) - 2.0 / 3.0).abs() < 1e-12);
        let path = vec![vec![2.0], vec![-1.0, 2.0], vec![0.0, -1.0, 2.0]];
        assert!((largest_diagonal_of_inverse(path) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn less_noise_of_either_kind_would_protect_some_member_less_than_was_asked_for() {
        for (graph, colluders) in [(ring(9), 0), (ring(9), 1), (complete(6), 2), (ring(7).within_two_links(), 2)] {
            let own = 2.4 / (graph.cover(colluders).unwrap() as f64).sqrt();
            let parts = graph.calibrate(2.0, own, colluders).unwrap();
            assert!(least(&graph, parts, colluders) >= 2.0, "{parts:?}");
            assert!(least(&graph, NoiseParts { own: 0.99 * parts.own, ..parts }, colluders) < 2.0, "{parts:?}");
            assert!(least(&graph, NoiseParts { pair: 0.99 * parts.pair, ..parts }, colluders) < 2.0, "{parts:?}");
        }
    }

    #[test]
    fn graphs_are_those_of_their_definition() {
        assert_eq!(ring(4).pairs().collect::<Vec<_>>(), [(1, 0), (2, 1), (3, 0), (3, 2)]);
        assert_eq!(ring(7).within_two_links().neighbours(0).collect::<Vec<_>>(), [1, 2, 5, 6]);
        assert_eq!(ring(5).within_two_links(), complete(5));
    }

    #[test]
    fn a_member_that_colluders_can_cut_off_is_not_covered() {
        assert_eq!([0, 1, 2].map(|colluders| ring(7).cover(colluders)), [Some(7), Some(6), Some(1)]);
        assert_eq!(ring(7).calibrate(4.0, 3.0, 2), None);
        assert_eq!(NoiseGraph::new(3, [(0, 1), (2, 2)]).cover(0), Some(1));
        assert_eq!([1, 4, 6].map(|colluders| complete(5).cover(colluders)), [Some(4), Some(1), None]);
        assert_eq!(ring(64).cover(30), None, "too many sets to try");
        assert!(complete(64).calibrate(4.0, 1.0, 30).is_some());
    }
}
