//! A peer that trains a model of its own with the others by federated averaging.

use std::sync::Arc;

use libp2p::PeerId;
use mingle_federated::FederatedSettings;
use mingle_federated_training::{FederatedTask, ModelDescription, RoundFiles, SharedTraining};
use mingle_net::transport::Network;

use super::solve::CommonWork;
use super::{Access, Incoming, Outcome, Peer, Purpose};
use crate::error::{Error, ErrorKind, Result};
use crate::place::Place;
use crate::task::TaskCard;
use crate::training::TrainingTask;

/// A training whose changes are averaged exactly.
struct FederatedWork {
    settings: FederatedSettings,
    model: ModelDescription,
    /// The operator of the swarm, if it has one.
    operator: Option<PeerId>,
    training: Arc<SharedTraining>,
}

impl FederatedWork {
    /// The task of the members of a plan. All begin with the vector of the operator, where the plan names it, or else of
    /// node 0.
    fn task(&self, place: &Place) -> Result<FederatedTask> {
        let Self { settings, model, operator, training } = self;
        let founder = place.peers.iter().find(|(_, peer)| Some(**peer) == *operator);
        let founder = founder.map_or(0, |(node, _)| node.index());
        FederatedTask::new(settings.clone(), model.clone(), founder, Arc::clone(training))
    }
}

/// The description of the model that a task trains.
pub(super) fn description(card: &dyn TaskCard) -> ModelDescription {
    ModelDescription { hash: card.hash(), text: card.describe() }
}

impl Peer {
    /// Refuses to train by push-sum in a home that has kept rounds of a problem.
    pub(super) fn refuse_rounds_of_problem(&self) -> Result {
        let trains_without_sums = matches!(self.purpose, Purpose::Train(_)) && !self.options.leaves;
        if trains_without_sums { RoundFiles::refuse_any(&self.home.rounds(), self.options.fresh) } else { Ok(()) }
    }

    /// Trains in rounds with the others, until all rounds are done or this peer's training fails.
    pub(super) async fn train_federated(
        &mut self,
        (task, settings): (Box<dyn TrainingTask>, FederatedSettings),
        place: Place,
        network: &Network,
        access: Access<'_>,
        incoming: Incoming,
    ) -> Result<Outcome> {
        let unsettled = || Error::new(ErrorKind::Unexpected, "training begins without a task");
        let card = task.card().ok_or_else(unsettled)?;
        let model = description(card.as_ref());
        let training = task.build(place.node.index(), place.peers.len())?;
        let (training, mut failures, _end) = SharedTraining::new(training);
        let rounds = settings.rounds;
        let operator = self.membership.as_ref().map(|membership| membership.swarm.founder()).transpose()?;
        let work = FederatedWork { settings, model, operator, training: Arc::clone(&training) };
        let work = CommonWork::Rounds(Box::new(move |place| Ok(Arc::new(work.task(place)?))));
        tokio::select! {
            solved = self.solve(work, place, network, access, incoming) => { solved?; }
            Some(failure) = failures.recv() => return Err(failure),
        }
        match training.last() {
            Some(parameters) => Ok(Outcome::Averaged { parameters, rounds }),
            None => Err(Error::new(ErrorKind::Unexpected, "the training has ended without a model")),
        }
    }
}
