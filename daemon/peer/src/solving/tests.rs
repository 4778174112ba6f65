//! A node's part in a problem, without any network.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mingle_planner::{DesignOptions, Medium, Method, Plan, Topology, transient};
use mingle_protocol::collective::tracking_rounds;
use mingle_protocol::{Envelope, NodeId};
use mingle_solver::{Mixing, Regression, Scaling, Selection, Table, solve};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::peer::{Fault, Reception, SolverPeer};
use super::problem::{Part, Problem};
use super::solution::{Answer, Solution};
use super::swarm::{Conditions, solve_here};
use super::ways::{Agreement, Ways};
use crate::plan;

const NODES: usize = 6;
const UNDISTURBED: Conditions = Conditions { loss: 0.0, seed: 0 };

/// Six nodes with a few rows each, and how they come to agree.
fn regression(folder: &Path, method: Method, more: &str) -> (Plan, Problem, Arc<Ways>) {
    regression_over(folder, &format!("rg:n={NODES},r=0.6,seed=1"), method, Medium::PointToPoint, more)
}

/// The same over another topology.
fn regression_over(
    folder: &Path,
    topology: &str,
    method: Method,
    medium: Medium,
    more: &str,
) -> (Plan, Problem, Arc<Ways>) {
    let mut table = "a,b,c,y\n".to_owned();
    for row in 0_u32..36 {
        let [a, b, c] = [7, 11, 13].map(|step| f64::from(row * step % 17) / 8.0 - 1.0);
        table += &format!("{a},{b},{c},{}\n", 2.0 * a - b + 0.05 * f64::from(row % 5));
    }
    fs::write(folder.join("table.csv"), table).unwrap();
    let path = folder.join("problem.toml");
    let text = "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\nlambda = 0.01\n";
    fs::write(&path, format!("{text}{more}")).unwrap();
    let options = DesignOptions { medium, ..DesignOptions::default() };
    let topology = Topology::generate(topology).unwrap();
    let plan = mingle_planner::design(&topology, method, &options).unwrap();
    let problem = Problem::read(&path, &plan).unwrap();
    let ways = Arc::new(Ways::of(&plan, Arc::new(plan::schedule(&plan).unwrap())).unwrap());
    (plan, problem, ways)
}

fn coefficients(solution: &Solution) -> Vec<f64> {
    let Answer::SparseRegression { coefficients, .. } = &solution.answer else { panic!("{solution:?}") };
    coefficients.iter().map(|column| column.scaled).collect()
}

fn tables(problem: &Problem) -> Vec<Table> {
    let table = |part| if let Part::Regression { table, .. } = part { table } else { panic!("no table") };
    problem.parts().unwrap().into_iter().map(table).collect()
}

#[test]
fn over_messages_nids_goes_through_the_bits_that_it_goes_through_without() {
    let folder = tempfile::tempdir().unwrap();
    let more = "standardize = false\ntolerance = 1e-15\niterations = 60\n";
    let (_, problem, ways) = regression(folder.path(), Method::CliquePhi, more);
    let found = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
    let Agreement::Mixing(rows) = &ways.agreement else { panic!("the plan is symmetric") };
    let terms = || {
        let regression = Regression { lambda: 0.01, ..Regression::default() };
        tables(&problem).into_iter().map(move |table| regression.terms(&table, &Scaling::none(3), 36.0 / NODES as f64))
    };
    let smoothness = terms().map(|terms| terms.smooth.smoothness()).fold(0.0, f64::max);
    let expected = solve::nids(terms().collect(), &Mixing::new(rows.to_vec()).unwrap(), 1.0 / smoothness, 60);
    for (solution, expected) in found.solutions.iter().zip(expected) {
        assert_eq!(solution.step.to_bits(), (1.0 / smoothness).to_bits());
        assert_eq!(coefficients(solution), expected);
        assert!(!solution.converged && solution.iterations == 60);
    }
}

