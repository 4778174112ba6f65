//! The communication that a plan offers to solvers: its averaging scheme, its diameter in rounds, and the trees along
//! which sums are made.

use std::sync::Arc;

use mingle_planner::{Method, Plan, transient};
use mingle_protocol::Schedule;
use mingle_protocol::collective::{Trees, diameter, tracking_rounds};
use serde::{Deserialize, Serialize};

use crate::error::CommunicationPlanError;
use crate::schedule::node;

/// Weights that differ by less count as equal.
const SAME_WEIGHT: f64 = 1e-12;

/// Largest gain of tracking: the error of its averages after a change of the inputs, as a share of that change, in the
/// Euclidean norm over all nodes. Below 1 nothing that was tried diverged, from 1.2 on most did; nothing was gained
/// below this.
const LARGEST_GAIN: f64 = 0.8;

/// The communication of one plan.
#[derive(Clone, Debug)]
pub struct CommunicationPlan {
    /// The schedule of the plan.
    pub schedule: Arc<Schedule>,
    /// Rounds until every node has received from every other, directly or through others; at least 1.
    pub diameter: u64,
    /// The trees along which sums are made.
    pub trees: Arc<Trees>,
    /// The scheme by which nodes agree on one vector.
    pub agreement: AveragingScheme,
}

/// A scheme by which nodes agree on one vector.
#[derive(Clone, Debug)]
pub enum AveragingScheme {
    /// NIDS over the matrix of a symmetric plan. Rows by ascending node.
    Mixing(Arc<Vec<Vec<(usize, f64)>>>),
    /// Tracking averages, for a plan that is not symmetric, with so many steps for each iteration.
    Tracking {
        /// Steps of the plan.
        steps: u64,
    },
    /// Sums up a tree and down again: exact, the same bits at all nodes, and each node is waited for twice.
    Exact,
}

/// The choice of averaging for a problem that needs means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Averaging {
    /// Sums over trees where tracking over the plan would send more messages and wait for more of them in a row, or
    /// cannot work; else tracking.
    #[default]
    Auto,
    /// Tracking averages: each node receives from its in-neighbours alone.
    Tracking,
    /// Sums over trees.
    Exact,
}

impl AveragingScheme {
    /// The advice to give when the iteration of a regression diverges.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Mixing(_) | Self::Exact => {
                "numbers of very different size do that: standardize = true brings columns to one"
            }
            Self::Tracking { .. } => {
                "averages over a directed plan are rough: make a symmetric one from the same topology with mingle plan make --method clique-phi; numbers of very different size do it too: standardize = true brings columns to one"
            }
        }
    }

    /// Describes the scheme in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Mixing(_) => "NIDS over the symmetric plan, one message to each neighbour an iteration".to_owned(),
            Self::Tracking { steps } => {
                let steps = if *steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
                format!("tracking averages over the directed plan, {steps} of it an iteration")
            }
            Self::Exact => "exact sums over trees of the plan".to_owned(),
        }
    }
}

impl CommunicationPlan {
    /// The communication of a plan that runs as this schedule: mixing where the plan is symmetric, else tracking.
    ///
    /// # Errors
    /// Some node cannot be reached from another, how fast the plan averages is not known, or its matrix is not that of
    /// its method: methods for solvers promise that no eigenvalue is negative.
    pub fn of(plan: &Plan, schedule: Arc<Schedule>) -> Result<Self, CommunicationPlanError> {
        Self::with(plan, schedule, |plan| match symmetric_rows(plan) {
            Some(rows) => Ok(AveragingScheme::Mixing(Arc::new(rows))),
            None => Ok(AveragingScheme::Tracking { steps: tracking_steps(plan)? }),
        })
    }

    /// The communication for an algorithm that needs means, whether the plan is symmetric or not. [`Averaging::Auto`]
    /// is decided here, from the plan alone, so that all nodes decide alike.
    ///
    /// # Errors
    /// As [`of`](Self::of); but how fast the plan averages does not matter where sums are taken instead.
    pub fn averaging(
        plan: &Plan,
        schedule: Arc<Schedule>,
        averaging: Averaging,
    ) -> Result<Self, CommunicationPlanError> {
        let mut communication = Self::with(plan, schedule, |plan| match averaging {
            Averaging::Tracking => Ok(AveragingScheme::Tracking { steps: tracking_steps(plan)? }),
            Averaging::Exact => Ok(AveragingScheme::Exact),
            Averaging::Auto => {
                Ok(tracking_steps(plan).map_or(AveragingScheme::Exact, |steps| AveragingScheme::Tracking { steps }))
            }
        })?;
        if let (Averaging::Auto, AveragingScheme::Tracking { steps }) = (averaging, &communication.agreement)
            && sums_are_cheaper(plan, *steps, communication.diameter)
        {
            communication.agreement = AveragingScheme::Exact;
        }
        Ok(communication)
    }

    fn with(
        plan: &Plan,
        schedule: Arc<Schedule>,
        agreement: impl FnOnce(&Plan) -> Result<AveragingScheme, CommunicationPlanError>,
    ) -> Result<Self, CommunicationPlanError> {
        let (Some(diameter), Some(trees)) = (diameter(&schedule), Trees::of(&schedule)) else {
            return Err(CommunicationPlanError::NotConnected);
        };
        plan.check_method()
            .map_err(|source| CommunicationPlanError::Method { method: plan.method().to_owned(), source })?;
        let agreement = agreement(plan)?;
        Ok(Self { schedule, diameter: diameter.max(1), trees: Arc::new(trees), agreement })
    }

