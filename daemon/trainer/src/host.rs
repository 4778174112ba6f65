//! The host of a trainer: it passes orders of the training thread to a trainer that may come and go, and answers back.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use mingle_peer::api::Caller;
use mingle_peer::error::Context;
use mingle_peer::events::Event;
use mingle_peer::membership::EndWish;
use mingle_peer::peer::Announcer;
use mingle_peer::status::{PeerState, StatusView};
use mingle_peer::training::{Metrics, Patience};
use mingle_peer::{Error, ErrorKind, Home, Peer, Result};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::Refusal;
use crate::memory::TrainedTask;
use crate::order::{Order, OrderKind};
use crate::rounds::{ROUNDS_AWAITED, RoundsChoice};
use crate::state::{State, TrainerAnswer};
use crate::tcp::TcpAccess;
use crate::wire::{Attach, Attached, Need, PROTOCOL};

/// Interval at which the training thread checks that its trainer is there and the peer has patience.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// Random bytes in the name of a session.
const SESSION_BYTES: usize = 16;

/// Options of a `TrainerHost`.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The home of the peer.
    pub home: Home,
    /// The public name of the peer, sent to trainers that attach.
    pub peer: String,
    /// Rounds of the run, sent to trainers that attach.
    pub rounds: RoundsChoice,
    /// Set when the peer gives up what its home has kept of an earlier run.
    pub fresh: bool,
    /// Set when the run in the home is over and another or a longer one begins: the others wait for this peer's trainer,
    /// as at the first start.
    pub begins_again: bool,
    /// Model file to begin a new run with, in place of the vector that the trainer offers.
    pub begin_with: Option<PathBuf>,
    /// The wish for the end of the swarm's training, which trainers may change; `None` where the swarm has no operator.
    pub end_wish: Option<EndWish>,
    /// TCP address at which trainers that show a token are served; port 0 takes any that is free.
    pub tcp: Option<SocketAddr>,
    /// Set where no round goes on without its training, as in federated averaging: the trainer is waited for, and one that
    /// has ended for good ends the peer.
    pub needs_every_round: bool,
}

/// The peer's side of the trainer protocol. Clones are the same host.
#[derive(Clone)]
pub struct TrainerHost(Arc<SharedHost>);

struct SharedHost {
    state: Mutex<State>,
    /// Notified of each change of the state; the training thread waits for it.
    answered: Condvar,
    /// Notified of each change of the state; the tasks that serve the trainer wait for it.
    changed: watch::Sender<()>,
    options: HostOptions,
    announcer: OnceLock<Announcer>,
    /// The status of the peer; none in a simulation.
    status: OnceLock<StatusView>,
    access: OnceLock<TcpAccess>,
    launched: Mutex<Option<JoinHandle<()>>>,
}

impl TrainerHost {
    /// A host without a trainer. Where the home holds the work of an earlier run that is not given up, the task is
    /// taken from there.
    ///
    /// # Errors
    /// The home holds work, but its file on the task is missing or cannot be read.
    pub fn new(options: HostOptions) -> Result<Self> {
        let goes_on = options.home.holds_work() && !options.fresh;
        let task = if goes_on { TrainedTask::recall(&options.home)?.map(Arc::new) } else { None };
        if goes_on && task.is_none() {
            return Err(unknown_work(&options.home));
        }
        let rounds = options.rounds.known(task.as_deref(), options.begins_again);
        let mut state = State::new(task, goes_on, options.begins_again);
        state.rounds = rounds;
        Ok(Self(Arc::new(SharedHost {
            state: Mutex::new(state),
            answered: Condvar::new(),
            changed: watch::Sender::new(()),
            options,
            announcer: OnceLock::new(),
            status: OnceLock::new(),
            access: OnceLock::new(),
            launched: Mutex::new(None),
        })))
    }

