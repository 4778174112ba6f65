//! The codec in which the planner prices a plan, and that in which nodes send under it.

use mingle_planner::{DesignOptions, Medium, Method, Topology, load::FOUR_BITS};
use mingle_protocol::{Codec, CodecChoice};
use mingle_solving::schedule;

/// Parameters of a model of some whole blocks of every codec.
const DIMENSION: usize = 1 << 12;

#[test]
fn the_planner_prices_a_plan_by_the_bytes_that_nodes_send_under_it() {
    let coded = |codec: Codec| codec.encoded_len(DIMENSION) as f64 / Codec::F32.encoded_len(DIMENSION) as f64;
    assert!((coded(Codec::Int4) - FOUR_BITS).abs() < 1e-12);
    let gossip = ["periodic-average:inner=d-psgd,k=7", "periodic-average:inner=d-psgd,k=8", "base:k=2"];
    let methods = Method::ALL.into_iter().chain(gossip.map(|text| text.parse::<Method>().unwrap()));
    let mut shares = Vec::new();
    for method in methods {
        for (topology, local_steps) in [("complete:n=8", 20), ("complete:n=5", 0), ("ring:n=6", 2)] {
            let options =
                DesignOptions { medium: Medium::PointToPoint, local_steps, effort: 1, ..DesignOptions::default() };
            let Ok(plan) = mingle_planner::design(&Topology::generate(topology).unwrap(), method, &options) else {
                continue;
            };
            let schedule = schedule(&plan).unwrap();
            let chosen = CodecChoice::Auto.under(&schedule, DIMENSION).codec;
            let sent = schedule.encodings(chosen).bytes(DIMENSION) as f64;
            let whole = schedule.encodings(Codec::F32).bytes(DIMENSION) as f64;
            let priced = plan.round_load(FOUR_BITS).unwrap().payload_share;
            assert!((sent / whole - priced).abs() < 1e-12, "{topology} by {method}: {} and {priced}", sent / whole);
            shares.push(priced);
        }
    }
    assert!(shares.contains(&FOUR_BITS) && shares.contains(&1.0), "{shares:?}");
}
