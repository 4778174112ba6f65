//! What a plan offers to solvers: how its nodes come to agree, how long it takes until everybody has heard of everybody, and along
//! which trees sums are made.

use std::sync::Arc;

use mingle_planner::{Method, Plan, transient};
use mingle_protocol::Schedule;
use mingle_protocol::collective::{Trees, diameter, tracking_rounds};
use serde::{Deserialize, Serialize};

use crate::error::CommunicationPlanError;
use crate::schedule::node;

/// Weights that differ by less are the same.
const SAME_WEIGHT: f64 = 1e-12;

/// The averages that tracking makes of a change of the inputs may be off by so much of the change, in the Euclidean norm over all
/// nodes. Below 1 nothing that was tried diverged, from 1.2 on most did; nothing was gained below this.
const LARGEST_GAIN: f64 = 0.8;

/// The communication of one plan.
#[derive(Clone, Debug)]
pub struct CommunicationPlan {
    /// The schedule of the plan.
    pub schedule: Arc<Schedule>,
    /// Rounds until everybody has heard of everybody.
    pub diameter: u64,
    /// Along which sums are made.
    pub trees: Arc<Trees>,
    /// How nodes come to agree.
    pub agreement: AveragingScheme,
}

/// How nodes come to agree on one vector.
#[derive(Clone, Debug)]
pub enum AveragingScheme {
    /// The plan is symmetric: NIDS over its matrix. Rows by ascending node.
    Mixing(Arc<Vec<Vec<(usize, f64)>>>),
    /// It is not: averages that follow what changes, with so many steps for each iteration.
    Tracking {
        /// Steps of the plan.
        steps: u64,
    },
    /// Sums up a tree and down again: exact, the same bits at all nodes, and each node is waited for twice.
    Exact,
}

/// How means are made for a problem that wants means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Averaging {
    /// By averages that follow what changes: each node hears its in-neighbours alone.
    #[default]
    Tracking,
    /// By sums over trees.
    Exact,
}

impl AveragingScheme {
    /// What helps when the iteration of a regression diverges.
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

    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Mixing(_) => "NIDS over the symmetric plan, one message to each neighbour an iteration".to_owned(),
            Self::Tracking { steps } => {
                format!("tracking averages over the directed plan, {steps} steps of it an iteration")
            }
            Self::Exact => "exact sums over trees of the plan".to_owned(),
        }
    }
}

impl CommunicationPlan {
    /// Those of a plan that runs as this schedule.
    ///
    /// # Errors
    /// Not everybody can hear of everybody, how fast the plan averages is not known, or its matrix is not what its method says:
    /// methods for solvers promise that no eigenvalue is negative.
    pub fn of(plan: &Plan, schedule: Arc<Schedule>) -> Result<Self, CommunicationPlanError> {
        Self::with(plan, schedule, |plan| match symmetric_rows(plan) {
            Some(rows) => Ok(AveragingScheme::Mixing(Arc::new(rows))),
            None => Ok(AveragingScheme::Tracking { steps: tracking_steps(plan)? }),
        })
    }

    /// The same for an algorithm that wants means, whether the plan is symmetric or not.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn averaging(
        plan: &Plan,
        schedule: Arc<Schedule>,
        averaging: Averaging,
    ) -> Result<Self, CommunicationPlanError> {
        Self::with(plan, schedule, |plan| match averaging {
            Averaging::Tracking => Ok(AveragingScheme::Tracking { steps: tracking_steps(plan)? }),
            Averaging::Exact => Ok(AveragingScheme::Exact),
        })
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

    /// Whether each of the two nodes hears the other.
    pub fn hear_each_other(&self, a: usize, b: usize) -> bool {
        let has = |from: usize, to: usize| {
            let from_links = self.schedule.all_out_neighbours(node(from));
            from_links.binary_search(&node(to)).is_ok()
        };
        has(a, b) && has(b, a)
    }
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

/// The rows of a symmetric matrix without negative eigenvalues, if the plan has one: its own where its design promises that, else
/// half of it and half of standing still.
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
}