    /// Saves the task in the home, for a start before the trainer is back.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remember_task(&self) -> Result {
        let task = self.state().task.clone();
        task.map_or(Ok(()), |task| task.remember(&self.options().home))
    }

    /// Connects the host to its peer, which publishes the events of the trainer and knows what is waited for.
    pub fn connect(&self, peer: &Peer) {
        // A host has one peer.
        let _ = self.0.status.set(peer.status());
        self.connect_simulated(peer.announcer());
    }

    /// Connects the host to a node of a simulation, on whose behalf the events of the trainer are published.
    pub(crate) fn connect_simulated(&self, announcer: Announcer) {
        // A host has one peer.
        let _ = self.0.announcer.set(announcer);
        self.show(None);
    }

    /// Resolves once the peer listens and its socket is open, or the peer has ended before.
    pub(crate) async fn peer_is_up(&self) {
        if let Some(status) = self.0.status.get() {
            // An error means that the peer has ended before.
            let _ = status.clone().wait_for(|status| !status.addresses.is_empty()).await;
        }
    }

    /// Records that trainers are served over TCP from now on.
    pub(crate) fn serve_over_tcp(&self, access: TcpAccess) {
        // A peer opens one address.
        let _ = self.0.access.set(access);
    }

    /// The URL and token of the TCP address, if one is open.
    pub(crate) fn access(&self) -> Option<&TcpAccess> {
        self.0.access.get()
    }

    /// Registers the supervisor of the started trainer: the end of the peer waits for it.
    pub(crate) fn watch_over(&self, launched: JoinHandle<()>) {
        *self.0.launched.lock().unwrap_or_else(PoisonError::into_inner) = Some(launched);
    }

    /// Takes the supervisor of the started trainer, if there is one.
    pub(crate) fn take_launched(&self) -> Option<JoinHandle<()>> {
        self.0.launched.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn options(&self) -> &HostOptions {
        &self.0.options
    }

    /// Changes the shared state, and wakes both sides.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.0.changed.send_replace(());
        self.0.answered.notify_all();
        result
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver that is notified of each change of the state.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// Resolves once the task and the beginning are known, or no trainer will attach.
    pub(crate) fn ready(&self) -> BoxFuture<'static, ()> {
        let host = self.clone();
        let mut changes = self.changes();
        async move {
            while !host.state().is_ready() {
                // The sender lives in the host, which this future holds.
                let _ = changes.changed().await;
            }
        }
        .boxed()
    }

    /// Resolves once the number of rounds is known, or the peer ends without it.
    pub(crate) async fn rounds_are_known(&self) {
        let mut changes = self.changes();
        loop {
            changes.mark_unchanged();
            let is_settled = {
                let state = self.state();
                state.rounds.is_some() || state.end.is_some()
            };
            // An error means that the host is gone.
            if is_settled || changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Attaches a trainer under a new session, and announces that unless the run is over.
    pub(crate) fn attach(&self, attach: &Attach, caller: Caller) -> Result<Attached, Refusal> {
        let session = session_id().map_err(Refusal::gone)?;
        let attached = self.change(|state| {
            let rounds = state.known_rounds()?;
            let needs = state.attach(attach, session.clone(), caller, Instant::now())?;
            let most_state_bytes = state.task.as_ref().map_or(0, |task| task.state_bytes);
            let dimension = state.layout().map_or(0, mingle_peer::training::Layout::dimension);
            Ok(Attached {
                protocol: PROTOCOL,
                session,
                dimension,
                needs,
                most_state_bytes,
                peer: self.options().peer.clone(),
                rounds,
            })
        })?;
        tracing::debug!(needs = ?attached.needs == Need::Initial, "a trainer has attached");
        if self.state().end.is_none() {
            self.tell(Event::TrainerAttached { trainer: attach.describe() });
            self.show(Some(attach.describe()));
        }
        Ok(attached)
    }

    /// Ends the session of the trainer, and announces that unless the run is over.
    pub(crate) fn detach(&self, reason: String) {
        let is_over = self.change(|state| {
            state.end_session();
            state.end.is_some()
        });
        if is_over {
            return;
        }
        self.tell(Event::TrainerGone { reason });
        self.show(None);
    }

    /// Records that no trainer will attach any more. A peer that waits for the first one ends; one that trains mixes on
    /// without local steps, or ends where no round goes on without its trainer.
    pub(crate) fn fail(&self, error: Error) {
        if self.state().is_ready() && self.options().needs_every_round {
            return self.give_up(error);
        }
        if self.state().is_ready() {
            self.change(|state| state.is_deserted = true);
            let message = format!("{error:#}: this peer mixes on without local steps");
            return self.tell(Event::Warning { message });
        }
        self.change(|state| state.failure = Some(error));
    }

    /// Records that the trainer is not started again after its crashes. The peer ends with this error: now if it waits
    /// for its first trainer, else in its next round of training.
    pub(crate) fn give_up(&self, error: Error) {
        if !self.state().is_ready() {
            return self.fail(error);
        }
        self.tell(Event::Warning { message: format!("{error:#}: this peer ends, and keeps its records") });
        self.change(|state| state.given_up = Some(error));
    }

    /// Stops waiting for a trainer at the end of the run, on a request of the user.
    pub fn hurry(&self) {
        self.change(|state| state.is_hurried = true);
    }

    /// Opens an order on `vector`, `[dimension]`, and waits for the answer; none where it does not come in time, or the
    /// trainer is given up.
    pub(crate) fn ask(
        &self,
        work: OrderKind,
        round: u64,
        vector: &Arc<[f32]>,
        patience: &Patience,
    ) -> Option<TrainerAnswer> {
        self.change(|state| state.open(work, round, Arc::clone(vector), Instant::now()));
        let began = Instant::now();
        let mut is_wait_told = false;
        loop {
            self.let_go_of_the_absent();
            is_wait_told = is_wait_told || self.tell_of_a_long_evaluation(began, patience);
            let mut state = self.state();
            let back = state.is_back();
            if let Some(answer) = state.take_answer() {
                drop(state);
                if let Some(trainer) = back {
                    self.show(Some(trainer.clone()));
                    self.tell(Event::TrainerAttached { trainer });
                }
                return Some(answer);
            }
            // At the end of a time box the trainer ends its step and answers; that answer has the usual timeout.
            if patience.is_stopped() || state.given_up.is_some() || !state.has_order() {
                state.withdraw();
                return None;
            }
            let is_waited_for =
                self.options().needs_every_round && state.order.as_ref().is_some_and(Order::is_to_train);
            let limit = state.limit().filter(|_| !is_waited_for);
            let left = limit.map_or(LOOK, |limit| limit.saturating_sub(began.elapsed()));
            if left.is_zero() {
                let late = state.go_on(Instant::now());
                drop(state);
                if let Some(trainer) = late {
                    self.show(None);
                    self.tell(Event::TrainerGone {
                        reason: format!("{trainer} is late: what it trains counts when it comes"),
                    });
                }
                return None;
            }
            // Woken by a change or by the timeout; in both cases the loop checks again.
            drop(self.0.answered.wait_timeout(state, left.min(LOOK)));
        }
    }

    /// Tells a person that an evaluation is waited for, and how long, once it takes unusually long. Returns `true` if so.
    fn tell_of_a_long_evaluation(&self, began: Instant, patience: &Patience) -> bool {
        let is_last = patience.is_of_the_last_evaluation();
        let words = self.state().evaluation_in_words(began.elapsed(), is_last);
        words.map(|message| self.tell(Event::Warning { message })).is_some()
    }

    /// Ends the session of a trainer that is gone, and announces that.
    fn let_go_of_the_absent(&self) {
        let absence = self.state().notice_absence(Instant::now());
        if let Some(reason) = absence {
            self.tell(Event::TrainerGone { reason });
            self.show(None);
        }
    }

    /// The latest metrics that the trainer reported with its changes, and the largest number of samples behind one.
    pub(crate) fn reported(&self) -> (Metrics, usize) {
        self.state().reported()
    }

    /// The event that the peer waits for, in words for people.
    pub(crate) fn waiting_for(&self) -> String {
        if self.state().rounds.is_none() {
            return ROUNDS_AWAITED.to_owned();
        }
        if self.state().task.is_none() {
            return "a trainer".to_owned();
        }
        let Some(status) = self.0.status.get() else { return "the other nodes".to_owned() };
        let status = status.borrow();
        match status.state {
            PeerState::WaitingForTrainer => "the vector to begin with".to_owned(),
            PeerState::WaitingForModel => "the model that the others have".to_owned(),
            PeerState::Starting if status.plan.is_some() => "the peer".to_owned(),
            PeerState::Starting | PeerState::WaitingForPlan => "a plan".to_owned(),
            PeerState::Waiting => {
                let missing = status.neighbours.len().saturating_sub(status.neighbours_up());
                format!("{missing} of {} neighbours", status.neighbours.len())
            }
            PeerState::Draining | PeerState::Done | PeerState::Stopped => "the end of the run".to_owned(),
            _ => format!("round {}", status.round),
        }
    }

    pub(crate) fn tell(&self, event: Event) {
        if let Some(announcer) = self.0.announcer.get() {
            announcer.tell(event);
        }
    }

    fn show(&self, attached: Option<String>) {
        if let Some(announcer) = self.0.announcer.get() {
            announcer.show_trainer(attached);
        }
    }
}

/// The error for a home whose work no trainer can continue.
fn unknown_work(home: &Home) -> Error {
    let root = home.root().display();
    let trainer = home.trainer();
    let message = if home.task().exists() {
        format!("{root} holds the work of a built-in model, and no trainer can go on with it")
    } else {
        format!("{root} holds the work of a trainer, and {} does not say of which", trainer.display())
    };
    Error::new(ErrorKind::Refused, message)
        .hint("give this peer another home with --home DIR; or give that work up with --fresh")
}

/// A random secret that only the trainer of the session knows, in hexadecimal digits.
fn session_id() -> Result<String> {
    let mut bytes = [0; SESSION_BYTES];
    getrandom::fill(&mut bytes).context(ErrorKind::Unexpected, "the operating system gives no random numbers")?;
    Ok(hex::encode(bytes))
}
