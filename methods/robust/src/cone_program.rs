//! Convex programs over cones, row by row, and their solution by interior points (`clarabel`).
//!
//! ```text
//!   min  1/2 x^T D x + q^T x     s.t.   each affine expression of x lies in its cone,     D diagonal
//! ```

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

use crate::error::RobustError;

/// The target for duality gap and feasibility, absolute and relative. The subproblems of sites are strongly convex:
/// their models are exact to about the root of it at worst, and in practice nearly to it.
const TOLERANCE: f64 = 1e-10;
/// The gap and feasibility accepted where rounding stops the solver earlier.
const ACCEPTED: f64 = 1e-7;
/// The most interior-point steps. A program takes 10 to 30; further ones do not help.
const MOST_STEPS: u32 = 200;

/// `sum of coefficient * variable + constant`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Affine {
    terms: Vec<(usize, f64)>,
    constant: f64,
}

impl Affine {
    pub(crate) fn constant(constant: f64) -> Self {
        Self { terms: Vec::new(), constant }
    }

    pub(crate) fn of(variable: usize) -> Self {
        Self::default().plus(1.0, variable)
    }

    pub(crate) fn plus(mut self, coefficient: f64, variable: usize) -> Self {
        if coefficient != 0.0 {
            self.terms.push((variable, coefficient));
        }
        self
    }

    pub(crate) fn plus_all(self, terms: impl IntoIterator<Item = (f64, usize)>) -> Self {
        terms.into_iter().fold(self, |sum, (coefficient, variable)| sum.plus(coefficient, variable))
    }

    /// `self + factor * other`.
    pub(crate) fn add(mut self, factor: f64, other: &Self) -> Self {
        self.constant += factor * other.constant;
        self.plus_all(other.terms.iter().map(|&(variable, coefficient)| (factor * coefficient, variable)))
    }
}

/// A program under construction.
#[derive(Debug, Default)]
pub(crate) struct ConeProgram {
    /// The diagonal of `D`, by variable; `linear` is `q`.
    quadratic: Vec<f64>,
    linear: Vec<f64>,
    zero: Vec<Affine>,
    nonnegative: Vec<Affine>,
    /// Blocks whose first expression is the bound.
    second_order: Vec<Vec<Affine>>,
    exponential: Vec<[Affine; 3]>,
}

impl ConeProgram {
    /// A new variable.
    pub(crate) fn variable(&mut self) -> usize {
        self.quadratic.push(0.0);
        self.linear.push(0.0);
        self.linear.len() - 1
    }

    pub(crate) fn variables(&mut self, count: usize) -> Vec<usize> {
        (0..count).map(|_| self.variable()).collect()
    }

    /// A new variable that is not negative.
    pub(crate) fn nonnegative_variable(&mut self) -> usize {
        let variable = self.variable();
        self.nonnegative(Affine::of(variable));
        variable
    }

    /// Sets the cost of a variable: `quadratic / 2 x^2 + linear x`.
    pub(crate) fn cost(&mut self, variable: usize, quadratic: f64, linear: f64) {
        self.quadratic[variable] = quadratic;
        self.linear[variable] = linear;
    }

    pub(crate) fn zero(&mut self, expression: Affine) {
        self.zero.push(expression);
    }

    /// Requires `expression >= 0`; returns the row, for [`ConeSolution::price`].
    pub(crate) fn nonnegative(&mut self, expression: Affine) -> usize {
        self.nonnegative.push(expression);
        self.nonnegative.len() - 1
    }

    /// Requires `-bound <= expression <= bound`.
    pub(crate) fn within(&mut self, bound: &Affine, expression: &Affine) {
        self.nonnegative(bound.clone().add(-1.0, expression));
        self.nonnegative(bound.clone().add(1.0, expression));
    }

    /// Requires `||expressions||_2 <= bound`.
    pub(crate) fn second_order(&mut self, bound: Affine, expressions: Vec<Affine>) {
        let mut block = vec![bound];
        block.extend(expressions);
        self.second_order.push(block);
    }

    /// Requires `1/2 expression^2 <= bound`, as `||(sqrt 2 expression, bound - 1)|| <= bound + 1`.
    pub(crate) fn half_square(&mut self, bound: usize, expression: &Affine) {
        let scaled = Affine::default().add(std::f64::consts::SQRT_2, expression);
        let shifted = |by| Affine::constant(by).plus(1.0, bound);
        self.second_order(shifted(1.0), vec![scaled, shifted(-1.0)]);
    }

    /// Requires `y exp(x / y) <= z`.
    pub(crate) fn exponential(&mut self, x: Affine, y: Affine, z: Affine) {
        self.exponential.push([x, y, z]);
    }

