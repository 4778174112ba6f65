//! Generators: make a topology from `name:key=value,...`. Node `i` is called `node-i`.

use std::{collections::BTreeMap, str::FromStr};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{MAX_EDGES, MAX_NODES, Topology, TopologyError};

/// Up to this many nodes every pair of an Erdos-Renyi graph is drawn by itself; above, the gaps between edges are
/// drawn.
const MAX_DRAWN_PAIRS_NODES: usize = 16_384;

/// Number of draws of a random graph before giving up on a connected one.
const DRAWS: usize = 100;

type Build = fn(&mut Parameters<'_>) -> Result<Topology, TopologyError>;

const GENERATORS: [(&str, Build); 8] = [
    ("rg", random_geometric),
    ("erdos-renyi", erdos_renyi),
    ("windmill", windmill),
    ("ring", ring),
    ("grid", grid),
    ("star", star),
    ("complete", complete),
    ("exponential", exponential),
];

pub(super) fn looks_like_generator(text: &str) -> bool {
    text.split_once(':').is_some_and(|(name, parameters)| {
        let is_known = GENERATORS.iter().any(|&(known, _)| known == name);
        let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        is_known || is_word && parameters.contains('=')
    })
}

pub(super) fn generate(expression: &str) -> Result<Topology, TopologyError> {
    let (name, list) = expression.split_once(':').unwrap_or((expression, ""));
    let Some(&(name, build)) = GENERATORS.iter().find(|&&(known, _)| known == name) else {
        let known = GENERATORS.map(|(known, _)| known).join(", ");
        return Err(TopologyError::UnknownGenerator { name: name.to_owned(), known });
    };
    let mut parameters = Parameters::read(name, expression, list)?;
    build(&mut parameters)
}

/// Points in the unit square, joined when their distance is at most `r`.
fn random_geometric(parameters: &mut Parameters<'_>) -> Result<Topology, TopologyError> {
    let n = parameters.nodes("n", 2)?;
    let radius = parameters.number_in("r", 0.0, 2.0)?;
    let mut rng = parameters.rng()?;
    parameters.done()?;
    draw_until_connected(parameters.expression, || {
        let points: Vec<[f64; 2]> = (0..n).map(|_| [uniform(&mut rng), uniform(&mut rng)]).collect();
        let cells = Cells::new(&points, radius);
        let topology = numbered(n, (0..n).flat_map(|u| cells.near(u)))?;
        Ok(topology.with_positions(points))
    })
}

/// A graph of which every pair is an edge with probability `p`, independently.
fn erdos_renyi(parameters: &mut Parameters<'_>) -> Result<Topology, TopologyError> {
    let n = parameters.nodes("n", 2)?;
    let p = parameters.number_in("p", 0.0, 1.0)?;
    let mut rng = parameters.rng()?;
    parameters.done()?;
    draw_until_connected(parameters.expression, || {
        if n <= MAX_DRAWN_PAIRS_NODES {
            numbered(n, pairs(n).filter(|_| uniform(&mut rng) < p))
        } else {
            numbered(n, sparse_pairs(n, p, &mut rng))
        }
    })
}

/// Pairs of which each is taken with probability `p`, by drawing the number of pairs left out up to the next (Batagelj
/// and Brandes, "Efficient generation of large random networks", 2005). O(n + edges).
fn sparse_pairs(n: usize, p: f64, rng: &mut ChaCha8Rng) -> impl Iterator<Item = (usize, usize)> {
    let mut u = 0;
    let mut v = 0;
    let mut left_out = 0.0;
    std::iter::from_fn(move || {
        // `v` is the last pair of row `u` that was passed, and `left_out` the number still to pass before the next.
        let draw = 1.0 - uniform(rng);
        left_out += if p <= 0.0 { f64::INFINITY } else { (draw.ln() / (-p).ln_1p()).floor() };
        loop {
            let in_row = (n - 1).checked_sub(v)?;
            if left_out < in_row as f64 {
                v += 1 + left_out as usize;
                left_out = 0.0;
                return Some((u, v));
            }
            left_out -= in_row as f64;
            u += 1;
            v = u;
            if u == n {
                return None;
            }
        }
    })
}

/// Cliques that share node 0.
fn windmill(parameters: &mut Parameters<'_>) -> Result<Topology, TopologyError> {
    let cliques = parameters.whole("cliques", 1)?;
    let size = parameters.whole("size", 2)?;
    parameters.done()?;
    let n = parameters.within_limit(cliques.saturating_mul(size - 1).saturating_add(1))?;
    let blade = |node: usize| (node - 1) / (size - 1);
    // The end of the blade that a node is in; node 0 is in all.
    let end = move |node: usize| if node == 0 { n } else { 1 + (blade(node) + 1) * (size - 1) };
    numbered(n, (0..n).flat_map(move |u| (u + 1..end(u)).map(move |v| (u, v))))
}

fn ring(parameters: &mut Parameters<'_>) -> Result<Topology, TopologyError> {
    let n = parameters.nodes("n", 3)?;
    parameters.done()?;
    numbered(n, (0..n).map(|node| (node, (node + 1) % n)))
}

/// Node `i` joined to `i + 2^k` modulo `n`, for all `k`.
fn exponential(parameters: &mut Parameters<'_>) -> Result<Topology, TopologyError> {
    let n = parameters.nodes("n", 2)?;
    parameters.done()?;
    let offsets = std::iter::successors(Some(1), |offset| Some(2 * offset)).take_while(move |&offset| offset < n);
    numbered(n, offsets.flat_map(|offset| (0..n).map(move |node| (node, (node + offset) % n))))
}

/// Rows and columns, each node joined to those beside, above and below it.
fn grid(parameters: &mut Parameters<'_>) -> Result<Topology, TopologyError> {
    let rows = parameters.whole("rows", 1)?;
    let cols = parameters.whole("cols", 1)?;
    parameters.done()?;
    let n = parameters.within_limit(rows.saturating_mul(cols))?;
    let right = (0..n).filter(|node| (node + 1) % cols != 0).map(|node| (node, node + 1));
    let below = (0..n - cols.min(n)).map(|node| (node, node + cols));
    numbered(n, right.chain(below))
}

/// Node 0 joined to all others.
fn star(parameters: &mut Parameters<'_>) -> Result<Topology, TopologyError> {
    let n = parameters.nodes("n", 2)?;
    parameters.done()?;
    numbered(n, (1..n).map(|leaf| (0, leaf)))
}

fn complete(parameters: &mut Parameters<'_>) -> Result<Topology, TopologyError> {
    let n = parameters.nodes("n", 2)?;
    parameters.done()?;
    check_edges(n.saturating_mul(n - 1) / 2)?;
    numbered(n, pairs(n))
}

/// Refuses early a graph that would take long to enumerate.
fn check_edges(edges: usize) -> Result<(), TopologyError> {
    if edges > MAX_EDGES { Err(TopologyError::TooManyEdges { edges }) } else { Ok(()) }
}

/// Points in the unit square, sorted into cells at least as wide as a radius: neighbours lie in the cells around.
struct Cells<'p> {
    points: &'p [[f64; 2]],
    radius: f64,
    /// Number of cells in a row, and of rows.
    side: usize,
    /// The points in the order of their cells; `begins` holds the start of each cell.
    members: Vec<usize>,
    begins: Vec<usize>,
}

