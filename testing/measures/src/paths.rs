//! The paths that code names: in `use` declarations, and in other code those of two segments or more.

use crate::lexer::Kind;
use crate::source::Source;

/// A path with the name that it gets in its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The name; `*` for all names of a module.
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// The imports of the `use` declaration whose keyword is at `at`.
pub(crate) fn imports(source: &Source<'_>, at: usize) -> Vec<Import> {
    let mut found = Vec::new();
    tree(source, at + 1, &[], &mut found);
    found
}

/// Reads one tree of a `use` declaration, and returns the place behind it.
fn tree(source: &Source<'_>, mut at: usize, prefix: &[String], found: &mut Vec<Import>) -> usize {
    let mut path = prefix.to_vec();
    if source.text(at) == "::" {
        at += 1;
    }
    loop {
        let line = source.tokens.get(at).map_or(0, |token| token.line);
        match source.text(at) {
            "{" => {
                let close = source.partner(at);
                at += 1;
                while at < close {
                    at = tree(source, at, &path, found);
                    at += usize::from(source.text(at) == ",");
                }
                return close + 1;
            }
            "*" => {
                found.push(Import { name: "*".to_owned(), path, line });
                return at + 1;
            }
            "" => return at + 1,
            segment => path.push(segment.to_owned()),
        }
        at += 1;
        if source.text(at) == "::" {
            at += 1;
            continue;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if source.text(at) == "as" {
            name = source.text(at + 1).to_owned();
            at += 2;
        }
        found.push(Import { name, path, line });
        return at;
    }
}

/// The paths in the code between two places, and the imports inside of its blocks.
pub(crate) fn in_code(source: &Source<'_>, begin: usize, end: usize) -> (Vec<(Vec<String>, usize)>, Vec<Import>) {
    let mut paths = Vec::new();
    let mut inner = Vec::new();
    let mut at = begin;
    while at < end {
        let token = source.tokens[at];
        let before = if at == 0 { "" } else { source.text(at - 1) };
        // `use<..>` names what a return type captures.
        if token.text == "use" && source.text(at + 1) != "<" {
            inner.extend(imports(source, at));
            while at < end && source.text(at) != ";" {
                at += 1;
            }
            continue;
        }
        if token.kind != Kind::Word || before == "." || before == "::" {
            at += 1;
            continue;
        }
        let mut path = vec![token.text.to_owned()];
        while source.text(at + 1) == "::" && source.tokens.get(at + 2).is_some_and(|next| next.kind == Kind::Word) {
            path.push(source.text(at + 2).to_owned());
            at += 2;
        }
        if path.len() > 1 {
            paths.push((path, token.line));
        }
        at += 1;
    }
    (paths, inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(found: &[Import]) -> Vec<(String, String)> {
        found.iter().map(|import| (import.name.clone(), import.path.join("::"))).collect()
    }

    fn pair(name: &str, path: &str) -> (String, String) {
        (name.to_owned(), path.to_owned())
    }

    #[test]
    fn every_leaf_of_a_use_is_an_import() {
        let source = Source::new("use crate::{a::{self, B as C}, d::*, e};");
        let expected = [pair("a", "crate::a"), pair("C", "crate::a::B"), pair("*", "crate::d"), pair("e", "crate::e")];
        assert_eq!(joined(&imports(&source, 0)), expected);
    }

    #[test]
    fn code_names_paths_and_imports_of_blocks() {
        let source = Source::new("fn f() -> a::B { use super::c; x.d(c::e::<g::H>()); i() }");
        let (paths, inner) = in_code(&source, 0, source.tokens.len());
        let paths: Vec<String> = paths.iter().map(|(path, _)| path.join("::")).collect();
        assert_eq!(paths, ["a::B", "c::e", "g::H"]);
        assert_eq!(joined(&inner), [pair("c", "super::c")]);
    }
}
