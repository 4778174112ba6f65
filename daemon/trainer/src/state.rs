//! The state shared by the training thread of a peer and its trainer: at most one open order, and at most one answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_peer::Error;
use mingle_peer::api::Caller;
use mingle_peer::training::{Layout, Metrics};

use crate::error::{Reason, Refusal};
use crate::kept_state::KeptState;
use crate::memory::TrainedTask;
use crate::order::{Lateness, NextOrder, Order, OrderKind};
use crate::pace::{EvaluationPace, Pace};
use crate::run_end::RunEnd;
use crate::session::Session;
use crate::wire::{Attach, Initial, Need, WeightedMetrics, means};

/// An answer of the trainer to the open order.
#[derive(Debug, PartialEq)]
pub(crate) enum TrainerAnswer {
    /// A change, `[dimension]`; no vector where nothing was trained.
    Change {
        vector: Option<Vec<f32>>,
        steps: u32,
        loss: Option<f64>,
    },
    Evaluation(WeightedMetrics),
}

/// All that the training thread and the trainer share.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Rounds of the run, once they are known.
    pub(crate) rounds: Option<u64>,
    /// The task, once a trainer or the home has defined it.
    pub(crate) task: Option<Arc<TrainedTask>>,
    /// The initial vector that the trainer or a file offered, until the peer takes it.
    initial: Option<Vec<f32>>,
    /// Set when a file offered it.
    pub(crate) has_file: bool,
    /// Set when the trainer has no initial vector to offer.
    takes: bool,
    /// Set when the peer has a model of an earlier run.
    pub(crate) goes_on: bool,
    /// Set while the next run of this home waits for its first trainer.
    pub(crate) is_trainer_awaited: bool,
    /// Number of attachments so far.
    pub(crate) attachments: u64,
    /// Number of rounds in which a trainer trained.
    pub(crate) trained: u64,
    pub(crate) session: Option<Session>,
    pub(crate) order: Option<Order>,
    last_number: u64,
    answer: Option<TrainerAnswer>,
    /// The states of the trainer's own that the peer holds for it.
    pub(crate) kept: KeptState,
    /// The latest metrics that the trainer reported with its changes.
    reported: WeightedMetrics,
    pub(crate) end: Option<RunEnd>,
    end_is_told: bool,
    /// Set when the peer has adopted the task, which no longer changes.
    pub(crate) is_settled: bool,
    /// The reason why no trainer will attach.
    pub(crate) failure: Option<Error>,
    pace: Pace,
    evaluations: EvaluationPace,
    /// Set when the trainer has not ended an evaluation in time. Cleared by its next call.
    is_stuck: bool,
    /// Set while the command of the trainer runs, whose end the peer observes.
    pub(crate) is_watched: bool,
    /// Set when the trainer has ended for good: it detached, or its command is not started again. Cleared by the next
    /// attachment.
    pub(crate) is_deserted: bool,
    /// The reason why the trainer that the peer started is not started again: the peer cannot go on.
    pub(crate) given_up: Option<Error>,
    /// Set when the user of the peer no longer waits for a trainer.
    pub(crate) is_hurried: bool,
}

impl State {
    /// A state without a trainer. `task` comes from the home where the peer goes on with an earlier run (`goes_on`). If
    /// that one is over and the next begins (`begins_again`), the peer is not ready before a trainer has attached.
    pub(crate) fn new(task: Option<Arc<TrainedTask>>, goes_on: bool, begins_again: bool) -> Self {
        Self { task, goes_on, is_trainer_awaited: goes_on && begins_again, ..Self::default() }
    }

