//! Circles between sibling modules: modules of one parent that use each other, directly or by way of others.
//!
//! A module uses another where a path in it leads there, or into a module below it. Re-exports of the modules above are
//! followed to the module that defines the name; in any other module the path ends there. A parent that uses its
//! children, and children that use their parent, are no circle.

use std::collections::{BTreeMap, BTreeSet};

use crate::crates::Crate;

/// A use of one sibling by another: file and line, with the path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) path: String,
}

/// Siblings that use each other in a circle.
#[derive(Debug)]
pub(crate) struct Circle {
    /// The path of the module that holds them, from the root of the crate.
    pub(crate) parent: String,
    pub(crate) modules: Vec<String>,
    /// User, used, and the places.
    pub(crate) uses: Vec<(String, String, Vec<Use>)>,
}

/// Uses between the children of one module, by the names of user and used.
type Arrows = BTreeMap<(String, String), Vec<Use>>;

/// The circles of a crate.
pub(crate) fn circles(of: &Crate) -> Vec<Circle> {
    let mut found = Vec::new();
    for (parent, arrows) in arrows(of) {
        for modules in strongly_connected(&arrows) {
            let inside = |name: &String| modules.contains(name);
            let uses = arrows.iter().filter(|((user, used), _)| inside(user) && inside(used));
            let uses = uses.map(|((user, used), places)| (user.clone(), used.clone(), places.clone())).collect();
            found.push(Circle { parent: parent.join("::"), modules: modules.clone(), uses });
        }
    }
    found
}

fn arrows(of: &Crate) -> BTreeMap<Vec<String>, Arrows> {
    let mut all: BTreeMap<Vec<String>, Arrows> = BTreeMap::new();
    for (number, module) in of.modules.iter().enumerate() {
        let imports = module.imports.iter().map(|import| (&import.path, import.line));
        for (path, line) in imports.chain(module.paths.iter().map(|(path, line)| (path, *line))) {
            let Some(target) = target(of, number, path) else { continue };
            let target = &of.modules[target].path;
            let shared = module.path.iter().zip(target).take_while(|(own, other)| own == other).count();
            let (Some(user), Some(used)) = (module.path.get(shared), target.get(shared)) else { continue };
            let place = Use { file: module.file.display().to_string(), line, path: path.join("::") };
            let arrows = all.entry(module.path[..shared].to_vec()).or_default();
            arrows.entry((user.clone(), used.clone())).or_default().push(place);
        }
    }
    all
}

/// The module that a path of a module leads to; none where it leaves the crate.
fn target(of: &Crate, module: usize, path: &[String]) -> Option<usize> {
    let Some((first, mut rest)) = path.split_first() else { return Some(module) };
    let mut at = match first.as_str() {
        "crate" => 0,
        "self" => module,
        "super" => of.modules[module].parent?,
        name => found_in(of, module, name, &mut BTreeSet::new())?,
    };
    while let Some((name, after)) = rest.split_first() {
        if name == "super" {
            at = of.modules[at].parent?;
        } else if let Some(child) = of.modules[at].children.get(name) {
            at = *child;
        } else if of.modules[at].names.contains(name) || !of.holds(at, module) {
            return Some(at);
        } else {
            return Some(found_in(of, at, name, &mut BTreeSet::new()).unwrap_or(at));
        }
        rest = after;
    }
    Some(at)
}

/// The module that a name of a module leads to: a child, or the module that defines an imported name.
fn found_in(of: &Crate, module: usize, name: &str, seen: &mut BTreeSet<(usize, String)>) -> Option<usize> {
    if !seen.insert((module, name.to_owned())) {
        return None;
    }
    let here = &of.modules[module];
    if let Some(child) = here.children.get(name) {
        return Some(*child);
    }
    if here.names.contains(name) {
        return Some(module);
    }
    let named = here.imports.iter().filter(|import| import.name == name);
    if let Some(found) = named.filter_map(|import| followed(of, module, &import.path, seen)).next() {
        return Some(found);
    }
    let globs = here.imports.iter().filter(|import| import.name == "*");
    let modules: Vec<usize> = globs.filter_map(|import| followed(of, module, &import.path, seen)).collect();
    modules.into_iter().find_map(|glob| found_in(of, glob, name, seen))
}

