//! A source file as tokens whose brackets are paired, and steps through its items.

use crate::lexer::{Token, tokens};

/// Keywords of items that define a type or a trait.
const TYPE_KEYWORDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

/// The tokens of a file, with the partner of each bracket.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    pub(crate) tokens: Vec<Token<'t>>,
    /// For a bracket the place of its partner, for any other token its own place.
    partners: Vec<usize>,
}

/// The kind of an item, as far as the measures need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Use,
    /// A module in a file of its own.
    ModuleFile,
    /// A module between braces; the first and the last place of its content.
    ModuleBody(usize, usize),
    /// A struct, enum, union, trait or type alias.
    Type,
    /// A function, constant, static or macro.
    Value,
    /// Anything else, such as an implementation.
    Other,
}

/// An item of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item<'t> {
    pub(crate) kind: ItemKind,
    /// The name; empty where there is none.
    pub(crate) name: &'t str,
    /// Set by `pub`; not by `pub(crate)` and the like.
    pub(crate) is_public: bool,
    /// Set by an attribute `cfg` that wants `test`.
    pub(crate) is_test: bool,
    /// The file that an attribute `path` names.
    pub(crate) path: Option<&'t str>,
    pub(crate) line: usize,
    /// The place of its first token behind attributes and visibility.
    pub(crate) begin: usize,
    /// The place behind its last token.
    pub(crate) end: usize,
}

