//! Names of types and traits that several crates define.

use std::collections::{BTreeMap, BTreeSet};

use crate::crates::Crate;

/// A definition of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Definition {
    pub(crate) folder: String,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) is_public: bool,
}

/// The names of types and traits in a workspace.
#[derive(Debug)]
pub(crate) struct Names(BTreeMap<String, BTreeSet<Definition>>);

impl Names {
    pub(crate) fn of(crates: &[Crate]) -> Self {
        let mut all: BTreeMap<String, BTreeSet<Definition>> = BTreeMap::new();
        for of in crates {
            for module in &of.modules {
                for found in &module.types {
                    all.entry(found.name.clone()).or_default().insert(Definition {
                        folder: of.folder.clone(),
                        file: module.file.display().to_string(),
                        line: found.line,
                        is_public: found.is_public,
                    });
                }
            }
        }
        Self(all)
    }

    /// How many names there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The names that several crates define, and of each its definitions.
    pub(crate) fn shared(&self) -> Vec<(&String, &BTreeSet<Definition>)> {
        self.0.iter().filter(|(_, places)| crates_of(places.iter()) > 1).collect()
    }

    /// The names that several crates define as public.
    pub(crate) fn shared_as_public(&self) -> Vec<(&String, &BTreeSet<Definition>)> {
        let is_public = |places: &BTreeSet<Definition>| crates_of(places.iter().filter(|place| place.is_public)) > 1;
        self.0.iter().filter(|(_, places)| is_public(places)).collect()
    }
}

fn crates_of<'d>(places: impl Iterator<Item = &'d Definition>) -> usize {
    places.map(|place| &place.folder).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crates::tests::crate_of;

    #[test]
    fn a_name_is_shared_by_crates_and_not_by_modules_of_one() {
        let crates = [
            crate_of("one", &[("lib.rs", "pub struct Row; pub struct Own; mod a { struct Own; } trait Half {}")]),
            crate_of("two", &[("lib.rs", "pub enum Row { X } pub trait Half {} type Private = u8;")]),
        ];
        let names = Names::of(&crates);
        let list = |found: Vec<(&String, &BTreeSet<Definition>)>| -> Vec<String> {
            found.into_iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names.count(), 4);
        assert_eq!(list(names.shared()), ["Half", "Row"]);
        assert_eq!(list(names.shared_as_public()), ["Row"]);
    }
}
