//! Failure detector of the automatic planner: the members of the next plan are the present ones, less those that are
//! gone, and the pending peers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use libp2p::PeerId;

/// A change of members is planned once it has stayed the same for this long,
const SETTLE: Duration = Duration::from_secs(2);
/// or once this long has passed since it began.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// A member that answered within this time counts as present, unless it would be left out sooner.
const PRESENT: Duration = Duration::from_secs(60);
/// A member reported as departed that stays silent this long is removed.
const LEFT_AFTER: Duration = Duration::from_secs(12);

/// Knowledge of the automatic planner about the peers of its swarm. Times are since it began.
pub(crate) struct FailureDetector {
    /// Silence after which a member is left out.
    forget_after: Duration,
    /// Members of a first plan at least, and those that silence leaves.
    least_members: usize,
    heard: BTreeMap<PeerId, Duration>,
    said_to_have_left: BTreeSet<PeerId>,
    /// Left out, whatever they answer.
    expelled: BTreeSet<PeerId>,
    change: Option<MembershipChange>,
}

/// The members of a next plan that differ from those of the present one.
struct MembershipChange {
    members: Vec<PeerId>,
    began: Duration,
    altered: Duration,
}

impl FailureDetector {
    /// A detector without any observation.
    pub(crate) fn new(forget_after: Duration, least_members: usize) -> Self {
        Self {
            forget_after,
            least_members,
            heard: BTreeMap::new(),
            said_to_have_left: BTreeSet::new(),
            expelled: BTreeSet::new(),
            change: None,
        }
    }

    /// Records an answer of `member`, which names neighbours that have left. These names may be wrong, or lies: a
    /// member that answers has not left.
    pub(crate) fn hear(&mut self, now: Duration, member: PeerId, left: impl IntoIterator<Item = PeerId>) {
        self.heard.insert(member, now);
        self.said_to_have_left.extend(left);
    }

    /// Sets the members that the operator has expelled.
    pub(crate) fn expel(&mut self, members: impl IntoIterator<Item = PeerId>) {
        self.expelled = members.into_iter().collect();
    }

    /// The members of the next plan: the present ones in their order, then the pending peers. `None` while the present
    /// plan is right, the change is not settled, fewer than two peers would remain, or newcomers would not be enough.
    pub(crate) fn next(&mut self, now: Duration, members: &[PeerId], waiting: &[PeerId]) -> Option<Vec<PeerId>> {
        self.said_to_have_left.retain(|peer| members.contains(peer));
        self.heard.retain(|peer, _| members.contains(peer));
        let mut next = self.remaining(now, members, waiting, true);
        if next.len() < self.least_members {
            next = self.remaining(now, members, waiting, false);
        }
        let only_comes = members.iter().all(|member| next.contains(member));
        let least = if only_comes { self.least_members.max(2) } else { 2 };
        if next == members || next.len() < least {
            self.change = None;
            return None;
        }
        let began = self.change.as_ref().map_or(now, |change| change.began);
        let change = match self.change.take() {
            Some(change) if change.members == next => change,
            _ => MembershipChange { members: next, began, altered: now },
        };
        let is_settled = now.saturating_sub(change.altered) >= SETTLE || now.saturating_sub(began) >= MAX_WAIT;
        if is_settled {
            return Some(change.members);
        }
        self.change = Some(change);
        None
    }

    /// The members that are not gone, and then the pending peers.
    fn remaining(&mut self, now: Duration, members: &[PeerId], waiting: &[PeerId], forgets: bool) -> Vec<PeerId> {
        let gone = self.gone(now, members, forgets);
        let stay = members.iter().filter(|peer| !gone.contains(peer));
        let come = waiting.iter().filter(|peer| !members.contains(peer));
        stay.chain(come).copied().collect()
    }

