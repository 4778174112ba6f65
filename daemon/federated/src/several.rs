//! Federated averaging of the trainings of several nodes in one process.

use std::sync::Arc;

use mingle_federated::FederatedSettings;
use mingle_home::Result;
use mingle_solving::{LearningError, RoundLearning, RoundRules, RoundTask};

use crate::{FederatedTask, ModelDescription, SharedTraining};

/// The task of nodes whose trainings are all in this process. All begin with the vector of node 0.
#[derive(Debug)]
pub struct TrainingsOfNodes {
    first: FederatedTask,
    others: Vec<FederatedTask>,
}

impl TrainingsOfNodes {
    /// The task of a node with the training `first` and others.
    ///
    /// # Errors
    /// The settings have too few or too many rounds.
    pub fn new(
        settings: &FederatedSettings,
        model: &ModelDescription,
        first: &Arc<SharedTraining>,
        others: &[Arc<SharedTraining>],
    ) -> Result<Self> {
        let task = |training: &Arc<SharedTraining>| {
            FederatedTask::new(settings.clone(), model.clone(), 0, Arc::clone(training))
        };
        Ok(Self { first: task(first)?, others: others.iter().map(task).collect::<Result<_>>()? })
    }

    fn of_node(&self, node: usize) -> &FederatedTask {
        node.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.first)
    }
}

impl RoundTask for TrainingsOfNodes {
    fn hash(&self) -> [u8; 32] {
        self.first.hash()
    }

    fn describe(&self) -> String {
        self.first.describe()
    }

    fn title(&self) -> String {
        self.first.title()
    }

    fn rules(&self) -> &RoundRules {
        self.first.rules()
    }

    fn needs_masked_sums(&self) -> bool {
        self.first.needs_masked_sums()
    }

    fn founder(&self) -> Option<usize> {
        self.first.founder()
    }

    fn has_tokens(&self) -> bool {
        self.first.has_tokens()
    }

    fn has_common_model(&self) -> bool {
        self.first.has_common_model()
    }

    fn open(&self, node: usize, names: &[String]) -> std::result::Result<Box<dyn RoundLearning>, LearningError> {
        self.of_node(node).open(node, names)
    }
}
