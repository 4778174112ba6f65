//! Attacks inside the bounds: every message of such a member passes all checks, and the harm comes over time, or from
//! two members that agree.
//!
//! The member is a production node. What it does otherwise than the others is in the plan that it follows, in its
//! training, in the weight that it begins with, or in the progress that its messages claim.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::mass::Mass;
use crate::message::{LinkPositions, Message};
use crate::record::Record;
use crate::schedule::{NodeId, Schedule, Step};

/// The part of a share that a member gives which only takes: nothing at all is easier to notice.
const NEXT_TO_NOTHING: f64 = 1e-6;
/// Periods for which a member that takes by turns gives nothing, and then gives as planned.
const TURN: usize = 16;
/// The factor by which a member makes up weight.
const MADE_UP: u64 = 1_000;
/// The norm of models that pull, as a part of the largest norm that others accept.
const JUST_INSIDE: f64 = 0.999;
/// Copies of each message that a member sends which repeats itself.
const COPIES: usize = 16;

/// A way to harm others inside the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misconduct {
    /// Takes parcels and gives a millionth of its shares.
    Take,
    /// Gives a tenth of its shares.
    GiveTenth,
    /// Gives next to nothing for sixteen periods, and then as planned for as many.
    TakeByTurns,
    /// Sends models whose norm is just inside the bound.
    PullNorm,
    /// Claims in every message that it is at the end of training.
    ClaimEnd,
    /// Sends parcels of the largest allowed weight, made of weight that it never had.
    InflateWeight,
    /// Sends every message sixteen times.
    Repeat,
}

impl Misconduct {
    /// All attacks.
    pub const ALL: [Self; 7] = [
        Self::Take,
        Self::GiveTenth,
        Self::TakeByTurns,
        Self::PullNorm,
        Self::ClaimEnd,
        Self::InflateWeight,
        Self::Repeat,
    ];

    /// Returns `true` if weights do not add up any more.
    pub(super) fn makes_up_weight(self) -> bool {
        self == Self::InflateWeight
    }

    /// The plan that the member `liar` follows.
    pub(super) fn plan(self, liar: NodeId, plan: &Arc<Schedule>) -> Arc<Schedule> {
        let changed = self.changed_steps(liar, plan).map(|steps| {
            let schedule = Schedule::new(steps[0].keep.len(), &steps, plan.local_steps())?;
            schedule.with_round_length(plan.round_length() as usize)
        });
        let changed = changed.transpose().expect("smaller shares of one node are still a plan");
        changed.map_or_else(|| Arc::clone(plan), Arc::new)
    }

    /// The steps of that plan; `None` if the member follows that of all.
    fn changed_steps(self, liar: NodeId, plan: &Schedule) -> Option<Vec<Step>> {
        match self {
            Self::Take => Some(steps(plan, liar, NEXT_TO_NOTHING)),
            Self::GiveTenth => Some(steps(plan, liar, 0.1)),
            Self::TakeByTurns => {
                let takes = vec![steps(plan, liar, NEXT_TO_NOTHING); TURN];
                let gives = vec![steps(plan, liar, 1.0); TURN];
                Some(takes.into_iter().chain(gives).flatten().collect())
            }
            Self::InflateWeight => Some(with_strangers(steps(plan, liar, 1.0))),
            Self::PullNorm | Self::ClaimEnd | Self::Repeat => None,
        }
    }

    /// Gives the member weight that nobody brought, with the ratio that it had.
    pub(super) fn make_up_weight(self, record: &mut Record) {
        if !self.makes_up_weight() {
            return;
        }
        let units = record.books.mass.units();
        let made_up = units.saturating_mul(MADE_UP) - units;
        record.books.mass = Mass::from_units(units + made_up);
        record.books.brought = Mass::from_units(record.books.brought.units().saturating_add(made_up));
        let factor = MADE_UP as f32;
        record.numerator = record.numerator.iter().map(|x| x * factor).collect();
    }