impl<'p> Cells<'p> {
    fn new(points: &'p [[f64; 2]], radius: f64) -> Self {
        // More cells than points would only cost memory.
        let most = (points.len() as f64).sqrt().ceil();
        // A little wider than the radius, to allow for rounding.
        let side = (0.999 / radius.max(f64::MIN_POSITIVE)).floor().clamp(1.0, most) as usize;
        let mut cells = Self { points, radius, side, members: (0..points.len()).collect(), begins: Vec::new() };
        let of: Vec<usize> = points.iter().map(|&point| cells.cell(point)).collect();
        cells.members.sort_by_key(|&node| of[node]);
        let mut begins = vec![0; side * side + 1];
        of.iter().for_each(|&cell| begins[cell + 1] += 1);
        (0..side * side).for_each(|cell| begins[cell + 1] += begins[cell]);
        Self { begins, ..cells }
    }

    fn cell(&self, [x, y]: [f64; 2]) -> usize {
        let place = |x: f64| ((x * self.side as f64) as usize).min(self.side - 1);
        place(y) * self.side + place(x)
    }

    /// The pairs of a point and a later one within the radius.
    fn near(&self, u: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let at = self.points[u];
        let cell = self.cell(at);
        let around = |place: usize| place.saturating_sub(1)..(place + 2).min(self.side);
        let rows = around(cell / self.side);
        let columns = around(cell % self.side);
        let members = rows.flat_map(move |row| {
            let cells = row * self.side + columns.start..row * self.side + columns.end;
            &self.members[self.begins[cells.start]..self.begins[cells.end]]
        });
        let is_near = move |&&v: &&usize| {
            let dx = at[0] - self.points[v][0];
            let dy = at[1] - self.points[v][1];
            u < v && dx * dx + dy * dy <= self.radius * self.radius
        };
        members.filter(is_near).map(move |&v| (u, v))
    }
}