    /// Attaches a trainer. The first one defines the task; until the peer is ready, a later one may replace it. One that comes
    /// after the end of the run gets the final model as its first order.
    ///
    /// # Errors
    /// The run has failed, another trainer is present, the task cannot be used, or it differs from that of the peer.
    pub(crate) fn attach(
        &mut self,
        attach: &Attach,
        id: String,
        caller: Caller,
        now: Instant,
    ) -> Result<Need, Refusal> {
        if let Some(failure @ RunEnd::Failure { .. }) = &self.end {
            return Err(failure.refusal());
        }
        let present = self.session.as_ref().filter(|session| !session.is_of(caller) && session.absence(now).is_none());
        if let Some(session) = present {
            return Err(session.refusal_of_another(now));
        }
        let wanted = TrainedTask::of(attach)?;
        match &self.task {
            Some(task) if self.is_ready() || self.goes_on || self.end.is_some() => task.check(&wanted)?,
            // No work has begun with the task of an earlier trainer.
            _ => self.task = Some(Arc::new(wanted)),
        }
        if !attach.evaluates {
            self.withdraw_evaluation();
        }
        self.session = Some(Session::new(id, attach, caller, now));
        self.end_is_told = false;
        self.attachments += 1;
        self.is_trainer_awaited = false;
        self.is_deserted = false;
        // A new trainer is not late with the order of its predecessor.
        if let Some(order) = &mut self.order {
            order.lateness = Lateness::InTime;
            order.opened = now;
        }
        self.takes = attach.initial == Initial::Take;
        self.kept.is_shared = attach.shares_state;
        let has_begun = self.goes_on || self.initial.is_some() || self.last_number > 0 || self.end.is_some();
        Ok(if self.takes || has_begun { Need::Nothing } else { Need::Initial })
    }

    /// Returns `true` if nothing more is waited for: the task and the beginning are known, or no trainer will attach.
    pub(crate) fn is_ready(&self) -> bool {
        let knows_a_beginning = self.initial.is_some() || self.takes || (self.goes_on && !self.is_trainer_awaited);
        self.is_settled || self.failure.is_some() || (self.task.is_some() && knows_a_beginning)
    }

    /// Offers the vector of a trainer; that of a file counts before it.
    pub(crate) fn offer(&mut self, vector: Vec<f32>) {
        if !self.has_file {
            self.initial = Some(vector);
        }
    }

    pub(crate) fn offer_file(&mut self, vector: Vec<f32>) {
        self.offer(vector);
        self.has_file = true;
    }

    /// Takes the initial vector, `[dimension]`, if a trainer offered one.
    pub(crate) fn take_initial(&mut self) -> Option<Vec<f32>> {
        self.has_file = false;
        self.initial.take()
    }

    /// Records a call under this session, and returns the task.
    ///
    /// # Errors
    /// No trainer is attached, or another one is.
    pub(crate) fn check_session(&mut self, id: &str, now: Instant) -> Result<Arc<TrainedTask>, Refusal> {
        match (&mut self.session, &self.task) {
            (Some(session), Some(task)) if session.id == id => {
                session.note(now);
                self.is_stuck = false;
                Ok(Arc::clone(task))
            }
            (Some(session), _) => Err(Refusal::conflict(
                Reason::Session,
                format!("this session is over: {} is attached", session.description),
            )
            .hint("attach again, if that one has ended")),
            (None, _) => Err(Refusal::nothing("no trainer is attached").hint("attach again: POST /v1/trainer/attach")),
        }
    }

    /// The end, or else the open order unless it is answered.
    pub(crate) fn next(&mut self) -> NextOrder {
        if let Some(end) = &self.end {
            return NextOrder::End(end.clone());
        }
        match &mut self.order {
            Some(order) if self.answer.is_none() => {
                order.is_fetched = true;
                NextOrder::Order(order.clone())
            }
            _ => NextOrder::Nothing,
        }
    }

    /// Records that the whole message of the end was sent to the trainer.
    pub(crate) fn note_end_told(&mut self) {
        self.end_is_told = true;
    }

