//! What each peer of a demo is told on its command line.

use mingle_builtin::options::{GradientOptions, PrivacyOptions, TrainingOptions};
use mingle_models::Augmentation;
use mingle_peer::Home;

use crate::cli::{DemoArgs, DurabilityName, Switch};

/// On loopback a living neighbour answers at once: longer waits would be for the killed.
const SHUTDOWN_TIMEOUT: &str = "2s";
/// A killed peer's links break at once. Only a frozen one is waited for, and a busy machine must not look like one:
/// without a missed deadline, the same seed gives the same models.
const DEADLINE: &str = "20s";
/// Whoever is missing while the peers come together is still to be started.
const START_TIMEOUT: &str = "10m";

/// What the peers will train with.
pub(super) fn training_arguments(demo: &DemoArgs) -> TrainingOptions {
    TrainingOptions {
        data: demo.data.clone(),
        task: demo.task,
        model: demo.model.clone(),
        split: Some(demo.split.clone()),
        weight: demo.weight,
        rounds: demo.rounds(),
        batch_size: demo.batch_size,
        augment: Augmentation::NONE.to_string(),
        optimizer: demo.optimizer.into(),
        learning_rate: demo.learning_rate,
        seed: demo.seed,
        device: demo.device.clone(),
        evaluate_every: demo.evaluate_every,
        privacy: demo.privacy.into(),
        personal: Vec::new(),
    }
}

/// Whether the peers write their weight to disk. A demo in which nobody comes back has no use for that.
pub(super) fn keeps_records(demo: &DemoArgs) -> bool {
    demo.durability.map_or(demo.restart, |durability| durability == DurabilityName::On)
}

/// The command line of one peer.
pub(super) fn peer_arguments(demo: &DemoArgs, home: &Home, way_in: &[String]) -> Vec<String> {
    let mut arguments: Vec<String> = ["run", "--json", "--stop-with-stdin"].map(str::to_owned).to_vec();
    let mut option = |name: &str, value: &dyn std::fmt::Display| {
        arguments.push(format!("--{name}"));
        arguments.push(value.to_string());
    };
    option("home", &home.root().display());
    option("listen", &"/ip4/127.0.0.1/udp/0/quic-v1");
    option("listen", &"/ip4/127.0.0.1/tcp/0");
    option("data", &demo.data);
    option("task", &demo.task);
    option("model", &demo.model);
    option("split", &demo.split);
    option("weight", &demo.weight);
    option("rounds", &demo.rounds());
    option("batch-size", &demo.batch_size);
    option("learning-rate", &demo.learning_rate);
    for (name, value) in GradientOptions::from(demo.optimizer).options() {
        option(&name, &value);
    }
    option("seed", &demo.seed);
    option("device", &demo.device);
    option("evaluate-every", &demo.evaluate_every);
    for (key, value) in PrivacyOptions::from(demo.privacy).entries() {
        value.iter().for_each(|value| option(&key.replace('_', "-"), value));
    }
    option("wait", &demo.wait);
    option("codec", &demo.codec);
    option("robust", &demo.robust);
    // They share this machine: one thread each leaves the others their turn.
    option("threads", &1);
    option("shutdown-timeout", &SHUTDOWN_TIMEOUT);
    option("deadline", &DEADLINE);
    option("join-timeout", &START_TIMEOUT);
    option("bootstrap-timeout", &START_TIMEOUT);
    option("timeline", &if demo.timeline == Switch::On { "on" } else { "off" });
    option("durability", &if keeps_records(demo) { "on" } else { "off" });
    arguments.extend_from_slice(way_in);
    arguments
}
