//! Robust models without a server, compared with the method and the cone program in one place.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use mingle_planner::{DesignOptions, Medium, Method, Plan, Topology};
use mingle_robust::{
    LinearSamples, Loss, LpmmLimits, Penalty, RobustLoss, RobustProblem, SiteSamples, SiteWeights, Support, WeightNorm,
    solve_by_lpmm, solve_directly,
};
use mingle_solving::{
    Answer, AveragingScheme, CommunicationPlan, Part, Problem, Solution, SolveError, SolverPeer, schedule,
};

use crate::support::{outcomes, solve_all, sums};

const COLUMNS: usize = 3;
const RADIUS: f64 = 0.02;
const THETA: f64 = 0.1;

/// The keys of a problem without scaling.
const AS_IS: &str =
    "support = \"box\"\nscaling = \"none\"\nintercept = false\nradius = 0.02\ntheta = 0.1\nkappa = 0.5\n";

/// Samples that follow a rule, as CSV.
fn table(rows: u32) -> String {
    let mut text = "a,b,c,y\n".to_owned();
    for row in 0..rows {
        let [a, b, c, noise] = [7, 11, 13, 5].map(|step| f64::from(row * step % 17) / 8.0 - 1.0);
        let label = if 2.0 * a - b + 0.7 * noise > 0.1 { "ill" } else { "well" };
        writeln!(text, "{a},{b},{c},{label}").unwrap();
    }
    text
}

fn plan(topology: &str, method: Method) -> Plan {
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    mingle_planner::design(&Topology::generate(topology).unwrap(), method, &options).unwrap()
}

/// A problem of 60 rows that are dealt out.
fn robust(folder: &Path, plan: &Plan, more: &str) -> (Problem, Arc<CommunicationPlan>) {
    fs::write(folder.join("table.csv"), table(60)).unwrap();
    let path = folder.join("robust.toml");
    let text = "kind = \"robust-classification\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\nlabels = [\"well\", \"ill\"]\n";
    fs::write(&path, format!("{text}{more}")).unwrap();
    let problem = Problem::read(&path, plan).unwrap();
    let communication = problem.communication(plan, Arc::new(schedule(plan).unwrap())).unwrap();
    (problem, Arc::new(communication))
}

/// The whole problem in one place, for comparison.
fn in_one_place(problem: &Problem) -> RobustProblem {
    let sites = problem.parts().unwrap().into_iter().map(|part| {
        let Part::Robust { table, .. } = part else { panic!("no samples") };
        let (values, labels): (Vec<&[f64]>, Vec<f64>) = table.rows().unzip();
        SiteSamples { samples: LinearSamples::new(COLUMNS, COLUMNS, values.concat(), labels).unwrap(), radius: RADIUS }
    });
    let sites: Vec<SiteSamples> = sites.collect();
    let weights = SiteWeights::new(vec![1.0 / sites.len() as f64; sites.len()], THETA, WeightNorm::Two).unwrap();
    let support = Support::Box { lower: -1.0, upper: 1.0 };
    RobustProblem { robust: RobustLoss { loss: Loss::Hinge, support, kappa: 0.5 }, sites, weights }
}

fn peers(problem: &Problem, communication: &Arc<CommunicationPlan>) -> Vec<SolverPeer> {
    let parts = problem.parts().unwrap().into_iter().enumerate();
    parts
        .map(|(me, part)| {
            SolverPeer::new(me, problem, part, Arc::clone(communication), 0, sums(me, communication.schedule.nodes()))
        })
        .collect()
}