/// The module that an import leads to, through all re-exports.
fn followed(of: &Crate, module: usize, path: &[String], seen: &mut BTreeSet<(usize, String)>) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    let mut at = match first.as_str() {
        "crate" => 0,
        "self" => module,
        "super" => of.modules[module].parent?,
        name => found_in(of, module, name, seen)?,
    };
    for name in rest {
        at = if name == "super" { of.modules[at].parent? } else { found_in(of, at, name, seen).unwrap_or(at) };
    }
    Some(at)
}

/// The sets of names that reach each other, of two or more, in order: by Tarjan's algorithm.
fn strongly_connected(arrows: &Arrows) -> Vec<Vec<String>> {
    let mut search = Search::default();
    let names: BTreeSet<&String> = arrows.keys().flat_map(|(user, used)| [user, used]).collect();
    for name in names {
        if !search.indices.contains_key(name) {
            search.visit(name, arrows);
        }
    }
    search.found
}

#[derive(Default)]
struct Search {
    indices: BTreeMap<String, usize>,
    lowest: BTreeMap<String, usize>,
    stack: Vec<String>,
    found: Vec<Vec<String>>,
}

impl Search {
    fn visit(&mut self, name: &str, arrows: &Arrows) {
        let index = self.indices.len();
        self.indices.insert(name.to_owned(), index);
        self.stack.push(name.to_owned());
        let mut lowest = index;
        for (_, used) in arrows.keys().filter(|(user, _)| user == name) {
            if !self.indices.contains_key(used) {
                self.visit(used, arrows);
                lowest = lowest.min(self.lowest[used]);
            } else if self.stack.contains(used) {
                lowest = lowest.min(self.indices[used]);
            }
        }
        self.lowest.insert(name.to_owned(), lowest);
        if lowest != index {
            return;
        }
        let begin = self.stack.iter().position(|other| other == name).unwrap_or(0);
        let mut component = self.stack.split_off(begin);
        if component.len() > 1 {
            component.sort();
            self.found.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crates::tests::crate_of;

    fn found(name: &str, files: &[(&str, &str)]) -> Vec<String> {
        let of = crate_of(name, files);
        circles(&of).iter().map(|circle| format!("{}: {}", circle.parent, circle.modules.join(" "))).collect()
    }

    #[test]
    fn siblings_that_use_each_other_are_a_circle_at_any_depth() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a.rs", "mod x; mod y; mod z;"),
            ("a/x.rs", "use super::y::Y; pub struct X;"),
            ("a/y.rs", "pub struct Y; fn f() { crate::a::z::g() }"),
            ("a/z.rs", "fn g() { use super::x; x::h() }"),
        ];
        assert_eq!(found("deep", &files), ["a: x y z"]);
    }

    #[test]
    fn re_exports_of_the_parent_lead_to_the_module_that_defines_the_name() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
            ("a.rs", "use crate::B; pub struct A;"),
            ("b.rs", "pub struct B(crate::A);"),
        ];
        assert_eq!(found("exports", &files), [": a b"]);
    }

    #[test]
    fn parents_children_tests_and_other_crates_make_no_circle() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod inner; pub use inner::I; use super::b::B; pub struct A; use b::else_where;"),
            ("a/inner.rs", "use super::A; pub struct I;"),
            ("b.rs", "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }"),
        ];
        assert_eq!(found("none", &files), Vec::<String>::new());
    }

    #[test]
    fn a_module_below_uses_for_the_one_above() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod inner;"),
            ("a/inner.rs", "use crate::b::B; pub struct I;"),
            ("b.rs", "pub struct B(super::a::inner::I);"),
        ];
        assert_eq!(found("below", &files), [": a b"]);
    }
}
