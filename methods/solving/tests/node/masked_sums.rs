//! The view that others have of a node's part in a sum, and attacks on the masks, through the messages that nodes send.

use std::sync::Arc;

use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_protocol::collective::{Frame, OperationMessage, SequenceMessage, SizeLimits};
use mingle_protocol::{Envelope, NodeId};
use mingle_solving::{
    Aggregation, CommunicationPlan, Learned, LearningError, MarkedFrame, MaskingError, Problem, RoundLearning,
    RoundRules, RoundTask, SolveError, SolverPeer, StatisticsTable, SumProtection, Sums, schedule,
};

const NODES: usize = 5;
const SHARED: usize = 20_000;

/// Nodes of a star that learn for one round, where each shares the same number in all places of a long vector.
#[derive(Debug)]
struct Numbers(RoundRules);

struct Number {
    node: usize,
    mean: f32,
    /// `true` if all places of the last mean are the same.
    is_even: bool,
}

/// The number of a node, which no other node is to see.
fn number(node: usize) -> f32 {
    0.77 + node as f32 / 3.0
}

/// The metric of a node.
fn metric(node: usize) -> f64 {
    0.123 + node as f64 / 7.0
}

impl RoundTask for Numbers {
    fn hash(&self) -> [u8; 32] {
        [8; 32]
    }
    fn describe(&self) -> String {
        "numbers".to_owned()
    }
    fn title(&self) -> String {
        "Numbers".to_owned()
    }
    fn rules(&self) -> &RoundRules {
        &self.0
    }
    fn open(&self, node: usize, _: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        Ok(Box::new(Number { node, mean: 0.0, is_even: true }))
    }
}

impl RoundLearning for Number {
    fn identity(&self) -> [u8; 32] {
        [self.node as u8; 32]
    }
    fn statistics(&mut self, _: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        Ok(None)
    }
    fn train(&mut self, _: u64) -> Result<Vec<f32>, LearningError> {
        Ok(vec![number(self.node); SHARED])
    }
    fn aggregation(&self, _: u64) -> Aggregation {
        Aggregation::Mean
    }
    fn take(&mut self, _: u64, aggregate: &[f32]) -> Result<(), LearningError> {
        self.mean = aggregate[0];
        self.is_even = aggregate.iter().all(|value| *value == self.mean);
        Ok(())
    }
    fn evaluate(&mut self, _: u64) -> Result<Vec<Option<f64>>, LearningError> {
        Ok(vec![Some(metric(self.node))])
    }
    fn state(&self) -> Vec<u8> {
        self.mean.to_le_bytes().to_vec()
    }
    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        self.mean = f32::from_le_bytes(state.try_into().unwrap());
        Ok(())
    }
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        Ok(vec![("mean.bin".to_owned(), [self.state(), vec![u8::from(self.is_even)]].concat())])
    }
}

/// The messages sent, with sender and receiver.
type Sent = (usize, usize, SequenceMessage);
/// A change of messages on their way.
type Tamper<'a> = &'a mut dyn FnMut(usize, usize, &mut SequenceMessage);

const LIMITS: SizeLimits = SizeLimits { nodes: NODES, dimension: 1 << 20 };

struct Swarm {
    peers: Vec<SolverPeer>,
    sent: Vec<Sent>,
}

impl Swarm {
    /// A line of nodes 0 - 1 - 2 - 3 - 4, so that there are leaves and relays.
    fn new(protection: SumProtection) -> Self {
        Self::with(Sums::simulated(protection, NODES, 1))
    }

    fn with(sums: Vec<Sums>) -> Self {
        let edges: Vec<(usize, usize)> = (1..NODES).map(|node| (node - 1, node)).collect();
        let topology = Topology::new((0..NODES).map(|node| node.to_string()).collect(), &edges).unwrap();
        let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
        let plan = mingle_planner::design(&topology, Method::LazyMetropolis, &options).unwrap();
        let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
        let rules = RoundRules::new(1, vec!["score".to_owned()]).unwrap();
        let problem = Problem::of_rounds(Arc::new(Numbers(rules)), Arc::new(names));
        let communication: Arc<CommunicationPlan> =
            Arc::new(problem.communication(&plan, Arc::new(schedule(&plan).unwrap())).unwrap());
        let peer =
            |(me, sums)| SolverPeer::new(me, &problem, problem.part(me).unwrap(), Arc::clone(&communication), 0, sums);
        Self { peers: sums.into_iter().enumerate().map(peer).collect(), sent: Vec::new() }
    }