/// The answer, its value and the weights of the sites, which are the same at all sites.
fn answer(solution: &Solution) -> (&Answer, f64, Vec<f64>) {
    let Answer::Robust { split_value, sites, .. } = &solution.answer else { panic!("{solution:?}") };
    (&solution.answer, *split_value, sites.iter().map(|site| site.weight).collect())
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn with_exact_means_every_iteration_is_that_of_one_place() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("rg:n=4,r=0.8,seed=2", Method::NguyenHe);
    for iterations in [1, 2, 3, 7, 20, 60] {
        let more = format!("{AS_IS}averaging = \"exact\"\ntolerance = 1e-14\niterations = {iterations}\n");
        let (problem, communication) = robust(folder.path(), &plan, &more);
        let mut all = peers(&problem, &communication);
        let journals: Vec<_> = all.iter().map(|peer| peer.journal().clone()).collect();
        let limits = LpmmLimits { tolerance: 1e-14, iterations };
        let expected = solve_by_lpmm(&in_one_place(&problem), Penalty::default(), limits).unwrap();
        let found: Vec<Solution> = outcomes(std::mem::take(&mut all)).into_iter().map(Result::unwrap).collect();
        for (solution, journal) in found.iter().zip(&journals) {
            let (_, value, weights) = answer(solution);
            let entries = journal.read();
            assert_eq!(entries.iterations, iterations);
            assert!(distance(&entries.x, &expected.consensus) <= 1e-10, "{iterations}: {:?}", entries.x);
            assert!((value - expected.state.value()).abs() <= 1e-10, "{iterations}: {value}");
            assert!(distance(&weights, expected.state.weights().0) <= 1e-10, "{iterations}");
        }
    }
}

#[test]
fn tracking_averages_over_a_directed_plan_come_as_near_as_one_place() {
    let folder = tempfile::tempdir().unwrap();
    for (topology, method) in [
        ("rg:n=6,r=0.6,seed=1", Method::NguyenHe),
        ("rg:n=6,r=0.6,seed=3", Method::Tuned),
        ("rg:n=5,r=0.7,seed=4", Method::CliquePhi),
    ] {
        let plan = plan(topology, method);
        let (problem, communication) = robust(
            folder.path(),
            &plan,
            &format!("{AS_IS}averaging = \"tracking\"\ntolerance = 1e-14\niterations = 150\n"),
        );
        let one_place = in_one_place(&problem);
        let judge = solve_directly(&one_place).unwrap().value;
        let limits = LpmmLimits { tolerance: 1e-14, iterations: 150 };
        let off = (solve_by_lpmm(&one_place, Penalty::default(), limits).unwrap().state.value() - judge).abs();
        let solutions = solve_all(&problem, &communication);
        for solution in &solutions {
            let (all, value, _) = answer(solution);
            assert!((value - judge).abs() < 2.0 * off + 1e-7, "{method}: {value} {judge} {off}");
            // All sites report the same: the replicated state is the same to the bit.
            assert_eq!(all, answer(&solutions[0]).0, "{method}");
        }
    }
}

#[test]
fn sites_end_within_their_gap_by_tracking_averages_in_at_most_twice_the_iterations_of_one_place() {
    let folder = tempfile::tempdir().unwrap();
    for (topology, method) in [
        ("rg:n=6,r=0.6,seed=1", Method::NguyenHe),
        ("rg:n=6,r=0.6,seed=3", Method::Tuned),
        ("rg:n=5,r=0.7,seed=4", Method::CliquePhi),
        ("ring:n=8", Method::NguyenHe),
    ] {
        let plan = plan(topology, method);
        for tolerance in [1e-4, 1e-6] {
            let more = format!("{AS_IS}averaging = \"tracking\"\ntolerance = {tolerance}\n");
            let (problem, communication) = robust(folder.path(), &plan, &more);
            assert!(matches!(communication.agreement, AveragingScheme::Tracking { .. }), "{topology}");
            let one_place = in_one_place(&problem);
            let judge = solve_directly(&one_place).unwrap().value;
            let limits = LpmmLimits { tolerance, iterations: 2000 };
            let expected = solve_by_lpmm(&one_place, Penalty::default(), limits).unwrap();
            for solution in solve_all(&problem, &communication) {
                let gap = solution.certificate.gap.unwrap();
                let name =
                    format!("{method} {tolerance}: {} {}, gap {gap:e}", solution.iterations, expected.iterations);
                assert!(solution.converged && gap <= tolerance, "{name}");
                assert!(solution.iterations <= 2 * expected.iterations, "{name}");
                // The gap holds the least objective.
                let beyond = solution.objective - judge;
                assert!(beyond >= -1e-7 && beyond <= gap + 1e-7, "{name}: {beyond:e}");
            }
        }
    }
}