    /// Returns `true` if no trainer need still be notified of the end: it was, it is gone, or the user does not wait.
    pub(crate) fn is_told_of_the_end(&self, now: Instant) -> bool {
        self.is_hurried
            || self.end_is_told
            || self.session.as_ref().is_none_or(|session| session.absence(now).is_some())
    }

    /// Checks an answer against the open order, of training where `is_training`, else of evaluation.
    ///
    /// # Errors
    /// The run is over, another order or none is open, it is answered, or it asked for the other kind of work.
    pub(crate) fn check_order(&self, number: u64, is_training: bool) -> Result<(), Refusal> {
        if let Some(end) = &self.end {
            return Err(end.refusal());
        }
        let again = "GET /v1/trainer/order has the present one";
        let order = self.order.as_ref().filter(|order| order.number == number);
        if order.is_none() || self.answer.is_some() {
            let why = if number > self.last_number { "was never given" } else { "is answered or withdrawn" };
            return Err(Refusal::conflict(Reason::Order, format!("order {number} {why}")).hint(again));
        }
        if order.is_some_and(|order| (order.work != OrderKind::Evaluate) != is_training) {
            let wanted = if is_training { "to evaluate, not to train" } else { "to train, not to evaluate" };
            return Err(Refusal::bad(format!("order {number} was {wanted}")));
        }
        Ok(())
    }

    /// Accepts the answer to the open order, after `check_order`. The state sent for that order is kept, and its
    /// duration counts for the pace unless it was late.
    pub(crate) fn take(&mut self, answer: TrainerAnswer, now: Instant) {
        if let Some(order) = self.order.as_ref().filter(|order| !order.is_late()) {
            let took = now.saturating_duration_since(order.opened);
            if order.work == OrderKind::Evaluate { self.evaluations.note(took) } else { self.pace.note(took) }
        }
        self.trained += u64::from(matches!(answer, TrainerAnswer::Change { steps: 1.., .. }));
        self.kept.settle(self.order.as_ref().map(|order| order.number));
        self.answer = Some(answer);
    }

    /// The bytes for a record: the usual time of a round in microseconds as a little-endian `u64`, 0 for none, then the
    /// state of the trainer.
    pub(crate) fn record(&self) -> Vec<u8> {
        let usual = self.pace.usual().map_or(0, |usual| u64::try_from(usual.as_micros()).unwrap_or(u64::MAX));
        [&usual.to_le_bytes()[..], self.kept.own()].concat()
    }

