//! The state of the dashboard: the newest snapshot, the curves so far, the last events.

use std::collections::{BTreeMap, VecDeque};

use mingle_net::printable::one_line;
use mingle_peer::events::{Event, EventLine};
use mingle_peer::status::Status;

/// The most events that are kept.
const LAST_EVENTS: usize = 200;
/// The most points of a curve. When it has so many, every second one is removed.
const MOST_POINTS: usize = 2000;

/// A curve: rounds and the values measured after them.
pub(super) type Curve = Vec<(f64, f64)>;

/// The state that is drawn.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The newest snapshot.
    pub(super) status: Option<Status>,
    /// The metrics of the model on held-out samples, by name.
    pub(super) metrics: BTreeMap<String, Curve>,
    /// Decimal logarithm of the disagreement by round.
    pub(super) disagreement: Curve,
    /// The last events, newest last.
    pub(super) events: VecDeque<String>,
    /// Set when the peer has ended.
    pub(super) has_ended: bool,
}

impl View {
    /// Takes a snapshot; other text is ignored.
    pub(super) fn on_snapshot(&mut self, text: &str) {
        if let Ok(status) = serde_json::from_str(text) {
            self.status = Some(status);
        }
    }

    /// Takes an event; other text is ignored.
    pub(super) fn on_event(&mut self, text: &str) {
        let Ok(EventLine { event, .. }) = serde_json::from_str(text) else { return };
        if let Event::Evaluated { round, ref metrics, disagreement, .. } = event {
            for (name, value) in metrics.iter() {
                push(self.metrics.entry(name.to_owned()).or_default(), round, value);
            }
            if let Some(disagreement) = disagreement.filter(|value| *value > 0.0) {
                push(&mut self.disagreement, round, disagreement.log10());
            }
        }
        // The curves show evaluations; as lines they would crowd out the other events.
        if event.is_for_people() && !matches!(event, Event::Evaluated { .. }) {
            if self.events.len() == LAST_EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(one_line(&event.sentence()));
        }
    }

    /// The disagreement under the plan's mixing alone, from the first measurement on: two points, or none.
    pub(super) fn forecast(&self) -> Curve {
        let factor = self.status.as_ref().and_then(|status| status.contraction.forecast);
        match (factor.filter(|factor| *factor > 0.0), self.disagreement.first(), self.disagreement.last()) {
            (Some(factor), Some(first), Some(last)) if last.0 > first.0 => {
                vec![*first, (last.0, first.1 + (last.0 - first.0) * factor.log10())]
            }
            _ => Vec::new(),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // for a picture
fn push(curve: &mut Curve, round: u64, value: f64) {
    if !value.is_finite() {
        return;
    }
    if curve.len() == MOST_POINTS {
        let mut index = 0;
        curve.retain(|_| {
            index += 1;
            index % 2 == 1
        });
    }
    curve.push((round as f64, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluated(round: u64, disagreement: f64) -> String {
        format!(
            r#"{{"schema":"mingle.event/1","at_ms":1,"event":"evaluated","round":{round},"metrics":{{"accuracy":0.5,"loss":1.5}},
            "train_loss":null,"weight_units":1,"disagreement":{disagreement},"sent_bytes":0}}"#
        )
    }

    #[test]
    fn evaluations_become_curves_and_what_makes_no_sense_is_left_out() {
        let mut view = View::default();
        view.on_event(&evaluated(10, 0.1));
        view.on_event(&evaluated(20, 0.0));
        view.on_event("not json");
        view.on_snapshot("{}");
        assert_eq!((view.metrics["accuracy"].len(), view.metrics["loss"].len()), (2, 2));
        assert_eq!(view.disagreement, [(10.0, -1.0)]);
        assert!(view.status.is_none() && view.events.is_empty());
    }

    #[test]
    fn the_forecast_starts_at_the_first_measurement_and_falls_by_the_plans_factor() {
        let mut view = View { status: Some(Status::starting(String::new())), ..View::default() };
        for (round, disagreement) in [(10, 0.1), (20, 0.05), (30, 0.04)] {
            view.on_event(&evaluated(round, disagreement));
        }
        assert!(view.forecast().is_empty(), "nothing is known of the plan");
        if let Some(status) = &mut view.status {
            status.contraction.forecast = Some(0.1_f64.powf(0.1));
        }
        let forecast = view.forecast();
        assert!((forecast[1].1 - -3.0).abs() < 1e-9 && forecast[0] == (10.0, -1.0), "{forecast:?}");
    }

    #[test]
    fn a_long_run_keeps_a_bounded_number_of_points_and_events() {
        let mut view = View::default();
        for round in 1..=9_999 {
            view.on_event(&evaluated(round, 0.5));
            view.on_event(r#"{"schema":"mingle.event/1","at_ms":1,"event":"left"}"#);
        }
        assert!(view.metrics["accuracy"].len() <= MOST_POINTS && view.events.len() == LAST_EVENTS);
        assert_eq!(view.metrics["accuracy"].last(), Some(&(9_999.0, 0.5)));
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_shown() {
        assert_eq!(one_line("a\u{1b}[2J\n   b\u{202e}"), r"a\u001b[2J b\u202e");
    }
}
