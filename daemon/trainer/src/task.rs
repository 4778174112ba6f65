//! The task of a peer whose trainer is another program: known from the home, or once that program has attached.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use mingle_peer::error::Context;
use mingle_peer::events::Event;
use mingle_peer::task::TaskCard;
use mingle_peer::training::{
    Adoption, FixedTask, Layout, LocalTraining, PrivacySettings, PrivateTraining, TrainingTask, model_file,
};
use mingle_peer::{Error, ErrorKind, Home, Result};

use crate::host::TrainerHost;
use crate::memory::TrainedTask;
use crate::rounds::ROUNDS_AWAITED;
use crate::training::ExternalTraining;

/// The training task that the trainer of a `TrainerHost` defines.
pub struct TrainerTask {
    host: TrainerHost,
    home: Home,
    privacy: Option<PrivacySettings>,
    /// The task, once it is known.
    settled: Option<FixedTask>,
}

impl TrainerTask {
    /// The task of the trainer that attaches to `host`. With `privacy`, changes are differentially private.
    ///
    /// # Errors
    /// The task that the home remembers cannot be used, or not be saved there again.
    pub fn new(host: &TrainerHost, privacy: Option<PrivacySettings>) -> Result<Self> {
        let mut task = Self { host: host.clone(), home: host.options().home.clone(), privacy, settled: None };
        if host.state().is_ready() {
            task.settle()?;
        }
        Ok(task)
    }

    /// Fixes the task, and saves it in the home. Where the home holds the work of a run that is given up, the file of
    /// that run stays until this one begins ([`TrainerHost::remember_task`]).
    ///
    /// # Errors
    /// No trainer will attach, or the task is unknown, cannot be saved or cannot be trained with these settings.
    fn settle(&mut self) -> Result {
        let (failure, task) = self.host.change(|state| {
            state.is_settled = state.failure.is_none();
            (state.failure.take(), state.task.clone())
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let task = task.ok_or_else(|| Error::new(ErrorKind::Unexpected, "it is not known what is trained"))?;
        let mut task = Arc::unwrap_or_clone(task);
        let rounds =
            self.host.state().rounds.ok_or_else(|| {
                Error::new(ErrorKind::Unexpected, format!("training begins without {ROUNDS_AWAITED}"))
            })?;
        task.rounds = Some(rounds);
        self.begin_with_a_file(&mut task)?;
        let gives_work_up = self.home.holds_work() && !self.host.state().goes_on;
        self.host.change(|state| state.task = Some(Arc::new(task.clone())));
        if !gives_work_up {
            self.host.remember_task()?;
        }
        let name = task.name.clone();
        let training: Box<dyn LocalTraining> = Box::new(ExternalTraining::new(self.host.clone(), task));
        let training = match self.privacy {
            Some(settings) => {
                self.warn_of_unshared_state();
                Box::new(PrivateTraining::new(training, settings, &self.home)?)
            }
            None => training,
        };
        self.settled = Some(FixedTask::new(&name, rounds, training)?);
        Ok(())
    }

    /// Offers the model of the file that a new run is to begin with, in place of the trainer's.
    ///
    /// # Errors
    /// The file is no model of this layout, or the home holds the work of a run that did not begin with it.
    fn begin_with_a_file(&self, task: &mut TrainedTask) -> Result {
        let Some(path) = self.host.options().begin_with.as_deref() else { return Ok(()) };
        let model = read_model(path, &task.layout)?;
        let begun_with = Some(hex::encode(model_file::hash(&model)));
        if self.host.state().goes_on {
            return if task.begun_with == begun_with { Ok(()) } else { Err(self.begun_otherwise(path)) };
        }
        task.begun_with = begun_with;
        self.host.change(|state| state.offer_file(model));
        Ok(())
    }

    /// Warns the user of a trainer that shares its state: a peer with differential privacy gives it to no member.
    fn warn_of_unshared_state(&self) {
        if self.host.state().kept.is_shared {
            let message = "the trainer would share the state of its optimizer, which has no noise: with differential privacy it stays here";
            self.host.tell(Event::Warning { message: message.to_owned() });
        }
    }

    fn begun_otherwise(&self, path: &Path) -> Error {
        let home = self.home.root().display();
        let path = path.display();
        Error::new(ErrorKind::Refused, format!("{home} holds the work of a run that did not begin with {path}"))
            .hint("leave --begin-with away to go on with that run; give this peer another home with --home DIR; or give the work up with --fresh")
    }

    fn settled(&mut self) -> Result<&mut FixedTask> {
        self.settled.as_mut().ok_or_else(|| Error::new(ErrorKind::Unexpected, "it is not known what is trained"))
    }
}

/// Reads a model of this layout from a safetensors file.
fn read_model(path: &Path, layout: &Layout) -> Result<Vec<f32>> {
    let unusable = format!("cannot begin with {}", path.display());
    model_file::read(path, layout).context(ErrorKind::BadInput, unusable).map_err(|failure| {
        failure.hint("the file needs the tensors that the trainer exchanges, as floating-point numbers of 32 or 16 bits; a trainer can load others itself before it attaches")
    })
}

impl TrainingTask for TrainerTask {
    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        self.settled.is_none().then(|| self.host.ready())
    }

    fn begin(&mut self) -> Result<Vec<Event>> {
        self.settle()?;
        Ok(Vec::new())
    }

    fn begins_with_the_founder(&self) -> bool {
        self.settled.as_ref().is_some_and(TrainingTask::begins_with_the_founder)
    }

    fn card(&self) -> Option<Arc<dyn TaskCard>> {
        self.settled.as_ref().and_then(TrainingTask::card)
    }

    fn needs_others(&self) -> bool {
        false
    }

    fn rounds(&self) -> u64 {
        self.host.state().rounds.unwrap_or_default()
    }

    fn awaits_rounds(&self) -> bool {
        self.host.state().rounds.is_none()
    }

    fn rounds_in(&self, card: &[u8], Adoption { from, .. }: Adoption) -> Result<u64> {
        FixedTask::rounds_of(card).ok_or_else(|| {
            let message =
                format!("a built-in model is trained in the swarm, and another program's here (so says {from})");
            Error::new(ErrorKind::Refused, message).hint("start this peer without --trainer")
        })
    }

    fn set_rounds(&mut self, rounds: u64) {
        self.host.change(|state| state.set_rounds(rounds));
    }

    fn adopt(&mut self, card: &[u8], adoption: Adoption) -> Result<Vec<Event>> {
        self.settled()?.adopt(card, adoption)
    }

    fn propose(&mut self) -> Result<Vec<Event>> {
        self.settled()?.propose()
    }

    fn build(mut self: Box<Self>, node: usize, nodes: usize) -> Result<Box<dyn LocalTraining>> {
        self.settled()?;
        match self.settled {
            Some(fixed) => Box::new(fixed).build(node, nodes),
            None => Err(Error::new(ErrorKind::Unexpected, "it is not known what is trained")),
        }
    }
}