/// All pairs `(u, v)`, `u < v < n`, ascending.
fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |u| (u + 1..n).map(move |v| (u, v)))
}

fn numbered(n: usize, edges: impl Iterator<Item = (usize, usize)>) -> Result<Topology, TopologyError> {
    let edges: Vec<(usize, usize)> = edges.take(MAX_EDGES + 1).collect();
    Topology::new((0..n).map(|node| format!("node-{node}")).collect(), &edges)
}

fn draw_until_connected(
    expression: &str,
    mut draw: impl FnMut() -> Result<Topology, TopologyError>,
) -> Result<Topology, TopologyError> {
    let mut last = draw();
    for _ in 1..DRAWS {
        if !matches!(last, Err(TopologyError::Disconnected { .. })) {
            break;
        }
        last = draw();
    }
    last.map_err(|error| match error {
        TopologyError::Disconnected { components } => {
            TopologyError::NeverConnected { expression: expression.to_owned(), draws: DRAWS, components }
        }
        other => other,
    })
}

/// A number in `[0, 1)` from the top 53 bits of the generator: the same on every platform and with every release of
/// the random number crates.
fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The `key=value` pairs of a generator expression, taken one by one.
struct Parameters<'e> {
    generator: &'e str,
    expression: &'e str,
    values: BTreeMap<&'e str, &'e str>,
}

impl<'e> Parameters<'e> {
    fn read(generator: &'e str, expression: &'e str, list: &'e str) -> Result<Self, TopologyError> {
        let mut parameters = Self { generator, expression, values: BTreeMap::new() };
        for pair in list.split(',').filter(|pair| !pair.trim().is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(parameters.wrong(format!("{pair:?} is not of the form key=value")));
            };
            if parameters.values.insert(key.trim(), value.trim()).is_some() {
                return Err(parameters.wrong(format!("{:?} is given twice", key.trim())));
            }
        }
        Ok(parameters)
    }

    fn wrong(&self, message: String) -> TopologyError {
        TopologyError::GeneratorParameter { generator: self.generator.to_owned(), message }
    }

    fn take<T: FromStr>(&mut self, key: &str, kind: &str) -> Result<T, TopologyError> {
        let Some(value) = self.values.remove(key) else {
            return Err(self.wrong(format!("{key:?} is missing: write {key}={kind}")));
        };
        value.parse().map_err(|_| self.wrong(format!("{key}={value} is not {kind}")))
    }

    fn whole(&mut self, key: &str, least: usize) -> Result<usize, TopologyError> {
        let value = self.take(key, "a whole number")?;
        if value < least {
            return Err(self.wrong(format!("{key}={value} is too small: it must be at least {least}")));
        }
        Ok(value)
    }

    fn nodes(&mut self, key: &str, least: usize) -> Result<usize, TopologyError> {
        let n = self.whole(key, least)?;
        self.within_limit(n)
    }

    fn within_limit(&self, n: usize) -> Result<usize, TopologyError> {
        if n > MAX_NODES {
            return Err(self.wrong(format!("{n} nodes are too many: generators make at most {MAX_NODES}")));
        }
        Ok(n)
    }

    fn number_in(&mut self, key: &str, low: f64, high: f64) -> Result<f64, TopologyError> {
        let value = self.take(key, "a number")?;
        if !(low..=high).contains(&value) {
            return Err(self.wrong(format!("{key}={value} is out of range: it must lie between {low} and {high}")));
        }
        Ok(value)
    }

    fn rng(&mut self) -> Result<ChaCha8Rng, TopologyError> {
        let seed = if self.values.contains_key("seed") { self.take("seed", "a whole number")? } else { 0 };
        Ok(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Refuses parameters that no generator has taken.
    fn done(&self) -> Result<(), TopologyError> {
        match self.values.keys().next() {
            None => Ok(()),
            Some(key) => Err(self.wrong(format!("there is no parameter {key:?}"))),
        }
    }
}
