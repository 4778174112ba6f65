//! The part of the method that all sites compute alike.

use crate::exchange::{SiteIteration, SiteTarget};
use crate::penalty::{Balance, Balancing, DataScale, Linearisation, Penalty, Steering};
use crate::projection::project_on_ball;
use crate::weights::SiteWeights;

/// The violation of the constraints, and the changes in the last iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residuals {
    /// The largest violation of a constraint: `w - wh_s`, `t - z - gam 1 - eta`, `pi - z`.
    pub primal: f64,
    /// The largest change of a variable in the last iteration, times its penalty.
    pub dual: f64,
    /// The change of the value in the last iteration, relative to it where it is larger than 1.
    pub value: f64,
}

/// Iterations over which multipliers are summed.
#[derive(Clone, Debug, PartialEq)]
struct Window {
    /// Iterations before it.
    begin: u64,
    iterations: u64,
    /// The sum of `zeta`, `[sites]`.
    zeta: Vec<f64>,
}

/// The least length of a window.
const SHORTEST_WINDOW: u64 = 20;

/// The state that all sites compute alike, `[sites]` each: a pure function of the previous state and a few numbers of
/// each site. It uses `+ - * / sqrt` and comparisons alone, and sums in ascending order of sites, so it is the same
/// everywhere to the bit.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedState {
    weights: SiteWeights,
    linearisation: Linearisation,
    /// `None` with constant penalties.
    balancing: Option<Balancing>,
    steering: Steering,
    z: Vec<f64>,
    /// `z`, over-relaxed.
    z_relaxed: Vec<f64>,
    t: Vec<f64>,
    eta: Vec<f64>,
    gam: f64,
    /// Multipliers of `t = z + gam 1 + eta`: at the solution, the worst weights times -1.
    sigma: Vec<f64>,
    /// Multipliers of `pi = z`.
    zeta: Vec<f64>,
    pi: Vec<f64>,
    window: Window,
    value: f64,
    residuals: Residuals,
    /// The change of the linearised part in this iteration.
    moved: f64,
}

impl SharedState {
    /// A state with all variables zero, for data of this scale.
    #[must_use]
    pub fn new(weights: SiteWeights, penalty: Penalty, scale: DataScale) -> Self {
        let zeros = vec![0.0; weights.nominal.len()];
        let infinite = Residuals { primal: f64::INFINITY, dual: f64::INFINITY, value: f64::INFINITY };
        let steering = match penalty.linearisation {
            Linearisation::None => Steering::begin(&penalty, scale),
            Linearisation::Least | Linearisation::Paper => Steering::constant(penalty.c),
        };
        let adapts = penalty.adaptive && penalty.linearisation == Linearisation::None;
        Self {
            weights,
            linearisation: penalty.linearisation,
            balancing: adapts.then(|| Balancing::new(steering)),
            steering,
            z: zeros.clone(),
            z_relaxed: zeros.clone(),
            t: zeros.clone(),
            eta: zeros.clone(),
            gam: 0.0,
            sigma: zeros.clone(),
            zeta: zeros.clone(),
            pi: zeros.clone(),
            window: Window { begin: 0, iterations: 0, zeta: zeros },
            value: 0.0,
            residuals: infinite,
            moved: 0.0,
        }
    }

    /// `c1` and `c2`.
    fn constants(&self) -> (f64, f64) {
        let c = self.steering.loss;
        let sites = self.z.len() as f64;
        match self.linearisation {
            Linearisation::Paper => (2.0 * sites * c, 2.0 * sites * c),
            Linearisation::Least | Linearisation::None => (2.0 * c, (sites + 1.0) * c),
        }
    }

    /// `t - z - gam 1 - eta`.
    fn difference(&self) -> Vec<f64> {
        let terms = self.t.iter().zip(&self.z).zip(&self.eta);
        terms.map(|((t, z), eta)| t - z - self.gam - eta).collect()
    }

    /// Steps 2 and 3, before the sites solve their subproblems.
    pub fn begin_iteration(&mut self) {
        match self.linearisation {
            Linearisation::None => self.minimise_over_losses(),
            Linearisation::Least | Linearisation::Paper => self.step_linearised(),
        }
    }

    /// `z = argmin  max over q in Q <q, z> + c/2 ||z - (pi + zeta / c)||^2  =  pi + (zeta - q) / c`, with `q` the weights
    /// of the set that are nearest to `c pi + zeta` (Moreau).
    fn minimise_over_losses(&mut self) {
        let c = self.steering.loss;
        let relaxation = self.steering.relaxation;
        let wanted: Vec<f64> = self.pi.iter().zip(&self.zeta).map(|(pi, zeta)| c * pi + zeta).collect();
        let nearest = self.weights.nearest(&wanted);
        self.moved = 0.0;
        for (site, weight) in nearest.iter().enumerate() {
            self.z[site] = self.pi[site] + (self.zeta[site] - weight) / c;
            self.z_relaxed[site] = relaxation * self.z[site] + (1.0 - relaxation) * self.pi[site];
            self.sigma[site] = -weight;
        }
    }