#[test]
fn every_way_to_agree_leads_to_the_solution_in_one_place() {
    let folder = tempfile::tempdir().unwrap();
    for method in [Method::CliquePhi, Method::DPsgd, Method::NguyenHe, Method::ExactAverage] {
        let (_, problem, ways) = regression(folder.path(), method, "");
        let found = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
        let mut all = tables(&problem);
        let mut whole = all.remove(0);
        all.iter().for_each(|table| whole.append(table).unwrap());
        let centered = Scaling::centering(&whole.sums());
        let scaling = centered.clone().with_deviations(&whole.squares(&centered), 36.0);
        let expected = Regression { lambda: 0.01, ..Regression::default() }.solve(&whole, &scaling, 1e-14, 100_000);
        for solution in &found.solutions {
            let off = coefficients(solution).iter().zip(&expected.x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-9, "{method}: {off:e}");
            assert!((solution.objective - expected.objective).abs() < 1e-12, "{method}");
            assert!(solution.certificate.kkt < 1e-8 && solution.certificate.violation < 1e-8, "{solution:?}");
        }
    }
}

/// All rows in one place.
fn in_one_place(problem: &Problem) -> (Table, Scaling) {
    let mut all = tables(problem);
    let mut whole = all.remove(0);
    all.iter().for_each(|table| whole.append(table).unwrap());
    let centered = Scaling::centering(&whole.sums());
    let scaling = centered.clone().with_deviations(&whole.squares(&centered), whole.row_count() as f64);
    (whole, scaling)
}

/// Matrices that are tuned for their eigenvalues are far from normal: what one period leaves of a change is more than the change,
/// though it falls to a third in the long run. The number of periods follows from a norm.
#[test]
fn plans_whose_eigenvalues_promise_more_than_their_norm_keeps_are_solved() {
    let mut beyond = 0;
    for (n, seed) in [(8, 1), (12, 1), (12, 3), (16, 2), (20, 1), (20, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let topology = format!("rg:n={n},r=0.5,seed={seed}");
        for (method, medium) in [(Method::Tuned, Medium::Broadcast), (Method::NguyenHe, Medium::PointToPoint)] {
            let (plan, problem, ways) = regression_over(folder.path(), &topology, method, medium, "");
            let Agreement::Tracking { steps } = ways.agreement else { panic!("{topology} {method} is symmetric") };
            let by_eigenvalue = tracking_rounds(plan.forecast().lambda_2.unwrap()).unwrap();
            let gain = |periods: u64| transient::gain(n, plan.steps(), usize::try_from(periods).unwrap()).unwrap();
            beyond += u32::from(gain(by_eigenvalue) > 1.0);
            assert!(gain(steps) <= 0.8 && steps >= by_eigenvalue, "{topology} {method}: {steps} {}", gain(steps));
            let found = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
            let (whole, scaling) = in_one_place(&problem);
            let expected = Regression { lambda: 0.01, ..Regression::default() }.solve(&whole, &scaling, 1e-14, 100_000);
            for solution in &found.solutions {
                let pairs = coefficients(solution).into_iter().zip(&expected.x);
                let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(solution.converged && off < 1e-8, "{topology} {method}: {off:e} {solution:?}");
            }
        }
    }
    assert!(beyond >= 3, "{beyond} of the plans would be solved with the eigenvalue alone too");
}

#[test]
fn an_iteration_that_diverges_is_told_early_by_all_and_with_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, problem, ways) =
        regression_over(folder.path(), "rg:n=8,r=0.5,seed=1", Method::NguyenHe, Medium::PointToPoint, "");
    // As rough as averages can be: one step an iteration.
    let ways = Arc::new(Ways { agreement: Agreement::Tracking { steps: 1 }, ..(*ways).clone() });
    let part = |node: usize| SolverPeer::new(node, &problem, problem.part(node).unwrap(), Arc::clone(&ways), 0);
    let outcomes = outcomes((0..plan.node_count()).map(part).collect());
    let told = outcomes[0].as_ref().unwrap_err();
    assert!(told.contains("the iteration diverges: the residual was"), "{told}");
    let iteration: u64 = told.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(iteration <= 500, "{told}");
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().unwrap_err() == told), "{outcomes:?}");
    let failure = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).err().unwrap();
    assert!(format!("{failure:#}") == *told && ways.agreement.remedy().contains("clique-phi"), "{failure:#}");
}

