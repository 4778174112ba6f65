//! What keeps a swarm of unequal and unreliable members together: alarms, time boxes, the guarded step, exact sums.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mingle_protocol::sim::{Swarm, SwarmConfig};
use mingle_protocol::{Codec, Event, NodeId, Planted, Schedule, Step, Time, WaitPolicy};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::*;
use crate::training::{Problem, least_squares};

fn nodes_that_report(swarm: &Swarm, is_wanted: fn(&Event) -> bool) -> BTreeSet<NodeId> {
    swarm.events().iter().filter(|(_, _, event)| is_wanted(event)).map(|(_, id, _)| *id).collect()
}

fn is_alarm(event: &Event) -> bool {
    matches!(event, Event::MassLow { .. })
}

#[test]
fn a_member_that_keeps_all_it_gets_makes_every_other_one_raise_the_alarm() {
    let hoarder = NodeId(3);
    for policy in POLICIES {
        let config = SwarmConfig { policy, ..least_squares(8, 400, 0.02) };
        let planted_in = [(hoarder, Planted::KeepsAll)].into();
        let mut swarm = Swarm::new(SwarmConfig { planted_in, ..config }).unwrap();
        swarm.run_until_drained(HOUR).unwrap();
        let alarmed = nodes_that_report(&swarm, is_alarm);
        let others: BTreeSet<NodeId> = ids(8).filter(|id| *id != hoarder).collect();
        println!("{policy:?}: {alarmed:?}");
        assert_eq!(alarmed, others, "{policy:?}");
        // Not a unit is missing, and no ratio has run away.
        assert!(swarm.audit().is_complete());
        assert!(ids(8).all(|id| swarm.ratio(id).iter().all(|z| z.abs() < 100.0)), "{policy:?}");
    }
}

#[test]
fn a_healthy_irregular_swarm_that_loses_a_fifth_of_its_messages_raises_no_alarm() {
    for policy in POLICIES {
        for seed in 0..3 {
            let config = least_squares(9, 400, 0.02).over_datagrams(0.2, 0.05);
            let mut swarm = Swarm::new(SwarmConfig { policy, seed, ..config }).unwrap();
            swarm.run_until_drained(HOUR).unwrap();
            let lowest = swarm.events().iter().filter_map(|(_, _, event)| match event {
                Event::RoundFinished(report) => Some(report.mass_share),
                _ => None,
            });
            let lowest = lowest.fold(f64::INFINITY, f64::min);
            println!("{policy:?} seed {seed}: lowest {lowest:.3}");
            assert_eq!(nodes_that_report(&swarm, is_alarm), [].into(), "{policy:?}, seed {seed}: {lowest}");
        }
    }
}
