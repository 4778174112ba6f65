//! Plans a mixing graph, runs the production nodes on it over a network that loses a third of all messages, and shows
//! that they agree on the true average while no weight is lost.

use std::error::Error;
use std::sync::Arc;

use mingle_planner::{DesignOptions, Method, Topology, design};
use mingle_protocol::sim::{SimulatedSwarm, SwarmConfig};
use mingle_protocol::{NodeId, Schedule, Step, Time};

fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::generate("rg:n=12,r=0.5,seed=4")?;
    let plan = design(&topology, Method::NguyenHe, &DesignOptions::default())?;
    println!(
        "plan: {} links in {} slots, |lambda2| {:?}",
        plan.forecast().links,
        plan.forecast().slots_per_period,
        plan.forecast().lambda_2
    );

    // Node i starts from the number i; nothing is trained, so the swarm can only average.
    let nodes = plan.nodes().len();
    let schedule = Schedule::new(nodes, &steps(&plan), 0)?;
    let numbers: Vec<Vec<f32>> = (0_u16..).take(nodes).map(|number| vec![f32::from(number)]).collect();
    let truth = numbers.iter().map(|number| f64::from(number[0])).sum::<f64>() / numbers.len() as f64;

    let mut config = SwarmConfig::averaging(Arc::new(schedule), numbers, 60).over_datagrams(0.33, 0.05);
    config.seed = 7;
    let mut swarm = SimulatedSwarm::new(config)?;
    swarm.run_until_drained(Time::from_millis(3_600_000))?;

    for node in (0_u32..).take(nodes).map(NodeId) {
        println!("node {node:>2} has {:.6}, the average is {truth}", swarm.ratio(node)[0]);
    }
    let audit = swarm.audit();
    println!(
        "the weights sum to {nodes} exactly: {}; checked after each of {} events",
        audit.is_complete(),
        swarm.wire_checks()
    );
    println!("trace {}", hex(&swarm.digest()));
    Ok(())
}

/// The steps of the planner in the form of the protocol.
fn steps(plan: &mingle_planner::Plan) -> Vec<Step> {
    let node = |index: usize| NodeId(u32::try_from(index).unwrap_or(u32::MAX));
    plan.steps()
        .iter()
        .map(|step| Step {
            keep: step.keep(),
            links: step.links().iter().map(|link| (node(link.from), node(link.to), link.weight)).collect(),
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
