//! Recent flow: the weight that passed over a link of late, beside the weight that the plan says.

/// Rounds over which the flow is averaged, at least.
const ROUNDS: f64 = 16.0;
/// Periods of the plan over which it is averaged, at least: a link may be used in one step of many.
const PERIODS: f64 = 4.0;

/// The weight that passed over a link in the last rounds, and the weight due in them; both fade with each round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentFlow {
    passed: f64,
    due: f64,
    /// The weight that has passed since the last round ended.
    newest: f64,
}

impl RecentFlow {
    /// Notes weight that passed; negative if it came back.
    pub(super) fn add(&mut self, weight: f64) {
        self.newest += weight;
    }

    /// Ends a round in which this weight was due, of a plan with so many rounds in a period.
    pub(super) fn end_round(&mut self, due: f64, rounds_of_period: f64) {
        let kept = 1.0 - 1.0 / ROUNDS.max(PERIODS * rounds_of_period);
        self.passed = kept * self.passed + std::mem::take(&mut self.newest);
        self.due = kept * self.due + due;
    }

    /// The weight that passed as a part of that due; `None` before any was due.
    pub(super) fn share(&self) -> Option<f64> {
        (self.due > 0.0).then(|| (self.passed / self.due).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_as_planned_is_1_from_the_first_round_on_and_fades_once_it_ends() {
        let mut flow = RecentFlow::default();
        assert_eq!(flow.share(), None);
        for _ in 0..100 {
            flow.add(0.25);
            flow.end_round(0.25, 1.0);
            assert!(flow.share().is_some_and(|share| (share - 1.0).abs() < 1e-9), "{flow:?}");
        }
        (0..100).for_each(|_| flow.end_round(0.25, 1.0));
        assert!(flow.share().is_some_and(|share| share < 0.01), "{flow:?}");
    }

    #[test]
    fn a_link_that_is_used_once_in_a_long_period_is_measured_over_several() {
        let mut flow = RecentFlow::default();
        for round in 0..400 {
            flow.add(if round % 20 == 0 { 1.0 } else { 0.0 });
            flow.end_round(1.0 / 20.0, 20.0);
            let share = flow.share().unwrap_or_default();
            assert!(round < 240 || (0.85..1.15).contains(&share), "round {round}: {share}");
        }
    }
}