    /// Restores the pace and the trainer's state from what [`record`](Self::record) returned before a restart.
    pub(crate) fn restore(&mut self, state: &[u8]) -> Result<(), &'static str> {
        let (usual, kept) = state.split_first_chunk().ok_or("it is too short")?;
        let usual = u64::from_le_bytes(*usual);
        self.pace.resume((usual > 0).then(|| Duration::from_micros(usual)));
        self.kept.restore(kept);
        Ok(())
    }

    pub(crate) fn report(&mut self, metrics: WeightedMetrics) {
        self.reported.extend(metrics);
    }

    /// The latest metrics that the trainer reported with its changes, and the largest number of samples behind one.
    pub(crate) fn reported(&self) -> (Metrics, usize) {
        means(&self.reported)
    }

    /// Opens an order, unless a late one is still open: the peer has gone on, and the trainer still works on it.
    pub(crate) fn open(&mut self, work: OrderKind, round: u64, vector: Arc<[f32]>, now: Instant) {
        self.pace.open(now);
        if self.order.as_ref().is_some_and(Order::is_late) {
            return;
        }
        self.last_number += 1;
        let number = self.last_number;
        self.order =
            Some(Order { number, work, round, vector, opened: now, is_fetched: false, lateness: Lateness::InTime });
        self.answer = None;
    }

    /// Takes the answer, if there is one, and closes its order.
    pub(crate) fn take_answer(&mut self) -> Option<TrainerAnswer> {
        let answer = self.answer.take()?;
        self.order = None;
        Some(answer)
    }

    /// Goes on without an answer. An attached trainer may still answer an order to train; any other order is closed.
    /// Returns the trainer to report when it first becomes very late with an order.
    pub(crate) fn go_on(&mut self, now: Instant) -> Option<String> {
        self.pace.go_on(now);
        match (&self.session, &mut self.order) {
            (Some(session), Some(order)) if order.work != OrderKind::Evaluate => {
                let is_very_late = now.saturating_duration_since(order.opened) >= self.pace.late();
                if is_very_late && order.lateness != Lateness::Told {
                    order.lateness = Lateness::Told;
                    return Some(session.description.clone());
                }
                if order.lateness == Lateness::InTime {
                    order.lateness = Lateness::GoneOn;
                }
                None
            }
            _ => {
                self.is_stuck |= self.order.take().is_some_and(|order| order.is_under_evaluation());
                None
            }
        }
    }

    /// The sentence for a person who waits for an evaluation that has taken `elapsed`; none while that is not unusual.
    pub(crate) fn evaluation_in_words(&self, elapsed: Duration, is_last: bool) -> Option<String> {
        let is_under_evaluation = self.order.as_ref().is_some_and(Order::is_under_evaluation);
        let session = self.session.as_ref().filter(|_| is_under_evaluation)?;
        self.evaluations.in_words(&session.description, elapsed, is_last)
    }

    /// The trainer that has answered after it was reported late.
    pub(crate) fn is_back(&self) -> Option<String> {
        let was_told = self.order.as_ref().is_some_and(|order| order.lateness == Lateness::Told);
        self.session.as_ref().filter(|_| was_told && self.answer.is_some()).map(|session| session.description.clone())
    }

    /// Records that the trainer detaches, for good unless its command runs: the exit status of that decides.
    pub(crate) fn note_farewell(&mut self) {
        self.is_deserted = !self.is_watched;
    }

    /// Withdraws the open order, and drops an answer to it.
    pub(crate) fn withdraw(&mut self) {
        self.order = None;
        self.answer = None;
    }

    /// Withdraws the open order if it is to evaluate, unless it is answered: nobody will answer it.
    fn withdraw_evaluation(&mut self) {
        if self.answer.is_none() {
            self.order.take_if(|order| order.work == OrderKind::Evaluate);
        }
    }

    /// Ends the session. An order to train stays open for the next trainer.
    pub(crate) fn end_session(&mut self) {
        self.session = None;
        self.withdraw_evaluation();
    }

    /// Returns `true` while an order is open or its answer is not taken.
    pub(crate) fn has_order(&self) -> bool {
        self.order.is_some()
    }

    /// Ends the session of a trainer that is gone, and returns the reason. A trainer that the peer started, but whose
    /// own process it cannot observe, such as in a container, may be silent for as long as its command runs.
    pub(crate) fn notice_absence(&mut self, now: Instant) -> Option<String> {
        let session = self.session.as_ref().filter(|session| session.has_process() || !self.is_watched)?;
        let reason = session.absence(now)?;
        let reason = format!("{}: {reason}", session.description);
        self.end_session();
        Some(reason)
    }

    /// Timeout of the training thread for the answer to an order; none: as long as the peer has patience.
    pub(crate) fn limit(&self) -> Option<Duration> {
        match &self.order {
            Some(order) if order.work == OrderKind::Evaluate => {
                Some(if order.is_fetched { self.evaluations.limit() } else { self.last_call() })
            }
            Some(order) if self.session.is_some() && !order.is_late() => self.pace.at_work(),
            _ => self.pace.without_trainer(),
        }
    }

    /// Time for a trainer that is at work to fetch the end of the run, or an order to evaluate.
    pub(crate) fn last_call(&self) -> Duration {
        self.pace.last_call(self.is_stuck)
    }

    /// Returns `true` if the attached trainer answers orders to evaluate.
    pub(crate) fn evaluates(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.evaluates)
    }

    /// The layout of the task, once that is known.
    pub(crate) fn layout(&self) -> Option<&Layout> {
        self.task.as_ref().map(|task| &task.layout)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::pace::{LAST_CALL_OF_THE_STUCK, SHORTEST_LAST_CALL};
    use mingle_peer::ErrorKind;

    const TRAIN: OrderKind = OrderKind::Train { steps: 10, rounds_left: 5, seconds: None, last_factor: 1.0 };

    fn introduction() -> Attach {
        let text = r#"{"protocol": 1, "name": "x", "layout": [["w", [2]]], "initial": "offer", "evaluates": true}"#;
        Attach::parse(text.as_bytes()).unwrap()
    }

    fn attached(now: Instant) -> State {
        let mut state = State::default();
        let needs = state.attach(&introduction(), "a".to_owned(), Caller::default(), now).unwrap();
        assert_eq!(needs, Need::Initial);
        assert!(!state.is_ready());
        state.offer(vec![1.0, 2.0]);
        assert!(state.is_ready());
        state
    }

    fn change(value: f32) -> TrainerAnswer {
        TrainerAnswer::Change { vector: Some(vec![value; 2]), steps: 10, loss: None }
    }

    fn number_of(state: &mut State) -> Option<u64> {
        match state.next() {
            NextOrder::Order(order) => Some(order.number),
            _ => None,
        }
    }

    #[test]
    fn an_order_is_there_until_it_is_answered_once() {
        let now = Instant::now();
        let mut state = attached(now);
        assert_eq!(number_of(&mut state), None);
        state.open(TRAIN, 0, Arc::from([1.0, 2.0]), now);
        assert_eq!((number_of(&mut state), number_of(&mut state)), (Some(1), Some(1)), "it can be asked for again");
        assert_eq!(state.check_order(1, false).unwrap_err().status(), 400);
        state.check_order(1, true).unwrap();
        state.kept.put(1, vec![7]);
        state.take(change(0.5), now);
        assert_eq!(number_of(&mut state), None, "it is answered");
        assert!(state.check_order(1, true).unwrap_err().to_string().contains("is answered"));
        assert_eq!((state.take_answer(), state.take_answer()), (Some(change(0.5)), None));
        assert_eq!(state.kept.own(), [7]);
        assert!(state.check_order(2, true).unwrap_err().to_string().contains("was never given"));
    }

    #[test]
    fn a_trainer_whose_command_runs_may_be_silent_but_another_may_take_its_place() {
        let (now, late) = (Instant::now(), Instant::now() + Duration::from_secs(3600));
        let mut state = attached(now);
        state.is_watched = true;
        assert_eq!(state.notice_absence(late), None, "it trains, in a container of its own");
        let mut next = attached(now);
        next.is_watched = true;
        assert!(next.attach(&introduction(), "b".to_owned(), Caller::default(), now).is_err(), "one is at work");
        next.attach(&introduction(), "b".to_owned(), Caller::default(), late).unwrap();
        state.is_watched = false;
        assert!(state.notice_absence(late).unwrap().contains("nothing was heard"));
        assert!(state.session.is_none());
    }

    #[test]
    fn a_change_that_comes_late_is_that_of_the_round_in_which_it_comes() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut state = attached(now);
        assert_eq!(state.limit(), None, "nobody knows how long this trainer takes");
        state.open(TRAIN, 0, Arc::from([0.0; 2]), now);
        state.take(change(0.5), now + second);
        state.take_answer();
        state.open(TRAIN, 1, Arc::from([0.5; 2]), now);
        assert_eq!(state.limit(), state.pace.at_work());
        assert_eq!(state.go_on(now + second * 2), None, "a round that takes twice as long is nothing to tell of");
        state.open(TRAIN, 2, Arc::from([0.75; 2]), now + second * 2);
        assert_eq!(number_of(&mut state), Some(2), "the trainer is still at work on this one");
        assert_eq!(state.limit(), Some(second), "the swarm keeps its pace meanwhile");
        assert_eq!(state.go_on(now + second * 6).as_deref(), Some("a trainer"));
        assert_eq!((state.go_on(now + second * 7), state.is_back()), (None, None), "that it is late was said");
        state.take(change(0.25), now + second * 100);
        assert_eq!(state.is_back().as_deref(), Some("a trainer"));
        assert_eq!(state.take_answer(), Some(change(0.25)));
        state.open(TRAIN, 3, Arc::from([1.0; 2]), now);
        assert_eq!(state.limit(), state.pace.at_work(), "one that was late does not make its peer slow");
        assert_eq!(state.go_on(now + second * 3), None);
        state.take(change(0.25), now + second * 4);
        assert_eq!(state.is_back(), None, "nobody heard that it was away");
    }

    #[test]
    fn one_that_is_not_there_is_waited_for_as_long_as_a_round_takes_and_its_answer_is_void() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut state = attached(now);
        state.open(TRAIN, 0, Arc::from([0.0; 2]), now);
        state.take(change(0.5), now + second);
        state.take_answer();
        let gone = now + Duration::from_secs(120);
        assert!(state.notice_absence(gone).unwrap().contains("nothing was heard"));
        assert_eq!(state.notice_absence(gone), None, "that is said once");
        state.open(TRAIN, 1, Arc::from([0.0; 2]), gone);
        assert_eq!(state.limit(), Some(second));
        state.go_on(now);
        assert_eq!(number_of(&mut state), None);
        state.open(TRAIN, 2, Arc::from([0.0; 2]), gone);
        let needs = state.attach(&introduction(), "b".to_owned(), Caller::default(), gone).unwrap();
        assert_eq!((needs, number_of(&mut state)), (Need::Nothing, Some(3)));
        assert_eq!(state.check_session("a", gone).unwrap_err().status(), 409);
        state.check_session("b", gone).unwrap();
    }

    #[test]
    fn everybody_hears_of_the_end_and_nobody_answers_after_it() {
        let now = Instant::now();
        let mut state = attached(now);
        state.open(TRAIN, 0, Arc::from([0.0; 2]), now);
        state.withdraw();
        state.end = Some(RunEnd::Model { vector: Arc::new([3.0, 4.0]), rounds: 9, was_stopped: false });
        assert!(!state.is_told_of_the_end(now));
        assert!(state.is_told_of_the_end(now + Duration::from_secs(120)), "who is gone will not hear it");
        assert_eq!(state.check_order(1, true).unwrap_err().status(), 409);
        let NextOrder::End(RunEnd::Model { vector, rounds: 9, .. }) = state.next() else { panic!("it is over") };
        assert_eq!(*vector, [3.0, 4.0]);
        assert!(!state.is_told_of_the_end(now), "it is still on its way");
        state.note_end_told();
        assert!(state.is_told_of_the_end(now));
        // One that is started again near the end gets the final model.
        let later = now + Duration::from_secs(120);
        let need = state.attach(&introduction(), "b".to_owned(), Caller::default(), later).unwrap();
        assert_eq!(need, Need::Nothing);
        assert!(matches!(state.next(), NextOrder::End(RunEnd::Model { rounds: 9, .. })));
        assert!(!state.is_told_of_the_end(later), "it has not fetched the model");
        let message = "the peer has failed".to_owned();
        state.end = Some(RunEnd::Failure { kind: ErrorKind::Training, message, hint: None });
        assert!(state.attach(&introduction(), "c".to_owned(), Caller::default(), later).is_err());
    }

    #[test]
    fn a_call_after_a_stop_says_that_the_run_goes_on_later() {
        let now = Instant::now();
        let mut state = attached(now);
        state.end = Some(RunEnd::Model { vector: Arc::new([3.0, 4.0]), rounds: 4, was_stopped: true });
        let refusal = state.check_order(1, true).unwrap_err();
        assert!(format!("{refusal:?}").contains("stopped after 4 rounds"), "{refusal:?}");
    }

    #[test]
    fn evaluations_do_not_wait_for_ever_and_go_to_those_who_make_them() {
        let now = Instant::now();
        let mut state = attached(now);
        assert!(state.evaluates() && state.order.is_none());
        state.open(OrderKind::Evaluate, 0, Arc::from([0.0; 2]), now);
        assert_eq!(state.limit(), Some(SHORTEST_LAST_CALL), "the trainer may be deaf");
        assert!(number_of(&mut state).is_some());
        assert_eq!(state.limit(), Some(Duration::from_secs(120)), "it is at work on it, for the first time");
        state.take(TrainerAnswer::Evaluation([("f1".to_owned(), (0.5, 20.0))].into()), now + Duration::from_secs(9));
        state.take_answer();
        assert_eq!(state.limit(), None, "an evaluation says nothing of how long training takes");
        state.open(OrderKind::Evaluate, 0, Arc::from([0.0; 2]), now);
        assert!(number_of(&mut state).is_some());
        assert_eq!(state.limit(), Some(Duration::from_secs(36)), "four times as long as the one before");
        assert_eq!(state.evaluation_in_words(Duration::from_secs(4), true), None);
        let words = state.evaluation_in_words(Duration::from_secs(6), true).unwrap();
        assert!(words.contains("30 s more") && words.contains("took 9.0 s at most"), "{words}");
        assert_eq!(state.evaluation_in_words(Duration::from_secs(6), false), None, "it usually takes longer");
        assert_eq!(state.go_on(now + Duration::from_secs(36)), None);
        assert_eq!(state.last_call(), LAST_CALL_OF_THE_STUCK, "it will hardly hear of the end");
        state.check_session("a", now).unwrap();
        assert_eq!(state.last_call(), SHORTEST_LAST_CALL, "it calls again");
        state.report([("loss".to_owned(), (2.0, 7.0)), ("f1".to_owned(), (0.25, 3.0))].into());
        let (metrics, samples) = state.reported();
        assert_eq!((metrics.get("loss"), metrics.get("f1"), samples), (Some(2.0), Some(0.25), 7));
    }

    #[test]
    fn an_evaluation_ends_with_the_trainer_that_was_to_make_it() {
        let now = Instant::now();
        let late = now + Duration::from_secs(120);
        let mut state = attached(now);
        state.open(OrderKind::Evaluate, 0, Arc::from([0.0; 2]), now);
        assert_eq!(state.notice_absence(now), None);
        assert!(state.has_order());
        assert!(state.notice_absence(late).is_some() && !state.has_order());
        state.attach(&introduction(), "b".to_owned(), Caller::default(), late).unwrap();
        state.open(OrderKind::Evaluate, 0, Arc::from([0.0; 2]), late);
        state.take(TrainerAnswer::Evaluation(WeightedMetrics::new()), late);
        state.end_session();
        assert_eq!(state.take_answer(), Some(TrainerAnswer::Evaluation(WeightedMetrics::new())), "it was answered");
        state.attach(&introduction(), "c".to_owned(), Caller::default(), late).unwrap();
        state.open(OrderKind::Evaluate, 0, Arc::from([0.0; 2]), late);
        let mut does_not_evaluate = introduction();
        does_not_evaluate.evaluates = false;
        state.attach(&does_not_evaluate, "d".to_owned(), Caller::default(), late + Duration::from_secs(120)).unwrap();
        assert_eq!(number_of(&mut state), None, "the next trainer offers none");
        state.open(TRAIN, 1, Arc::from([0.0; 2]), late);
        state.end_session();
        assert!(state.has_order(), "the next trainer may train");
    }
}
