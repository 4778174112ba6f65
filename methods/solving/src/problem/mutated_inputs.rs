//! Mutated problem files.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use mingle_mutations::for_each_input;
use mingle_planner::{DesignOptions, Method, Plan, Topology};

use super::{Part, Problem, ProblemTask};

const REGRESSION: &str = "kind='sparse-regression'\ndata='{node}.csv'\ntarget='y'\ncolumns=['a','b']\nlambda=0.05\nridge=1\n\
                          groups=[['a'],['b']]\nnonnegative=false\ntolerance=1e-9\n";
const ALLOCATION: &str = "kind='resource-allocation'\nmetric='identity'\n[[clique]]\nname='x'\nmembers=['a',1]\nbudget=30\n[[clique]]\n\
                          name='y'\nmembers=['b','c']\nweight=2.5\ntarget=4\n[[node]]\nnode=0\nwish=14\nlower=8\nupper=15\nprice=0.5\nweight=3\n";
const COUPLED: &str = "kind='clique-coupling'\ncomponents=['x','y']\nmetric='identity'\n[[clique]]\nname='x'\nmembers=['a',1]\ncoupling='formation'\n\
                       offsets=[[0,1],2.5]\nweight=3\n[[clique]]\nname='y'\nmembers=['b','c']\ncoupling='budget'\nbudget=[4,5]\n[[clique]]\nname='z'\n\
                       members=[0,'b']\ncoupling='within'\ndistance=0.5\n[[node]]\nnode=0\nwish=[14,-1]\nlower=8\nupper=15\nprice=0.5\nweight=3\n";
const NETWORK_LASSO: &str = "kind='network-lasso'\ndata='{node}.csv'\ntarget='y'\ncolumns=['a','b']\nlambda=0.05\nridge=1\nstandardize=false\n\
                             [[link]]\nnodes=['b',0]\nweight=2.5\n";
const CLASSIFICATION: &str = "kind='robust-classification'\ndata='t.csv'\ndeal=true\ntarget='y'\nlabels=['0','1']\nsupport='unit-box'\n\
                              radius=0.1\nkappa=1\ntheta=0.1\np=inf\n[[site]]\nnode='b'\nradius=0.2\n";
const ROBUST: &str = "kind='robust-regression'\ndata='{node}.csv'\ntarget='y'\nloss='pinball'\nepsilon=0.4\nsupport='half-spaces'\nradius=0\n\
                      scaling='none'\nclip=false\n[[half-space]]\ncoefficients={a=1,b=-2}\ntarget=1\nbound=3\n";

#[test]
fn mutated_problem_files_are_refused_or_posed_for_the_nodes_of_a_plan() {
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    let topology = Topology::new(names, &[(0, 1), (1, 2)]).unwrap();
    let plan: Plan = mingle_planner::design(&topology, Method::DPsgd, &DesignOptions::default()).unwrap();
    let parse = |text: &str| Problem::parse(text, Path::new("problem.toml"), &plan);
    let seeds = [REGRESSION, ALLOCATION, COUPLED, NETWORK_LASSO, CLASSIFICATION, ROBUST];
    for seed in seeds {
        assert!(parse(seed).is_ok(), "{seed}: {:?}", parse(seed));
    }
    assert_eq!(parse(ALLOCATION).unwrap().parts().unwrap().len(), 3);
    for_each_input("problem", &seeds.map(|seed| seed.as_bytes().to_vec()), |input| {
        let Ok(problem) = parse(&String::from_utf8_lossy(input)) else { return };
        match &problem.task {
            ProblemTask::Regression(task) => assert!(task.regression.lambda.is_finite()),
            ProblemTask::Robust(task) => {
                assert!(task.radii.len() == 3 && task.radii.iter().all(|radius| *radius >= 0.0));
            }
            // Its parts need no tables: budgets, costs and bounds are checked against each other.
            ProblemTask::Allocation(_) => {
                let Ok(parts) = problem.parts() else { return };
                let is_bounded = |part: &Part| matches!(part, Part::Allocation { preference, .. } if preference.lower <= preference.upper);
                assert!(parts.len() == 3 && parts.iter().all(is_bounded));
            }
            ProblemTask::Coupled(task) => {
                assert_eq!(problem.parts().unwrap().len(), 3);
                assert!(task.cliques().iter().all(|clique| !clique.members.is_empty()));
            }
            ProblemTask::NetworkLasso(task) => assert!(task.lambda >= 0.0 && task.link_count() == 2),
            ProblemTask::Rounds(_) => unreachable!("no such file says it"),
        }
    });
}