    fn step_linearised(&mut self) {
        let c = self.steering.loss;
        let (c1, c2) = self.constants();
        let difference = self.difference();
        let theta = self.weights.theta;
        let mut moved = 0.0_f64;
        let mut z = Vec::with_capacity(difference.len());
        let mut u = Vec::with_capacity(difference.len());
        for (site, difference) in difference.iter().enumerate() {
            let pull = self.sigma[site] + c * difference;
            z.push((c * self.pi[site] + c1 * self.z[site] + self.zeta[site] + pull) / (c + c1));
            u.push(self.t[site] - (self.weights.nominal[site] + pull) / c1);
        }
        // Subtracts the projection: the proximal operator of theta / c1 times the dual norm. With theta = 0 the ball is
        // a point, and t = u.
        let near = project_on_ball(self.weights.norm, &u, theta / c1);
        let t: Vec<f64> = u.iter().zip(&near).map(|(u, near)| u - near).collect();
        for (old, new) in self.z.iter().zip(&z).chain(self.t.iter().zip(&t)) {
            moved = moved.max(c1 * (old - new).abs());
        }
        self.z = z;
        self.z_relaxed.clone_from(&self.z);
        self.t = t;
        let difference = self.difference();
        let mut multipliers = 0.0;
        let mut differences = 0.0;
        for (site, difference) in difference.iter().enumerate() {
            let eta = (self.eta[site] + (self.sigma[site] + c * difference) / c2).max(0.0);
            moved = moved.max(c2 * (eta - self.eta[site]).abs());
            self.eta[site] = eta;
            multipliers += self.sigma[site];
            differences += difference;
        }
        let change = (1.0 + multipliers + c * differences) / c2;
        self.gam += change;
        self.moved = moved.max(c2 * change.abs());
    }

    /// The update of the multipliers, lines 13 to 18, and of the penalties, from the iterations of all sites.
    pub fn finish_iteration(&mut self, sites: &[SiteIteration]) {
        let largest = |of: fn(&SiteIteration) -> f64| sites.iter().map(of).fold(0.0, f64::max);
        let Steering { model: c_model, loss: c, .. } = self.steering;
        let apart = largest(|site| site.apart);
        let moved_model = c_model * largest(|site| site.moved);
        let mut losses = 0.0_f64;
        let mut moved_losses = 0.0_f64;
        for (at, site) in sites.iter().enumerate() {
            self.zeta[at] += c * (site.worst - self.z_relaxed[at]);
            losses = losses.max((site.worst - self.z[at]).abs());
            moved_losses = moved_losses.max(c * (site.worst - self.pi[at]).abs());
            self.pi[at] = site.worst;
        }
        let mut primal = apart.max(losses);
        if self.linearisation == Linearisation::None {
            self.note_value(self.weights.worst(&self.z).1);
        } else {
            let difference = self.difference();
            for (sigma, difference) in self.sigma.iter_mut().zip(&difference) {
                *sigma += c * difference;
                primal = primal.max(difference.abs());
            }
            self.note_value(self.weights.value(&self.t) - self.gam);
        }
        self.residuals.primal = primal;
        self.residuals.dual = moved_model.max(moved_losses).max(self.moved);
        if let Some(balancing) = &mut self.balancing {
            let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { part };
            let size = |values: &[f64]| values.iter().map(|value| value.abs()).fold(0.0, f64::max);
            let model = Balance {
                primal: share(apart, largest(|site| site.size)),
                dual: share(moved_model, largest(|site| site.price)),
            };
            let loss = Balance {
                primal: share(losses, size(&self.pi).max(size(&self.z))),
                dual: share(moved_losses, size(&self.zeta)),
            };
            balancing.note(model, loss);
            self.steering = balancing.steering();
        }
        self.window.iterations += 1;
        self.window.zeta.iter_mut().zip(&self.zeta).for_each(|(sum, zeta)| *sum += zeta);
    }

    /// Begins a new window of iterations where the present one is half of them, so that means forget the beginning.
    /// Returns `true` if it does: the sites have to follow with [`Site::begin_window`](crate::Site::begin_window).
    pub fn begins_window(&mut self) -> bool {
        let Window { begin, iterations, .. } = self.window;
        if iterations < begin.max(SHORTEST_WINDOW) {
            return false;
        }
        self.window = Window { begin: begin + iterations, iterations: 0, zeta: vec![0.0; self.zeta.len()] };
        true
    }

    fn note_value(&mut self, value: f64) {
        self.residuals.value = (value - self.value).abs() / value.abs().max(1.0);
        self.value = value;
    }

    /// The penalties of the next iteration.
    #[must_use]
    pub fn steering(&self) -> Steering {
        self.steering
    }

    /// The parameters of a site's subproblem.
    #[must_use]
    pub fn of_site(&self, site: usize) -> SiteTarget {
        SiteTarget { z: self.z_relaxed[site], zeta: self.zeta[site] }
    }

    /// The objective at the split variables.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// The residuals after the last iteration.
    #[must_use]
    pub fn residuals(&self) -> Residuals {
        self.residuals
    }

    /// The worst-case weights, `[sites]`: `zeta` and `-sigma`, which are the same at the solution.
    #[must_use]
    pub fn weights(&self) -> (&[f64], Vec<f64>) {
        (&self.zeta, self.sigma.iter().map(|sigma| -sigma).collect())
    }

    /// The weights of the set, `[sites]`, that are nearest to `zeta`, and to its mean over this window: those of lower
    /// bounds.
    #[must_use]
    pub fn dual_weights(&self) -> [Vec<f64>; 2] {
        let iterations = self.window.iterations.max(1) as f64;
        let mean: Vec<f64> = self.window.zeta.iter().map(|sum| sum / iterations).collect();
        [self.weights.nearest(&self.zeta), self.weights.nearest(&mean)]
    }

    /// The set of the sites' weights.
    #[must_use]
    pub fn set(&self) -> &SiteWeights {
        &self.weights
    }

    /// The worst loss of each site, `[sites]`, at the split variables.
    #[must_use]
    pub fn worst_losses(&self) -> &[f64] {
        &self.z
    }

    /// Every number of the state, in a fixed order, for a hash.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let vectors = [&self.z, &self.t, &self.eta, &self.sigma, &self.zeta, &self.pi];
        let steering = [self.steering.model, self.steering.loss];
        vectors.into_iter().flatten().copied().chain([self.gam, self.value]).chain(steering)
    }
}
