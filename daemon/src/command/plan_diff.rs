//! `mingle plan diff`: what a new plan changes.

use std::collections::BTreeMap;

use mingle_planner::{Link, Plan};
use serde_json::{Value, json};

use crate::cli::PlanDiffArgs;
use crate::failure::{Failure, Kind, Outcome};
use crate::{out, plan};

/// At most so many links are listed in text; `--json` has all.
const LISTED_LINKS: usize = 12;

/// Prints what differs. Differing plans are exit code 10, which is not an error.
pub(super) fn execute(arguments: &PlanDiffArgs, json: bool) -> Outcome {
    let (before, after) = (plan::read(&arguments.before)?, plan::read(&arguments.after)?);
    let difference = Difference::between(&before, &after);
    let is_same = before.hash() == after.hash();
    if json {
        out::line(difference.document(is_same));
    } else if is_same {
        out::line("the plans are the same");
    } else {
        difference.print();
    }
    if is_same { Ok(()) } else { Err(Failure::silent(Kind::Differ)) }
}

/// What differs, in the order of importance.
struct Difference {
    /// Names: before, after.
    fields: BTreeMap<&'static str, (Value, Value)>,
    added: Vec<String>,
    removed: Vec<String>,
    /// Links of both plans whose weight or step differs.
    changed: Vec<String>,
    forecast: Vec<(String, Value, Value)>,
}

impl Difference {
    fn between(before: &Plan, after: &Plan) -> Self {
        let described = |plan: &Plan| {
            let parameters: BTreeMap<_, _> =
                plan.parameters().iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
            let peers: Vec<_> = plan.nodes().map(|(name, peer)| json!([name, peer])).collect();
            BTreeMap::from([
                ("method", json!(plan.method())),
                ("parameters", json!(parameters)),
                ("nodes", json!(peers)),
                ("base_edges", json!(plan.base().edges())),
                ("steps", json!(plan.steps().len())),
                ("local_steps", json!(plan.local_steps())),
                ("round_length", json!(plan.round_length())),
            ])
        };
        let (old, new) = (described(before), described(after));
        let pairs = old.into_iter().zip(new.into_values()).map(|((name, a), b)| (name, (a, b)));
        let (old_links, new_links) = (links(before), links(after));
        let only = |these: &BTreeMap<String, Uses>, others: &BTreeMap<String, Uses>| {
            these.keys().filter(|link| !others.contains_key(*link)).cloned().collect()
        };
        let differ = |(link, uses): (&String, &Uses)| new_links.get(link).is_some_and(|other| other != uses);
        Self {
            fields: pairs.filter(|(_, (a, b))| a != b).collect(),
            added: only(&new_links, &old_links),
            removed: only(&old_links, &new_links),
            changed: old_links.iter().filter(|&entry| differ(entry)).map(|(link, _)| link.clone()).collect(),
            forecast: forecast_difference(before, after),
        }
    }

    fn document(&self, is_same: bool) -> Value {
        let pair = |(a, b): &(Value, Value)| json!({ "before": a, "after": b });
        json!({
            "schema": "mingle.plan-diff/1",
            "same": is_same,
            "fields": self.fields.iter().map(|(name, values)| ((*name).to_owned(), pair(values))).collect::<serde_json::Map<_, _>>(),
            "links": { "added": self.added, "removed": self.removed, "changed": self.changed },
            "forecast": self.forecast.iter().map(|(name, a, b)| (name.clone(), json!({ "before": a, "after": b }))).collect::<serde_json::Map<_, _>>(),
        })
    }

    fn print(&self) {
        for (name, (before, after)) in &self.fields {
            let is_long = matches!(before, Value::Array(_));
            let change = if is_long { "differ".to_owned() } else { format!("{before} -> {after}") };
            out::line(format!("{name:<22} {change}"));
        }
        for (what, links) in [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed)] {
            if !links.is_empty() {
                let listed = links.iter().take(LISTED_LINKS).cloned().collect::<Vec<_>>().join(", ");
                let rest = if links.len() > LISTED_LINKS { ", ..." } else { "" };
                out::line(format!("{:<22} {}: {listed}{rest}", format!("links {what}"), links.len()));
            }
        }
        for (name, before, after) in &self.forecast {
            out::line(format!("{name:<22} {before} -> {after}"));
        }
    }
}

/// In which steps and slots a link is active, and with which weight.
type Uses = Vec<(usize, Option<usize>, f64)>;

/// The links of a period by the names of their ends.
fn links(plan: &Plan) -> BTreeMap<String, Uses> {
    let mut uses: BTreeMap<String, Uses> = BTreeMap::new();
    let names = plan.base().names();
    for (number, step) in plan.steps().iter().enumerate() {
        let slot_of = |link: Link| step.slots().iter().position(|slot| slot.contains(&link));
        for link in step.links() {
            let name = format!("{} -> {}", names[link.from], names[link.to]);
            uses.entry(name).or_default().push((number, slot_of(link.link()), link.weight));
        }
    }
    uses
}

/// The fields of the forecasts that are not equal.
fn forecast_difference(before: &Plan, after: &Plan) -> Vec<(String, Value, Value)> {
    let fields = |plan: &Plan| match serde_json::from_str(&plan.forecast().to_json()) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let new = fields(after);
    let pairs = fields(before).into_iter().map(|(name, a)| {
        let b = new.get(&name).cloned().unwrap_or_default();
        (name, a, b)
    });
    pairs.filter(|(_, a, b)| a != b).collect()
}