/// The certificate of a regression, computed again with all rows in one place, after so few iterations that nodes differ.
#[test]
fn the_certificate_of_a_regression_is_that_of_one_place_at_the_mean_of_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    for method in [Method::CliquePhi, Method::NguyenHe] {
        for iterations in [1, 5, 20] {
            let more = format!("tolerance = 1e-15\niterations = {iterations}\n");
            let (_, problem, ways) = regression(folder.path(), method, &more);
            let found = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
            let models: Vec<Vec<f64>> = found.solutions.iter().map(coefficients).collect();
            let mean: Vec<f64> =
                (0..3).map(|at| models.iter().map(|model| model[at]).sum::<f64>() / models.len() as f64).collect();
            let (whole, scaling) = in_one_place(&problem);
            let terms =
                Regression { lambda: 0.01, ..Regression::default() }.terms(&whole, &scaling, whole.row_count() as f64);
            let mut gradient = vec![0.0; 3];
            terms.smooth.gradient(&mean, &mut gradient);
            for solution in &found.solutions {
                let expected = mingle_solver::optimality(&*terms.nonsmooth, &mean, &gradient, solution.step);
                let (kkt, violation) = (solution.certificate.kkt, solution.certificate.violation);
                assert!((kkt - expected).abs() <= 1e-9 * (1.0 + expected), "{method} {iterations}: {kkt} {expected}");
                assert!(iterations == 20 || kkt > 1e-3, "{method} {iterations}: {kkt}");
                let apart = models.iter().map(|model| (model[0] - models[0][0]).abs()).fold(0.0, f64::max);
                assert!(violation >= apart, "{method} {iterations}: {violation} {apart}");
            }
        }
    }
}

/// Two cliques of three that share a node: what the peers certify is never less than the conditions leave with the best prices,
/// and little more.
#[test]
fn the_certificate_of_budgets_says_how_far_numbers_are_from_the_best() {
    let folder = tempfile::tempdir().unwrap();
    let edges = [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4)];
    let topology = Topology::new((0..5).map(|node| node.to_string()).collect(), &edges).unwrap();
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    let plan = mingle_planner::design(&topology, Method::CliquePhi, &options).unwrap();
    let ways = Arc::new(Ways::of(&plan, Arc::new(plan::schedule(&plan).unwrap())).unwrap());
    for (iterations, at_least, at_most) in [(1, 1e-2, 100.0), (5, 1e-4, 100.0), (20, 0.0, 10.0), (5_000, 0.0, 1e-7)] {
        let mut text = format!(
            "kind = \"resource-allocation\"\ntolerance = 1e-12\niterations = {iterations}\n\
             [[clique]]\nname = \"a\"\nmembers = [0, 1, 2]\nbudget = 9\n\
             [[clique]]\nname = \"b\"\nmembers = [2, 3, 4]\nbudget = 3\n"
        );
        (0..5).for_each(|node| {
            text += &format!("[[node]]\nnode = {node}\nwish = {}\nweight = {}\nlower = -inf\n", node * node, node + 1);
        });
        let path = folder.path().join("budgets.toml");
        fs::write(&path, text).unwrap();
        let problem = Problem::read(&path, &plan).unwrap();
        let found = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
        let number = |solution: &Solution| match solution.answer {
            Answer::ResourceAllocation { number, .. } => number,
            Answer::SparseRegression { .. } => f64::NAN,
        };
        // The gradient of each node's own cost.
        let gradient = |solution: &Solution| {
            let node = solution.node as f64;
            (node + 1.0) * (number(solution) - node * node)
        };
        let left: Vec<f64> = found.solutions.iter().map(gradient).collect();
        let kkt = found.solutions[0].certificate.kkt;
        // Without bounds, the gradients of nodes 0 and 1 would have to be equal, and those of nodes 3 and 4.
        let apart = |a: f64, b: f64| (a - b).abs() / 2.0;
        let least = apart(left[0], left[1]).max(apart(left[3], left[4]));
        assert!(kkt >= least - 1e-12 && kkt >= at_least && kkt <= at_most, "{iterations}: {kkt} {least}");
    }
}

#[test]
fn groups_nonnegativity_and_ridge_are_solved_too() {
    let folder = tempfile::tempdir().unwrap();
    for (more, zero) in [("nonnegative = true\n", 1), ("groups = [[\"a\", \"b\"], [\"c\"]]\n", 2), ("ridge = 0.1\n", 2)]
    {
        let (_, problem, ways) = regression(folder.path(), Method::CliquePhi, more);
        let found = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
        for solution in &found.solutions {
            assert!(solution.converged && solution.certificate.kkt < 1e-8, "{more}: {solution:?}");
            assert!(coefficients(solution)[zero].abs() < 0.05, "{more}: {solution:?}");
        }
    }
}