    /// Delivers all messages, until there are none.
    fn run(&mut self, tamper: Tamper<'_>) {
        while self.step(tamper) {}
    }

    /// Every node works and sends once. Returns `false` if there was nothing to do.
    fn step(&mut self, tamper: Tamper<'_>) -> bool {
        let mut is_quiet = true;
        for from in 0..self.peers.len() {
            while let Some(work) = self.peers[from].local_work() {
                work.run();
                self.peers[from].worked();
                is_quiet = false;
            }
            while let Some((to, envelope)) = self.peers[from].poll() {
                is_quiet = false;
                self.deliver(from, to, envelope, tamper);
            }
        }
        !is_quiet
    }

    fn deliver(&mut self, from: usize, to: NodeId, mut envelope: Envelope, tamper: Tamper<'_>) {
        let mut marked = MarkedFrame::decode(&envelope.frame, &LIMITS).unwrap();
        if let Some((_, message)) = &mut marked.frame.message {
            self.sent.push((from, to.index(), message.clone()));
            tamper(from, to.index(), message);
        }
        envelope.frame = marked.encode();
        // A node refuses some of what is tampered with.
        let _ = self.peers[to.index()].handle(NodeId(from as u32), &envelope);
    }

    fn learned(&self) -> Vec<Learned> {
        let learned = |peer: &SolverPeer| peer.outcome().unwrap().unwrap().learned().unwrap().clone();
        self.peers.iter().map(learned).collect()
    }

    fn errors(&self) -> Vec<Option<SolveError>> {
        self.peers.iter().map(|peer| peer.outcome().and_then(|found| found.err().cloned())).collect()
    }

    /// All words that are not of a whole sum, as sent by leaves or relays.
    fn masked_words(&self) -> Vec<u64> {
        let words = self.sent.iter().filter_map(|(_, _, message)| match &message.payload {
            OperationMessage::ModularPartial(partial) if !partial.is_whole => Some(&partial.words),
            _ => None,
        });
        words.flatten().copied().collect()
    }

    /// Nodes some number of which is sent in clear, other than in a result of all.
    fn shown(&self) -> Vec<usize> {
        let is_shown = |node: &usize| {
            let own = [f64::from(number(*node)), metric(*node)];
            self.sent.iter().any(|(_, _, message)| match &message.payload {
                OperationMessage::Partial(partial) => partial.values.iter().any(|value| own.contains(value)),
                OperationMessage::Extremum(best) => best.values.iter().any(|(value, _)| own.contains(value)),
                OperationMessage::Exchange(sent) => sent.values.iter().any(|value| own.contains(value)),
                OperationMessage::Share(share) => share.values.iter().any(|value| own.contains(value)),
                OperationMessage::Pull(sent) => sent.values.iter().any(|value| own.contains(value)),
                OperationMessage::ModularPartial(_) => false,
            })
        };
        (0..NODES).filter(is_shown).collect()
    }
}

/// The chi-squared statistic of the bytes, with 255 degrees of freedom.
fn chi_squared(words: &[u64]) -> f64 {
    let mut counts = [0_u32; 256];
    words.iter().flat_map(|word| word.to_le_bytes()).for_each(|byte| counts[usize::from(byte)] += 1);
    let expected = words.len() as f64 * 8.0 / 256.0;
    counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
}

const MOST_CHI_SQUARED: f64 = 255.0 + 6.0 * 22.6;