#[test]
fn a_solution_says_what_the_model_is_to_each_site_and_what_the_worst_weights_are() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("ring:n=3", Method::CliquePhi);
    let (problem, communication) = robust(folder.path(), &plan, &format!("{AS_IS}tolerance = 1e-6\n"));
    let judge = solve_directly(&in_one_place(&problem)).unwrap();
    let solutions = solve_all(&problem, &communication);
    let Answer::Robust { coefficients, sites, .. } = &solutions[0].answer else { panic!() };
    assert!(solutions[0].converged && (solutions[0].objective - judge.value).abs() < 1e-4, "{:?}", solutions[0]);
    // The objective is that of the final model, so no better than the optimum.
    assert!(solutions[0].objective > judge.value - 1e-7);
    let found: Vec<f64> = coefficients.iter().map(|coefficient| coefficient.value).collect();
    let value = |model: &[f64]| {
        let one_place = in_one_place(&problem);
        let losses: Vec<f64> = one_place
            .sites
            .iter()
            .map(|site| one_place.robust.worst_loss(model, &site.samples, site.radius).unwrap())
            .collect();
        one_place.weights.worst(&losses).1
    };
    assert!((value(&found) - solutions[0].objective).abs() < 1e-9);
    let weights: Vec<f64> = sites.iter().map(|site| site.weight).collect();
    assert!(
        (weights.iter().sum::<f64>() - 1.0).abs() < 1e-3 && distance(&weights, &judge.weights) < 1e-2,
        "{weights:?}"
    );
    assert!(sites.iter().all(|site| site.worst_loss > site.loss && site.samples == 20));
}

#[test]
fn columns_are_scaled_by_what_all_sites_have_and_the_model_is_for_the_tables_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("ring:n=3", Method::CliquePhi);
    let more = "support = \"unit-box\"\nradius = 0.01\naveraging = \"exact\"\n";
    let (problem, communication) = robust(folder.path(), &plan, more);
    let solutions = solve_all(&problem, &communication);
    let Answer::Robust { coefficients, intercept, scaling, .. } = &solutions[0].answer else { panic!() };
    for (coefficient, (least, range)) in coefficients.iter().zip(scaling) {
        assert!((*least, *range) == (-1.0, 2.0) && (coefficient.value * range - coefficient.scaled).abs() < 1e-12);
    }
    // The model classifies most rows correctly by the numbers as they are in the tables.
    let right = problem.parts().unwrap().into_iter().map(|part| {
        let Part::Robust { table, .. } = part else { panic!() };
        let sum = |row: &[f64]| row.iter().zip(coefficients).map(|(x, c)| x * c.value).sum::<f64>() + intercept;
        table.rows().filter(|(row, label)| sum(row) * label > 0.0).count()
    });
    let right: usize = right.sum();
    assert!(right > 45, "{right} of 60");
}

#[test]
fn a_site_that_computes_otherwise_is_found_out_in_the_first_iteration() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("ring:n=3", Method::CliquePhi);
    let (problem, communication) = robust(folder.path(), &plan, AS_IS);
    let peer = |me: usize| {
        let part = match problem.part(me).unwrap() {
            Part::Robust { mut task, table } if me == 2 => {
                Arc::make_mut(&mut task).penalty.c = 0.2;
                Part::Robust { task, table }
            }
            part => part,
        };
        SolverPeer::new(me, &problem, part, Arc::clone(&communication), 0, sums(me, 3))
    };
    for outcome in outcomes((0..3).map(peer).collect()) {
        let told = outcome.unwrap_err();
        assert!(matches!(told, SolveError::StatesDiffer { other, .. } if other.index() == 2), "{told}");
    }
}

