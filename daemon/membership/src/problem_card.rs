//! The problem of a swarm, as peers compare it before they take part together.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_masking::{LEAST_MEMBERS, SumPolicy};
use mingle_net::printable::quoted;
use serde_json::Value;

/// Largest encoded card of a problem.
const MAX_PROBLEM_BYTES: usize = 1 << 20;
/// Entries that others follow from: they are compared before them.
const FIRST: [&str; 3] = ["kind", "privacy", "rounds"];
/// Most characters of a value in a difference.
const MOST_SHOWN: usize = 60;

/// The settings that all peers of a swarm have to agree on in a problem, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemCard(Arc<str>);

impl ProblemCard {
    /// The card of a problem with these settings. Longer ones than 1 MiB are not compared.
    pub fn new(settings: &Value) -> Self {
        let text = settings.to_string();
        Self(if text.len() <= MAX_PROBLEM_BYTES { text } else { Value::Null.to_string() }.into())
    }

    /// The card of a problem whose sums are added up by this policy.
    pub fn with_sums(mut settings: Value, policy: SumPolicy) -> Self {
        if let Value::Object(settings) = &mut settings {
            settings.insert("plain_sums".to_owned(), policy.plain.into());
            settings.insert("least_members".to_owned(), policy.least_members.unwrap_or(LEAST_MEMBERS).into());
        }
        Self::new(&settings)
    }

    /// The encoding that peers send each other.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }

    /// The first difference between two encoded cards; `None` if they agree, or one says nothing.
    pub(crate) fn difference(here: &[u8], there: &[u8]) -> Option<String> {
        if here == there {
            return None;
        }
        let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
        let (Some(here), Some(there)) = (read(here), read(there)) else {
            return Some("the problem of one of both cannot be read".to_owned());
        };
        if here.is_null() || there.is_null() { None } else { first_difference("", Some(&here), Some(&there)) }
    }
}

/// The first difference between two values, in a sentence with "here" and "there".
fn first_difference(name: &str, here: Option<&Value>, there: Option<&Value>) -> Option<String> {
    match (here, there) {
        (here, there) if here == there => None,
        (Some(Value::Object(here)), Some(Value::Object(there))) => {
            let all: BTreeSet<&str> = here.keys().chain(there.keys()).map(String::as_str).collect();
            let (first, rest): (Vec<&str>, Vec<&str>) = all.into_iter().partition(|key| FIRST.contains(key));
            let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
            first.into_iter().chain(rest).find_map(|key| first_difference(&inner(key), here.get(key), there.get(key)))
        }
        (Some(Value::Array(here)), Some(Value::Array(there))) if here.len() == there.len() => {
            let mut pairs = here.iter().zip(there).enumerate();
            pairs.find_map(|(at, (here, there))| first_difference(&format!("{name}[{at}]"), Some(here), Some(there)))
        }
        (here, there) => {
            let name = quoted(name);
            Some(format!("{name} of the problem is {} here and {} there", shown(here), shown(there)))
        }
    }
}

/// A value in a few words, without any characters that would change the line they stand in.
fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "not given".to_owned(),
        Some(value) => value.to_string(),
    };
    let start: String = text.chars().take(MOST_SHOWN).collect();
    quoted(&if start.len() < text.len() { start + "..." } else { start })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn difference(here: &Value, there: &Value) -> Option<String> {
        ProblemCard::difference(&ProblemCard::new(here).encode(), &ProblemCard::new(there).encode())
    }

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let usual = json!({"kind": "training", "model": "mlp", "rounds": 20, "card": {"columns": [{"name": "a"}, {"name": "b"}]}});
        assert_eq!(difference(&usual, &usual.clone()), None);
        let with = |change: &dyn Fn(&mut Value)| {
            let mut other = usual.clone();
            change(&mut other);
            difference(&usual, &other).unwrap_or_default()
        };
        assert_eq!(with(&|other| other["rounds"] = json!(30)), "rounds of the problem is 20 here and 30 there");
        let columns = with(&|other| other["card"]["columns"][1]["name"] = json!("c"));
        assert_eq!(columns, "card.columns[1].name of the problem is \"b\" here and \"c\" there");
        assert_eq!(with(&|other| other["seed"] = json!(1)), "seed of the problem is not given here and 1 there");
        let both = with(&|other| {
            other["card"] = Value::Null;
            other["model"] = json!("cnn");
        });
        assert_eq!(
            both,
            "card of the problem is {\"columns\":[{\"name\":\"a\"},{\"name\":\"b\"}]} here and not given there"
        );
    }

    #[test]
    fn problems_that_say_nothing_are_not_compared_and_what_cannot_be_read_differs() {
        assert_eq!(difference(&Value::Null, &json!({"kind": "training"})), None);
        assert!(ProblemCard::difference(b"{}", b"{").is_some_and(|why| why.contains("cannot be read")));
        let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
        assert!(ProblemCard::difference(b"{}", &deep).is_some());
    }

    #[test]
    fn long_and_unprintable_values_of_another_peer_are_cut_and_made_harmless() {
        let told = difference(&json!({"a": 1}), &json!({"a": "\u{1b}[2J\u{202e}".repeat(1_000)})).unwrap_or_default();
        assert!(told.len() < 600, "{told}");
        assert!(told.chars().all(|character| !character.is_control() && character != '\u{202e}'), "{told}");
    }
}