#[test]
fn no_node_shows_a_number_of_its_own_where_sums_are_masked_and_leaves_do_where_they_are_plain() {
    let mut masked = Swarm::new(SumProtection::Masked);
    masked.run(&mut |_, _, _| {});
    assert_eq!(masked.shown(), Vec::<usize>::new());
    let words = masked.masked_words();
    assert!(words.len() >= (NODES - 1) * SHARED, "{}", words.len());
    assert!(chi_squared(&words) < MOST_CHI_SQUARED, "{}", chi_squared(&words));
    let mut plain = Swarm::new(SumProtection::Plain);
    plain.run(&mut |_, _, _| {});
    assert_eq!(plain.shown(), [0, 4], "both ends of the line");
    assert!(plain.masked_words().is_empty());
    for (one, other) in masked.learned().iter().zip(plain.learned()) {
        let [mean, other_mean] = [one, &other].map(|learned| learned.history[0].mean[0].unwrap());
        assert!((mean - other_mean).abs() < 1e-14, "{mean} {other_mean}");
        assert_eq!(one.history[0].mean, masked.learned()[0].history[0].mean);
        assert_eq!(one.files, other.files);
        assert_eq!(one.files[0].1[4], 1, "all places have the same mean");
    }
}

/// The words that each node of this swarm sends up at each sum.
fn leaf_words(swarm: &Swarm, leaf: usize) -> Vec<(u64, Vec<u64>)> {
    let of_leaf = swarm.sent.iter().filter(|(from, _, _)| *from == leaf);
    let words = of_leaf.filter_map(|(_, _, message)| match &message.payload {
        OperationMessage::ModularPartial(partial) if !partial.is_whole => {
            Some((message.operation, partial.words.clone()))
        }
        _ => None,
    });
    words.collect()
}

/// All nodes begin another attempt, as after the death of one: the differences of what a leaf sent in both are no
/// differences of its inputs, which are the same.
#[test]
fn the_same_input_in_another_attempt_goes_out_under_another_mask() {
    let mut swarm = Swarm::new(SumProtection::Masked);
    while leaf_words(&swarm, 0).is_empty() {
        assert!(swarm.step(&mut |_, _, _| {}));
    }
    let first = leaf_words(&swarm, 0);
    assert_eq!(first[0].1.len(), SHARED + 1, "the vector of a round that nobody has kept, and the word of the check");
    swarm.sent.clear();
    let task = {
        // An envelope of any node has the mark of the problem.
        let mut other = Swarm::new(SumProtection::Masked);
        std::iter::from_fn(|| other.peers[0].poll()).next().unwrap().1.task
    };
    let nothing = MarkedFrame { process: 0, frame: Frame { acknowledged: 0, message: None } };
    let anew = Envelope { task, attempt: 1, frame: nothing.encode() };
    swarm.peers[1].handle(NodeId(0), &anew).unwrap();
    swarm.run(&mut |_, _, _| {});
    let second = leaf_words(&swarm, 0);
    assert_eq!((second[0].0, second[0].1.len()), (first[0].0, SHARED + 1), "the same sum of the same values");
    let differences: Vec<u64> = first[0].1.iter().zip(&second[0].1).map(|(a, b)| a.wrapping_sub(*b)).collect();
    assert!(chi_squared(&differences) < MOST_CHI_SQUARED, "{}", chi_squared(&differences));
    assert!(swarm.peers.iter().all(|peer| peer.outcome().is_some_and(|found| found.is_ok())));
}

/// Node 1 relays all that goes to and from the leaf 0. It puts another key in the place of one on the way.
#[test]
fn a_relay_that_changes_a_key_is_found_out_and_gets_no_sum() {
    for victim in [0, 4] {
        let mut swarm = Swarm::new(SumProtection::Masked);
        let mut changed = 0;
        swarm.run(&mut |_, to, message| {
            if let OperationMessage::Partial(partial) = &mut message.payload
                && to == 0
                && partial.is_whole
                && message.operation == 2
            {
                partial.values[24 * victim] = f64::from(!(partial.values[24 * victim] as u32));
                changed += 1;
            }
        });
        assert_eq!(changed, 1);
        let expected = match victim {
            0 => MaskingError::OwnRow,
            member => MaskingError::Forged { member },
        };
        assert_eq!(swarm.errors()[0], Some(SolveError::Masking(expected)));
        assert!(leaf_words(&swarm, 0).is_empty(), "the leaf sent a sum");
    }
    // What is no key at all.
    let mut swarm = Swarm::new(SumProtection::Masked);
    swarm.run(&mut |_, to, message| {
        if let (OperationMessage::Partial(partial), 0, 2) = (&mut message.payload, to, message.operation) {
            partial.values[24 * 3 + 5] = 0.5;
        }
    });
    assert_eq!(swarm.errors()[0], Some(SolveError::Masking(MaskingError::Unreadable { member: 3 })));
}