    /// Returns `true` if each of the two nodes is an in-neighbour of the other.
    pub fn hear_each_other(&self, a: usize, b: usize) -> bool {
        let has = |from: usize, to: usize| {
            let from_links = self.schedule.all_out_neighbours(node(from));
            from_links.binary_search(&node(to)).is_ok()
        };
        has(a, b) && has(b, a)
    }
}

/// Returns `true` if a sum up a tree and down again takes fewer messages, and at most as many in a row, as `steps`
/// steps of the plan. Each node but the root sends one up and gets one down. No tree is deeper than the diameter: they
/// are breadth-first.
fn sums_are_cheaper(plan: &Plan, steps: u64, diameter: u64) -> bool {
    let period = plan.steps().len() as u64;
    let links: u64 = plan.steps().iter().map(|step| step.links().len() as u64).sum();
    let tracked = links.saturating_mul(steps / period.max(1));
    let summed = 2 * (plan.node_count() as u64).saturating_sub(1);
    summed < tracked && diameter.saturating_mul(2) <= steps
}

/// Steps of the plan for each input of a tracking average: as many periods as leave 0.3 of a disagreement in the
/// long run (an eigenvalue) and at most [`LARGEST_GAIN`] of any change of the inputs (a norm).
fn tracking_steps(plan: &Plan) -> Result<u64, CommunicationPlanError> {
    let long_run =
        plan.forecast().lambda_2.map_or(Ok(1), tracking_rounds).map_err(CommunicationPlanError::CannotAverage)?;
    let least = usize::try_from(long_run).unwrap_or(usize::MAX);
    let periods = transient::periods_to_gain(plan.node_count(), plan.steps(), least, LARGEST_GAIN)
        .ok_or(CommunicationPlanError::TooSlow)?;
    Ok((plan.steps().len() as u64).saturating_mul(periods as u64))
}

/// The rows of a symmetric matrix without negative eigenvalues, if the plan has one. It is the plan's own where its
/// method promises that, else the mean of the plan's and the identity.
pub fn symmetric_rows(plan: &Plan) -> Option<Vec<Vec<(usize, f64)>>> {
    let [step] = plan.steps() else { return None };
    let weight = |from: usize, to: usize| {
        let links = step.links_from(from);
        links.iter().find(|link| link.to == to).map_or(0.0, |link| link.weight)
    };
    let is_symmetric = step.links().iter().all(|link| (weight(link.to, link.from) - link.weight).abs() <= SAME_WEIGHT);
    if !is_symmetric {
        return None;
    }
    let is_lazy = plan.method().parse::<Method>().is_ok_and(Method::is_for_solvers);
    let share = if is_lazy { 1.0 } else { 0.5 };
    let mut rows: Vec<Vec<(usize, f64)>> =
        step.keep().iter().enumerate().map(|(node, keep)| vec![(node, 1.0 - share + share * keep)]).collect();
    for link in step.links() {
        rows[link.to].push((link.from, share * link.weight));
    }
    rows.iter_mut().for_each(|row| row.sort_unstable_by_key(|entry| entry.0));
    Some(rows)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mingle_planner::{DesignOptions, Medium, Topology};

    use super::*;
    use crate::schedule::schedule;

    fn communication(method: Method) -> CommunicationPlan {
        let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
        let topology = Topology::generate("rg:n=12,r=0.5,seed=1").unwrap();
        let plan = mingle_planner::design(&topology, method, &options).unwrap();
        CommunicationPlan::of(&plan, Arc::new(schedule(&plan).unwrap())).unwrap()
    }

    #[test]
    fn symmetric_plans_mix_and_others_track() {
        for method in [Method::CliquePhi, Method::LazyMetropolis, Method::DPsgd] {
            let AveragingScheme::Mixing(rows) = communication(method).agreement else {
                panic!("{method} is symmetric")
            };
            let sum = |row: &Vec<(usize, f64)>| row.iter().map(|entry| entry.1).sum::<f64>();
            assert!(rows.iter().all(|row| (sum(row) - 1.0).abs() < 1e-12 && row.is_sorted_by_key(|entry| entry.0)));
            // Diagonally dominant where the design itself does not promise that nothing is negative.
            let keeps_half = rows.iter().enumerate().all(|(node, row)| {
                row.contains(&(node, 0.5)) || { row.iter().any(|entry| entry.0 == node && entry.1 >= 0.5) }
            });
            assert!(method != Method::DPsgd || keeps_half);
        }
        assert!(matches!(communication(Method::NguyenHe).agreement, AveragingScheme::Tracking { steps } if steps > 0));
    }

    fn averaging(topology: &str, averaging: Averaging) -> CommunicationPlan {
        let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
        let topology = Topology::generate(topology).unwrap();
        let plan = mingle_planner::design(&topology, Method::CliquePhi, &options).unwrap();
        CommunicationPlan::averaging(&plan, Arc::new(schedule(&plan).unwrap()), averaging).unwrap()
    }

    #[test]
    fn means_are_summed_over_trees_where_tracking_would_send_more_and_take_longer() {
        for (topology, nodes) in [("ring:n=16", 16), ("ring:n=3", 3), ("complete:n=8", 8)] {
            let tracking = averaging(topology, Averaging::Tracking);
            let AveragingScheme::Tracking { steps } = tracking.agreement else { panic!("{topology}: asked for") };
            let chosen = averaging(topology, Averaging::Auto).agreement;
            // A ring of 16 averages slowly; in a complete graph, one step is hard to beat.
            let exact = matches!(chosen, AveragingScheme::Exact);
            assert_eq!(exact, nodes == 16, "{topology}: {steps} steps, diameter {}", tracking.diameter);
            assert!(!exact || steps >= 2 * tracking.diameter, "{topology}: {steps}");
        }
    }
}
