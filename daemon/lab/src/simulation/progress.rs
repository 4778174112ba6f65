//! The progress of a simulated swarm, and the goal at which it stops.

use serde::{Deserialize, Serialize};

use super::{Learners, MetricTarget, Rounds, SimulationError, SwarmMeans};

/// Evaluations whose mean has to reach the target: one lucky evaluation is not enough.
const AT_TARGET: usize = 3;

/// The conditions for stopping; the first one that is met ends the simulation.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// The target for the mean over nodes and over the last three evaluations.
    pub target: Option<MetricTarget>,
    /// The most passes over all data.
    pub epochs: Option<f64>,
    /// The most slots.
    pub max_slots: Option<u64>,
    /// The most rounds.
    pub rounds: u64,
    /// Rounds between two evaluations.
    pub evaluate_every: u64,
}

/// The state of a swarm at an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwarmProgress {
    /// Rounds that every node has done.
    pub round: u64,
    /// Slots that have passed; on a point-to-point medium, mixing steps.
    pub slots: u64,
    /// Passes over all data.
    pub epochs: f64,
    /// Bytes of parameters on links.
    pub link_bytes: u64,
    /// The metrics on the test samples, by name.
    #[serde(flatten)]
    pub measured: SwarmMeans,
    /// Root mean square distance of the models from their mean, over its norm; none if it is not finite.
    pub disagreement: Option<f64>,
}

/// The reason for which a simulation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The target was reached.
    Target,
    /// The epochs are over.
    Epochs,
    /// The slots are used up.
    Slots,
    /// The rounds are over.
    Rounds,
}

impl Goal {
    /// Trains until a condition is met, and passes every evaluation to `tell`. Returns all evaluations and the reason
    /// for stopping.
    ///
    /// # Errors
    /// The device failed, or the swarm makes no progress.
    pub fn pursue(
        &self,
        swarm: &mut dyn Rounds,
        learners: &mut Learners,
        mut tell: impl FnMut(&SwarmProgress),
    ) -> Result<(Vec<SwarmProgress>, Stop), SimulationError> {
        let mut curve: Vec<SwarmProgress> = Vec::new();
        loop {
            let done = curve.last().map_or(0, |progress| progress.round);
            let round = (done + self.evaluate_every).min(self.rounds);
            swarm.advance(round, learners)?;
            let progress = look(swarm, learners, round)?;
            tell(&progress);
            curve.push(progress);
            if let Some(stop) = self.is_enough(&curve) {
                return Ok((curve, stop));
            }
        }
    }

    fn is_enough(&self, curve: &[SwarmProgress]) -> Option<Stop> {
        let last = curve.last()?;
        let stops = [
            (self.target.is_some_and(|target| is_reached(target, curve)), Stop::Target),
            (self.epochs.is_some_and(|epochs| last.epochs >= epochs), Stop::Epochs),
            (self.max_slots.is_some_and(|slots| last.slots >= slots), Stop::Slots),
            (last.round >= self.rounds, Stop::Rounds),
        ];
        stops.into_iter().find(|(is_met, _)| *is_met).map(|(_, stop)| stop)
    }
}

fn is_reached(target: MetricTarget, curve: &[SwarmProgress]) -> bool {
    recent(curve, |progress| progress.measured.mean(target.metric())).is_some_and(|mean| target.is_met_by(mean))
}

/// The mean accuracy, or r2, over the last evaluations that decide about a target; none before there are as many.
pub fn recent_score(curve: &[SwarmProgress]) -> Option<f64> {
    recent(curve, |progress| progress.measured.mean_score())
}

/// The mean over the last evaluations; none before there are as many, or where one of them has no such number.
fn recent(curve: &[SwarmProgress], of: impl Fn(&SwarmProgress) -> Option<f64>) -> Option<f64> {
    let last = curve.last_chunk::<AT_TARGET>()?;
    let sum: Option<f64> = last.iter().map(of).sum();
    Some(sum? / AT_TARGET as f64)
}

fn look(swarm: &mut dyn Rounds, learners: &mut Learners, round: u64) -> Result<SwarmProgress, SimulationError> {
    let tally = swarm.tally();
    let judgement = learners.judge(&swarm.models())?;
    Ok(SwarmProgress {
        round,
        slots: tally.slots,
        epochs: learners.epochs(),
        link_bytes: tally.link_bytes,
        measured: judgement.measured,
        disagreement: Some(judgement.disagreement).filter(|apart| apart.is_finite()),
    })
}