    /// The change by which the member trains, from a ratio, where others accept models of this norm; `None` for one
    /// that trains like all others.
    pub(super) fn delta(self, from: &[f32], largest_norm: Option<f64>) -> Option<Vec<f32>> {
        let norm = largest_norm.filter(|_| self == Self::PullNorm)? * JUST_INSIDE;
        let target = (0..from.len()).map(|k| if k == 0 { norm as f32 } else { 0.0 });
        Some(target.zip(from).map(|(target, z)| target - z).collect())
    }

    /// The messages that the member sends in place of `message`.
    pub(super) fn messages(self, mut message: Message) -> Vec<Message> {
        match self {
            Self::ClaimEnd => {
                link_of(&mut message).into_iter().for_each(|link| link.passed = u64::MAX);
                vec![message]
            }
            Self::Repeat => vec![message; COPIES],
            _ => vec![message],
        }
    }
}

impl fmt::Display for Misconduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Take => "takes and gives next to nothing",
            Self::GiveTenth => "gives a tenth of its shares",
            Self::TakeByTurns => "gives next to nothing every other sixteen periods",
            Self::PullNorm => "sends models of the largest norm",
            Self::ClaimEnd => "claims to be at the end",
            Self::InflateWeight => "sends the heaviest parcels, of weight that it made up",
            Self::Repeat => "sends every message sixteen times",
        })
    }
}

fn link_of(message: &mut Message) -> Option<&mut LinkPositions> {
    match message {
        Message::Hello(hello) => Some(&mut hello.link),
        Message::Ack(ack) => Some(&mut ack.link),
        _ => None,
    }
}

/// The steps of a plan with more nodes that have no links: a member that follows it takes the weight that it made up
/// for theirs.
fn with_strangers(mut steps: Vec<Step>) -> Vec<Step> {
    let strangers = vec![1.0; 2 * MADE_UP as usize];
    steps.iter_mut().for_each(|step| step.keep.extend_from_slice(&strangers));
    steps
}

/// The steps of a plan in which one node gives this part of its shares, and keeps the rest.
fn steps(plan: &Schedule, changed: NodeId, part: f64) -> Vec<Step> {
    let nodes = || (0..plan.nodes() as u32).map(NodeId);
    let part_of = |node: NodeId| if node == changed { part } else { 1.0 };
    let step = |step: u64| {
        let links = |node: NodeId| plan.out_links(node, step).iter().map(move |link| (link.to, link.share.to_f64()));
        let given = |node: NodeId| links(node).map(|(_, share)| share * part_of(node)).sum::<f64>();
        let kept = |node: NodeId| if plan.keeps(node, step) || node == changed { 1.0 - given(node) } else { 0.0 };
        let links = nodes().flat_map(|node| links(node).map(move |(to, share)| (node, to, share * part_of(node))));
        Step { keep: nodes().map(|node| kept(node).max(0.0)).collect(), links: links.collect() }
    };
    (0..plan.period()).map(step).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pair() -> Arc<Schedule> {
        let links = vec![(NodeId(0), NodeId(1), 0.5), (NodeId(1), NodeId(0), 0.25)];
        Arc::new(Schedule::new(2, &[Step { keep: vec![0.5, 0.75], links }], 1).unwrap())
    }

    fn share(plan: &Schedule, node: u32, step: u64) -> f64 {
        plan.out_links(NodeId(node), step)[0].share.to_f64()
    }

    #[test]
    fn a_member_that_gives_a_tenth_changes_its_own_shares_alone() {
        let plan = Misconduct::GiveTenth.plan(NodeId(0), &pair());
        assert!((share(&plan, 0, 0) - 0.05).abs() < 1e-9);
        assert!((share(&plan, 1, 0) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_member_that_takes_by_turns_trains_as_often_as_the_others_and_gives_half_of_the_time() {
        let plan = Misconduct::TakeByTurns.plan(NodeId(1), &pair());
        assert_eq!((plan.period(), plan.round_length()), (32, 1));
        assert!(share(&plan, 1, 15) < 1e-6 && share(&plan, 1, 16) > 0.2);
    }
}