#[test]
fn what_a_person_ought_to_know_of_the_samples_is_said_at_every_site() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("ring:n=3", Method::CliquePhi);
    for node in 0..3 {
        let mut text = "a,b,same,y\n".to_owned();
        for row in 0..8 {
            let a = f64::from(row) / 4.0 - 1.0 + 0.01 * f64::from(node);
            let label = if node == 1 || a > 0.0 { "ill" } else { "well" };
            writeln!(text, "{a},{},5,{label}", if row % 2 == 0 { 1.5 } else { -0.5 }).unwrap();
        }
        fs::write(folder.path().join(format!("node-{node}.csv")), text).unwrap();
    }
    let path = folder.path().join("own.toml");
    let text = "kind = \"robust-classification\"\ndata = \"{node}.csv\"\ntarget = \"y\"\nlabels = [\"well\", \"ill\"]\n\
                columns = [\"a\", \"b\"]\nsupport = \"box\"\nscaling = \"none\"\nclip = true\nradius = 5\niterations = 300\n";
    fs::write(&path, text).unwrap();
    let warnings_of = |path: &Path| {
        let problem = Problem::read(path, &plan).unwrap();
        let communication = problem.communication(&plan, Arc::new(schedule(&plan).unwrap())).unwrap();
        let solutions = solve_all(&problem, &Arc::new(communication));
        let warnings = |solution: &Solution| match &solution.answer {
            Answer::Robust { warnings, .. } => warnings.clone(),
            _ => panic!(),
        };
        let all: Vec<Vec<String>> = solutions.iter().map(warnings).collect();
        assert!(all.iter().all(|warnings| *warnings == all[0]));
        all[0].join("\n")
    };
    let warnings = warnings_of(&path);
    for words in [
        "all 8 samples of site 1 have the label `ill`",
        "numbers of site 0 were outside the support",
        "Choose a smaller radius",
    ] {
        assert!(warnings.contains(words), "{words}: {warnings}");
    }
    let scaled = text.replace("columns = [\"a\", \"b\"]\n", "").replace("scaling = \"none\"\nclip = true\n", "");
    fs::write(&path, scaled).unwrap();
    let warnings = warnings_of(&path);
    assert!(
        warnings.contains("the column `same` is the same everywhere") && !warnings.contains("outside"),
        "{warnings}"
    );
}

#[test]
fn samples_and_numbers_that_do_not_fit_are_named_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("ring:n=3", Method::CliquePhi);
    let refused = |table: &str, problem: &str| {
        for node in 0..3 {
            let own = if node == 1 { table } else { "a,b,y\n0.5,0,ill\n-0.5,0,well\n" };
            fs::write(folder.path().join(format!("node-{node}.csv")), own).unwrap();
        }
        let path = folder.path().join("own.toml");
        let head = "kind = \"robust-classification\"\ndata = \"{node}.csv\"\ntarget = \"y\"\n";
        fs::write(&path, format!("{head}{problem}")).unwrap();
        let failure = match Problem::read(&path, &plan) {
            Ok(problem) => problem.parts().unwrap_err(),
            Err(failure) => failure,
        };
        let mut words = failure.to_string();
        let mut source = std::error::Error::source(&failure);
        while let Some(cause) = source {
            write!(words, ": {cause}").unwrap();
            source = cause.source();
        }
        words
    };
    let sound = "a,b,y\n0.5,0,ill\n-0.5,0,well\n";
    let labels = "labels = [\"well\", \"ill\"]\nradius = 0.1\n";
    let cases = [
        ("a,b,y\n0.5,0,ill\n-0.5,0,sick\n", labels.to_owned(), &["node-1.csv", "line 3", "`y`", "`sick`"][..]),
        ("a,b,y\n0.5,NaN,ill\n", labels.to_owned(), &["node-1.csv", "line 2", "`b`", "NaN"]),
        ("a,b,y\n", labels.to_owned(), &["node-1.csv", "no row"]),
        ("a,dose,y\n1,2,ill\n", labels.to_owned(), &["tables of node-0 and node-1", "dose"]),
        (
            "a,b,y\n0.5,0,ill\n0.5,-1.25,well\n",
            format!("{labels}support = \"box\"\nscaling = \"none\"\n"),
            &["site node-1", "row 2", "`b`", "-1.25"],
        ),
        (
            "a,b,y\n0.5,0,ill\n0.9,0.9,well\n",
            format!(
                "{labels}support = \"half-spaces\"\n[[half-space]]\ncoefficients = {{ a = 1, b = 1 }}\nbound = 1\n"
            ),
            &["site node-1", "row 2", "bound 1"],
        ),
        (
            sound,
            format!("{labels}support = \"half-spaces\"\n[[half-space]]\ncoefficients = {{ dose = 1 }}\nbound = 1\n"),
            &["`dose`"],
        ),
        (sound, "labels = [\"well\", \"ill\"]\nradius = -0.1\n".to_owned(), &["radius -0.1"]),
        (sound, format!("{labels}theta = -1\n"), &["theta -1"]),
        (sound, format!("{labels}kappa = 0\n"), &["kappa 0", "labels change for nothing"]),
        (sound, format!("{labels}loss = \"huber\"\n"), &["loss = \"huber\"", "smooth-hinge"]),
        (sound, format!("{labels}loss = \"logistic\"\nsupport = \"box\"\n"), &["logistic", "choose support unbounded"]),
        (sound, format!("{labels}p = 3\n"), &["p has to be 1, 2 or inf"]),
        (sound, "radius = 0.1\n".to_owned(), &["labels ="]),
        (sound, format!("{labels}[[site]]\nnode = 7\nradius = 1\n"), &["[[site]]", "7"]),
        (sound, format!("{labels}support = \"box\"\nscaling = \"standard\"\n"), &["choose range or none"]),
    ];
    for (table, problem, words) in cases {
        let told = refused(table, &problem);
        assert!(words.iter().all(|word| told.contains(word)), "{words:?}: {told}");
    }
}