    /// Members that left, were expelled, or, if `forgets`, were silent for too long. Silence counts only on the side of a
    /// partition that has more than half of the members.
    fn gone(&mut self, now: Duration, members: &[PeerId], forgets: bool) -> BTreeSet<PeerId> {
        let silence: BTreeMap<PeerId, Duration> =
            members.iter().map(|&peer| (peer, now.saturating_sub(*self.heard.entry(peer).or_insert(now)))).collect();
        let is_present = |silence: Duration| silence < PRESENT.min(self.forget_after);
        let present = silence.values().filter(|&&silence| is_present(silence)).count();
        let is_majority = 2 * present > members.len();
        let has_left = |peer: &PeerId, silence| self.said_to_have_left.contains(peer) && silence >= LEFT_AFTER;
        let is_forgotten = |silence| forgets && is_majority && silence >= self.forget_after;
        let is_gone =
            |peer: &PeerId, silence| self.expelled.contains(peer) || has_left(peer, silence) || is_forgotten(silence);
        let gone = silence.iter().filter(|&(peer, &silence)| is_gone(peer, silence));
        gone.map(|(peer, _)| *peer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn peers<const N: usize>() -> [PeerId; N] {
        std::array::from_fn(|_| PeerId::random())
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn newcomers_are_planned_in_together_once_no_more_come() {
        let mut failure_detector = FailureDetector::new(DAY, 2);
        let [operator, first, second] = peers();
        assert_eq!(failure_detector.next(seconds(0), &[operator], &[]), None, "alone");
        assert_eq!(failure_detector.next(seconds(1), &[operator], &[first]), None);
        assert_eq!(failure_detector.next(seconds(2), &[operator], &[first, second]), None, "others may still come");
        assert_eq!(failure_detector.next(seconds(3), &[operator], &[first, second]), None);
        assert_eq!(
            failure_detector.next(seconds(4), &[operator], &[first, second]),
            Some(vec![operator, first, second])
        );
        assert_eq!(failure_detector.next(seconds(5), &[operator, first, second], &[]), None, "the plan is right now");
    }

    #[test]
    fn a_first_plan_waits_for_as_many_as_are_needed_and_later_changes_do_not() {
        let mut failure_detector = FailureDetector::new(DAY, 3);
        let [operator, first, second] = peers();
        let all = [operator, first, second];
        assert_eq!(failure_detector.next(seconds(0), &[operator], &[first]), None);
        assert_eq!(failure_detector.next(seconds(100), &[operator], &[first]), None, "two are too few");
        assert_eq!(failure_detector.next(seconds(101), &[operator], &[first, second]), None);
        assert_eq!(failure_detector.next(seconds(105), &[operator], &[first, second]), Some(all.to_vec()));
        failure_detector.expel([second]);
        assert_eq!(failure_detector.next(seconds(106), &all, &[]), None);
        let left = Some(vec![operator, first]);
        assert_eq!(
            failure_detector.next(seconds(110), &all, &[]),
            left,
            "a member that was expelled leaves all the same"
        );
    }

    #[test]
    fn nobody_waits_for_ever_because_others_come() {
        let mut failure_detector = FailureDetector::new(DAY, 2);
        let all: [PeerId; 16] = peers();
        let planned =
            (1..16).find(|&now| failure_detector.next(seconds(now as u64), &all[..1], &all[1..=now]).is_some());
        assert_eq!(planned, Some(11), "ten seconds after the first came");
    }

    #[test]
    fn who_left_is_planned_out_unless_it_answers() {
        let mut failure_detector = FailureDetector::new(DAY, 2);
        let members: [PeerId; 3] = peers();
        let mut next_at = |now| {
            // The last one is reported as departed, too, which is a lie.
            failure_detector.hear(seconds(now), members[0], [members[1], members[2]]);
            failure_detector.hear(seconds(now), members[2], []);
            failure_detector.next(seconds(now), &members, &[])
        };
        assert_eq!(next_at(0), None);
        assert_eq!(next_at(11), None, "it may just be late");
        assert_eq!(next_at(12), None);
        assert_eq!(next_at(14), Some(vec![members[0], members[2]]));
    }

    #[test]
    fn who_is_expelled_is_planned_out_although_it_answers() {
        let mut failure_detector = FailureDetector::new(DAY, 2);
        let members: [PeerId; 3] = peers();
        let mut next_at = |now, expelled: &[PeerId]| {
            members.iter().for_each(|&member| failure_detector.hear(seconds(now), member, []));
            failure_detector.expel(expelled.iter().copied());
            failure_detector.next(seconds(now), &members, &[])
        };
        assert_eq!(next_at(0, &[]), None);
        assert_eq!(next_at(1, &members[1..2]), None);
        assert_eq!(next_at(3, &members[1..2]), Some(vec![members[0], members[2]]));
        assert_eq!(next_at(4, &[]), None, "it may stay after all");
    }

    #[test]
    fn those_that_are_silent_for_the_same_short_time_are_no_minority() {
        let members: [PeerId; 5] = peers();
        let short = seconds(15);
        let mut failure_detector = FailureDetector::new(short, 3);
        members.iter().for_each(|&peer| failure_detector.hear(seconds(0), peer, []));
        for now in 1..50 {
            members[..2].iter().for_each(|&peer| failure_detector.hear(seconds(now), peer, []));
            assert_eq!(failure_detector.next(seconds(now), &members, &[]), None, "two of five, after {now} s");
        }
    }

    #[test]
    fn silence_leaves_as_many_members_as_a_masked_sum_takes() {
        let members: [PeerId; 3] = peers();
        let [newcomer] = peers();
        let mut failure_detector = FailureDetector::new(seconds(15), 3);
        let mut next_at = |now, waiting: &[PeerId]| {
            members[..2].iter().for_each(|&peer| failure_detector.hear(seconds(now), peer, []));
            failure_detector.next(seconds(now), &members, waiting)
        };
        assert!((0..40).all(|now| next_at(now, &[]).is_none()), "two would add up in clear");
        next_at(41, &[newcomer]);
        assert_eq!(next_at(44, &[newcomer]), Some(vec![members[0], members[1], newcomer]));
    }

    #[test]
    fn who_is_silent_for_long_is_forgotten_by_a_majority_only() {
        let [a, b, c, d] = peers();
        let forgotten = |members: &[PeerId], present: &[PeerId]| {
            let mut failure_detector = FailureDetector::new(DAY, 2);
            assert_eq!(failure_detector.next(seconds(0), members, &[]), None);
            let later = DAY + seconds(1);
            present.iter().for_each(|&peer| failure_detector.hear(later, peer, []));
            assert_eq!(failure_detector.next(later, members, &[]), None, "never at once");
            failure_detector.next(later + SETTLE, members, &[])
        };
        assert_eq!(forgotten(&[a, b, c], &[a, b]), Some(vec![a, b]));
        assert_eq!(forgotten(&[a, b, c, d], &[a, b]), None, "the other half may be as well off");
        assert_eq!(forgotten(&[a, b, c], &[a]), None);
    }
}
