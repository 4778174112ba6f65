//! Tabu search for fewer colours (Hertz and de Werra, "Using tabu search techniques for graph coloring", 1987).
//!
//! One colour is dissolved into the others. Then, repeatedly, the link in conflict whose recolouring removes the most
//! conflicts is recoloured, and may not take its old colour back for a while. When no conflict is left, the next colour
//! is dissolved.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::stored::StoredConflicts;

/// A colouring with as few colours as `iterations` recolourings find, starting from a proper one; never fewer than
/// `lower_bound`. O(links * colours) memory; an iteration is O(links in conflict * colours + conflicts of one link).
pub(super) fn tabu(
    graph: &StoredConflicts,
    start: &[usize],
    lower_bound: usize,
    iterations: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<usize> {
    let mut best = start.to_vec();
    let mut left = iterations;
    loop {
        let colors = best.iter().max().map_or(0, |&last| last + 1);
        if colors <= lower_bound.max(1) {
            return best;
        }
        match Search::new(graph, &best, colors - 1, rng).run(&mut left, rng) {
            Some(found) => best = found,
            None => return best,
        }
    }
}

struct Search<'g> {
    graph: &'g StoredConflicts,
    color_count: usize,
    colors: Vec<usize>,
    /// `around[link * color_count + color]`: the number of conflicting links that have the colour.
    around: Vec<u32>,
    /// `tabu_until[link * color_count + color]`: the iteration until which the link may not take the colour.
    tabu_until: Vec<usize>,
    /// Links with a conflicting link of their own colour; `place` holds the index of each in this list.
    in_conflict: Vec<usize>,
    place: Vec<usize>,
    /// Pairs of conflicting links with one colour.
    clashes: usize,
}

/// The `place` of a link that is not in the list.
const NOWHERE: usize = usize::MAX;

impl<'g> Search<'g> {
    /// Gives the links of the last colour of a proper colouring the colours that clash least.
    fn new(graph: &'g StoredConflicts, proper: &[usize], color_count: usize, rng: &mut ChaCha8Rng) -> Self {
        let links = graph.len();
        let mut search = Self {
            graph,
            color_count,
            colors: proper.to_vec(),
            around: vec![0; links * color_count],
            tabu_until: vec![0; links * color_count],
            in_conflict: Vec::new(),
            place: vec![NOWHERE; links],
            clashes: 0,
        };
        // The choice of the dissolved colour matters little; the smallest leaves the fewest links to place.
        let mut sizes = vec![0_usize; color_count + 1];
        proper.iter().for_each(|&color| sizes[color] += 1);
        let dissolved = (0..=color_count).min_by_key(|&color| sizes[color]).unwrap_or(color_count);
        for color in &mut search.colors {
            if *color == color_count {
                *color = dissolved;
            } else if *color == dissolved {
                *color = color_count;
            }
        }
        search.count_around();
        for link in 0..links {
            if search.colors[link] == color_count {
                let least = search.least_clashing(link, rng);
                search.assign(link, least);
            }
        }
        search.recount();
        search
    }

    fn count_around(&mut self) {
        for link in 0..self.graph.len() {
            for other in self.graph.neighbors(link) {
                if self.colors[other] < self.color_count {
                    self.around[link * self.color_count + self.colors[other]] += 1;
                }
            }
        }
    }

    fn least_clashing(&self, link: usize, rng: &mut ChaCha8Rng) -> usize {
        let row = &self.around[link * self.color_count..(link + 1) * self.color_count];
        let least = row.iter().copied().min().unwrap_or(0);
        let ties = row.iter().filter(|&&count| count == least).count();
        let pick = below(rng, ties);
        row.iter().enumerate().filter(|&(_, &count)| count == least).nth(pick).map_or(0, |(color, _)| color)
    }

    /// Gives a colour to a link without one, before the lists exist.
    fn assign(&mut self, link: usize, color: usize) {
        self.colors[link] = color;
        for at in 0..self.graph.neighbors[link].len() {
            let other = self.graph.neighbors[link][at] as usize;
            self.around[other * self.color_count + color] += 1;
        }
    }

