//! Conversion of a planner's plan into the schedule that the protocol runs.

use mingle_planner::Plan;
use mingle_protocol::{NodeId, Schedule, ScheduleError, Step};

/// The schedule of a plan.
///
/// # Errors
/// The protocol does not run it: too many nodes, or columns that do not add up to 1.
pub fn schedule(plan: &Plan) -> Result<Schedule, ScheduleError> {
    let steps: Vec<Step> = plan
        .steps()
        .iter()
        .map(|step| Step {
            keep: step.keep(),
            links: step.links().iter().map(|link| (node(link.from), node(link.to), link.weight)).collect(),
        })
        .collect();
    Schedule::new(plan.node_count(), &steps, plan.local_steps())?.with_round_length(plan.round_length())
}

/// A node by its number; plans have far fewer than 2^32.
pub(crate) fn node(index: usize) -> NodeId {
    NodeId(u32::try_from(index).unwrap_or(u32::MAX))
}
