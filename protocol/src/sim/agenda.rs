//! The agenda of virtual time: events in the order of their time, and an alarm a node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::schedule::NodeId;
use crate::time::Time;

/// The agenda of a discrete-event simulation: a queue of events ordered by time, and at one time by the order in which
/// they were added, beside at most one alarm for each node, which can be moved. An event comes before an alarm of the
/// same time.
///
/// It keeps no clock: its host asks for [`next`](Self::next), sets its clock to that time, and takes the event with
/// [`pop`](Self::pop) or rings the alarm by letting the node set another one.
#[derive(Debug)]
pub struct Agenda<T> {
    events: BinaryHeap<Reverse<Scheduled<T>>>,
    added: u64,
    alarms: BTreeSet<(Time, NodeId)>,
    alarm_of: BTreeMap<NodeId, Time>,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { events: BinaryHeap::new(), added: 0, alarms: BTreeSet::new(), alarm_of: BTreeMap::new() }
    }
}

impl<T> Agenda<T> {
    /// Adds an event. O(log n).
    pub fn add(&mut self, at: Time, event: T) {
        self.added += 1;
        self.events.push(Reverse(Scheduled { at, order: self.added, event }));
    }

    /// Sets, moves or takes away the alarm of a node. O(log n).
    pub fn set_alarm(&mut self, id: NodeId, at: Option<Time>) {
        let before = match at {
            Some(at) => self.alarm_of.insert(id, at),
            None => self.alarm_of.remove(&id),
        };
        if before == at {
            return;
        }
        before.map(|before| self.alarms.remove(&(before, id)));
        at.map(|at| self.alarms.insert((at, id)));
    }

    /// The time of the next event or alarm, and the node whose alarm it is; `None` in its place where it is an event.
    /// An alarm that lies before `now` rings now.
    pub fn next(&self, now: Time) -> Option<(Time, Option<NodeId>)> {
        let alarm = self.alarms.first().map(|&(at, id)| (at.max(now), Some(id)));
        let event = self.events.peek().map(|Reverse(next)| next.at);
        match event {
            Some(at) if alarm.is_none_or(|(alarm, _)| at <= alarm) => Some((at, None)),
            _ => alarm,
        }
    }

    /// Takes the first event that lies no later than `limit`. O(log n).
    pub fn pop(&mut self, limit: Time) -> Option<T> {
        self.events.peek().filter(|Reverse(next)| next.at <= limit)?;
        self.events.pop().map(|Reverse(next)| next.event)
    }
}

/// An event and its place in the order.
#[derive(Debug)]
struct Scheduled<T> {
    at: Time,
    order: u64,
    event: T,
}

impl<T> PartialEq for Scheduled<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl<T> Eq for Scheduled<T> {}
impl<T> PartialOrd for Scheduled<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Scheduled<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_the_order_in_which_they_were_added() {
        let mut agenda = Agenda::default();
        for (at, event) in [(5, "c"), (3, "a"), (5, "d"), (3, "b")] {
            agenda.add(Time(at), event);
        }
        assert_eq!(agenda.next(Time(0)), Some((Time(3), None)));
        assert_eq!(agenda.pop(Time(2)), None);
        let all: Vec<&str> = std::iter::from_fn(|| agenda.pop(Time(9))).collect();
        assert_eq!(all, ["a", "b", "c", "d"]);
        assert_eq!(agenda.next(Time(9)), None);
    }

    #[test]
    fn an_alarm_moves_rings_after_the_events_of_its_time_and_never_in_the_past() {
        let (mut agenda, first, second) = (Agenda::default(), NodeId(1), NodeId(2));
        agenda.add(Time(7), ());
        agenda.set_alarm(first, Some(Time(9)));
        agenda.set_alarm(second, Some(Time(7)));
        assert_eq!(agenda.next(Time(0)), Some((Time(7), None)));
        agenda.set_alarm(first, Some(Time(4)));
        assert_eq!(agenda.next(Time(0)), Some((Time(4), Some(first))));
        // Late: it rings now, behind an event of the same time.
        assert_eq!(agenda.next(Time(6)), Some((Time(6), Some(first))));
        assert_eq!(agenda.next(Time(7)), Some((Time(7), None)));
        agenda.set_alarm(first, None);
        assert_eq!(agenda.pop(Time(7)), Some(()));
        assert_eq!(agenda.next(Time(7)), Some((Time(7), Some(second))));
        agenda.set_alarm(second, None);
        assert_eq!(agenda.next(Time(7)), None);
    }
}
