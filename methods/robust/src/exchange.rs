//! The numbers that a site and the shared state exchange in an iteration.

/// The parameters of a site's subproblem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteTarget {
    /// `z_s`, over-relaxed.
    pub z: f64,
    /// `zeta_s`.
    pub zeta: f64,
}

/// The result of an iteration at a site.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteIteration {
    /// `pi`, at least the worst loss of the site's model.
    pub worst: f64,
    /// The largest difference between a coefficient of the site's model and of the consensus model.
    pub apart: f64,
    /// The largest change of a coefficient of the site's model.
    pub moved: f64,
    /// The largest magnitude of a coefficient of both models.
    pub size: f64,
    /// The largest magnitude of a multiplier in `psi`.
    pub price: f64,
}
