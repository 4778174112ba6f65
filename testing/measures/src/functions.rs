//! Functions and their density: tokens, and tuples that are only taken apart again.

use crate::source::Source;

/// The size of a function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Tokens from `fn` to the closing brace.
    pub(crate) tokens: usize,
    /// Lines of `let (a, b) = (x, y);`.
    pub(crate) tuple_lets: Vec<usize>,
    /// Lines of `(a, b) = (x, y);`.
    pub(crate) tuple_assignments: Vec<usize>,
}

/// The functions between two places. The tokens of a function inside of another count for both, its tuples for itself.
pub(crate) fn functions(source: &Source<'_>, begin: usize, end: usize) -> Vec<Function> {
    let mut found: Vec<(usize, usize, Function)> = Vec::new();
    for at in begin..end {
        let Some(close) = body_end(source, at, end) else { continue };
        let function = Function {
            name: source.text(at + 1).to_owned(),
            line: source.tokens[at].line,
            tokens: close + 1 - at,
            tuple_lets: Vec::new(),
            tuple_assignments: Vec::new(),
        };
        found.push((at, close, function));
    }
    for at in begin..end {
        let is_let = source.text(at) == "let" && is_tuple_of_tuple(source, at + 1);
        let begins = at > 0 && matches!(source.text(at - 1), ";" | "{" | "}" | "=>");
        let is_assignment = begins && is_tuple_of_tuple(source, at);
        if !is_let && !is_assignment {
            continue;
        }
        let holder = found.iter_mut().rev().find(|(open, close, _)| (*open..=*close).contains(&at));
        let Some((_, _, function)) = holder else { continue };
        let lines = if is_let { &mut function.tuple_lets } else { &mut function.tuple_assignments };
        lines.push(source.tokens[at].line);
    }
    found.into_iter().map(|(_, _, function)| function).collect()
}

/// The place of the closing brace of the function whose `fn` is at `at`; none where there is no function with a body.
fn body_end(source: &Source<'_>, at: usize, end: usize) -> Option<usize> {
    if source.text(at) != "fn" || source.text(at + 1) == "(" {
        return None; // `fn(u8)` is a type
    }
    let mut next = at + 2;
    while next < end {
        match source.text(next) {
            ";" => return None,
            "{" => return Some(source.partner(next)),
            "(" | "[" => next = source.partner(next) + 1,
            _ => next += 1,
        }
    }
    None
}

/// True for `(a, b) = (x, y)` that ends a statement or an arm.
fn is_tuple_of_tuple(source: &Source<'_>, at: usize) -> bool {
    let Some(left) = tuple_end(source, at) else { return false };
    if source.text(left + 1) != "=" {
        return false;
    }
    tuple_end(source, left + 2).is_some_and(|right| matches!(source.text(right + 1), ";" | ","))
}

/// The place of the closing bracket, if a tuple of two or more begins at `at`.
fn tuple_end(source: &Source<'_>, at: usize) -> Option<usize> {
    if source.text(at) != "(" {
        return None;
    }
    let close = source.partner(at);
    let mut commas = 0;
    let mut next = at + 1;
    while next < close {
        match source.text(next) {
            "(" | "[" | "{" => next = source.partner(next),
            "," => commas += 1,
            _ => {}
        }
        next += 1;
    }
    (commas > 0).then_some(close)
}

/// The value in the middle of a list in any order: of an even number of values, the lower one of both.
pub(crate) fn median(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Function> {
        let source = Source::new(text);
        functions(&source, 0, source.tokens.len())
    }

    #[test]
    fn tokens_count_from_fn_to_the_brace() {
        let found = all("impl A { const fn f<T>(x: fn(u8)) -> [u8; 2] where T: B { g(x) } fn declared(); }");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].tokens), ("f", 29));
    }

    #[test]
    fn tuples_that_are_taken_apart_at_once_are_found_and_others_are_not() {
        let found = all("fn f() {\n let (a, b) = (1, g(2, 3));\n let (c, d) = pair;\n let e = (a, b);\n\
                         let (h, i) = (1, 2).max(k);\n (a, b) = (b, a);\n f((a, b));\n fn inner() { let (x, y) = (1, 2); } }");
        assert_eq!(found[0].tuple_lets, [2]);
        assert_eq!(found[0].tuple_assignments, [6]);
        assert_eq!((found[1].name.as_str(), found[1].tuple_lets.len()), ("inner", 1));
    }

    #[test]
    fn the_median_is_a_value_of_the_list() {
        assert_eq!(median(vec![9, 1, 5]), 5);
        assert_eq!(median(vec![4, 1, 3, 2]), 2);
        assert_eq!(median(Vec::new()), 0);
    }
}
