//! Local training by another program.

use std::sync::Arc;

use mingle_peer::events::Event;
use mingle_peer::training::{
    Budget, Evaluation, Facts, Layout, LentState, LocalTraining, Patience, Trained, TrainingError,
};
use mingle_peer::{Error, ErrorKind};

use crate::host::TrainerHost;
use crate::memory::TrainedTask;
use crate::order::OrderKind;
use crate::pace::RECORDED_PACE_BYTES;
use crate::state::{State, TrainerAnswer};
use crate::wire::means;

/// The local training of a peer by the trainer attached to its host.
pub(crate) struct ExternalTraining {
    host: TrainerHost,
    task: TrainedTask,
    /// Set when the last order got no answer but one may come later.
    is_absent: bool,
    /// Set once a trainer that answers orders to evaluate was attached.
    evaluates: bool,
}

impl ExternalTraining {
    pub(crate) fn new(host: TrainerHost, task: TrainedTask) -> Self {
        Self { host, task, is_absent: false, evaluates: false }
    }
}

/// The refusal of a run by another plan or task in a home whose run is over.
fn another_task() -> Error {
    Error::new(ErrorKind::Refused, "the run in this home is over, and this one has another plan or task").hint(
        "start all peers with --continue to begin with the models that they have, or with --fresh to begin with that of the founder's \
         script",
    )
}

impl LocalTraining for ExternalTraining {
    fn layout(&self) -> &Layout {
        &self.task.layout
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        let (initial, goes_on) = self.host.change(|state| (state.take_initial(), state.goes_on));
        initial.ok_or_else(|| {
            if goes_on {
                another_task().into()
            } else {
                "all peers begin with the model of this one, and its trainer offers none".into()
            }
        })
    }

    fn begins_with_the_founder(&self) -> bool {
        true
    }

    fn is_absent(&self) -> bool {
        self.is_absent
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        self.train_shared(&Arc::from(from), budget)
    }

    fn train_shared(&mut self, from: &Arc<[f32]>, budget: &Budget) -> Result<Trained, TrainingError> {
        if self.host.change(|state| std::mem::take(&mut state.has_file)) {
            let message = "the model of --begin-with is not used: all begin with that of the founder".to_owned();
            self.host.tell(Event::Warning { message });
        }
        let seconds = budget.patience.time_left().map(|left| left.as_secs_f64());
        self.evaluates |= self.host.state().evaluates();
        let Budget { local_steps: steps, rounds_left, last_factor, .. } = *budget;
        let work = OrderKind::Train { steps, rounds_left, seconds, last_factor };
        let answer = self.host.ask(work, budget.round, from, &budget.patience);
        if let Some(given_up) = self.host.state().given_up.clone() {
            return Err(given_up.into());
        }
        self.is_absent = answer.is_none() && !budget.patience.is_stopped() && !self.host.state().is_deserted;
        let nothing = || Trained { change: vec![0.0; from.len()], steps: 0, loss: None };
        Ok(match answer {
            Some(TrainerAnswer::Change { vector: Some(change), steps, loss }) => Trained { change, steps, loss },
            _ => nothing(),
        })
    }

    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError> {
        self.evaluate_shared(&Arc::from(parameters), patience)
    }

    fn evaluate_shared(&mut self, parameters: &Arc<[f32]>, patience: &Patience) -> Result<Evaluation, TrainingError> {
        if patience.is_of_the_last_evaluation() {
            // A trainer that is late with a round cannot be late with one that counts any more.
            self.host.change(State::withdraw);
        }
        let evaluates = self.host.state().evaluates();
        let is_idle = self.host.state().order.is_none();
        self.evaluates |= evaluates;
        let answer = (evaluates && is_idle).then(|| self.host.ask(OrderKind::Evaluate, 0, parameters, patience));
        if let Some(Some(TrainerAnswer::Evaluation(metrics))) = answer {
            let (metrics, samples) = means(&metrics);
            return Ok(Evaluation { metrics, samples, is_whole: true });
        }
        let (metrics, samples) = self.host.reported();
        // Of a trainer that evaluates, what it reported while it trained is no evaluation.
        Ok(Evaluation { metrics, samples: if self.evaluates { 0 } else { samples }, is_whole: !self.evaluates })
    }

    fn state(&self) -> Vec<u8> {
        self.host.state().record()
    }

    fn largest_state(&self) -> usize {
        RECORDED_PACE_BYTES + self.task.state_bytes
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
        Ok(self.host.change(|shared| shared.restore(state))?)
    }

    fn lent_state(&self) -> Option<Arc<dyn LentState>> {
        Some(Arc::new(StateOfTrainer(self.host.clone())))
    }

    fn facts(&self) -> Facts {
        Facts { device: "another program".to_owned(), train_samples: self.task.samples, test_samples: 0 }
    }
}

/// The state of the trainer that is attached to a host, for other members where the trainer wants that.
struct StateOfTrainer(TrainerHost);

impl LentState for StateOfTrainer {
    fn offered(&self) -> Option<Vec<u8>> {
        let kept = &self.0.state().kept;
        (kept.is_shared && !kept.own().is_empty()).then(|| kept.own().to_vec())
    }

    fn wanted(&self) -> Option<usize> {
        let state = self.0.state();
        let kept = &state.kept;
        let most_bytes = state.task.as_ref()?.state_bytes;
        (kept.is_shared && kept.own().is_empty()).then_some(most_bytes)
    }

    fn take(&self, bytes: Vec<u8>) {
        self.0.change(|state| state.kept.give(bytes));
    }
}
