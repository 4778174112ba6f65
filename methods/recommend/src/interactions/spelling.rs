//! Ids that are one number in two spellings, or none at all.

use std::collections::BTreeMap;

/// Ids that programs write where there is none.
const MISSING: [&str; 6] = ["nan", "NaN", "NaT", "<NA>", "None", "null"];

/// Refuses ids that are one number in two spellings, `1` and `1.0` or `01`, which programs write for the same thing, and
/// ids that stand for a gap.
pub(super) fn check_spellings<T: AsRef<str>>(lines: &[(u64, String)], pairs: &[(T, T)]) -> Result<(), (u64, String)> {
    let users = || pairs.iter().map(|(user, _)| user.as_ref());
    let items = || pairs.iter().map(|(_, item)| item.as_ref());
    let line_of = |id: &str| lines.iter().find(|(_, line)| line.contains(id)).map_or(1, |(number, _)| *number);
    if let Some(missing) = users().chain(items()).find(|id| MISSING.contains(id)) {
        return Err((line_of(missing), format!("{missing:?} stands for a missing id: leave such lines out")));
    }
    let Some((long, short)) = two_spellings(users).or_else(|| two_spellings(items)) else { return Ok(()) };
    Err((line_of(long), format!("{long:?} and {short:?} are both ids: write one number in one way")))
}

/// The first id such as `1.0` or `01` whose number is another id too, and that.
fn two_spellings<'a, I: Iterator<Item = &'a str>>(ids: impl Fn() -> I) -> Option<(&'a str, &'a str)> {
    let mut written: BTreeMap<&str, &str> = BTreeMap::new();
    for id in ids() {
        let Some(number) = shortest(id) else { continue };
        let first = *written.entry(number).or_insert(id);
        if first != id {
            return Some(if id.len() > first.len() { (id, first) } else { (first, id) });
        }
    }
    None
}

/// The digits of a whole number without leading zeros and a fraction of zeros; `None` for other ids.
fn shortest(id: &str) -> Option<&str> {
    let whole = id.strip_suffix(".0").unwrap_or(id);
    let is_number = !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit());
    let digits = whole.trim_start_matches('0');
    is_number.then_some(if digits.is_empty() { "0" } else { digits })
}