    fn recount(&mut self) {
        let mut doubled = 0;
        for link in 0..self.graph.len() {
            let clashing = self.around[link * self.color_count + self.colors[link]];
            doubled += clashing as usize;
            if clashing > 0 {
                self.list(link);
            }
        }
        self.clashes = doubled / 2;
    }

    /// A proper colouring, or `None` when the iterations are used up.
    fn run(mut self, left: &mut usize, rng: &mut ChaCha8Rng) -> Option<Vec<usize>> {
        let mut iteration = 1;
        let mut fewest = self.clashes;
        while self.clashes > 0 {
            *left = left.checked_sub(1)?;
            let (link, color) = self.best_move(iteration, fewest, rng)?;
            let from = self.colors[link];
            self.recolor(link, color);
            // Galinier and Hao (1999): longer the more conflicts there are.
            let tenure = below(rng, 10) + 6 * self.in_conflict.len() / 10;
            self.tabu_until[link * self.color_count + from] = iteration + tenure + 1;
            fewest = fewest.min(self.clashes);
            iteration += 1;
        }
        Some(self.colors)
    }

    /// The recolouring that leaves the fewest clashes, among those allowed or better than the fewest so far; ties at
    /// random.
    fn best_move(&self, iteration: usize, fewest: usize, rng: &mut ChaCha8Rng) -> Option<(usize, usize)> {
        let mut best = None;
        let mut best_change = i64::MAX;
        let mut ties = 0_u32;
        for &link in &self.in_conflict {
            let row = &self.around[link * self.color_count..(link + 1) * self.color_count];
            let until = &self.tabu_until[link * self.color_count..(link + 1) * self.color_count];
            let own = self.colors[link];
            let now = i64::from(row[own]);
            for (color, (&count, &until)) in row.iter().zip(until).enumerate() {
                let change = i64::from(count) - now;
                let is_allowed = until <= iteration || self.clashes as i64 + change < fewest as i64;
                if color == own || change > best_change || !is_allowed {
                    continue;
                }
                ties = if change < best_change { 1 } else { ties + 1 };
                best_change = change;
                if ties == 1 || below(rng, ties as usize) == 0 {
                    best = Some((link, color));
                }
            }
        }
        // Everything may be tabu for a moment: any link in conflict then takes any other colour.
        best.or_else(|| {
            let link = *self.in_conflict.get(below(rng, self.in_conflict.len().max(1)))?;
            let step = 1 + below(rng, self.color_count.checked_sub(1)?.max(1));
            Some((link, (self.colors[link] + step) % self.color_count))
        })
    }

    fn recolor(&mut self, link: usize, color: usize) {
        let from = self.colors[link];
        let width = self.color_count;
        self.clashes += self.around[link * width + color] as usize;
        self.clashes -= self.around[link * width + from] as usize;
        self.colors[link] = color;
        for at in 0..self.graph.neighbors[link].len() {
            let other = self.graph.neighbors[link][at] as usize;
            self.around[other * width + from] -= 1;
            self.around[other * width + color] += 1;
            self.update_listing(other);
        }
        self.update_listing(link);
    }

    fn update_listing(&mut self, link: usize) {
        let clashes = self.around[link * self.color_count + self.colors[link]] > 0;
        match (clashes, self.place[link] == NOWHERE) {
            (true, true) => self.list(link),
            (false, false) => self.unlist(link),
            _ => {}
        }
    }

    fn list(&mut self, link: usize) {
        self.place[link] = self.in_conflict.len();
        self.in_conflict.push(link);
    }

    fn unlist(&mut self, link: usize) {
        let place = std::mem::replace(&mut self.place[link], NOWHERE);
        self.in_conflict.swap_remove(place);
        if let Some(&moved) = self.in_conflict.get(place) {
            self.place[moved] = place;
        }
    }
}

/// A number below `bound`; the bias of a 64-bit remainder is below 2^-50 here.
fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    (rng.next_u64() % bound.max(1) as u64) as usize
}
