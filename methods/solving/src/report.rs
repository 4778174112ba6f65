//! Solutions as tables, line by line.

use std::collections::BTreeSet;

use crate::problem::{Problem, ProblemTask};
use crate::solution::{Answer, CliqueState, Coefficient, Paid, Solution};

/// Largest magnitude of a coefficient that counts as zero, set so by the penalty.
const ZERO: f64 = 1e-12;

/// Largest difference of two models that counts as none, in scaled coefficients.
const SAME_MODEL: f64 = 1e-6;

impl Problem {
    /// The solutions of nodes, as the lines of a table. Empty for robust models, which have more to say.
    pub fn report(&self, solutions: &[Solution]) -> Vec<String> {
        let Some(first) = solutions.first() else { return Vec::new() };
        match &first.answer {
            Answer::SparseRegression { coefficients, intercept, rows } => {
                let zeros = coefficients.iter().filter(|coefficient| coefficient.scaled.abs() <= ZERO).count();
                let mut lines = model(coefficients, *intercept);
                lines.push(format!("{rows} rows, {zeros} of {} columns left out", coefficients.len()));
                lines
            }
            Answer::ResourceAllocation { .. } => self.shares(solutions),
            Answer::CliqueCoupling { .. } => self.coupled_variables(solutions),
            Answer::NetworkLasso { .. } => self.models(solutions),
            Answer::Robust { .. } => Vec::new(),
        }
    }

    fn shares(&self, solutions: &[Solution]) -> Vec<String> {
        let mut lines = vec![format!("{:<28} {:>16}", "node", "number")];
        let mut all = Vec::<Paid>::new();
        for solution in solutions {
            let Answer::ResourceAllocation { number, cliques } = &solution.answer else { continue };
            lines.push(format!("{:<28} {number:>16.9}", self.name(solution.node)));
            let new = cliques.iter().filter(|paid| !all.iter().any(|known| known.clique == paid.clique));
            all.extend(new.cloned().collect::<Vec<_>>());
        }
        if let ProblemTask::Allocation(task) = &self.task {
            all.sort_by_key(|paid| task.budgets.all().iter().position(|clique| clique.name == paid.clique));
        }
        lines.push(format!("{:<28} {:>16}   {:>16}   {:>16}", "clique", "budget", "sum", "price of a unit"));
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.9}"));
        lines.extend(all.iter().map(|Paid { clique, budget, sum, price }| {
            format!("{clique:<28} {:>16}   {sum:>16.9}   {:>16}", number(*budget), number(*price))
        }));
        lines
    }

    fn coupled_variables(&self, solutions: &[Solution]) -> Vec<String> {
        let ProblemTask::Coupled(task) = &self.task else { return Vec::new() };
        let row = |name: &str, cells: &mut dyn Iterator<Item = String>| {
            cells.fold(format!("{name:<28}"), |line, cell| format!("{line} {cell:>16}"))
        };
        let mut lines = vec![row("node", &mut task.components().iter().cloned())];
        let mut all = Vec::<CliqueState>::new();
        for solution in solutions {
            let Answer::CliqueCoupling { variables, cliques } = &solution.answer else { continue };
            let mut cells = variables.iter().map(|variable| format!("{variable:.9}"));
            lines.push(row(self.name(solution.node), &mut cells));
            let new = cliques.iter().filter(|state| !all.iter().any(|known| known.clique == state.clique));
            all.extend(new.cloned().collect::<Vec<_>>());
        }
        all.sort_by_key(|state| task.cliques().iter().position(|clique| clique.name == state.clique));
        lines.push(format!("{:<28} {:>16} {:>16}   price of a unit", "clique", "coupling", "missed by"));
        lines.extend(all.iter().map(|CliqueState { clique, coupling, violation, prices }| {
            let prices: Vec<String> = prices.iter().map(|price| format!("{price:.9}")).collect();
            let prices = if prices.is_empty() { "-".to_owned() } else { prices.join(", ") };
            format!("{clique:<28} {coupling:>16} {violation:>16.1e}   {prices}")
        }));
        lines
    }

    /// The models of a network lasso, one for each group of linked nodes that have the same.
    fn models(&self, solutions: &[Solution]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut shown = BTreeSet::new();
        for solution in solutions {
            let Answer::NetworkLasso { coefficients, intercept, .. } = &solution.answer else { continue };
            if !shown.insert(solution.node) {
                continue;
            }
            let group = group_of(solution.node, solutions);
            shown.extend(&group);
            let names: Vec<&str> = group.iter().map(|node| self.name(*node)).collect();
            let rows: u64 = solutions.iter().filter(|one| group.contains(&one.node)).map(rows).sum();
            lines.push(format!("{}: {rows} rows", names.join(", ")));
            lines.extend(model(coefficients, *intercept));
        }
        lines
    }

    fn name(&self, node: usize) -> &str {
        self.names.get(node).map_or("", String::as_str)
    }
}

/// The nodes that a chain of equal models links to this one, among those with a solution.
fn group_of(node: usize, solutions: &[Solution]) -> BTreeSet<usize> {
    let mut group = BTreeSet::from([node]);
    let mut added = vec![node];
    while let Some(node) = added.pop() {
        let Some(solution) = solutions.iter().find(|solution| solution.node == node) else { continue };
        let Answer::NetworkLasso { neighbours, .. } = &solution.answer else { continue };
        let has_solution = |other: usize| solutions.iter().any(|solution| solution.node == other);
        for other in neighbours.iter().filter(|other| other.distance <= SAME_MODEL && has_solution(other.node)) {
            if group.insert(other.node) {
                added.push(other.node);
            }
        }
    }
    group
}

fn rows(solution: &Solution) -> u64 {
    if let Answer::NetworkLasso { rows, .. } = &solution.answer { *rows } else { 0 }
}

fn model(coefficients: &[Coefficient], intercept: f64) -> Vec<String> {
    let mut lines = vec![Coefficient::HEAD.to_owned()];
    lines.extend(coefficients.iter().map(Coefficient::line));
    lines.push(format!("{:<28} {intercept:>16.9}", "(intercept)"));
    lines
}

impl Coefficient {
    /// The head of a table of coefficients.
    pub const HEAD: &str = "column                            coefficient         scaled";

    /// A line of a table: the column, its coefficient, and the scaled one.
    pub fn line(&self) -> String {
        let Self { column, value, scaled } = self;
        format!("{column:<28} {value:>16.9}   {scaled:>12.6}")
    }
}