impl<'t> Source<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let tokens = tokens(text);
        let mut partners: Vec<usize> = (0..tokens.len()).collect();
        let mut open = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            match token.text {
                "(" | "[" | "{" => open.push(at),
                ")" | "]" | "}" => {
                    if let Some(begin) = open.pop() {
                        partners[begin] = at;
                        partners[at] = begin;
                    }
                }
                _ => {}
            }
        }
        Self { tokens, partners }
    }

    /// The text at a place; empty behind the end.
    pub(crate) fn text(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    /// The place of the other bracket.
    pub(crate) fn partner(&self, at: usize) -> usize {
        self.partners.get(at).copied().unwrap_or(at)
    }

    /// The items between two places.
    pub(crate) fn items(&self, begin: usize, end: usize) -> Vec<Item<'t>> {
        let mut found = Vec::new();
        let mut at = begin;
        while at < end {
            let item = self.item(at, end);
            at = item.end.max(at + 1);
            if item.begin < end {
                found.push(item);
            }
        }
        found
    }

    fn item(&self, mut at: usize, end: usize) -> Item<'t> {
        let mut is_test = false;
        let mut path = None;
        while self.text(at) == "#" && at < end {
            let open = if self.text(at + 1) == "!" { at + 2 } else { at + 1 };
            let close = self.partner(open);
            let words: Vec<&str> = (open + 1..close).map(|place| self.text(place)).collect();
            // `cfg_attr(test, ..)` and `cfg(any(test, ..))` leave the item in production code.
            let is_either = words.contains(&"not") || words.contains(&"any");
            is_test |= words.first() == Some(&"cfg") && words.contains(&"test") && !is_either;
            if words.first() == Some(&"path") {
                path = words.get(2).map(|text| text.trim_matches('"'));
            }
            at = close + 1;
        }
        let is_visible = self.text(at) == "pub";
        let is_restricted = is_visible && self.text(at + 1) == "(";
        if is_visible {
            at = if is_restricted { self.partner(at + 1) + 1 } else { at + 1 };
        }
        let (kind, name) = self.kind_and_name(at);
        let line = self.tokens.get(at).map_or(0, |token| token.line);
        let is_public = is_visible && !is_restricted;
        Item { kind, name, is_public, is_test, path, line, begin: at, end: self.item_end(at, end, kind) }
    }

    fn kind_and_name(&self, mut at: usize) -> (ItemKind, &'t str) {
        while matches!(self.text(at), "unsafe" | "async" | "extern" | "auto" | "default")
            || (self.text(at) == "const" && matches!(self.text(at + 1), "fn" | "unsafe" | "async" | "extern"))
            || self.text(at).starts_with('"')
        {
            at += 1;
        }
        let name = self.text(at + 1);
        match self.text(at) {
            "use" => (ItemKind::Use, ""),
            "mod" if self.text(at + 2) == ";" => (ItemKind::ModuleFile, name),
            "mod" => (ItemKind::ModuleBody(at + 3, self.partner(at + 2)), name),
            keyword if TYPE_KEYWORDS.contains(&keyword) => (ItemKind::Type, name),
            "macro_rules" => (ItemKind::Value, self.text(at + 2)),
            "static" if name == "mut" => (ItemKind::Value, self.text(at + 2)),
            "fn" | "const" | "static" => (ItemKind::Value, name),
            _ => (ItemKind::Other, ""),
        }
    }

    /// The place behind an item: behind its semicolon, or behind its braces where these end it.
    fn item_end(&self, begin: usize, end: usize, kind: ItemKind) -> usize {
        let ends_with_semicolon = kind == ItemKind::Use || matches!(self.text(begin), "const" | "static" | "type");
        let mut at = begin;
        while at < end {
            match self.text(at) {
                ";" => return at + 1,
                "{" if !ends_with_semicolon || self.is_function(begin) => return self.partner(at) + 1,
                "(" | "[" | "{" => at = self.partner(at) + 1,
                _ => at += 1,
            }
        }
        end
    }

    fn is_function(&self, begin: usize) -> bool {
        self.text(begin) == "const" && matches!(self.text(begin + 1), "fn" | "unsafe" | "async" | "extern")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<(ItemKind, String, bool, bool)> {
        let source = Source::new(text);
        let items = source.items(0, source.tokens.len());
        items.iter().map(|item| (item.kind, item.name.to_owned(), item.is_public, item.is_test)).collect()
    }

    fn plain(kind: ItemKind, name: &str) -> (ItemKind, String, bool, bool) {
        (kind, name.to_owned(), false, false)
    }

    #[test]
    fn an_item_ends_where_the_next_begins() {
        let text = "struct A(u8); struct B { c: u8 } const C: [u8; 2] = { [1; 2] }; const fn f() -> u8 { 1 } \
                    impl A { fn g() {} } static D: u8 = 1; enum E { F } macro_rules! m { () => {}; } type G = u8;";
        let expected = [
            plain(ItemKind::Type, "A"),
            plain(ItemKind::Type, "B"),
            plain(ItemKind::Value, "C"),
            plain(ItemKind::Value, "f"),
            plain(ItemKind::Other, ""),
            plain(ItemKind::Value, "D"),
            plain(ItemKind::Type, "E"),
            plain(ItemKind::Value, "m"),
            plain(ItemKind::Type, "G"),
        ];
        assert_eq!(named(text), expected);
    }

    #[test]
    fn visibility_and_tests_are_seen() {
        let text = "pub struct A; pub(crate) struct B; #[cfg(test)] #[derive(Debug)] struct C; \
                    #[cfg(not(test))] struct D; #[cfg_attr(test, derive(Debug))] struct E;";
        let seen: Vec<(bool, bool)> = named(text).iter().map(|item| (item.2, item.3)).collect();
        assert_eq!(seen, [(true, false), (false, false), (false, true), (false, false), (false, false)]);
    }

    #[test]
    fn modules_know_where_they_are() {
        let source = Source::new("#[path = \"else.rs\"] mod a; mod b { fn c() {} }");
        let items = source.items(0, source.tokens.len());
        assert_eq!((items[0].kind, items[0].path), (ItemKind::ModuleFile, Some("else.rs")));
        let ItemKind::ModuleBody(begin, end) = items[1].kind else { panic!("b has a body") };
        assert_eq!(source.items(begin, end)[0].name, "c");
    }
}
