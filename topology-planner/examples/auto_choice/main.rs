//! The slots that each design takes to train, and those of the choice of `auto`: the numbers of docs/planning.md and of
//! tests/auto_choice/.
//!
//! ```text
//! cargo run --release -p mingle-planner --example auto_choice -- sorted 6 ring:n=12 tree:n=16,seed=1
//! ```
//!
//! The arguments are the split of the data (`sorted` or `even`), the number of seeds, and graphs: `developed-on`,
//! `held-out`, `measured-afterwards`, or names. A line for each graph, number of local steps and design goes to
//! standard output: slots a round, slots to the target as the mean over seeds (`-` where a seed took more than three
//! times those of the best so far). Standard error gets a line for each choice.

mod graphs;
mod training;

use std::process::ExitCode;

use mingle_planner::{DesignOptions, Method, Plan, design, design::cost};

use crate::training::{Digits, Split, slots_to_target};

/// Gradient steps in a round.
const LOCAL_STEPS: [u32; 4] = [1, 2, 4, 8];

/// Trainings that take more slots than this are not measured.
const MAX_SLOTS: usize = 40_000;

/// Trainings are ended at this many times the slots of the best design so far with the same seed.
const MAX_RATIO: usize = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((split, seeds, names)) = parse(&arguments) else {
        eprintln!("usage: auto_choice sorted|even SEEDS developed-on|held-out|measured-afterwards|GRAPH...");
        return ExitCode::from(2);
    };
    let digits = Digits::load();
    for name in names {
        let plans = Candidates::of(name);
        for local_steps in LOCAL_STEPS {
            plans.train(&digits, split, seeds, local_steps);
        }
    }
    ExitCode::SUCCESS
}

fn parse(arguments: &[String]) -> Option<(Split, u64, Vec<&str>)> {
    let [split, seeds, names @ ..] = arguments else {
        return None;
    };
    let split = [Split::Sorted, Split::Even].into_iter().find(|known| known.name() == split)?;
    let names = match names {
        [] => return None,
        [all] if all == "developed-on" => graphs::DEVELOPED_ON.to_vec(),
        [all] if all == "held-out" => graphs::HELD_OUT.to_vec(),
        [all] if all == "measured-afterwards" => graphs::MEASURED_AFTERWARDS.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    Some((split, seeds.parse().ok().filter(|&seeds| seeds > 0)?, names))
}

/// The plans that `auto` has to choose from on a graph.
struct Candidates<'n> {
    name: &'n str,
    plans: Vec<(Method, Plan)>,
}

/// A design for a number of local steps.
struct Measured {
    method: Method,
    estimate: f64,
    /// Slots to the target, as the mean over seeds; `None` where training takes too long.
    slots: Option<f64>,
}

impl<'n> Candidates<'n> {
    fn of(name: &'n str) -> Self {
        let topology = graphs::graph(name);
        let methods = Method::ALL.into_iter().filter(|method| method.is_tried_by_auto());
        let made = methods
            .filter_map(|method| Some((method, design(&topology, method, &DesignOptions::default()).ok()?)))
            .collect();
        Self { name, plans: made }
    }

    /// Trains along each plan, the most promising first, and prints the results and the choice.
    fn train(&self, digits: &Digits, split: Split, seeds: u64, local_steps: u32) {
        let options = DesignOptions { heterogeneity: split.heterogeneity(), ..DesignOptions::default() };
        let estimate = |plan| cost(&with_local_steps(plan, local_steps), &options);
        let mut promising: Vec<(f64, Method, &Plan)> =
            self.plans.iter().filter_map(|(method, plan)| Some((estimate(plan)?, *method, plan))).collect();
        // The sort is stable, as in `auto`: among equals the first method.
        promising.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut measured: Vec<Measured> = Vec::new();
        let mut best_of_seeds = vec![MAX_SLOTS / MAX_RATIO; seeds as usize];
        for (estimate, method, plan) in promising {
            let of_seed =
                |(seed, best): (u64, &usize)| slots_to_target(digits, plan, local_steps, split, seed, MAX_RATIO * best);
            let all: Option<Vec<usize>> = (0..seeds).zip(&best_of_seeds).map(of_seed).collect();
            if let Some(all) = &all {
                best_of_seeds.iter_mut().zip(all).for_each(|(best, &slots)| *best = slots.min(*best));
            }
            let slots = all.map(|all| all.iter().sum::<usize>() as f64 / seeds as f64);
            let (name, split) = (self.name, split.name());
            let text = slots.map_or_else(|| "-".to_owned(), |slots| format!("{slots:.0}"));
            println!("{name};{split};{local_steps};{method};{:.2};{text}", slots_per_round(plan));
            measured.push(Measured { method, estimate, slots });
        }
        self.tell(local_steps, &measured);
    }

    fn tell(&self, local_steps: u32, measured: &[Measured]) {
        let slots = |known: &Measured| known.slots.unwrap_or(f64::INFINITY);
        let taken = measured.iter().min_by(|a, b| a.estimate.total_cmp(&b.estimate));
        let best = measured.iter().min_by(|a, b| slots(a).total_cmp(&slots(b)));
        if let (Some(taken), Some(best)) = (taken, best) {
            let ratio = slots(taken) / slots(best);
            eprintln!("{} H={local_steps}: {} {ratio:.2}, best {}", self.name, taken.method, best.method);
        }
    }
}

/// The plan with other local steps, which the designs do not look at.
fn with_local_steps(plan: &Plan, local_steps: u32) -> Plan {
    let key = format!("\"local_steps\": {}", plan.local_steps());
    let text = plan.to_json().replacen(&key, &format!("\"local_steps\": {local_steps}"), 1);
    Plan::from_json(&text).unwrap_or_else(|error| panic!("a plan with other local steps is one: {error}"))
}

fn slots_per_round(plan: &Plan) -> f64 {
    plan.forecast().slots_per_period as f64 * plan.round_length() as f64 / plan.steps().len() as f64
}