    /// Prepares the program to be solved, once or with many linear costs.
    ///
    /// # Errors
    /// The solver refuses the program.
    pub(crate) fn prepare(self) -> Result<PreparedProgram, RobustError> {
        let variables = self.linear.len();
        let mut cones = Vec::new();
        let mut add = |cone: SupportedConeT<f64>, is_there: bool| is_there.then(|| cones.push(cone));
        add(SupportedConeT::ZeroConeT(self.zero.len()), !self.zero.is_empty());
        add(SupportedConeT::NonnegativeConeT(self.nonnegative.len()), !self.nonnegative.is_empty());
        cones.extend(self.second_order.iter().map(|block| SupportedConeT::SecondOrderConeT(block.len())));
        cones.extend(self.exponential.iter().map(|_| SupportedConeT::ExponentialConeT()));
        let zero_rows = self.zero.len();
        let rows: Vec<Affine> = self
            .zero
            .into_iter()
            .chain(self.nonnegative)
            .chain(self.second_order.into_iter().flatten())
            .chain(self.exponential.into_iter().flatten())
            .collect();
        // The solver's form: A x + s = b with s in the cones.
        let constants: Vec<f64> = rows.iter().map(|row| row.constant).collect();
        let matrix = matrix(&rows, variables);
        let linear = self.linear;
        let diagonal = self.quadratic.iter().enumerate().filter(|(_, value)| **value != 0.0);
        let (places, values): (Vec<usize>, Vec<f64>) = diagonal.map(|(place, value)| (place, *value)).unzip();
        let quadratic = CscMatrix::new_from_triplets(variables, variables, places.clone(), places, values);
        let solver = DefaultSolver::new(&quadratic, &linear, &matrix, &constants, &cones, settings())
            .map_err(|error| RobustError::Solver { status: error.to_string() })?;
        Ok(PreparedProgram { solver, linear, zero_rows })
    }
}

fn matrix(rows: &[Affine], variables: usize) -> CscMatrix<f64> {
    let mut at_row = Vec::new();
    let mut at_column = Vec::new();
    let mut values = Vec::new();
    for (row, expression) in rows.iter().enumerate() {
        for &(variable, coefficient) in &expression.terms {
            at_row.push(row);
            at_column.push(variable);
            values.push(-coefficient);
        }
    }
    CscMatrix::new_from_triplets(rows.len(), variables, at_row, at_column, values)
}

fn settings() -> DefaultSettings<f64> {
    DefaultSettings {
        verbose: false,
        max_iter: MOST_STEPS,
        tol_gap_abs: TOLERANCE,
        tol_gap_rel: TOLERANCE,
        tol_feas: TOLERANCE,
        reduced_tol_gap_abs: ACCEPTED,
        reduced_tol_gap_rel: ACCEPTED,
        reduced_tol_feas: ACCEPTED,
        // Presolve removes rows, after which linear costs cannot be changed.
        presolve_enable: false,
        // One thread, one order of sums: the same bits each time.
        direct_solve_method: "qdldl".to_owned(),
        ..DefaultSettings::default()
    }
}

/// A program with its elimination order and all memory allocated.
pub(crate) struct PreparedProgram {
    solver: DefaultSolver<f64>,
    linear: Vec<f64>,
    zero_rows: usize,
}

/// A solution.
pub(crate) struct ConeSolution<'a> {
    pub(crate) x: &'a [f64],
    /// The least cost.
    pub(crate) cost: f64,
    dual: &'a [f64],
    zero_rows: usize,
}

impl ConeSolution<'_> {
    /// The multiplier of a row of [`ConeProgram::nonnegative`].
    pub(crate) fn price(&self, row: usize) -> f64 {
        self.dual[self.zero_rows + row]
    }
}

impl PreparedProgram {
    /// Solves the program.
    ///
    /// # Errors
    /// The solver found no solution to the tolerance.
    pub(crate) fn solve(&mut self) -> Result<ConeSolution<'_>, RobustError> {
        self.solver.solve();
        let solution = &self.solver.solution;
        match solution.status {
            SolverStatus::Solved | SolverStatus::AlmostSolved => Ok(ConeSolution {
                x: &solution.x,
                cost: solution.obj_val,
                dual: &solution.z,
                zero_rows: self.zero_rows,
            }),
            status => Err(RobustError::Solver { status: format!("{status:?}") }),
        }
    }

    /// Replaces the linear costs of these variables and solves the program.
    ///
    /// # Errors
    /// As [`solve`](Self::solve).
    pub(crate) fn solve_for(
        &mut self,
        costs: impl Iterator<Item = (usize, f64)>,
    ) -> Result<ConeSolution<'_>, RobustError> {
        costs.for_each(|(variable, cost)| self.linear[variable] = cost);
        self.solver.update_q(&self.linear).map_err(|error| RobustError::Solver { status: error.to_string() })?;
        self.solve()
    }
}