#[test]
fn robust_regressions_run_too() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("rg:n=4,r=0.8,seed=2", Method::NguyenHe);
    let rows = table(60).replace("ill", "1.5").replace("well", "-0.5");
    fs::write(folder.path().join("table.csv"), rows).unwrap();
    for (loss, more) in [
        ("huber", ""),
        ("epsilon-insensitive", "epsilon = 0.2\nsupport = \"box\"\np = 1\n"),
        ("pinball", "epsilon = 0.7\np = inf\nweights = \"samples\"\n[[site]]\nnode = 3\nradius = 0\n"),
    ] {
        let path = folder.path().join("regression.toml");
        let head = format!(
            "kind = \"robust-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\nloss = \"{loss}\"\n"
        );
        fs::write(&path, format!("{head}radius = 0.01\ntheta = 0.2\ntolerance = 1e-4\niterations = 3000\n{more}"))
            .unwrap();
        let problem = Problem::read(&path, &plan).unwrap();
        let communication = problem.communication(&plan, Arc::new(schedule(&plan).unwrap())).unwrap();
        let solutions = solve_all(&problem, &Arc::new(communication));
        let (_, value, weights) = answer(&solutions[0]);
        assert!(solutions[0].converged, "{loss}: {:?}", solutions[0].certificate);
        assert!((value - solutions[0].objective).abs() < 1e-2, "{loss}: {value} {}", solutions[0].objective);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-2, "{loss}: {weights:?}");
    }
}

#[test]
fn averages_that_swing_begin_anew_with_more_steps_at_all_sites_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("ring:n=8", Method::NguyenHe);
    let (problem, communication) =
        robust(folder.path(), &plan, &format!("{AS_IS}tolerance = 1e-5\niterations = 1500\n"));
    // The roughest averages: one step an iteration.
    let rough = AveragingScheme::Tracking { steps: 1 };
    let rough = Arc::new(CommunicationPlan { agreement: rough, ..(*communication).clone() });
    let judge = solve_directly(&in_one_place(&problem)).unwrap().value;
    let solutions = solve_all(&problem, &rough);
    for solution in &solutions {
        assert_eq!(answer(solution).0, answer(&solutions[0]).0);
        assert!((solution.objective - judge).abs() < 1e-3, "{} {judge} {:?}", solution.objective, solution.certificate);
    }
}

#[test]
fn a_site_whose_subproblems_fail_again_and_again_is_named_to_all_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("ring:n=3", Method::CliquePhi);
    for node in 0..3 {
        let (a, b) = if node == 1 { ("1e99", "-1e99") } else { ("0.5", "-0.25") };
        fs::write(folder.path().join(format!("node-{node}.csv")), format!("a,b,y\n{a},{b},ill\n-{a},0,well\n"))
            .unwrap();
    }
    let path = folder.path().join("own.toml");
    let text = "kind = \"robust-classification\"\ndata = \"{node}.csv\"\ntarget = \"y\"\nlabels = [\"well\", \"ill\"]\n\
                scaling = \"none\"\nradius = 0.1\n[[site]]\nnode = 1\nradius = 1e300\n";
    fs::write(&path, text).unwrap();
    let problem = Problem::read(&path, &plan).unwrap();
    let communication = Arc::new(problem.communication(&plan, Arc::new(schedule(&plan).unwrap())).unwrap());
    for (me, outcome) in outcomes(peers(&problem, &communication)).into_iter().enumerate() {
        let told = outcome.unwrap_err();
        assert!(matches!(&told, SolveError::Subproblem { site, .. } if site.index() == 1), "{told}");
        let told = told.to_string();
        let reason = if me == 1 { "cone program was not solved" } else { "it says there why" };
        for words in ["site 1", "3 times in a row", reason, "scaling = \"standard\""] {
            assert!(told.contains(words), "{words}: {told}");
        }
    }
}
