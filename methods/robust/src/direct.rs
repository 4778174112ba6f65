//! The whole problem as one cone program, with all samples in one place.

use crate::cone_program::{Affine, ConeProgram};
use crate::epigraph::mean_loss;
use crate::error::RobustError;
use crate::problem::RobustProblem;

/// The solution of the whole problem.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectSolution {
    /// `w`, `[columns]`.
    pub model: Vec<f64>,
    /// The worst loss.
    pub value: f64,
    /// The worst loss of each site, `[sites]`.
    pub worst_losses: Vec<f64>,
    /// The worst weights, `[sites]`: the multipliers of the losses.
    pub weights: Vec<f64>,
}

/// Solves the problem (4) of \[BWQH\] as one cone program:
///
/// ```text
///   min  <nominal, z + eta> + theta || z + gam 1 + eta ||_(p*)     s.t.  z_s >= worst loss of site s,   eta >= 0
/// ```
///
/// # Errors
/// The problem is not valid, or its program was not solved.
pub fn solve_directly(problem: &RobustProblem) -> Result<DirectSolution, RobustError> {
    problem.check()?;
    let mut program = ConeProgram::default();
    let model = program.variables(problem.sites[0].samples.columns());
    let shift = program.variable();
    let mut losses = Vec::new();
    let mut rows = Vec::new();
    let mut moved = Vec::new();
    for (site, &nominal) in problem.sites.iter().zip(&problem.weights.nominal) {
        let lam = (site.radius > 0.0).then(|| program.nonnegative_variable());
        let mean = mean_loss(&mut program, &model, lam, &problem.robust, &site.samples);
        let loss = program.variable();
        let eta = program.nonnegative_variable();
        let robust_part = lam.map_or_else(Affine::default, |lam| Affine::default().plus(site.radius, lam));
        rows.push(program.nonnegative(Affine::of(loss).add(-1.0, &robust_part).add(-1.0, &mean)));
        program.cost(loss, 0.0, nominal);
        program.cost(eta, 0.0, nominal);
        moved.push(Affine::of(loss).plus(1.0, shift).plus(1.0, eta));
        losses.push(loss);
    }
    problem.weights.dual_norm_term(&mut program, moved);
    if problem.weights.theta == 0.0 {
        // With `theta = 0` no other row contains `shift`.
        program.zero(Affine::of(shift));
    }
    let mut program = program.prepare()?;
    let solved = program.solve()?;
    let of = |variables: &[usize]| variables.iter().map(|&variable| solved.x[variable]).collect();
    Ok(DirectSolution {
        model: of(&model),
        value: solved.cost,
        worst_losses: of(&losses),
        weights: rows.iter().map(|&row| solved.price(row)).collect(),
    })
}

/// The model that is robust against one ball of a radius around the mixture of all sites by their nominal weights,
/// `[columns]`: WAFL of Nguyen and others (2022), as a cone program with one `lam` for all sites.
///
/// # Errors
/// As [`solve_directly`].
pub fn aggregate_then_robustify(problem: &RobustProblem, radius: f64) -> Result<Vec<f64>, RobustError> {
    problem.check()?;
    crate::problem::check_radius(radius)?;
    let mut program = ConeProgram::default();
    let model = program.variables(problem.sites[0].samples.columns());
    let lam = (radius > 0.0).then(|| program.nonnegative_variable());
    if let Some(lam) = lam {
        program.cost(lam, 0.0, radius);
    }
    for (site, &nominal) in problem.sites.iter().zip(&problem.weights.nominal) {
        let loss = program.variable();
        program.cost(loss, 0.0, nominal);
        let mean = mean_loss(&mut program, &model, lam, &problem.robust, &site.samples);
        program.nonnegative(Affine::of(loss).add(-1.0, &mean));
    }
    let mut program = program.prepare()?;
    let solved = program.solve()?;
    Ok(model.iter().map(|&column| solved.x[column]).collect())
}
