//! The measures as a table, and the places behind each.

use std::fmt::Write as _;

use crate::circles::{Circle, circles};
use crate::crates::{Crate, Module};
use crate::functions::{Function, median};
use crate::names::Names;

/// Goals and limits, by the keys of the measures.
const LIMITS: [(&str, f64, f64); 6] = [
    ("public", 0.0, 0.0),
    ("shared", 3.0, 3.0),
    ("circle", 0.0, 0.0),
    ("tokens", 60.0, 71.0),
    ("let", 50.0, 50.0),
    ("assignment", 0.0, 7.0),
];

/// A measure with its goal, its limit, and the places that count.
#[derive(Debug)]
pub(crate) struct Measure {
    /// The first word of its places.
    pub(crate) key: &'static str,
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) goal: f64,
    pub(crate) limit: f64,
    /// Lines of the form `KEY FILE:LINE: TEXT`.
    pub(crate) places: Vec<String>,
}

impl Measure {
    fn new(key: &'static str, name: impl Into<String>, value: f64, places: Vec<String>) -> Self {
        let (_, goal, limit) = LIMITS.into_iter().find(|(of, ..)| *of == key).unwrap_or((key, 0.0, 0.0));
        Self { key, name: name.into(), value, goal, limit, places }
    }
}

/// All measures of a workspace.
pub(crate) fn measures(crates: &[Crate]) -> Vec<Measure> {
    let [public, shared] = of_names(&Names::of(crates));
    let [tokens, lets, assignments] = of_functions(crates);
    vec![public, shared, of_circles(crates), tokens, lets, assignments]
}

fn of_names(names: &Names) -> [Measure; 2] {
    let places = |key: &str, found: &[(&String, &std::collections::BTreeSet<crate::names::Definition>)]| {
        let places = found.iter().flat_map(|(name, places)| places.iter().map(move |place| (name, place)));
        places.map(|(name, place)| format!("{key} {}:{}: {name}", place.file, place.line)).collect::<Vec<_>>()
    };
    let public = names.shared_as_public();
    let shared = names.shared();
    let share = 100.0 * shared.len() as f64 / names.count().max(1) as f64;
    let name = format!("per cent of the {} names of types that several crates define", names.count());
    [
        Measure::new(
            "public",
            "public names of types that several crates define",
            public.len() as f64,
            places("public", &public),
        ),
        Measure::new("shared", name, share, places("shared", &shared)),
    ]
}

fn of_circles(crates: &[Crate]) -> Measure {
    let found: Vec<(&Crate, Circle)> =
        crates.iter().flat_map(|of| circles(of).into_iter().map(move |circle| (of, circle))).collect();
    let modules: usize = found.iter().map(|(_, circle)| circle.modules.len()).sum();
    let mut places = Vec::new();
    for (of, circle) in &found {
        let parent = if circle.parent.is_empty() { "its top level" } else { &circle.parent };
        places.push(format!("circle {}, {parent}: {}", of.folder, circle.modules.join(" ")));
        for (user, used, uses) in &circle.uses {
            let uses: Vec<String> =
                uses.iter().map(|place| format!("{}:{} {}", place.file, place.line, place.path)).collect();
            places.push(format!("circle   {user} -> {used}: {}", uses.join("; ")));
        }
    }
    let name = format!("modules that use siblings in {} circles", found.len());
    Measure::new("circle", name, modules as f64, places)
}

fn of_functions(crates: &[Crate]) -> [Measure; 3] {
    let modules = || crates.iter().flat_map(|of| &of.modules);
    let functions = || modules().flat_map(|module| module.functions.iter().map(move |function| (module, function)));
    let sizes: Vec<usize> = functions().map(|(_, function)| function.tokens).collect();
    let name = format!("tokens of the median of {} functions", sizes.len());
    let lines = |key: &str, of: fn(&Function) -> &Vec<usize>| -> Vec<String> {
        let lines = functions().flat_map(|(module, function)| of(function).iter().map(move |line| (module, *line)));
        lines.map(|(module, line)| place(key, module, line, "a tuple taken apart at once")).collect()
    };
    let lets = lines("let", |function| &function.tuple_lets);
    let assignments = lines("assignment", |function| &function.tuple_assignments);
    let largest = functions().filter(|(_, function)| function.tokens > 400);
    let largest = largest
        .map(|(module, of)| place("tokens", module, of.line, &format!("{} has {} tokens", of.name, of.tokens)))
        .collect();
    [
        Measure::new("tokens", name, median(sizes) as f64, largest),
        Measure::new("let", "`let (a, b) = (x, y);`", lets.len() as f64, lets),
        Measure::new("assignment", "`(a, b) = (x, y);`", assignments.len() as f64, assignments),
    ]
}

fn place(key: &str, module: &Module, line: usize, text: &str) -> String {
    format!("{key} {}:{line}: {text}", module.file.display())
}

/// The measures as lines: value, goal, limit, name.
pub(crate) fn table(measures: &[Measure]) -> String {
    let mut text = format!("{:>7} {:>7} {:>7}\n", "now", "goal", "limit");
    for measure in measures {
        let digits = usize::from(measure.key == "shared");
        let _ = writeln!(
            text,
            "{:>7.digits$} {:>7.0} {:>7.0}  {}",
            measure.value, measure.goal, measure.limit, measure.name
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crates::tests::crate_of;

    #[test]
    fn planted_faults_are_measured_with_their_places() {
        let crates = [
            crate_of(
                "planted",
                &[
                    ("lib.rs", "mod a; mod b;\npub struct Row;\nfn f() { let (a, b) = (1, 2); (a, b) = (b, a); }"),
                    ("a.rs", "use crate::b::g; fn h() {}"),
                    ("b.rs", "use super::a::h; fn g() {}"),
                ],
            ),
            crate_of("other", &[("lib.rs", "pub struct Row;")]),
        ];
        let found = measures(&crates);
        let values: Vec<(&str, f64)> = found.iter().map(|measure| (measure.key, measure.value)).collect();
        let expected =
            [("public", 1.0), ("shared", 100.0), ("circle", 2.0), ("tokens", 6.0), ("let", 1.0), ("assignment", 1.0)];
        assert_eq!(values, expected);
        assert_eq!(found[0].places.len(), 2);
        assert!(found[0].places[1].ends_with("lib.rs:2: Row"), "{:?}", found[0].places);
        assert!(found[4].places[0].contains("lib.rs:3: "), "{:?}", found[4].places);
    }

    #[test]
    fn every_measure_has_a_limit_no_lower_than_its_goal() {
        for measure in measures(&[]) {
            assert!(LIMITS.iter().any(|(key, goal, limit)| *key == measure.key && limit >= goal), "{}", measure.key);
        }
    }
}