/// A scale that is too small for the leaf's values would cut them, and tell how large they are.
#[test]
fn a_scale_below_a_nodes_own_values_is_refused() {
    let mut swarm = Swarm::new(SumProtection::Masked);
    swarm.run(&mut |_, to, message| {
        if let OperationMessage::Partial(partial) = &mut message.payload
            && to == 0
            && partial.values.len() == 1
        {
            partial.values[0] = -40.0;
        }
    });
    assert_eq!(swarm.errors()[0], Some(SolveError::Masking(MaskingError::Scale { agreed: -40, own: 0 })));
    assert!(leaf_words(&swarm, 0).is_empty());
}

/// A member that adds rubbish spoils the sum, which all notice, and learns nothing.
#[test]
fn rubbish_in_a_sum_ends_it_for_all() {
    let mut swarm = Swarm::new(SumProtection::Masked);
    swarm.run(&mut |from, _, message| {
        if let OperationMessage::ModularPartial(partial) = &mut message.payload
            && from == 4
        {
            partial.words.iter_mut().for_each(|word| *word = word.wrapping_mul(3));
        }
    });
    assert_eq!(swarm.errors(), vec![Some(SolveError::Masking(MaskingError::Uncancelled)); NODES]);
}

/// The relay 1 changes one value of each result that it passes on to the leaf 0, beginning with this one. Hashes that nodes
/// compare, lengths, and the leaf's own row show it, or else the next sum does.
#[test]
fn a_relay_that_shows_a_leaf_other_results_than_the_rest_gets_no_sum_with_the_leaf_in_it() {
    let mut spoiled = 0;
    for first in 3..40 {
        let mut swarm = Swarm::new(SumProtection::Masked);
        let mut changed = None;
        swarm.run(&mut |_, to, message| {
            let is_due = to == 0 && message.operation == first;
            match &mut message.payload {
                OperationMessage::Partial(partial) if is_due && partial.is_whole => {
                    let last = partial.values.last_mut().unwrap();
                    *last += 1.0;
                    changed = Some(message.operation);
                }
                _ => {}
            }
        });
        let Some(changed) = changed else { continue };
        let errors = swarm.errors();
        let later = leaf_words(&swarm, 0).iter().filter(|(operation, _)| *operation > changed).count();
        let is_last = errors.iter().all(Option::is_none) && later == 0;
        assert!(is_last || errors[0].is_some(), "operation {changed}: {errors:?}");
        spoiled += usize::from(errors.contains(&Some(SolveError::Masking(MaskingError::Uncancelled))));
    }
    assert!(spoiled > 0, "no lie came to where masks alone show it");
}

/// A node that was told of another list of members signs for that list, and is refused.
#[test]
fn a_node_with_another_list_of_members_takes_part_in_no_sum() {
    let mut sums = Sums::simulated(SumProtection::Masked, NODES, 1);
    let other = Sums::simulated(SumProtection::Masked, NODES, 2);
    let (Sums::Masked(own), Sums::Masked(others)) = (&sums[2], &other[2]) else { panic!("masked") };
    let mut identities = own.identities.to_vec();
    identities[4] = others.identities[4];
    let Sums::Masked(member) = std::mem::replace(&mut sums[2], Sums::Plain(SumProtection::Plain)) else {
        panic!("masked")
    };
    let mut member = Arc::into_inner(member).unwrap();
    member.identities = identities.into();
    sums[2] = Sums::Masked(Arc::new(member));
    let mut swarm = Swarm::with(sums);
    swarm.run(&mut |_, _, _| {});
    let forged = |member| Some(SolveError::Masking(MaskingError::Forged { member }));
    assert_eq!(swarm.errors(), [forged(2), forged(2), forged(0), forged(2), forged(2)]);
    assert!(swarm.masked_words().is_empty());
}

#[test]
fn nodes_that_differ_in_the_protection_of_sums_solve_different_problems() {
    let mut masked = Swarm::new(SumProtection::Masked);
    let mut plain = Swarm::new(SumProtection::Plain);
    let (to, envelope) = masked.peers[0].poll().unwrap();
    let taken = plain.peers[to.index()].handle(NodeId(0), &envelope).unwrap();
    assert_eq!(taken, mingle_solving::Reception::OtherProblem);
}
