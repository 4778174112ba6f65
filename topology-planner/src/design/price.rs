//! Prices: what a period costs on its medium, and what a plan costs for training or for agreement.

use std::borrow::Cow;

use super::{DesignObjective, DesignOptions, DesignRequest};
use crate::{
    consensus::steps_to_accuracy,
    drift, load,
    medium::Medium,
    network::NetworkCapacity,
    plan::{MixingStep, Plan},
};

/// The cost of a unit of [`drift::response`] in gradient steps' worth of rounds where every node has one or two
/// classes, as a share of the gradient steps `T` of the whole training.
///
/// Measured: softmax regression on the digits, sorted by label, to an accuracy of 0.9, with 1 to 8 local steps on 13
/// graphs. Rounds to the target were `T (1 / H + s r)` with `T` about 190 gradient steps, and `s` from 0.15 to 0.4,
/// depending on the graph. At 0.25 the choices on these graphs are nearest to the best. A power of `r`, other ways to
/// add the two terms, and a term for drift within a round did not improve choices on other graphs. `docs/planning.md`
/// has the table.
const DRIFT_SENSITIVITY: f64 = 0.25;

/// The conditions on which the cost of a period depends.
#[derive(Clone, Copy)]
pub(super) struct Prices<'p> {
    pub(super) medium: Medium,
    /// The capacities of the links, in the numbers of the steps' nodes.
    pub(super) network: Option<&'p NetworkCapacity>,
    pub(super) local_steps: u32,
    /// See [`DesignOptions::coded_share`].
    pub(super) coded_share: f64,
}

impl<'p> Prices<'p> {
    pub(super) fn of_plan(plan: &'p Plan, coded_share: f64) -> Self {
        let medium = plan.medium();
        let network = plan.network();
        let local_steps = plan.local_steps();
        Self { medium, network, local_steps, coded_share }
    }

    /// The bytes of a payload as a share of those of a whole one. On a broadcast medium payloads are whole: a slot is a
    /// slot.
    pub(super) fn payload_share(&self, nodes: usize, steps: &[MixingStep], round_length: usize) -> f64 {
        match self.medium {
            Medium::Broadcast => 1.0,
            Medium::PointToPoint => load::payload_share(nodes, steps, round_length, self.local_steps, self.coded_share),
        }
    }

    /// The cost of some steps with payloads of the given share of their bytes: seconds where the links have been measured,
    /// otherwise slots on a broadcast medium, and the payloads of the busiest node on a point-to-point one.
    fn of_steps(&self, nodes: usize, steps: &[MixingStep], payload_share: f64) -> f64 {
        match (self.network, self.medium) {
            (Some(network), medium) => network.seconds(steps, medium, payload_share),
            (None, Medium::Broadcast) => steps.iter().map(|step| step.slots().len()).sum::<usize>() as f64,
            (None, Medium::PointToPoint) => payload_share * load::busiest(nodes, steps) as f64,
        }
    }

    /// The cost of a period.
    pub(super) fn of_period(&self, nodes: usize, steps: &[MixingStep], round_length: usize) -> f64 {
        self.of_steps(nodes, steps, self.payload_share(nodes, steps, round_length))
    }

    /// The cost of a gradient step: that of a round times `1 / H + 0.25 h r`, see [`cost`].
    fn of_gradient_step(&self, nodes: usize, steps: &[MixingStep], round_length: usize, heterogeneity: f64) -> f64 {
        let per_round = self.of_period(nodes, steps, round_length) * round_length as f64 / steps.len().max(1) as f64;
        let drift = drift::response(nodes, steps, round_length);
        per_round * (1.0 / f64::from(self.local_steps.max(1)) + DRIFT_SENSITIVITY * heterogeneity * drift)
    }

    /// The cost of as many steps as it takes to agree to 1e-2.
    fn of_agreement(&self, nodes: usize, steps: &[MixingStep], round_length: usize) -> Option<f64> {
        let count = steps_to_accuracy(nodes, steps, 1e-2)?;
        let share = self.payload_share(nodes, steps, round_length);
        let rest = self.of_steps(nodes, &steps[..count % steps.len()], share);
        Some((count / steps.len()) as f64 * self.of_steps(nodes, steps, share) + rest)
    }
}

/// The cost of a plan under the objective of these options. It is in seconds where the links have been measured. Otherwise
/// it is in slots on a broadcast medium, and on a point-to-point one in payloads of the busiest node, as long as whole
/// ones: see [`load`]. `None` where the forecast lacks it.
///
/// For training it is the cost of a round times `1 / H + 0.25 h r`, with `H` local steps, the heterogeneity `h` of the
/// data and the [`drift::response`] `r`. It is the cost of a gradient step, as a share of the time to a given accuracy.
/// That time has two parts. The rounds in which the gradient steps take place are divided by `H`; those in which nodes
/// agree again are not (Koloskova et al., "A Unified Theory of Decentralized SGD with Changing Topology and Local
/// Updates", ICML 2020, theorem 2: of the terms of its bound on gradient steps, those of the noise do not grow with `H`;
/// that of the network is proportional to it, and the number of its rounds is thus constant).
#[must_use]
pub fn cost(plan: &Plan, options: &DesignOptions) -> Option<f64> {
    let prices = Prices::of_plan(plan, options.coded_share);
    let nodes = plan.node_count();
    let steps = plan.steps();
    let round_length = plan.round_length();
    let forecast = plan.forecast();
    match (options.objective, plan.medium()) {
        (DesignObjective::Agreement, Medium::Broadcast) => {
            forecast.seconds_to_1e_2.or_else(|| forecast.slots_to_1e_2.map(|slots| slots as f64))
        }
        (DesignObjective::Agreement, Medium::PointToPoint) => prices.of_agreement(nodes, steps, round_length),
        (DesignObjective::Training, _) => {
            forecast.lambda_2.filter(|&modulus| modulus < 1.0)?;
            Some(prices.of_gradient_step(nodes, steps, round_length, options.heterogeneity))
        }
    }
}

impl DesignRequest<'_> {
    /// The cost of a period.
    pub(super) fn period_cost(&self, steps: &[MixingStep], round_length: usize) -> f64 {
        self.prices().of_period(self.topology.node_count(), &self.numbered_as_given(steps), round_length)
    }

    /// The cost of a gradient step, as [`cost`] defines it for training.
    pub(super) fn training_cost(&self, steps: &[MixingStep], round_length: usize) -> f64 {
        let nodes = self.topology.node_count();
        let heterogeneity = self.options.heterogeneity;
        self.prices().of_gradient_step(nodes, &self.numbered_as_given(steps), round_length, heterogeneity)
    }

    pub(super) fn prices(&self) -> Prices<'_> {
        let DesignOptions { medium, ref network, local_steps, coded_share, .. } = *self.options;
        Prices { medium, network: network.as_ref(), local_steps, coded_share }
    }

    /// The steps on the node numbers that measured links have.
    fn numbered_as_given<'s>(&self, steps: &'s [MixingStep]) -> Cow<'s, [MixingStep]> {
        if self.options.network.is_none() {
            return Cow::Borrowed(steps);
        }
        steps.iter().map(|step| step.clone().renumbered(self.order)).collect()
    }
}