/// A peer of the swarm, with the envelopes that it begins with.
fn peer(folder: &Path, attempt: u64) -> (SolverPeer, Vec<(NodeId, Envelope)>) {
    let (_, problem, ways) = regression(folder, Method::CliquePhi, "");
    let mut peer = SolverPeer::new(0, &problem, problem.part(0).unwrap(), ways, attempt);
    let sent = std::iter::from_fn(|| peer.poll()).collect();
    (peer, sent)
}

#[test]
fn who_is_behind_hears_of_the_attempt_and_who_is_ahead_takes_all_along() {
    let folder = tempfile::tempdir().unwrap();
    let (mut peer, sent) = peer(folder.path(), 3);
    let (neighbour, own) = sent[0].clone();
    let nothing = |attempt| Envelope { attempt, frame: vec![0, 0], ..own.clone() };
    assert_eq!(peer.handle(neighbour, &nothing(2)).unwrap(), Reception::Taken);
    let (to, answer) = peer.poll().unwrap();
    assert_eq!((to, answer.attempt), (neighbour, 3));
    assert_eq!(peer.handle(neighbour, &nothing(5)).unwrap(), Reception::NewAttempt(5));
    assert!(std::iter::from_fn(|| peer.poll()).all(|(_, envelope)| envelope.attempt == 5));
    // An attempt has begun also where the message that tells of it acknowledges what was never sent.
    let absurd = Envelope { frame: vec![5, 0], ..nothing(6) };
    assert_eq!(peer.handle(neighbour, &absurd).unwrap(), Reception::NewAttempt(6));
    assert!(matches!(peer.handle(neighbour, &absurd), Err(Fault::Collective(_))));
    assert!(matches!(peer.handle(neighbour, &nothing(u64::MAX)), Err(Fault::Attempt(u64::MAX))));
    let other = Envelope { task: [9; 32], ..nothing(9) };
    assert_eq!(peer.handle(neighbour, &other).unwrap(), Reception::OtherProblem);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_of_a_neighbour_end_a_peer(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..8), from in 0_u32..8,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut peer, sent) = peer(folder.path(), 0);
        let own = sent[0].1.clone();
        for frame in frames {
            // What is wrong with it is said, and nothing else happens.
            let _ = peer.handle(NodeId(from), &Envelope { frame, ..own.clone() });
        }
        prop_assert!(peer.outcome().is_none());
    }
}

/// A swarm whose processes die at any moment and come back with nothing but the number of their attempt.
struct Mortal {
    problem: Problem,
    ways: Arc<Ways>,
    peers: Vec<SolverPeer>,
    /// What each home remembers.
    attempts: Vec<u64>,
    under_way: Vec<(usize, NodeId, Envelope)>,
    dice: ChaCha8Rng,
}

impl Mortal {
    fn new(problem: Problem, ways: Arc<Ways>, seed: u64) -> Self {
        let peers = (0..NODES)
            .map(|me| SolverPeer::new(me, &problem, problem.part(me).unwrap(), Arc::clone(&ways), 0))
            .collect();
        let dice = ChaCha8Rng::seed_from_u64(seed);
        Self { problem, ways, peers, attempts: vec![0; NODES], under_way: Vec::new(), dice }
    }

    /// One message arrives, or is lost.
    fn step(&mut self, loss: f64) {
        for (from, peer) in self.peers.iter_mut().enumerate() {
            while let Some((to, envelope)) = peer.poll() {
                self.under_way.push((from, to, envelope));
            }
        }
        if self.under_way.is_empty() {
            self.peers.iter().for_each(SolverPeer::resend);
            return;
        }
        let (from, to, envelope) = self.under_way.swap_remove(self.dice.random_range(0..self.under_way.len()));
        if self.dice.random_bool(loss) {
            return;
        }
        let me = to.index();
        let from = NodeId(u32::try_from(from).unwrap());
        if let Reception::NewAttempt(attempt) = self.peers[me].handle(from, &envelope).unwrap() {
            self.attempts[me] = attempt;
        }
    }

    /// A process dies and is started again; what it sent before may still arrive.
    fn kill(&mut self, me: usize) {
        self.attempts[me] += 1;
        let part = self.problem.part(me).unwrap();
        self.peers[me] = SolverPeer::new(me, &self.problem, part, Arc::clone(&self.ways), self.attempts[me]);
    }
}

