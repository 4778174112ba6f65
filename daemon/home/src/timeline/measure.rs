//! Shares of a peer's time: training, waiting, and parcels on their way.

use super::{PeerTimeline, Span, SpanKind};

/// A time interval, in microseconds since the timeline began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its beginning.
    pub from_us: u64,
    /// Its end.
    pub to_us: u64,
}

/// The use of the time of a window. The parts overlap, and the overlap is what is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Number of rounds whose middles lie in it.
    pub rounds: u64,
    /// Length of the window, in microseconds.
    pub whole_us: u64,
    /// Time spent training.
    pub training_us: u64,
    /// Time in which at least one parcel, from this peer or to it, was on its way.
    pub moving_us: u64,
    /// Time in which both happened: communication at no cost.
    pub hidden_us: u64,
    /// Time spent waiting for parcels or for room.
    pub waiting_us: u64,
}

impl Shares {
    /// The shares of `timeline` in `window`. Complexity: that of sorting the spans.
    pub fn of(timeline: &PeerTimeline, window: Window) -> Self {
        let pick = |chosen: fn(SpanKind) -> bool| {
            let spans = timeline.spans.iter().filter(|span| chosen(span.deed));
            Stretches::of(spans.filter_map(|span| window.part_of(span)))
        };
        let training = pick(|deed| deed == SpanKind::Train);
        let moving = pick(|deed| matches!(deed, SpanKind::Send { .. } | SpanKind::Receive { .. }));
        let is_in = |span: &&Span| matches!(span.deed, SpanKind::Round { .. }) && window.contains(span.middle_us());
        Self {
            rounds: timeline.spans.iter().filter(is_in).count() as u64,
            whole_us: window.to_us - window.from_us,
            training_us: training.total(),
            moving_us: moving.total(),
            hidden_us: moving.shared_with(&training),
            waiting_us: pick(|deed| deed == SpanKind::Wait).total(),
        }
    }

    /// Adds the shares of another peer.
    pub fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.whole_us += other.whole_us;
        self.training_us += other.training_us;
        self.moving_us += other.moving_us;
        self.hidden_us += other.hidden_us;
        self.waiting_us += other.waiting_us;
    }

    /// The share of the time with parcels on their way that was spent training; `None` if there was no parcel.
    #[allow(clippy::cast_precision_loss)] // for display
    pub fn hidden(&self) -> Option<f64> {
        (self.moving_us > 0).then(|| self.hidden_us as f64 / self.moving_us as f64)
    }
}

impl Window {
    /// From the beginning of round `first` to the end of round `last`; `None` if the timeline has no round in that
    /// range.
    pub fn of_rounds(timeline: &PeerTimeline, first: u64, last: u64) -> Option<Self> {
        let is_in = |span: &&Span| matches!(span.deed, SpanKind::Round { round } if (first..=last).contains(&round));
        let rounds: Vec<&Span> = timeline.spans.iter().filter(is_in).collect();
        let from_us = rounds.iter().map(|span| span.from_us).min()?;
        let to_us = rounds.iter().map(|span| span.to_us).max()?;
        Some(Self { from_us, to_us })
    }

    fn contains(self, at: u64) -> bool {
        (self.from_us..=self.to_us).contains(&at)
    }

    fn part_of(self, span: &Span) -> Option<(u64, u64)> {
        let part = (span.from_us.max(self.from_us), span.to_us.min(self.to_us));
        (part.0 < part.1).then_some(part)
    }
}

/// Disjoint time intervals, in order.
#[derive(Debug, PartialEq, Eq)]
struct Stretches(Vec<(u64, u64)>);

impl Stretches {
    /// The union of intervals.
    fn of(any: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut sorted: Vec<(u64, u64)> = any.collect();
        sorted.sort_unstable();
        let mut union: Vec<(u64, u64)> = Vec::new();
        for (from, to) in sorted {
            match union.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => union.push((from, to)),
            }
        }
        Self(union)
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }

    /// Length of the intersection.
    fn shared_with(&self, other: &Self) -> u64 {
        let mut mine = self.0.iter().peekable();
        let mut theirs = other.0.iter().peekable();
        let mut shared = 0;
        while let (Some(&&(from, to)), Some(&&(other_from, other_to))) = (mine.peek(), theirs.peek()) {
            shared += to.min(other_to).saturating_sub(from.max(other_from));
            if to <= other_to {
                mine.next()
            } else {
                theirs.next()
            };
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn span(deed: SpanKind, from_us: u64, to_us: u64) -> Span {
        Span { deed, from_us, to_us }
    }

    fn timeline(spans: Vec<Span>) -> PeerTimeline {
        PeerTimeline { node: 0, began_unix_us: 0, spans }
    }

    #[test]
    fn parcels_that_move_during_training_are_hidden_and_none_counts_twice() {
        let timeline = timeline(vec![
            span(SpanKind::Train, 0, 100),
            span(SpanKind::Send { node: 1 }, 90, 130),
            span(SpanKind::Receive { node: 2 }, 110, 150),
            span(SpanKind::Wait, 100, 160),
            span(SpanKind::Round { round: 1 }, 0, 160),
            span(SpanKind::Train, 160, 260),
            span(SpanKind::Receive { node: 1 }, 170, 200),
            span(SpanKind::Round { round: 2 }, 160, 300),
        ]);
        let window = Window::of_rounds(&timeline, 1, 2).unwrap();
        let shares = Shares::of(&timeline, window);
        let expected = Shares {
            rounds: 2,
            whole_us: 300,
            training_us: 200,
            moving_us: 60 + 30,
            hidden_us: 10 + 30,
            waiting_us: 60,
        };
        assert_eq!(shares, expected);
        assert_eq!(shares.hidden(), Some(40.0 / 90.0));
        let first = Shares::of(&timeline, Window::of_rounds(&timeline, 1, 1).unwrap());
        assert_eq!((first.rounds, first.moving_us, first.hidden_us), (1, 60, 10));
        assert_eq!(Window::of_rounds(&timeline, 7, 9), None);
    }

    proptest! {
        #[test]
        fn unions_and_intersections_count_each_instant_once(
            mine in proptest::collection::vec((0_u64..60, 0_u64..20), 0..12),
            theirs in proptest::collection::vec((0_u64..60, 0_u64..20), 0..12),
        ) {
            let stretches = |lengths: &[(u64, u64)]| lengths.iter().map(|&(from, long)| (from, from + long)).collect::<Vec<_>>();
            let (mine, theirs) = (stretches(&mine), stretches(&theirs));
            let is_in = |stretches: &[(u64, u64)], at: u64| stretches.iter().any(|&(from, to)| (from..to).contains(&at));
            let count = |test: &dyn Fn(u64) -> bool| (0..100).filter(|at| test(*at)).count() as u64;
            let (a, b) = (Stretches::of(mine.iter().copied()), Stretches::of(theirs.iter().copied()));
            prop_assert_eq!(a.total(), count(&|at| is_in(&mine, at)));
            prop_assert_eq!(a.shared_with(&b), count(&|at| is_in(&mine, at) && is_in(&theirs, at)));
            prop_assert_eq!(b.shared_with(&a), a.shared_with(&b));
        }
    }
}
