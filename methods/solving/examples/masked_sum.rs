//! Time and bytes of a masked sum beside a plain one: 1.66 million numbers of each of 8 members, in one process.
//!
//! ```sh
//! cargo run --release -p mingle-solving --example masked_sum
//! ```
//!
//! All members work in turn on one thread: encoding, masking, adding and decoding, and both ways of every message through
//! bytes. On a network their work happens at the same time, and the bytes take time too. Each way is measured in turns.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_protocol::NodeId;
use mingle_solving::{
    Aggregation, LearningError, Problem, RoundLearning, RoundRules, RoundTask, SolverPeer, StatisticsTable,
    SumProtection, Sums, schedule,
};

const MEMBERS: usize = 8;
const NUMBERS: usize = 1_660_000;
const TURNS: usize = 5;

/// One round in which all share a vector.
#[derive(Debug)]
struct OneRound(RoundRules);

struct Vector {
    node: usize,
    mean: f32,
}

impl RoundTask for OneRound {
    fn hash(&self) -> [u8; 32] {
        [1; 32]
    }
    fn describe(&self) -> String {
        "one sum".to_owned()
    }
    fn title(&self) -> String {
        "One sum".to_owned()
    }
    fn rules(&self) -> &RoundRules {
        &self.0
    }
    fn open(&self, node: usize, _: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        Ok(Box::new(Vector { node, mean: 0.0 }))
    }
}

impl RoundLearning for Vector {
    fn identity(&self) -> [u8; 32] {
        [0; 32]
    }
    fn statistics(&mut self, _: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        Ok(None)
    }
    fn train(&mut self, _: u64) -> Result<Vec<f32>, LearningError> {
        Ok((0..NUMBERS).map(|place| ((place * 31 + self.node * 7) % 1_000) as f32 / 999.0 - 0.5).collect())
    }
    fn aggregation(&self, _: u64) -> Aggregation {
        Aggregation::Mean
    }
    fn take(&mut self, _: u64, aggregate: &[f32]) -> Result<(), LearningError> {
        self.mean = aggregate.iter().sum();
        Ok(())
    }
    fn evaluate(&mut self, _: u64) -> Result<Vec<Option<f64>>, LearningError> {
        Ok(vec![None])
    }
    fn state(&self) -> Vec<u8> {
        self.mean.to_le_bytes().to_vec()
    }
    fn restore(&mut self, _: &[u8]) -> Result<(), LearningError> {
        Ok(())
    }
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        Ok(Vec::new())
    }
}

/// Seconds and bytes until all members have the mean, and the sum of its places.
fn run(topology: &str, protection: SumProtection) -> Result<(f64, u64), Box<dyn Error>> {
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    let plan = mingle_planner::design(&Topology::generate(topology)?, Method::CliquePhi, &options)?;
    let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
    let rules = RoundRules::new(1, vec!["nothing".to_owned()])?;
    let problem = Problem::of_rounds(Arc::new(OneRound(rules)), Arc::new(names));
    let communication = Arc::new(problem.communication(&plan, Arc::new(schedule(&plan)?))?);
    let parts = problem.parts()?;
    let began = Instant::now();
    let sums = Sums::simulated(protection, MEMBERS, 1);
    let peer = |(me, (part, sums))| SolverPeer::new(me, &problem, part, Arc::clone(&communication), 0, sums);
    let mut peers: Vec<SolverPeer> = parts.into_iter().zip(sums).enumerate().map(peer).collect();
    let mut bytes = 0;
    while peers.iter().any(|peer| peer.outcome().is_none()) {
        for from in 0..peers.len() {
            while let Some(work) = peers[from].local_work() {
                work.run();
                peers[from].worked();
            }
            while let Some((to, envelope)) = peers[from].poll() {
                bytes += envelope.frame.len() as u64;
                peers[to.index()].handle(NodeId(u32::try_from(from)?), &envelope)?;
            }
        }
    }
    for peer in &peers {
        peer.outcome().ok_or("no outcome")?.map_err(Clone::clone)?;
    }
    Ok((began.elapsed().as_secs_f64(), bytes))
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{NUMBERS} numbers, {MEMBERS} members, {TURNS} turns, medians");
    for topology in ["ring:n=8", "complete:n=8"] {
        let (mut plain, mut masked, mut bytes) = (Vec::new(), Vec::new(), [0; 2]);
        for _ in 0..TURNS {
            let (seconds, sent) = run(topology, SumProtection::Plain)?;
            plain.push(seconds);
            bytes[0] = sent;
            let (seconds, sent) = run(topology, SumProtection::Masked)?;
            masked.push(seconds);
            bytes[1] = sent;
        }
        let (plain, masked) = (median(plain), median(masked));
        println!("{topology:<12} plain {plain:.3} s, {} bytes", bytes[0]);
        println!("{topology:<12} masked {masked:.3} s, {} bytes", bytes[1]);
        println!(
            "{topology:<12} ratio {:.2} of the time, {:.4} of the bytes",
            masked / plain,
            bytes[1] as f64 / bytes[0] as f64
        );
    }
    Ok(())
}