#[test]
fn whoever_dies_and_however_often_all_find_the_solution_in_the_end() {
    for (seed, method) in (0..12).zip([Method::CliquePhi, Method::NguyenHe].into_iter().cycle()) {
        let folder = tempfile::tempdir().unwrap();
        let (_, problem, ways) = regression(folder.path(), method, "");
        let expected = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
        let mut swarm = Mortal::new(problem, ways, seed);
        for _ in 0..8 {
            let quiet = swarm.dice.random_range(0..6_000);
            (0..quiet).for_each(|_| swarm.step(0.05));
            let victim = swarm.dice.random_range(0..NODES);
            swarm.kill(victim);
        }
        for _ in 0..2_000_000 {
            if swarm.peers.iter().all(|peer| peer.outcome().is_some()) {
                break;
            }
            swarm.step(0.05);
        }
        for (peer, expected) in swarm.peers.iter().zip(&expected.solutions) {
            let found = peer.outcome().unwrap_or_else(|| panic!("seed {seed}: no outcome")).unwrap();
            let pairs = coefficients(found).into_iter().zip(coefficients(expected));
            let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(found.converged && off < 1e-8, "seed {seed}: {off:e}");
        }
    }
}

/// What becomes of peers whose messages all arrive.
fn outcomes(mut peers: Vec<SolverPeer>) -> Vec<Result<Solution, String>> {
    loop {
        let mut is_quiet = true;
        for from in 0..peers.len() {
            while let Some((to, envelope)) = peers[from].poll() {
                is_quiet = false;
                let from = NodeId(u32::try_from(from).unwrap());
                peers[to.index()].handle(from, &envelope).unwrap();
            }
        }
        if is_quiet {
            let end = |peer: SolverPeer| peer.into_outcome().unwrap().map_err(|failure| format!("{failure:#}"));
            return peers.into_iter().map(end).collect();
        }
    }
}

#[test]
fn tables_that_do_not_fit_together_are_named_by_every_peer_before_anything_is_solved() {
    let folder = tempfile::tempdir().unwrap();
    let (_, problem, ways) = regression(folder.path(), Method::CliquePhi, "");
    let peer = |me: usize| {
        let part = match problem.part(me).unwrap() {
            Part::Regression { task, .. } if me == 4 => {
                let selection = Selection { target: "y".to_owned(), columns: Vec::new() };
                let table = Table::read("a,b,dose,y\n1,2,3,4\n".as_bytes(), &selection).unwrap();
                Part::Regression { task, table }
            }
            part => part,
        };
        SolverPeer::new(me, &problem, part, Arc::clone(&ways), 0)
    };
    for (me, outcome) in outcomes((0..NODES).map(peer).collect()).into_iter().enumerate() {
        let message = outcome.unwrap_err();
        let own = if me == 4 { "a, b, dose" } else { "a, b, c" };
        assert!(message.contains("node") && message.contains('4') && message.ends_with(own), "{message}");
    }
}

#[test]
fn a_budget_that_bounds_rule_out_is_named_by_every_peer_though_none_knows_the_others_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let topology = Topology::new(["x", "y", "z"].map(str::to_owned).to_vec(), &[(0, 1), (1, 2)]).unwrap();
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    let plan = mingle_planner::design(&topology, Method::CliquePhi, &options).unwrap();
    let ways = Arc::new(Ways::of(&plan, Arc::new(plan::schedule(&plan).unwrap())).unwrap());
    let shared = "kind = \"resource-allocation\"\n\
                  [[clique]]\nname = \"far\"\nmembers = [\"x\", \"y\"]\nbudget = 5\n\
                  [[clique]]\nname = \"near\"\nmembers = [\"y\", \"z\"]\nbudget = 1\n";
    // Each file has what its own node wants, and no other.
    let peer = |me: usize| {
        let path = folder.path().join(format!("{me}.toml"));
        fs::write(&path, format!("{shared}[[node]]\nnode = {me}\nwish = 1\nupper = 2\n")).unwrap();
        let problem = Problem::read(&path, &plan).unwrap();
        assert_eq!(problem.defaulted().len(), 2, "the others' wishes are not at hand");
        SolverPeer::new(me, &problem, problem.part(me).unwrap(), Arc::clone(&ways), 0)
    };
    let outcomes = outcomes((0..3).map(peer).collect());
    assert!(outcomes[0].as_ref().unwrap_err().contains("far cannot share out 5"), "{outcomes:?}");
    assert!(outcomes[2].as_ref().unwrap_err().contains("found that clique far cannot"), "{outcomes:?}");
}
