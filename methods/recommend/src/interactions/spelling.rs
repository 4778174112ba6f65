//! Ids that are one number in two spellings.

use std::collections::BTreeMap;

/// Refuses ids that are one number in two spellings, `1` and `1.0`: programs write whole numbers beside gaps with a
/// fraction.
pub(super) fn check_spellings<T: AsRef<str>>(lines: &[(u64, String)], pairs: &[(T, T)]) -> Result<(), (u64, String)> {
    let users = || pairs.iter().map(|(user, _)| user.as_ref());
    let items = || pairs.iter().map(|(_, item)| item.as_ref());
    let Some((long, short)) = two_spellings(users).or_else(|| two_spellings(items)) else { return Ok(()) };
    let number = lines.iter().find(|(_, line)| line.contains(long)).map_or(1, |(number, _)| *number);
    Err((number, format!("{long:?} and {short:?} are both ids: write one number in one way")))
}

/// The first id such as `1.0` whose number is an id without the fraction too, and that.
fn two_spellings<'a, I: Iterator<Item = &'a str>>(ids: impl Fn() -> I) -> Option<(&'a str, &'a str)> {
    let whole = |id: &'a str| {
        let whole = id.strip_suffix(".0")?;
        whole.bytes().all(|byte| byte.is_ascii_digit()).then_some((whole, id))
    };
    let long: BTreeMap<&str, &str> = ids().filter_map(whole).collect();
    if long.is_empty() {
        return None;
    }
    ids().find_map(|id| long.get(id).map(|long| (*long, id)))
}
