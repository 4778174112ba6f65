//! Lossy encodings lose nothing: what a codec rounds away stays with the sender.

use mingle_protocol::sim::{SimulatedSwarm, SwarmConfig};
use mingle_protocol::{Codec, WaitPolicy};

use crate::support::*;

/// The largest distance of nodes from the average, relative to it: the error of one parcel, and a little for several.
fn tolerance(codec: Codec) -> f64 {
    match codec {
        Codec::F32 => 1e-5,
        Codec::F16 => 2e-3,
        Codec::Bf16 => 2e-2,
        _ => 4e-2,
    }
}

#[test]
fn a_swarm_agrees_on_the_average_in_every_codec_and_conserves_it_under_loss() {
    for codec in Codec::ALL {
        // Without any waiting, nodes that receive little from each other agree on less than a codec could show.
        for policy in [WaitPolicy::Sync, WaitPolicy::Bounded { staleness: 2 }] {
            let config = averaging(random_plan(8, 8, 0), 8, 60);
            let mean = mean_of(&config.initial);
            let mut swarm =
                SimulatedSwarm::new(SwarmConfig { codec, policy, ..config }.over_datagrams(0.2, 0.1)).unwrap();
            swarm.run_until_drained(HOUR).unwrap();
            // The simulator has compared the mass of all nodes and parcels after every event, as integers.
            assert!(swarm.audit().is_complete(), "{codec}, {policy:?}: {}", swarm.audit());
            let sum: Vec<f32> = numerator_sum(&swarm, 8).iter().map(|sum| (sum / 8.0) as f32).collect();
            assert_close(&sum, &mean, 1e-5);
            let distance = worst_distance(&mut swarm, 8, &mean);
            assert!(distance < tolerance(codec), "{codec}, {policy:?}: {distance}");
        }
    }
}

#[test]
fn runs_repeat_to_the_bit_in_every_codec() {
    let digest = |codec| {
        let config = averaging(random_plan(6, 4, 0), 6, 40);
        let mut swarm = SimulatedSwarm::new(SwarmConfig { codec, ..config }).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        swarm.digest()
    };
    for codec in Codec::ALL {
        assert_eq!(digest(codec), digest(codec), "{codec}");
    }
    assert_ne!(digest(Codec::F32), digest(Codec::Int8));
}
