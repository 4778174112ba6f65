//! Feasibility of budgets under bounds, and existence of a least cost, by linear programs.

use microlp::{ComparisonOp, Error, OptimizationDirection, Problem, Variable};

use super::{AllocationError, Preference, SharingClique};

/// The largest movement along a direction that counts as none.
const STILL: f64 = 1e-7;

/// Checks that some numbers within the bounds keep all budgets, and that the costs have a least value.
///
/// # Errors
///
/// The budgets that contradict each other, or the nodes whose numbers are unbounded.
pub(crate) fn check(
    cliques: &[SharingClique],
    names: &[String],
    preferences: &[Preference],
) -> Result<(), AllocationError> {
    let all: Vec<&SharingClique> = cliques.iter().collect();
    if !is_feasible(&all, preferences)? {
        return Err(AllocationError::Infeasible { cliques: contradiction(all, preferences)? });
    }
    let away = runs_off(cliques, preferences)?;
    if away.is_empty() {
        return Ok(());
    }
    Err(AllocationError::Unbounded { nodes: away.into_iter().map(|node| names[node].clone()).collect() })
}

fn is_feasible(cliques: &[&SharingClique], preferences: &[Preference]) -> Result<bool, AllocationError> {
    let mut program = Problem::new(OptimizationDirection::Minimize);
    let x: Vec<Variable> =
        preferences.iter().map(|preference| program.add_var(0.0, (preference.lower, preference.upper))).collect();
    for clique in cliques {
        if let Some(budget) = clique.budget {
            program.add_constraint(sum_of(clique, &x), ComparisonOp::Eq, budget);
        }
    }
    solve(&program).map(|solution| solution.is_some())
}

fn sum_of(clique: &SharingClique, x: &[Variable]) -> Vec<(Variable, f64)> {
    clique.members.iter().map(|&member| (x[member], 1.0)).collect()
}

/// The names of a minimal set of cliques that contradict each other: each is left out if the others still do.
fn contradiction(mut cliques: Vec<&SharingClique>, preferences: &[Preference]) -> Result<Vec<String>, AllocationError> {
    let mut at = 0;
    while at < cliques.len() {
        let tried = cliques.remove(at);
        if is_feasible(&cliques, preferences)? {
            cliques.insert(at, tried);
            at += 1;
        }
    }
    Ok(cliques.into_iter().map(|clique| clique.name.clone()).collect())
}

/// The nodes whose numbers grow without bound while the costs fall: those of a direction without a bound, budget or
/// square term that limits it.
fn runs_off(cliques: &[SharingClique], preferences: &[Preference]) -> Result<Vec<usize>, AllocationError> {
    let mut program = Problem::new(OptimizationDirection::Minimize);
    let mut direction = |preference: &Preference| {
        let is_held = preference.weight > 0.0;
        let down = if is_held || preference.lower.is_finite() { 0.0 } else { -1.0 };
        let up = if is_held || preference.upper.is_finite() { 0.0 } else { 1.0 };
        program.add_var(preference.price, (down, up))
    };
    let x: Vec<Variable> = preferences.iter().map(&mut direction).collect();
    for clique in cliques.iter().filter(|clique| clique.budget.is_some() || clique.weight > 0.0) {
        program.add_constraint(sum_of(clique, &x), ComparisonOp::Eq, 0.0);
    }
    // The program is feasible: a direction of zero satisfies it.
    let Some((fall, steps)) = solve(&program)? else { return Ok(Vec::new()) };
    let largest_price = preferences.iter().map(|preference| preference.price.abs()).fold(0.0, f64::max);
    if fall >= -STILL * largest_price {
        return Ok(Vec::new());
    }
    Ok((0..x.len()).filter(|&node| steps[node].abs() > STILL).collect())
}

/// The least value and its point; `None` if the program is infeasible.
fn solve(program: &Problem) -> Result<Option<(f64, Vec<f64>)>, AllocationError> {
    let undecided = |reason: String| AllocationError::Undecided { reason };
    match program.solve() {
        Ok(outcome) => {
            let solution = outcome.into_solution().map_err(|error| undecided(format!("{error:?}")))?;
            Ok(Some((solution.objective(), solution.iter().map(|(_, value)| value).collect())))
        }
        Err(Error::Infeasible) => Ok(None),
        Err(error) => Err(undecided(error.to_string())),
    }
}
