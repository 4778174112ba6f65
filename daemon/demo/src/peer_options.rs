//! The command line of each peer of a demo.

use mingle_builtin::options::TrainingOptions;
use mingle_net::multicast::PayloadMedium;
use mingle_peer::Home;

use crate::options::DemoOptions;

/// On loopback a living neighbour answers at once, so a longer wait could only be for a killed one.
const SHUTDOWN_TIMEOUT: &str = "2s";
/// A killed peer's links break at once. Only a frozen one is waited for, and a busy machine must not look like one:
/// without a missed deadline, the same seed gives the same models.
const DEADLINE: &str = "20s";
/// A peer that is missing at the start is still to be started.
const START_TIMEOUT: &str = "10m";

/// The command line of one peer.
pub(crate) fn peer_arguments(demo: &DemoOptions, home: &Home, way_in: &[String]) -> Vec<String> {
    let mut arguments: Vec<String> = ["run", "--json", "--stop-with-stdin"].map(str::to_owned).to_vec();
    let training = &demo.training;
    let mut option = |name: &str, value: &dyn std::fmt::Display| {
        arguments.push(format!("--{name}"));
        arguments.push(value.to_string());
    };
    option("home", &home.root().display());
    option("listen", &"/ip4/127.0.0.1/udp/0/quic-v1");
    option("listen", &"/ip4/127.0.0.1/tcp/0");
    option("data", &training.data);
    option("task", &training.task);
    option("model", &training.model);
    training.split.iter().for_each(|split| option("split", split));
    option("weight", &training.weight);
    option("rounds", &training.rounds);
    option("batch-size", &training.batch_size);
    if training.augment != TrainingOptions::default().augment {
        option("augment", &training.augment);
    }
    if !training.personal.is_empty() {
        option("personal", &training.personal.join(","));
    }
    option("learning-rate", &training.learning_rate);
    for (name, value) in training.optimizer.options() {
        option(&name, &value);
    }
    option("seed", &training.seed);
    option("device", &training.device);
    option("evaluate-every", &training.evaluate_every);
    for (key, value) in training.privacy.entries() {
        value.iter().for_each(|value| option(&key.replace('_', "-"), value));
    }
    option("wait", &demo.wait);
    option("codec", &demo.codec);
    if demo.medium != PayloadMedium::Unicast {
        option("medium", &demo.medium_of_peers());
        demo.air_rate.iter().for_each(|rate| option("air-rate", rate));
        option("slots", &demo.slots);
    }
    option("robust", &demo.robust);
    option("momentum-across-rounds", &demo.momentum_across_rounds);
    option("overlap", &demo.overlap);
    // The peers share this machine: one thread for each leaves time to the others.
    option("threads", &1);
    option("shutdown-timeout", &SHUTDOWN_TIMEOUT);
    option("deadline", &DEADLINE);
    option("join-timeout", &START_TIMEOUT);
    option("bootstrap-timeout", &START_TIMEOUT);
    option("timeline", &if demo.timeline { "on" } else { "off" });
    option("durability", &if demo.keeps_records() { "on" } else { "off" });
    arguments.extend_from_slice(way_in);
    arguments
}
