//! The classes of a table: the words in its label column, sorted, or numbered as on a card.

use std::collections::BTreeMap;
use std::path::Path;

use mingle_plaintext::{class_name, number};

use crate::{DataCard, DataError};

/// With more classes than this, a class needs more than [`SAMPLES_PER_CLASS`] samples on average.
const CLASSES_UNQUESTIONED: usize = 10;
const SAMPLES_PER_CLASS: usize = 2;
/// Labels are 16 bits wide.
pub(crate) const CLASSES_MAX: usize = 1 << 16;

/// Names of classes in their order: by value if all are numbers and by the alphabet otherwise.
pub(crate) fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    if names.iter().all(|name| number(name).is_some()) {
        names.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
    }
    names
}

/// The distinct labels of one site, [sorted]. One is enough, since other sites may have others.
///
/// # Errors
///
/// [`DataError::Continuous`] when they look like quantities or names of samples, not of classes;
/// [`DataError::TooLarge`] for more than `CLASSES_MAX`.
pub(crate) fn of_site(path: &Path, labels: &[String], samples: usize) -> Result<Vec<String>, DataError> {
    let continuous = |reason: String| Err(DataError::Continuous { path: path.into(), classes: labels.len(), reason });
    let names = sorted(labels.to_vec());
    if names.iter().all(|name| number(name).is_some())
        && let Some(fraction) = names.iter().find(|name| number(name).is_some_and(|value| value.fract() != 0.0))
    {
        return continuous(format!("it holds numbers with a fraction, such as {fraction}"));
    }
    if labels.len() > CLASSES_UNQUESTIONED && labels.len() * SAMPLES_PER_CLASS > samples {
        return continuous(format!("{samples} samples have {} different labels", labels.len()));
    }
    if labels.len() > CLASSES_MAX {
        return Err(DataError::TooLarge { path: path.into(), announced: labels.len() as u64, max: CLASSES_MAX });
    }
    Ok(names)
}

/// The distinct labels, sorted; at least two.
///
/// # Errors
///
/// Those of [`of_site`], and [`DataError::TooFew`] for fewer than two.
pub(crate) fn in_order(path: &Path, labels: &[String], samples: usize) -> Result<Vec<String>, DataError> {
    let names = of_site(path, labels, samples)?;
    if names.len() < 2 {
        return Err(DataError::TooFew { path: path.into(), samples, classes: names.len() });
    }
    Ok(names)
}

/// The number that each of the labels has on the card.
///
/// # Errors
///
/// [`DataError::ForeignClass`] for the first label that is not on the card.
pub(crate) fn match_to(path: &Path, labels: &[String], card: &DataCard) -> Result<Vec<u16>, DataError> {
    let exact = card.classes().iter().enumerate().map(|(number, name)| (name.clone(), number));
    // Names on a card may be written in another way than `class_name` writes them.
    let equal = card.classes().iter().enumerate().map(|(number, name)| (class_name(name), number));
    let numbers: BTreeMap<String, usize> = equal.chain(exact).collect();
    let number_of = |label: &String| {
        let number = numbers.get(label).and_then(|number| u16::try_from(*number).ok());
        number.ok_or_else(|| DataError::ForeignClass {
            path: path.into(),
            class: label.clone(),
            known: some_of(card.classes()),
        })
    };
    labels.iter().map(number_of).collect()
}

/// The first two classes whose names differ in case alone.
pub(crate) fn equal_but_for_case(names: &[String]) -> Option<(&str, &str)> {
    let mut seen = BTreeMap::new();
    names.iter().find_map(|name| seen.insert(name.to_lowercase(), name.as_str()).map(|other| (other, name.as_str())))
}

/// The first few names, enough to recognise a list.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
